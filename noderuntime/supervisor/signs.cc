// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/supervisor/signs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "common/unique_fd.h"

namespace sluice::supervisor {
namespace {

std::string ReadyFile(const std::string& folder) { return folder + "/ready"; }
std::string BeatFile(const std::string& folder) { return folder + "/beat"; }

/// Its time of change becomes now.
Status Touch(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid() || ::futimens(file.get(), nullptr) != 0) return Status::FromErrno(errno, path);
  return {};
}

}  // namespace

Result<Signs> Signs::Begin(const std::string& runtime_dir) {
  std::error_code failed;
  std::filesystem::create_directories(runtime_dir, failed);
  if (failed || ::chmod(runtime_dir.c_str(), 0700) != 0) {
    return Status::FromErrno(failed ? failed.value() : errno, "--runtime-dir " + runtime_dir);
  }
  Signs signs(runtime_dir);
  signs.SetReady(false);
  if (Status s = Touch(BeatFile(runtime_dir)); !s.ok()) return s;
  return signs;
}

void Signs::SetReady(bool ready) {
  if (ready) {
    (void)Touch(ReadyFile(folder_)).ok();
  } else {
    ::unlink(ReadyFile(folder_).c_str());
  }
}

void Signs::Beat() const { (void)Touch(BeatFile(folder_)).ok(); }

Status Signs::CheckReady(const std::string& runtime_dir) {
  if (Status s = CheckAlive(runtime_dir); !s.ok()) return s;
  struct stat info = {};
  if (::stat(ReadyFile(runtime_dir).c_str(), &info) == 0) return {};
  return Status(StatusCode::kUnavailable, runtime_dir + ": not every daemon serves");
}

Status Signs::CheckAlive(const std::string& runtime_dir) {
  struct stat info = {};
  if (::stat(BeatFile(runtime_dir).c_str(), &info) != 0) {
    return Status(StatusCode::kUnavailable, runtime_dir + ": no sluice-node was started here");
  }
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (now.tv_sec - info.st_mtim.tv_sec <= kStillS) return {};
  return Status(StatusCode::kUnavailable, runtime_dir + ": sluice-node has not turned for " +
                                              std::to_string(now.tv_sec - info.st_mtim.tv_sec) +
                                              " s");
}

}  // namespace sluice::supervisor
