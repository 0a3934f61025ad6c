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
///   DIR/job/ID/    root's, 0755, with MPS v3 only: what the container of grant ID gets instead of
///                  the pipe folder. In it is the socket of its namespace,
///                  DIR/UUID/SERVER/NAMESPACE/ control, as a link: the folder is there before
///                  anybody knows which one that is
///
/// DIR itself is root's, 0711: an MPS server that runs as another user only passes through.
inline constexpr std::string_view kDefaultMpsDir = "/run/sluice/mps";

inline std::string MpsPipeFolder(const std::string& dir, const std::string& gpu) {
  return dir + "/" + gpu;
}
inline std::string MpsLogFolder(const std::string& dir, const std::string& gpu) {
  return dir + "/log/" + gpu;
}
inline std::string MpsJobsFolder(const std::string& dir) { return dir + "/job"; }
inline std::string MpsJobFolder(const std::string& dir, const std::string& grant) {
  return MpsJobsFolder(dir) + "/" + grant;
}

/// Characters of DIR: the path of a socket, "/UUID/control_privileged" below it, has at most 107.
inline constexpr size_t kMaxMpsDir =
    107 - 1 - 40 - 1 - std::string_view("control_privileged").size();
/// The same with MPS v3: "/s9999/j999999" comes between.
inline constexpr size_t kMaxMpsV3Dir = kMaxMpsDir - std::string_view("/s9999/j999999").size();

}  // namespace sluice
