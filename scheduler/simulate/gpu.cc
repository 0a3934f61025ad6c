// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/gpu.h"

#include <algorithm>
#include <limits>

namespace sluice::scheduler::simulate {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kDust = 1e-6;  // ns: what rounding leaves of a kernel that is over

}  // namespace

Gpu::Gpu(const Machine& machine, const std::vector<const Workload*>& jobs, Paging* paging)
    : machine_(machine), paging_(paging) {
  streams_.resize(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i) streams_[i].workload = jobs[i];
}

void Gpu::Launch(size_t job) {
  Stream& stream = streams_[job];
  const std::vector<Kernel>& kernels = stream.workload->kernels;
  stream.queued_ns += kernels[stream.tail].alone_ns;
  stream.tail = stream.tail + 1 == kernels.size() ? 0 : stream.tail + 1;
  if (stream.launched++ == stream.done) {
    stream.left_ns = stream.kernel().alone_ns;
    Share();
  }
}

/// Called whenever the kernels at the heads of the streams are others than before.
void Gpu::Share() {
  if (machine_.sharing == Sharing::kTimeSlice) return TakeTurn();
  demands_.clear();
  Stream* only = nullptr;
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    stream.rate = 0;
    if (!stream.waiting()) continue;
    AskForPages(i);
    if (stream.pages_ns > 0) continue;
    demands_.push_back(stream.kernel().demand);
    only = &stream;
  }
  if (demands_.empty()) return;
  if (demands_.size() == 1) {
    only->rate = 1;
    return;
  }
  const std::vector<double>& rates = sharer_.Rates(demands_);
  size_t next = 0;
  for (Stream& stream : streams_) {
    if (stream.waiting() && stream.pages_ns == 0) stream.rate = rates[next++];
  }
}

void Gpu::AskForPages(size_t job) {
  Stream& stream = streams_[job];
  if (paging_ == nullptr || stream.asked) return;
  stream.asked = true;
  stream.pages_ns = paging_->Touch(job, stream.head, now_ns_);
}

/// Keeps the turn while its owner has work and its slice lasts; else the next job with work has it.
void Gpu::TakeTurn() {
  Stream& owner = streams_[turn_];
  if (taken_ && owner.waiting() && (slice_left_ns_ > 0 || switch_left_ns_ > 0)) {
    AskForPages(turn_);
    owner.rate = switch_left_ns_ > 0 || owner.pages_ns > 0 ? 0 : 1;
    return;
  }
  owner.rate = 0;
  for (size_t step = 1; step <= streams_.size(); ++step) {
    const size_t next = (turn_ + step) % streams_.size();
    if (!streams_[next].waiting()) continue;
    switch_left_ns_ = next == turn_ && taken_ ? 0 : static_cast<double>(machine_.switch_ns);
    turn_ = next;
    taken_ = true;
    slice_left_ns_ = static_cast<double>(machine_.quantum_ns);
    AskForPages(next);
    streams_[next].rate = switch_left_ns_ > 0 || streams_[next].pages_ns > 0 ? 0 : 1;
    return;
  }
  // Idle: whoever comes next finds its context there if it was the last one.
}

double Gpu::UntilNext() const {
  double next = kNever;
  bool others = false;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    if (!stream.waiting()) continue;
    if (stream.rate > 0) next = std::min(next, stream.left_ns / stream.rate);
    if (stream.pages_ns > 0) next = std::min(next, stream.pages_ns);
    others |= i != turn_;
  }
  if (machine_.sharing == Sharing::kTimeSlice && taken_ && streams_[turn_].waiting()) {
    if (switch_left_ns_ > 0) return std::min(next, switch_left_ns_);
    if (others) next = std::min(next, slice_left_ns_);
  }
  return next;
}

void Gpu::Advance(double ns, std::vector<size_t>* ended) {
  bool changed = false;
  now_ns_ += ns;
  if (machine_.sharing == Sharing::kTimeSlice && taken_ && streams_[turn_].waiting()) {
    if (switch_left_ns_ > 0) {
      switch_left_ns_ = std::max(switch_left_ns_ - ns, 0.0);
      if (switch_left_ns_ < kDust) switch_left_ns_ = 0;
      changed = switch_left_ns_ == 0;
    } else {
      slice_left_ns_ -= ns;
      if (slice_left_ns_ < kDust) slice_left_ns_ = 0;
      changed = slice_left_ns_ == 0;
    }
  }
  for (size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    if (!stream.waiting()) continue;
    stream.busy_ns += ns;
    if (stream.pages_ns > 0) {
      stream.pages_ns = std::max(stream.pages_ns - ns, 0.0);
      if (stream.pages_ns < kDust) stream.pages_ns = 0;
      changed |= stream.pages_ns == 0;
      continue;
    }
    if (stream.rate == 0) continue;
    const double work = std::min(ns * stream.rate, stream.left_ns);
    stream.left_ns -= work;
    stream.done_ns += work;
    stream.queued_ns -= work;
    if (stream.left_ns > kDust) continue;
    stream.done_ns += stream.left_ns;
    ++stream.done;
    if (paging_ != nullptr) paging_->Ended(i, stream.head);
    stream.asked = false;
    stream.head = stream.head + 1 == stream.workload->kernels.size() ? 0 : stream.head + 1;
    if (stream.waiting()) {
      stream.left_ns = stream.kernel().alone_ns;
    } else {
      stream.left_ns = stream.queued_ns = 0;  // no rounding is carried on
    }
    ended->push_back(i);
    changed = true;
  }
  if (changed) Share();
}

}  // namespace sluice::scheduler::simulate
