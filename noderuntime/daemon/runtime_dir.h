// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::noded {

/// The daemon's folder: noded.sock for launchers, noded.lock for the election,
/// jobs/<id>/sluice.sock for each job, keeper.sock for its keeper. Only the user may enter it, and
/// only one daemon serves it.
class RuntimeDir {
 public:
  /// Makes the folder if it is missing and takes the lock. What an earlier daemon left stays.
  static Result<RuntimeDir> Open(const std::string& path);
  RuntimeDir(RuntimeDir&&) = default;
  RuntimeDir& operator=(RuntimeDir&&) = delete;

  std::string control_socket() const { return path_ + "/noded.sock"; }
  std::string job_socket(uint32_t job) const { return job_dir(job) + "/sluice.sock"; }
  /// Removes what an earlier daemon left but for these jobs, and makes the folder for jobs.
  Status Begin(const std::set<uint32_t>& kept_jobs = {}) const;
  const std::string& path() const { return path_; }
  Status MakeJobDir(uint32_t job) const;
  void RemoveJobDir(uint32_t job) const;
  /// Everything but the lock file, which others may be waiting on.
  void Clear() const;
  /// Nobody listens there any more.
  void RemoveControlSocket() const;

 private:
  RuntimeDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string job_dir(uint32_t job) const { return path_ + "/jobs/" + std::to_string(job); }

  std::string path_;
  UniqueFd lock_;
};

}  // namespace sluice::noded
