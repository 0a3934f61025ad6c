// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/mig_mode.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/unique_fd.h"

namespace sluice::simgpu {

bool InMigMode(const std::string& dir) { return ::access((dir + "/mig").c_str(), F_OK) == 0; }

Status SetMigMode(const std::string& dir, bool on) {
  const std::string path = dir + "/mig";
  if (on) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    return file.valid() ? Status() : Status::FromErrno(errno, path);
  }
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : Status::FromErrno(errno, path);
}

}  // namespace sluice::simgpu
