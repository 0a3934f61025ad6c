// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <vector>

#include "scheduler/audit/audit.h"
#include "tests/unit/noderuntime/flow/flow_fixture.h"

namespace sluice::flow {

/// Jobs with a profile, on a node that has host memory for them.
class FlowMovesTest : public FlowTest {
 protected:
  static constexpr uint32_t kLayers = 16;
  static constexpr Units kBase = 2;

  FlowMovesTest() { sink_.host = true; }

  /// A job with a profile of kBase + kLayers units, at its gate 0.
  void Ready(JobId job) {
    if (flow_->Find(job) == nullptr) Start(job, 30, kBase);
    ASSERT_TRUE(Lease(job, kBase).ok());
    clients_[job].Push(protocol::OpKind::kAlloc, kBase * kUnit);
    ASSERT_TRUE(Lease(job, kLayers).ok());
    profile_[job] = Measure(job, kLayers);
    ASSERT_NE(profile_[job], 0u);
    base_[job] = {{Leased(job).front().offset, kBase}};
    ToGateZero(job);
  }
  Extents Leased(JobId job) {
    return flow_->ledger().map().Held(job, scheduler::UnitState::kLeased);
  }
  void ToGateZero(JobId job) {
    std::vector<protocol::Extent> rest;
    for (const auto& extent : scheduler::Subtract(Leased(job), base_[job])) {
      rest.push_back({extent.offset, extent.length});
    }
    if (!rest.empty()) {
      ASSERT_TRUE(Release(job, rest).ok());
    }
    ASSERT_TRUE(Gate(job, 0, profile_[job], iteration_++).ok());
  }
  /// A unit of each extent, with a fence that is reached and with one that never is.
  void ExpectNothingIsTakenBack(JobId job, const Extents& extents) {
    const std::vector<std::vector<protocol::FenceTerm>> fences = {{}, {{3, 0, 9}}};
    for (const scheduler::Extent& extent : extents) {
      for (const auto& fence : fences) {
        const Status released = Release(job, {{extent.offset, 1}}, fence);
        EXPECT_NE(released.message().find("Release from a job whose memory is moved"),
                  std::string::npos)
            << "unit " << extent.offset << ": '" << released.message() << "'";
      }
    }
  }
  void ExpectSoundLog() {
    for (const auto& violation : scheduler::Audit(sink_.records).violations) {
      ADD_FAILURE() << violation.rule << ": " << violation.text;
    }
  }

  std::map<JobId, uint32_t> profile_;
  std::map<JobId, Extents> base_;
  uint64_t iteration_ = 0;
};

}  // namespace sluice::flow
