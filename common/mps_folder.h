// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Where NVIDIA's MPS control daemons of a node listen and write, one for each GPU:
///
///   DIR/UUID/      root's, 0755: the pipe folder, which the containers of that GPU get
///   DIR/log/UUID/  root's, 0700: its logs
///
/// DIR itself is root's, 0711: an MPS server that runs as another user only passes through.
inline constexpr std::string_view kDefaultMpsDir = "/run/sluice/mps";

inline std::string MpsPipeFolder(const std::string& dir, const std::string& gpu) {
  return dir + "/" + gpu;
}
inline std::string MpsLogFolder(const std::string& dir, const std::string& gpu) {
  return dir + "/log/" + gpu;
}

/// Characters of DIR: the path of a socket, "/UUID/control_privileged" below it, has at most 107.
inline constexpr size_t kMaxMpsDir =
    107 - 1 - 40 - 1 - std::string_view("control_privileged").size();

}  // namespace sluice
