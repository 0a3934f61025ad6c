// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/nvml_switches.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/unique_fd.h"

namespace sluice::simgpu {
namespace {

bool IsOn(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Status Set(const std::string& path, bool on) {
  if (on) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    return file.valid() ? Status() : Status::FromErrno(errno, path);
  }
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : Status::FromErrno(errno, path);
}

}  // namespace

bool InMigMode(const std::string& dir) { return IsOn(dir + "/mig"); }
Status SetMigMode(const std::string& dir, bool on) { return Set(dir + "/mig", on); }

bool IsLost(const std::string& dir) { return IsOn(dir + "/lost"); }
Status SetLost(const std::string& dir, bool lost) { return Set(dir + "/lost", lost); }

}  // namespace sluice::simgpu
