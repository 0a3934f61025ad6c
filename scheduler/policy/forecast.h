// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/ledger/ledger.h"
#include "scheduler/policy/course.h"

namespace sluice::scheduler {

/// The rest of an iteration that is under way, looked at from now on.
class RestOfIteration {
 public:
  RestOfIteration(const Course& course, double now_ns);

  void GoToNow() { Be(now_at_); }
  /// To what lasts in so long from now, and no way back.
  void GoTo(double in_ns) {
    while (ends_in_ns_ <= in_ns) Be(at_ + 1);
  }
  Units units() const { return units_; }
  double EndsIn() const { return ends_in_ns_; }

 private:
  void Be(const UseOverTime::Step* step) {
    at_ = step;
    units_ = step->units;
    ends_in_ns_ =
        step == last_ ? std::numeric_limits<double>::infinity() : (step + 1)->from_ns - along_ns_;
  }

  // What is asked for at every step of anybody first.
  double ends_in_ns_ = 0;
  Units units_ = 0;
  const UseOverTime::Step* at_ = nullptr;
  const UseOverTime::Step* now_at_ = nullptr;
  const UseOverTime::Step* last_ = nullptr;
  double along_ns_ = 0;  // where in it now is
};

/// What the jobs of a ledger will hold from now on, as far as it is predicted. Worked out when
/// somebody asks, and once for all who wait for their turn. Both arguments outlive it and stay as
/// they are.
class Forecast {
 public:
  Forecast(const Ledger& ledger, const Outlook& outlook) : ledger_(ledger), outlook_(outlook) {}

  struct Jobs {
    bool predictable = true;  // all that are under way
    bool change = false;      // somebody's memory is expected to change
    Units resident = 0;       // held by those whose memory does not
    // of all whose course is known, and what the rest holds
    uint64_t iterations = std::numeric_limits<uint64_t>::max();
    uint64_t bases = 0;
    Units transient = 0;  // the most that one of them has beyond its base
  };
  const Jobs& jobs() {
    if (!known_) Look();
    return jobs_;
  }

  /// What those whose memory changes hold together in so long from now, and until when. Each time
  /// it is asked after a later one, until `GoToNow`.
  struct Held {
    Units units = 0;
    double until_ns = std::numeric_limits<double>::infinity();
  };
  Held In(double ns);
  void GoToNow();

  /// The same, step by step. A step is added up when it is looked at: a collision early in an
  /// iteration makes the rest of it unimportant. nullptr: the one before it was the last. Valid
  /// until another one is asked for.
  const UseOverTime::Step* At(size_t k) {
    while (k >= steps_.size() && next_ns_ != std::numeric_limits<double>::infinity()) Add();
    return k < steps_.size() ? &steps_[k] : nullptr;
  }
  double EndOf(size_t k) {
    const UseOverTime::Step* next = At(k + 1);
    return next != nullptr ? next->from_ns : std::numeric_limits<double>::infinity();
  }

 private:
  static Held Together(std::vector<RestOfIteration>* rests, double in_ns);
  void Look();
  void Add();

  const Ledger& ledger_;
  const Outlook& outlook_;
  bool known_ = false;
  Jobs jobs_;
  std::vector<RestOfIteration> rests_;  // whose memory changes, where In was asked last
  std::vector<RestOfIteration> ahead_;  // the same, at the step that is added up next
  std::vector<UseOverTime::Step> steps_;
  double next_ns_ = 0;  // where it begins
};

}  // namespace sluice::scheduler
