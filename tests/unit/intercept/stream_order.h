// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "tests/unit/intercept/fake_driver.h"

namespace sluice::test {

/// What a program may rely on about the order of its own work: operations on the fake driver's
/// streams, numbered per stream, and what is known to come before what (vector clocks). A stream
/// that is destroyed goes on with what is queued on it, beside the next one of the same handle.
class StreamOrder {
 public:
  struct Stream;
  /// Of each stream, operations up to and with that one.
  using Clock = std::map<Stream*, uint64_t>;

  struct Stream {
    CUstream queue = nullptr;  // its handle, until it is destroyed
    uint64_t issued = 0;
    uint64_t done = 0;
    Clock behind;  // of other streams: what its next operation waits for
    bool destroyed = false;
  };

  explicit StreamOrder(FakeDriver& driver) : driver_(driver) {}

  Stream& Create(CUstream handle) {
    Stream& created = streams_.emplace_back();
    created.queue = handle;
    return created;
  }

  /// The driver has destroyed it: its handle stands for another stream from now on, which does not
  /// wait for what is left of this one.
  void Destroyed(Stream& gone) {
    const std::lock_guard lock(driver_.mutex);
    const CUstream handle =
        std::exchange(gone.queue, FakeDriver::Stream(1000 + static_cast<int>(streams_.size())));
    driver_.queues[gone.queue] = std::exchange(driver_.queues[handle], {});
    gone.destroyed = true;
  }
  /// It is destroyed, and everything is done.
  void Forget(const Stream& ended) {
    const std::lock_guard lock(driver_.mutex);
    driver_.queues.erase(ended.queue);
  }

  /// An operation that notes when it is done. Returns its number.
  uint64_t Enqueue(Stream& stream) {
    const uint64_t number = ++stream.issued;
    driver_.Enqueue(stream.queue, [&stream, number] { Finish(stream, number); });
    return number;
  }

  /// An event that is recorded on one stream now, and that the other one waits for.
  void Wait(Stream& waiting, Stream& recorded) {
    const uint64_t last = recorded.issued;
    const uint64_t number = ++waiting.issued;
    driver_.Enqueue(waiting.queue, [this, &waiting, &recorded, last, number] {
      RunLocked(recorded, last);
      Finish(waiting, number);
    });
    Join(&waiting.behind, recorded.behind);
    Join(&waiting.behind, {{&recorded, last}});
  }

  /// The GPU does a stream's operations up to this one.
  void RunThrough(Stream& stream, uint64_t number) {
    const std::lock_guard lock(driver_.mutex);
    RunLocked(stream, number);
  }

  static bool Done(const Clock& clock) {
    for (const auto& [stream, number] : clock) {
      if (stream->done < number) return false;
    }
    return true;
  }
  /// Done, or done before anything that is queued on the stream from now on.
  static bool IsBehind(const Stream& stream, Stream* other, uint64_t number) {
    if (other->done >= number || other == &stream) return true;
    const auto known = stream.behind.find(other);
    return known != stream.behind.end() && known->second >= number;
  }
  /// `stream` null: it has to be done.
  static bool IsBehind(const Stream* stream, const Clock& clock) {
    if (stream == nullptr) return Done(clock);
    for (const auto& [other, number] : clock) {
      if (!IsBehind(*stream, other, number)) return false;
    }
    return true;
  }

  /// The later of both, without what is done.
  static void Join(Clock* into, const Clock& other) {
    for (const auto& [stream, number] : other) {
      uint64_t& known = (*into)[stream];
      if (known < number) known = number;
    }
    std::erase_if(*into, [](const auto& entry) { return entry.first->done >= entry.second; });
  }

 private:
  static void Finish(Stream& stream, uint64_t number) {
    EXPECT_EQ(stream.done + 1, number) << "the fake driver's own order";
    stream.done = number;
  }

  // An event is older than what waits for it, so no stream is reached again on the way.
  void RunLocked(Stream& stream, uint64_t number) {
    auto& queue = driver_.queues[stream.queue].operations;
    while (stream.done < number) {
      ASSERT_FALSE(queue.empty());
      const auto operation = std::move(queue.front());
      queue.pop_front();
      operation();
    }
  }

  FakeDriver& driver_;
  std::deque<Stream> streams_;
};

}  // namespace sluice::test
