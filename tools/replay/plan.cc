// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "scheduler/trace/at_batch.h"

namespace sluice::replay {
namespace {

namespace trace = scheduler::trace;

Status Bad(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

uint64_t WholeWords(double bytes) {
  const double words = std::ceil(bytes / static_cast<double>(kWordBytes));
  return std::max<uint64_t>(1, static_cast<uint64_t>(words)) * kWordBytes;
}

/// In `double`: a number of nanoseconds above kLongestNs may not fit anything else.
double LaunchNs(const trace::OperatorCost& cost, const Scaling& scaling) {
  if (cost.ns != 0) return cost.ns * scaling.time;
  const double compute = static_cast<double>(cost.flops) / scaling.flops_per_s * 1e9;
  const double memory = static_cast<double>(cost.bytes) / scaling.bytes_per_s * 1e9;
  return std::max({compute, memory, scaling.floor_ns}) * scaling.time;
}

/// Gives each name a kernel, and different names different ones.
class KernelNames {
 public:
  explicit KernelNames(std::vector<std::string>* kernels) : kernels_(kernels) {}

  uint32_t Of(const std::string& name) {
    const auto known = places_.find(name);
    if (known != places_.end()) return known->second;
    const auto place = static_cast<uint32_t>(kernels_->size());
    std::string kernel = "replay_" + name.substr(0, kLongest);
    for (char& c : kernel) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (!plain) c = '_';
    }
    while (!taken_.insert(kernel).second) kernel += "_" + std::to_string(place);
    kernels_->push_back(kernel);
    places_.emplace(name, place);
    return place;
  }

 private:
  static constexpr size_t kLongest = 200;
  std::vector<std::string>* kernels_;
  std::map<std::string, uint32_t> places_;
  std::set<std::string> taken_;
};

std::vector<Use> UsesOf(const trace::Operator& op) {
  std::vector<Use> uses;
  for (const BlockId block : op.reads) uses.push_back({block, true, false});
  const size_t read = uses.size();
  std::vector<size_t> order(read);  // of the blocks that are read, by their ids
  for (size_t i = 0; i < read; ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return uses[a].block < uses[b].block; });
  for (const BlockId block : op.writes) {
    const auto found =
        std::lower_bound(order.begin(), order.end(), block,
                         [&](size_t place, BlockId id) { return uses[place].block < id; });
    if (found != order.end() && uses[*found].block == block) {
      uses[*found].writes = true;
    } else {
      uses.push_back({block, false, true});
    }
  }
  return uses;
}

}  // namespace

Result<Plan> MakePlan(const trace::Trace& trace, uint64_t batch, const Scaling& scaling) {
  const Result<trace::BatchTrace> numbers = trace::AtBatch(trace, batch);
  if (!numbers.ok()) return numbers.status();

  Plan plan;
  plan.events = trace.events;
  for (size_t id = 0; id < trace.blocks.size(); ++id) {
    const double bytes = static_cast<double>(numbers->block_bytes[id]) * scaling.size;
    if (!(bytes <= static_cast<double>(trace::kMaxNumber))) {
      return Bad("block " + std::to_string(id) + ": scaled to more than 2^53 bytes");
    }
    plan.block_bytes.push_back(WholeWords(bytes));
    if (trace.blocks[id].kind == trace::BlockKind::kTransient) continue;
    plan.kept_bytes += plan.block_bytes.back();
    ++plan.kept_blocks;
  }
  KernelNames kernels(&plan.kernels);
  for (size_t index = 0; index < trace.operators.size(); ++index) {
    const trace::Operator& op = trace.operators[index];
    const double ns = LaunchNs(numbers->costs[index], scaling);
    const std::string name = "operator " + std::to_string(index);
    if (!(ns <= static_cast<double>(kLongestNs))) return Bad(name + ": lasts more than an hour");
    plan.launches.push_back(
        {kernels.Of(op.name), static_cast<uint64_t>(std::llround(ns)), UsesOf(op)});
    const size_t uses = plan.launches.back().uses.size();
    if (uses > kMaxUses) {
      return Bad(name + ": uses " + std::to_string(uses) + " blocks; allowed: at most " +
                 std::to_string(kMaxUses));
    }
    plan.uses += uses;
    plan.kernel_ns += plan.launches.back().ns;
  }
  uint64_t live = plan.kept_bytes;
  plan.peak_bytes = live;
  for (const trace::Event& event : plan.events) {
    if (event.kind == trace::EventKind::kAlloc) live += plan.block_bytes[event.index];
    if (event.kind == trace::EventKind::kFree) live -= plan.block_bytes[event.index];
    plan.peak_bytes = std::max(plan.peak_bytes, live);
  }
  return plan;
}

}  // namespace sluice::replay
