// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::noded {

/// The daemon's folder: noded.sock for launchers, noded.lock for the election,
/// jobs/<id>/sluice.sock for each job. Only the user may enter it, and only one daemon serves it.
class RuntimeDir {
 public:
  /// Makes the folder if it is missing, takes the lock and removes what an earlier daemon left.
  static Result<RuntimeDir> Open(const std::string& path);
  RuntimeDir(RuntimeDir&&) = default;
  RuntimeDir& operator=(RuntimeDir&&) = delete;

  std::string control_socket() const { return path_ + "/noded.sock"; }
  std::string job_socket(uint32_t job) const { return job_dir(job) + "/sluice.sock"; }
  Status MakeJobDir(uint32_t job) const;
  void RemoveJobDir(uint32_t job) const;
  /// Everything but the lock file, which others may be waiting on.
  void Clear() const;

 private:
  RuntimeDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string job_dir(uint32_t job) const { return path_ + "/jobs/" + std::to_string(job); }

  std::string path_;
  UniqueFd lock_;
};

}  // namespace sluice::noded
