// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include <atomic>

#include "common/cuda/abi.h"

namespace sluice {

/// The stream captures of this process that are open, at least: one too few, and a call of ours
/// breaks a capture; one too many, and nothing is synchronised by us any more, so that what the
/// program frees with cuMemFree does not come back. A capture ends by its own call, with the stream
/// it was begun on (not with one that joined it), or with the context.
class OpenCaptures {
 public:
  constexpr OpenCaptures() = default;

  uint32_t load() const { return count_.load(std::memory_order_seq_cst); }

  /// Before it begins: who finds none need not ask the driver about a stream.
  void Add() { count_.fetch_add(1, std::memory_order_seq_cst); }
  void Began(CUstream stream, CUcontext context) {
    for (Origin& origin : origins_) {
      CUstream none = nullptr;
      if (!origin.stream.compare_exchange_strong(none, stream)) continue;
      origin.context.store(reinterpret_cast<uint64_t>(context));
      return;
    }
    // Of more than there is room for, only the ordinary end is noticed.
  }
  /// It was not begun, or is at its ordinary end.
  void Remove() {
    uint32_t open = count_.load();
    while (open > 0 && !count_.compare_exchange_weak(open, open - 1)) {
    }
  }
  void Ended(CUstream stream, CUcontext context) {
    Take(stream, context);
    Remove();
  }
  void StreamGone(CUstream stream, CUcontext context) {
    if (Take(stream, context)) Remove();
  }
  /// From now on the context goes by another name: it ends, or is found not to.
  void NameContext(uint64_t from, uint64_t to) {
    for (Origin& origin : origins_) {
      uint64_t name = from;
      if (origin.stream.load() != nullptr) origin.context.compare_exchange_strong(name, to);
    }
  }
  void ContextGone(uint64_t context) {
    for (Origin& origin : origins_) {
      CUstream stream = origin.stream.load();
      if (stream != nullptr && origin.context.load() == context &&
          origin.stream.compare_exchange_strong(stream, nullptr)) {
        Remove();
      }
    }
  }

 private:
  struct Origin {
    std::atomic<CUstream> stream{nullptr};
    std::atomic<uint64_t> context{0};  // as a number: one that ends has none of its own
  };
  static constexpr uint32_t kOrigins = 64;

  /// One of them, if the same handle stands for several (the per-thread default stream).
  bool Take(CUstream stream, CUcontext context) {
    for (Origin& origin : origins_) {
      if (stream == CU_STREAM_PER_THREAD &&
          origin.context.load() != reinterpret_cast<uint64_t>(context)) {
        continue;
      }
      CUstream known = stream;
      if (origin.stream.compare_exchange_strong(known, nullptr)) return true;
    }
    return false;
  }

  std::atomic<uint32_t> count_{0};
  Origin origins_[kOrigins];
};

}  // namespace sluice
