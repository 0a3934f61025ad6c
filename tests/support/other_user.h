// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "common/unique_fd.h"

/// Other users of this machine, and containers with users of their own. Only root can be those: a
/// test that needs them says SLUICE_NEEDS_OTHER_USERS first. What goes wrong throws.
namespace sluice::testing {

#define SLUICE_NEEDS_OTHER_USERS() \
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user"

/// Of nobody else.
inline constexpr uid_t kVictim = 61'001;
inline constexpr uid_t kImpostor = 61'002;

/// What `act` says in a process of this user. It may read all files: what is built may lie where
/// only its owner gets to.
std::string AsUser(uid_t user, const std::function<std::string()>& act);

/// A new folder of this user's that anybody may enter.
void MakeFolderOf(uid_t user, const std::string& path);

/// A socket, open to all, at which a process of this user has begun to listen.
UniqueFd ListenAs(uid_t user, const std::string& path);

/// Connections that came since, and what was sent over them. They are closed.
struct Heard {
  int connections = 0;
  size_t bytes = 0;
};
Heard WhatCame(const UniqueFd& listener);

/// How a container comes to the folder at `source`, as /run/sluice is a grant's.
struct Container {
  std::string source = {};
  std::string target = {};    // where it is mounted; a folder that is there
  bool is_mounted = true;     // else nothing is
  bool read_only = true;      // so it is mounted
  bool mounts_inside = true;  // in a mount namespace of the container's; else around it
  bool may_mount = false;     // what runs in it keeps CAP_SYS_ADMIN
  uid_t maker = 0;            // who makes the user namespace, and is none of its users if root
  uid_t user = 0;             // what runs in it, as it is called there
};

/// What `act` says in it. Users 0 to 65535 of it are none of the machine's; where its maker is not
/// root, the maker is its only user, 0.
std::string InContainer(const Container& container, const std::function<std::string()>& act);

}  // namespace sluice::testing
