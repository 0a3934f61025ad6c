// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/peer/connect.h"
#include "common/status.h"
#include "noderuntime/cli/environment.h"

namespace sluice::cli {

/// Where the parts of an installed or built Sluice lie, all relative to the running program: bin/
/// with the programs, lib/ with the library, simgpu/ with the simulated driver (absent when not
/// built).
struct Layout {
  std::string bin;
  std::string library;  // lib/libsluice.so
  /// What to put into LD_PRELOAD: lib/preload/$LIB/libsluice.so where there is such a folder (links
  /// to the library under each word that glibc has for $LIB), else the library itself. A program
  /// with another C library, which does not know $LIB, then runs without the library; given the
  /// library's own path it would not run at all.
  std::string preload;
  std::string simgpu;

  /// From the path of the running executable.
  static Result<Layout> Find();
  /// From the folder that holds the programs.
  static Layout At(const std::string& bin);
  std::string Program(const std::string& name) const { return bin + '/' + name; }
};

/// $SLUICE_RUNTIME_DIR, else $XDG_RUNTIME_DIR/sluice, else /tmp/sluice-<uid>.
std::string RuntimeDir(const Environment& environment, unsigned uid);

/// Makes `dir` (0700) unless it is there; refuses one that others own or may enter, because whoever
/// holds this folder can pose as the daemon.
Status MakeRuntimeDir(const std::string& dir);

/// How far root may go to a socket, or a file, at this path. To another user's where it was sent
/// there; never in its own /tmp/sluice-0, which another user may have made.
peer::Reach ReachOf(const std::string& path);

/// Whether a daemon in `dir`, or a file, may be believed: the folder is one's own, root's, or for
/// root another user's; for files nobody else may write to it, either. kNotFound: there is none.
Status CheckRuntimeDir(const std::string& dir, peer::Use use);

std::string DaemonSocket(const std::string& runtime_dir);

}  // namespace sluice::cli
