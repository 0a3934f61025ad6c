// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/decide_pool.h"

namespace sluice::bench {

struct LiveShape {
  std::string policy;
  uint32_t lanes = 2;
  uint32_t gates = 48;  // of each job
};

/// Everything that the policy was asked, in order: what a node has to hear to go the same way.
struct Answers {
  std::vector<std::optional<scheduler::Decision>> next;
  std::vector<double> again_in;  // where Next had none
  size_t decided() const { return next.size() - again_in.size(); }
};

/// Eight jobs that go from gate to gate on a clock of their own, each a part of its iteration ahead
/// of its GPU, with what is predicted of them: what a node has when it decides. The pool has room
/// for the peaks of two and a half.
class LiveNode {
 public:
  explicit LiveNode(const LiveShape& shape);

  /// Until so many iterations more have ended.
  Answers Play(uint32_t iterations);
  /// The same from the same state, told what was answered: nothing is predicted and nobody asked.
  void Replay(uint32_t iterations, const Answers& answers);

 private:
  struct Lane {
    std::optional<size_t> gate;  // that the host passed last; none: it stands at its trough
    double host_ns = 0;          // when the host comes to the next one; while it waits: never
    double gpu_ns = 0;           // when the GPU has done all it was given
    struct Reach {
      double at_ns = 0;
      size_t gate = 0;
      std::optional<scheduler::ReleaseId> release;
    };
    std::deque<Reach> reaches;
  };

  template <typename Next, typename Again>
  void Run(uint32_t iterations, const Next& next, const Again& again);
  scheduler::Units NeedAt(size_t gate) const;
  scheduler::Course* CourseOf(scheduler::JobId job);
  /// The earliest thing that happens, and makes it happen.
  void Step();
  void AtHost(scheduler::JobId job);
  void AtGpu(scheduler::JobId job);
  void Granted(const scheduler::Request& request);

  DecidePool pool_;
  scheduler::Config config_;
  uint32_t gates_;
  std::vector<Lane> lanes_;
  std::map<scheduler::JobId, scheduler::Course> courses_;
  bool predicts_ = true;
  std::mt19937 random_{1};
  double now_ns_ = 0;
  double again_ns_ = std::numeric_limits<double>::infinity();
  uint32_t ended_ = 0;
};

}  // namespace sluice::bench
