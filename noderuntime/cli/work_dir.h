// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::cli {

/// A private folder (0700), removed with all that is in it unless it is to be kept.
class WorkDir {
 public:
  /// A new folder under $TMPDIR or /tmp; with `keep`, that folder, which stays and must be empty or
  /// absent.
  static Result<WorkDir> Create(const std::string& keep);
  WorkDir(WorkDir&& other) noexcept;
  WorkDir& operator=(WorkDir&&) = delete;
  ~WorkDir();

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + '/' + name; }

 private:
  WorkDir(std::string path, bool keep) : path_(std::move(path)), keep_(keep) {}

  std::string path_;
  bool keep_ = false;
};

/// Turns SIGINT, SIGTERM and SIGHUP into a readable descriptor for as long as it lives, so that an
/// interrupted run takes down what it has built up.
class Interrupts {
 public:
  static Result<Interrupts> Catch();
  int fd() const { return fd_.get(); }
  bool Pending() const;

 private:
  explicit Interrupts(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace sluice::cli
