// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/nvml.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::bypass {

/// Looks at a GPU's list of processes and its memory from time to time, in a thread of its own: the
/// driver's answer may take long, and nobody waits for it. Its methods are for one thread.
class ProcessWatch {
 public:
  /// Between two looks. Two of them and the time to tell stay below the two seconds in which
  /// somebody who uses the GPU past Sluice is to be found.
  static constexpr int kEveryMs = 500;

  /// Errors: no management library, or the system's.
  static Result<std::unique_ptr<ProcessWatch>> Start(const Nvml::Uuid& gpu);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  /// Readable when there was another look.
  int fd() const { return news_.get(); }
  struct Seen {
    std::optional<std::vector<pid_t>> pids;  // nothing: the driver did not answer
    std::optional<uint64_t> used_bytes;      // of the GPU's memory, whoever has it; likewise
  };
  /// What it saw. Nothing: there was no other look since the last call.
  std::optional<Seen> Take();

 private:
  ProcessWatch(const Nvml::Uuid& gpu, std::unique_ptr<Nvml> nvml, UniqueFd news);
  void Work();

  const Nvml::Uuid gpu_;
  const std::unique_ptr<Nvml> nvml_;  // the thread's
  const UniqueFd news_;
  std::mutex mutex_;
  std::condition_variable ends_changed_;
  std::optional<Seen> seen_;  // guarded by mutex_
  bool ends_ = false;         // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice::bypass
