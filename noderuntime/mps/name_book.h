// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "noderuntime/mps/namespace_plan.h"

namespace sluice::mps {

/// Which server a trust group has and which namespace a grant. Numbers, because the names of groups
/// and grants are longer than a socket's path leaves room for; none comes twice, so that what is
/// still there of one that is over is nobody else's. A value; nothing here synchronises.
class NameBook {
 public:
  /// The same for the same two. A grant that changes its group gets another namespace.
  const Place& PlaceOf(const std::string& grant, const std::string& group) {
    const auto [server, new_group] = servers_.try_emplace(group);
    if (new_group) server->second = ServerName(++last_server_);
    const auto [place, new_grant] = places_.try_emplace(grant);
    if (new_grant || place->second.server != server->second) {
      place->second = {server->second, NamespaceName(++last_namespace_)};
    }
    return place->second;
  }
  void Forget(const std::string& grant) { places_.erase(grant); }

 private:
  std::map<std::string, std::string> servers_;  // by group
  std::map<std::string, Place> places_;         // by grant
  unsigned last_server_ = 0;
  unsigned last_namespace_ = 0;
};

}  // namespace sluice::mps
