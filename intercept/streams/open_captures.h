// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

#include "common/cuda/abi.h"
#include "intercept/base/lock.h"
#include "intercept/outside/holdings.h"

namespace sluice {

/// The stream captures of this process that are open, at least: one too few, and a call of ours
/// breaks a capture; one too many, and nothing is synchronised by us any more, so that what the
/// program frees with cuMemFree does not come back. A capture ends by its own call, with the stream
/// it was begun on (not with one that joined it), or with that stream's context; by one of them
/// alone, whichever threads come upon its end at once.
class OpenCaptures {
 public:
  constexpr OpenCaptures() = default;

  uint32_t load() const { return count_.load(std::memory_order_seq_cst); }

  /// Before it begins: who finds none need not ask the driver about a stream.
  void Add() { count_.fetch_add(1, std::memory_order_seq_cst); }
  /// `context`: the stream's, whichever is current.
  void Began(CUstream stream, CUcontext context) {
    const LockGuard guard(lock_);
    for (Origin& origin : origins_) {
      if (origin.stream != nullptr) continue;
      origin = {stream, reinterpret_cast<uint64_t>(context)};
      return;
    }
    ++unlisted_;  // of these only the ordinary end is noticed
  }
  /// It was not begun.
  void Remove() { count_.fetch_sub(1, std::memory_order_seq_cst); }
  /// At its ordinary end.
  void Ended(CUstream stream, CUcontext context) {
    const LockGuard guard(lock_);
    if (Take(stream, context)) return Remove();
    if (unlisted_ == 0) return;  // the end of its context was noticed first
    --unlisted_;
    Remove();
  }
  void StreamGone(CUstream stream, CUcontext context) {
    const LockGuard guard(lock_);
    if (Take(stream, context)) Remove();
  }
  /// From now on the context goes by another name: it ends, or is found not to.
  void NameContext(uint64_t from, uint64_t to) {
    const LockGuard guard(lock_);
    for (Origin& origin : origins_) {
      if (origin.context == from) origin.context = to;
    }
  }
  void ContextGone(uint64_t context) {
    const LockGuard guard(lock_);
    for (Origin& origin : origins_) {
      if (origin.stream == nullptr || origin.context != context) continue;
      origin = {};
      Remove();
    }
  }

  /// Before a call of ours that breaks the captures that are open when the driver comes to it.
  /// False: some are. True: until Admit whoever begins one is to wait, as long as it can.
  bool Exclude() {
    excluded_.fetch_add(1, std::memory_order_seq_cst);
    // Either this sees the one that begins, or that one sees this.
    if (load() == 0) return true;
    Admit();
    return false;
  }
  void Admit() { excluded_.fetch_sub(1, std::memory_order_seq_cst); }
  bool excluded() const { return excluded_.load(std::memory_order_seq_cst) > 0; }

  /// In a forked child, whose other threads are gone.
  void ForgetHolder() {
    lock_.ForgetHolder();
    excluded_.store(0);
  }

 private:
  struct Origin {
    CUstream stream = nullptr;
    uint64_t context = 0;  // as a number: one that ends has none of its own
  };
  static constexpr uint32_t kOrigins = 64;

  /// One of them, if the same handle stands for several (the per-thread default stream). Handles of
  /// streams and contexts come again, so one in a context that may just be ending is meant only
  /// when there is no other one.
  bool Take(CUstream stream, CUcontext context) {
    const auto name = reinterpret_cast<uint64_t>(context);
    for (const uint64_t known : {name, name | kEnding}) {
      for (Origin& origin : origins_) {
        if (origin.stream != stream || origin.context != known) continue;
        origin = {};
        return true;
      }
    }
    return false;
  }

  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> excluded_{0};  // calls under way that break captures
  Lock lock_;                          // over the rest; nothing is called under it
  Origin origins_[kOrigins];
  uint32_t unlisted_ = 0;  // of those that are open
};

}  // namespace sluice
