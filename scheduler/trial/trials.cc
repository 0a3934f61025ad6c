// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trial/trials.h"

#include <algorithm>

namespace sluice::scheduler {

Trials::Trials(size_t ways, const TrialOptions& options, size_t steady)
    : options_(options),
      steady_(std::min(steady, std::max<size_t>(1, ways) - 1)),
      sums_(std::max<size_t>(1, ways)),
      least_ns_(sums_.size(), 0) {}

double Trials::Rate(size_t way) const {
  const Sum& sum = sums_[way];
  return sum.looks == 0 ? 0 : sum.rates / sum.looks;
}

bool Trials::Observe(const std::vector<Progress>& jobs, double now_ns) {
  if (done_) return false;
  if (!begun_) {
    begun_ = true;
    since_ns_ = now_ns;
    looks_.clear();
    for (const Progress& job : jobs) looks_[job.job].from = job.iterations;
  }
  for (const Progress& job : jobs) {
    Look& look = looks_[job.job];
    look.gpu_ns = job.gpu_ns;
    if (job.iterations < look.from + options_.settle) continue;
    look.last = job.iterations;
    look.last_ns = job.last_end_ns;
    if (look.counting) continue;
    // Several may have ended since somebody looked; the last of them is as good a beginning.
    look.counting = true;
    look.first = job.iterations;
    look.first_ns = job.last_end_ns;
  }
  if (LookIsWhole(now_ns)) return EndLook(now_ns);
  if (now_ns - since_ns_ < std::max(options_.most_ns, 2 * least_ns_[current_])) return false;
  cut_short_ = true;
  return EndLook(now_ns);
}

bool Trials::LookIsWhole(double now_ns) const {
  if (now_ns - since_ns_ < least_ns_[current_]) return false;
  return std::all_of(looks_.begin(), looks_.end(), [this](const auto& entry) {
    const Look& look = entry.second;
    return look.counting && look.last - look.first >= options_.iterations;
  });
}

bool Trials::EndLook(double now_ns) {
  double rate = 0;
  for (const auto& [job, look] : looks_) {
    const bool all = least_ns_[current_] > 0;
    const double ns = all ? now_ns - since_ns_ : look.last_ns - look.first_ns;
    const uint64_t since = all ? look.from : look.first;
    const uint64_t iterations = look.last - std::min(look.last, since);
    if (ns > 0) rate += static_cast<double>(iterations) * look.gpu_ns / ns;
  }
  sums_[current_].rates += rate;
  ++sums_[current_].looks;
  begun_ = false;
  const size_t before = current_;
  current_ = (current_ + 1) % sums_.size();
  if (current_ == 0) ++round_;
  if (round_ >= options_.rounds) {
    done_ = true;
    current_ = Best();
  }
  return current_ != before;
}

size_t Trials::Best() const {
  size_t best = 0;
  for (size_t way = 1; way < sums_.size(); ++way) {
    if (Rate(way) > Rate(best)) best = way;
  }
  const auto near = [this](size_t way, size_t best_way) {
    return Rate(way) * (1 + options_.least_gain) >= Rate(best_way);
  };
  if (near(steady_, best)) return steady_;
  // Of those that are enough better than the steady one.
  return near(0, best) && !near(steady_, 0) ? 0 : best;
}

}  // namespace sluice::scheduler
