// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/runtime_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/peer/connect.h"

namespace sluice::noded {

Result<RuntimeDir> RuntimeDir::Open(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "runtime-dir " + path);
  }
  // Not through a link: whoever could redirect this folder could pose as the daemon.
  peer::Folder folder;
  if (const int error = peer::Look(path.c_str(), &folder); error != 0) {
    return Status::FromErrno(error, "runtime-dir " + path);
  }
  if (!peer::IsPrivate(folder, ::geteuid())) {
    return Status(StatusCode::kPermissionDenied,
                  "runtime-dir " + path + ": allowed: a folder of this user with mode 0700");
  }
  const std::string lock_path = path + "/noded.lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return Status::FromErrno(errno, lock_path);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status(StatusCode::kFailedPrecondition,
                  "another sluice-noded serves " + path + " already (" + lock_path + " is locked)");
  }
  return RuntimeDir(path, std::move(lock));
}

Status RuntimeDir::Begin(const std::set<uint32_t>& kept_jobs) const {
  RemoveControlSocket();
  const std::string jobs = path_ + "/jobs";
  if (::mkdir(jobs.c_str(), 0700) != 0 && errno != EEXIST) return Status::FromErrno(errno, jobs);
  std::set<std::string> kept;
  for (const uint32_t job : kept_jobs) kept.insert(std::to_string(job));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(jobs, ignored)) {
    if (kept.contains(entry.path().filename().string())) continue;
    std::filesystem::remove_all(entry.path(), ignored);
  }
  return {};
}

void RuntimeDir::RemoveControlSocket() const {
  std::error_code ignored;
  std::filesystem::remove(control_socket(), ignored);
}

Status RuntimeDir::MakeJobDir(uint32_t job) const {
  if (::mkdir(job_dir(job).c_str(), 0700) != 0) return Status::FromErrno(errno, job_dir(job));
  return {};
}

void RuntimeDir::RemoveJobDir(uint32_t job) const {
  std::error_code ignored;
  std::filesystem::remove_all(job_dir(job), ignored);
}

void RuntimeDir::Clear() const {
  RemoveControlSocket();
  std::error_code ignored;
  std::filesystem::remove_all(path_ + "/jobs", ignored);
}

}  // namespace sluice::noded
