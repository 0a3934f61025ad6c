// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "intercept/protocol/page_access.h"
#include "noderuntime/flow/flow.h"
#include "noderuntime/session/frames.h"

namespace sluice::flow {

/// Everything the flow says, in order.
class RecordingSink : public FlowSink {
 public:
  void Grant(JobId job, const GrantAnswer& answer) override {
    grants[job].push_back(answer);
    order.push_back("grant " + std::to_string(job));
  }
  void Charged(JobId job, uint32_t, uint64_t outside_bytes) override {
    charged[job].push_back(outside_bytes);
  }
  void Deny(JobId job, uint32_t, protocol::DenyCode code, const std::string& text) override {
    denials[job].emplace_back(code, text);
    order.push_back("deny " + std::to_string(job));
  }
  void Notice(JobId job, uint32_t, const Line& line) override {
    notices[job].push_back(line.text);
    lines.push_back(line);
    if (line.about != About::kRecord) return;
    ASSERT_FALSE(records.empty());
    EXPECT_EQ(records.back().text, line.text);
  }
  void Log(const scheduler::Record& record) override { records.push_back(record); }
  void HolderChanged(const Extents& extents, JobId holder) override {
    for (const scheduler::Extent& extent : extents) {
      for (Units unit = extent.offset; unit < extent.end(); ++unit) holders[unit] = holder;
    }
    order.push_back("holder " + std::to_string(holder));
  }

  bool CanMove(JobId job, Units) override { return host && in_host.count(job) == 0; }
  void Quiesce(JobId job, uint32_t seq) override { quiesced[job] = seq; }
  Status MoveOut(JobId job, const Extents& extents) override {
    moved_out[job] = extents;
    if (how.ok()) in_host.insert(job);
    return how;
  }
  Status MoveBack(JobId job) override {
    moved_back.push_back(job);
    in_host.erase(job);
    return how;
  }
  Extents Copied(JobId job) override { return moved_out[job]; }
  void DropMoved(JobId job) override {
    dropped.push_back(job);
    in_host.erase(job);
  }
  void EndSession(JobId job, const std::string& text) override { ended[job] = text; }

  size_t Count(scheduler::EventKind event, JobId job) const {
    size_t count = 0;
    for (const auto& record : records) count += record.event == event && record.job == job;
    return count;
  }

  std::map<JobId, std::vector<GrantAnswer>> grants;
  std::map<JobId, std::vector<std::pair<protocol::DenyCode, std::string>>> denials;
  std::map<JobId, std::vector<std::string>> notices;
  std::map<JobId, std::vector<uint64_t>> charged;
  std::vector<scheduler::Record> records;
  std::vector<Line> lines;
  std::map<Units, JobId> holders;
  std::vector<std::string> order;
  bool host = false;  // there is host memory
  Status how;         // that copies begin
  std::map<JobId, uint32_t> quiesced;
  std::map<JobId, Extents> moved_out;
  std::set<JobId> in_host;  // something of theirs is there, or on its way
  std::vector<JobId> moved_back;
  std::vector<JobId> dropped;
  std::map<JobId, std::string> ended;
};

/// The pages of one client, and what its library would write into them.
struct FakeClient {
  std::unique_ptr<protocol::MarkPage> mark = std::make_unique<protocol::MarkPage>();
  std::unique_ptr<protocol::ClientPage> client = std::make_unique<protocol::ClientPage>();
  std::unique_ptr<protocol::DaemonPage> daemon = std::make_unique<protocol::DaemonPage>();
  uint64_t cached_tail = 0;
  uint32_t launches = 0;

  JobPages pages() const { return {mark.get(), client.get(), daemon.get()}; }
  void Push(protocol::OpKind kind, uint64_t value, uint32_t detail = 0) {
    protocol::PushRecord(*client, *daemon, cached_tail,
                         {static_cast<uint8_t>(kind), 0, 0, detail, value});
  }
  void Launch(uint64_t function, bool timed) {
    Push(protocol::OpKind::kLaunch, function, launches);
    if (timed) Push(protocol::OpKind::kLaunchTime, 50'000, launches);
    ++launches;
  }
  /// A triangle: `layers` blocks allocated on the way up and freed on the way down, each with a
  /// launch.
  void Iterate(uint32_t layers, uint64_t block) {
    const bool timed = flag(protocol::kWantTimes);
    for (uint32_t i = 0; i < layers; ++i) {
      Push(protocol::OpKind::kAlloc, block);
      Launch(100 + i, timed);
    }
    for (uint32_t i = layers; i-- > 0;) {
      Launch(200 + i, timed);
      Push(protocol::OpKind::kFree, block);
    }
  }
  bool flag(protocol::DaemonFlags flag) const { return (daemon->flags.load() & flag) != 0; }
  uint32_t profile() const {
    auto image = std::make_unique<protocol::ProfileImage>();
    EXPECT_TRUE(protocol::ReadProfile(*daemon, image.get()));
    return image->profile_id;
  }
};

class FlowTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMs = 1'000'000;
  static constexpr uint64_t kS = 1'000 * kMs;
  static constexpr uint64_t kUnit = 1 << 20;

  FlowTest() { Restart(); }
  void Restart() {
    options_.pool_units = 40;
    options_.unit_bytes = kUnit;
    options_.outside_bytes = 10 * kUnit;
    sink_ = RecordingSink();
    flow_ = std::make_unique<Flow>(options_, &sink_);
  }

  void Start(JobId job, Units limit = 0, Units request = 0) {
    flow_->Start({job, "job" + std::to_string(job), limit, request}, clients_[job].pages(), now_);
  }
  Status Lease(JobId job, Units units, Units contiguous = 1) {
    protocol::Lease lease = {};
    lease.header.seq = ++seq_;
    lease.units = units;
    lease.contiguous = contiguous;
    return flow_->OnLease(job, lease, now_);
  }
  Status Release(JobId job, const std::vector<protocol::Extent>& extents,
                 const std::vector<protocol::FenceTerm>& fence = {}) {
    return flow_->OnRelease(job, {fence, extents}, now_);
  }
  Status Gate(JobId job, uint32_t gate, uint32_t profile, uint64_t iteration = 0,
              bool drained = true) {
    protocol::Gate frame = {};
    frame.header.seq = ++seq_;
    frame.gate = gate;
    frame.profile = profile;
    frame.iteration = iteration;
    frame.drained = drained;
    return flow_->OnGate(job, frame, now_);
  }
  Status Charge(JobId job, protocol::Family family, uint64_t bytes) {
    protocol::Charge frame = {};
    frame.header.seq = ++seq_;
    frame.family = static_cast<uint32_t>(family);
    frame.bytes = bytes;
    return flow_->OnCharge(job, frame, now_);
  }
  Status Uncharge(JobId job, protocol::Family family, uint64_t bytes) {
    protocol::Uncharge frame = {};
    frame.family = static_cast<uint32_t>(family);
    frame.bytes = bytes;
    return flow_->OnUncharge(job, frame, now_);
  }
  void Pass(uint64_t ns) {
    now_ += ns;
    flow_->Tick(now_);
  }
  /// Runs iterations of `layers` units until the profile is published. The job holds base + layers
  /// units.
  uint32_t Measure(JobId job, uint32_t layers) {
    for (int i = 0; i < 64 && clients_[job].profile() == 0; ++i) {
      clients_[job].Iterate(layers, kUnit);
      Pass(5 * kMs);
    }
    return clients_[job].profile();
  }
  const scheduler::Job& Known(JobId job) { return *flow_->ledger().Find(job); }

  FlowOptions options_;
  RecordingSink sink_;
  std::unique_ptr<Flow> flow_;
  std::map<JobId, FakeClient> clients_;
  uint64_t now_ = 1'000 * kS;
  uint32_t seq_ = 0;
};

}  // namespace sluice::flow
