// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <compare>
#include <set>
#include <string>
#include <vector>

/// Servers and namespaces of MPS v3, in the words of NVIDIA's manual (mpsv3-interface): what is
/// there, what is to be there, and which commands lead from one to the other. Pure.
namespace sluice::mps {

/// A namespace: its own name and its server's.
struct Place {
  std::string server;
  std::string name;
  auto operator<=>(const Place&) const = default;
};
using Places = std::set<Place>;

/// What a control daemon says that it has.
struct Listed {
  std::set<std::string> servers;
  Places namespaces;
};

/// What stands behind the program's name on a command line.
using Arguments = std::vector<std::string>;

Arguments ListServers();
Arguments ListNamespaces();
/// What the two have printed: a line each, the names in front. A line without a name that the
/// manual allows (lowercase letters, digits, underscores; at most 64) is none.
std::set<std::string> ServersIn(const std::string& csv);
Places NamespacesIn(const std::string& csv);

/// The commands, in their order, that make `wanted` of what is listed. Others' servers and
/// namespaces (ServerName, NamespaceName) are left alone. Nothing is forced: what still has clients
/// stays, and is asked for again by the next call.
std::vector<Arguments> Steps(const Places& wanted, const Listed& listed);

/// "s1" and "j1": the names that Sluice gives.
std::string ServerName(unsigned number);
std::string NamespaceName(unsigned number);

}  // namespace sluice::mps
