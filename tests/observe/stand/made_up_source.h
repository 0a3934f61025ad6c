// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "noderuntime/page/source.h"

namespace sluice::testing {

/// A daemon that there is none of: jobs whose memory rises and falls by a formula, for looking at
/// the page with more jobs than a test machine runs. Never a part of what is installed.
class MadeUpSource final : public page::Source {
 public:
  explicit MadeUpSource(unsigned jobs);

  std::vector<uint32_t> Gpus() const override { return {0}; }
  Result<std::unique_ptr<page::LiveConnection>> Connect(uint32_t gpu) const override;
  Result<std::string> Status(uint32_t gpu) const override;
  Result<uint32_t> SetPolicy(uint32_t gpu, const std::string& policy,
                             uint32_t lanes) const override;

  /// While down, nobody answers.
  void SetDown(bool down) { down_ = down; }
  /// As many from now on.
  void SetJobs(unsigned jobs) { jobs_ = jobs; }
  /// What `kLive` would say at that time (Unix ms) to who has seen all until `cursor`.
  std::string Live(uint64_t now_ms, uint64_t cursor) const;

 private:
  std::atomic<unsigned> jobs_;
  std::atomic<bool> down_{false};
  mutable std::mutex mutex_;
  mutable std::string policy_ = "flow";
  mutable uint32_t lanes_ = 64;
};

}  // namespace sluice::testing
