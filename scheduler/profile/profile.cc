// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/profile/profile.h"

#include <algorithm>

#include "scheduler/profile/detect.h"

namespace sluice::scheduler {

namespace {

constexpr size_t kTimesKept = 5;  // per launch of the cycle
constexpr size_t kTimesWanted = 2;
/// A launch's time arrives when the GPU has run it: a CPU that never waits is as far ahead as its
/// launch queue is long, which may be many short cycles.
constexpr size_t kLaunchesAwaited = 8192;
constexpr uint32_t kTroughsCompared = 8;
constexpr uint64_t kTroughTolerance = 32;  // troughs may differ by this part of the peak
constexpr uint64_t kForgiven = 16;         // times what is required at first: it was a cycle
constexpr uint32_t kTimesForgiven = 2;
constexpr uint64_t kMostRequired = 16384;  // launches
constexpr uint64_t kDetectEvery = 16;      // launches, at least

/// Launch numbers wrap; those kept are close to each other.
bool Earlier(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

}  // namespace

Profiler::Profiler(const ProfilerOptions& options) : options_(options) {}

void Profiler::Consume(const Op& op) {
  switch (op.kind) {
    case OpKind::kAlloc:
      live_ += op.value;
      if (!history_.empty()) {
        Sample& sample = history_.back();
        sample.max_after = std::max(sample.max_after, live_);
        sample.largest_after = std::max(sample.largest_after, op.value);
      }
      break;
    case OpKind::kFree:
      live_ -= std::min(live_, op.value);  // records of the allocation may have been lost
      if (!history_.empty()) {
        history_.back().min_after = std::min(history_.back().min_after, live_);
      }
      break;
    case OpKind::kLaunch:
      Launch(op);
      break;
    case OpKind::kLaunchTime:
      LaunchTime(op);
      break;
    case OpKind::kCopy:
    case OpKind::kIteration:
      break;
  }
}

void Profiler::Restart() {
  if (certain()) Lose();
  history_.clear();
  lost_at_ = launches_;
  next_detect_ = 0;
}

void Profiler::Launch(const Op& op) {
  ++launches_;
  const uint64_t count = ++stream_launches_[op.stream];
  if (op.stream != pacing_) {
    if (certain() || count <= stream_launches_[pacing_]) return;
    // The pacing stream is the busiest one; what was seen on the other says nothing about it.
    pacing_ = op.stream;
    history_.clear();
    lost_at_ = launches_;
    next_detect_ = 0;
  }
  if (certain()) {
    // What followed the last launch is complete only now. Absorbed before the comparison: it
    // belongs to the cycle even if this launch does not.
    Phase& previous = cycle_[(position_ + period_ - 1) % period_];
    Absorb(history_.back(), &previous);
    if (cycle_[position_].function != op.value) {
      Distrust();
      Lose();
    }
  }
  history_.push_back({op.value, live_, live_, live_, 0, op.detail});
  if (history_.size() > 3 * static_cast<size_t>(options_.max_period)) history_.pop_front();
  if (!certain()) {
    Detect();
    return;
  }
  Phase& phase = cycle_[position_];
  phase.live_before = std::max(phase.live_before, live_);
  numbers_.emplace_back(op.detail, position_);
  const size_t awaited = std::max(kLaunchesAwaited, 4 * static_cast<size_t>(period_));
  if (numbers_.size() > awaited) numbers_.pop_front();
  position_ = (position_ + 1) % period_;
  covered_ += covered_ < UINT32_MAX ? 1 : 0;
}

void Profiler::LaunchTime(const Op& op) {
  if (!certain() || op.stream != pacing_) return;
  const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), op.detail,
                                   [](const std::pair<uint32_t, uint32_t>& entry, uint32_t number) {
                                     return Earlier(entry.first, number);
                                   });
  if (at == numbers_.end() || at->first != op.detail) return;
  std::vector<uint32_t>& times = cycle_[at->second].times;
  if (times.size() == kTimesKept) times.erase(times.begin());
  times.push_back(static_cast<uint32_t>(std::min<uint64_t>(op.value, UINT32_MAX)));
}

void Profiler::Absorb(const Sample& sample, Phase* phase) {
  phase->live_before = std::max(phase->live_before, sample.live_before);
  phase->max_after = std::max(phase->max_after, sample.max_after);
  phase->min_after = std::min(phase->min_after, sample.min_after);
  phase->largest_after = std::max(phase->largest_after, sample.largest_after);
}

void Profiler::Detect() {
  // Now and then, over a suffix that grows with what has happened since the last cycle was lost (or
  // the start): each launch pays a constant, and a cycle that comes back is seen soon.
  if (launches_ < next_detect_) return;
  const uint64_t fresh = launches_ - lost_at_;
  next_detect_ = launches_ + std::max<uint64_t>(kDetectEvery, fresh / 8);
  const size_t window = static_cast<size_t>(std::min<uint64_t>(history_.size(), 4 * fresh + 256));
  std::vector<uint64_t> sequence;
  sequence.reserve(window);
  for (size_t at = history_.size() - window; at < history_.size(); ++at)
    sequence.push_back(history_[at].function);
  for (const Repetition& found : Repetitions(sequence, options_.max_period)) {
    if (found.covered < options_.min_covered) break;
    if (found.covered < Required(found.period)) continue;
    if (!TroughRepeats(found.period, found.covered)) continue;
    Adopt(found.period, found.covered);
    return;
  }
}

/// The same launches while memory only grows (or falls) are the layers of one iteration, or the
/// steps of its decoder, not iterations. What a step keeps may be little beside the weights, so a
/// drift in one direction is compared with what a repetition itself takes and gives back.
bool Profiler::TroughRepeats(uint32_t period, uint32_t covered) const {
  const uint32_t repetitions = std::min(covered / period, kTroughsCompared);
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  uint64_t peak = 0;
  uint64_t swing = 0;  // most that one repetition holds above its trough
  bool rises = true;
  bool falls = true;
  uint64_t previous = 0;
  size_t at = history_.size() - static_cast<size_t>(repetitions) * period;
  for (uint32_t r = 0; r < repetitions; ++r) {
    uint64_t trough = UINT64_MAX;
    uint64_t most = 0;
    for (uint32_t i = 0; i < period; ++i, ++at) {
      trough = std::min(trough, history_[at].live_before);
      most = std::max(most, history_[at].max_after);
    }
    if (r > 0) {
      rises &= trough >= previous;
      falls &= trough <= previous;
    }
    previous = trough;
    peak = std::max(peak, most);
    swing = std::max(swing, most - trough);
    lowest = std::min(lowest, trough);
    highest = std::max(highest, trough);
  }
  const uint64_t measure = rises || falls ? swing : peak;
  return highest - lowest <= measure / kTroughTolerance;
}

uint32_t Profiler::RequiredAtFirst(uint32_t period) const {
  return std::max(options_.min_covered, 2 * period);
}

uint32_t Profiler::Required(uint32_t period) const {
  const auto known = required_.find(period);
  return known != required_.end() ? known->second : RequiredAtFirst(period);
}

/// A loop inside an iteration looks like a cycle until it ends, each time: it has to go on for
/// twice as long before it is believed again. A true cycle that something interrupted (an
/// evaluation) had gone on for long: kForgiven times as long as it takes to be believed at first,
/// however often it broke off earlier than that before. So has a long loop, but it ends in every
/// iteration, and moves little of the memory that the iteration does: such a period is forgiven a
/// few times only.
void Profiler::Distrust() {
  const bool forgivable = MovesMostMemory() || forgiven_[period_] < kTimesForgiven;
  if (covered_ >= kForgiven * RequiredAtFirst(period_) && forgivable) {
    ++forgiven_[period_];
    required_.erase(period_);
  } else {
    const uint64_t twice = 2 * uint64_t{Required(period_)};
    required_[period_] = static_cast<uint32_t>(std::min(twice, kMostRequired));
  }
}

/// A repetition holds at its peak, above its trough, at least half of what the launches that are
/// remembered did.
bool Profiler::MovesMostMemory() const {
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (const Phase& phase : cycle_) {
    least = std::min(least, phase.live_before);
    most = std::max(most, phase.max_after);
  }
  const uint64_t swing = most - std::min(least, most);
  least = UINT64_MAX;
  most = 0;
  for (const Sample& sample : history_) {
    least = std::min(least, sample.live_before);
    most = std::max(most, sample.max_after);
  }
  return swing >= (most - std::min(least, most)) / 2 && swing > 0;
}

void Profiler::Adopt(uint32_t period, uint32_t covered) {
  period_ = period;
  covered_ = covered;
  // The suffix is cut to whole repetitions, so the next launch begins one. Where the iteration
  // really begins is found later (TroughLaunch).
  position_ = 0;
  cycle_.assign(period, Phase{});
  const size_t start = history_.size() - static_cast<size_t>(covered / period) * period;
  for (size_t at = start; at < history_.size(); ++at) {
    Phase& phase = cycle_[(at - start) % period];
    if (at - start < period) {
      phase.function = history_[at].function;
      phase.min_after = UINT64_MAX;
    }
    Absorb(history_[at], &phase);
  }
  ++generation_;
}

void Profiler::Lose() {
  period_ = position_ = covered_ = 0;
  cycle_.clear();
  numbers_.clear();
  lost_at_ = launches_;
  next_detect_ = 0;
  ++generation_;
}

bool Profiler::wants_times() const {
  return std::any_of(cycle_.begin(), cycle_.end(),
                     [](const Phase& phase) { return phase.times.size() < kTimesWanted; });
}

uint32_t Profiler::TroughLaunch() const {
  uint64_t lowest = UINT64_MAX;
  for (const Phase& phase : cycle_) lowest = std::min(lowest, phase.live_before);
  // Of the launches at that level the last one of the longest row: what it waited for is done, and
  // the next launch begins to grow.
  uint32_t best = 0;
  uint32_t longest = 0;
  for (uint32_t i = 0; i < period_; ++i) {
    if (cycle_[i].live_before != lowest) continue;
    if (period_ > 1 && cycle_[(i + 1) % period_].live_before == lowest) continue;
    uint32_t row = 1;
    while (row < period_ && cycle_[(i + period_ - row) % period_].live_before == lowest) ++row;
    if (row > longest) {
      longest = row;
      best = i;
    }
  }
  // A flat cycle has no such launch: it is cut where it was found.
  return longest == 0 ? period_ - 1 : best;
}

Profiler::Cut Profiler::FindCut() const {
  Cut cut;
  cut.trough = TroughLaunch();
  const uint32_t before = (cut.trough + period_ - 1) % period_;
  // The least is live just before the trough's launch is issued or just after it: programs free
  // right behind the last use of a block, or not before they need the space.
  const bool after = cycle_[cut.trough].min_after <= cycle_[before].min_after;
  cut.place = after ? TroughPlace::kAfterLast : TroughPlace::kBeforeFirst;
  cut.first = after ? (cut.trough + 1) % period_ : cut.trough;
  return cut;
}

uint32_t Profiler::LaunchesToFirst() const {
  return (FindCut().first + period_ - position_) % period_;
}

std::optional<Profile> Profiler::Current() const {
  if (!certain()) return std::nullopt;
  Profile profile;
  profile.period = period_;
  profile.pacing_stream = pacing_;
  profile.repetitions = covered_ / period_;

  const Cut cut = FindCut();
  const uint32_t first = cut.first;
  profile.trough_place = cut.place;
  profile.base_bytes = cycle_[cut.trough].live_before;

  std::vector<uint64_t> functions;
  for (const Phase& phase : cycle_) functions.push_back(phase.function);
  profile.window = UniqueWindow(functions, first);
  if (profile.window == 0 || options_.fold == nullptr) return std::nullopt;
  profile.trough_hash = options_.hash_seed;
  for (uint32_t i = profile.window; i > 0; --i) {
    profile.trough_hash =
        options_.fold(profile.trough_hash, functions[(first + period_ - i) % period_]);
  }

  profile.timed = true;
  for (uint32_t n = 0; n < period_; ++n) {
    const Phase& phase = cycle_[(first + n) % period_];
    profile.live_before.push_back(phase.live_before);
    profile.max_live.push_back(std::max(phase.max_after, phase.live_before));
    profile.largest_alloc.push_back(phase.largest_after);
    profile.peak_bytes = std::max(profile.peak_bytes, profile.max_live.back());
    std::vector<uint32_t> times = phase.times;
    std::sort(times.begin(), times.end());
    profile.launch_ns.push_back(times.empty() ? 0 : times[times.size() / 2]);
    profile.iteration_ns += profile.launch_ns.back();
    profile.timed &= !times.empty();
  }
  return profile;
}

}  // namespace sluice::scheduler
