// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/intercept/client_fixture.h"
#include "tests/unit/intercept/stream_order.h"

// Random calls of a correct program through the whole client, against a model that knows which of
// the program's operations may still touch what it freed. The GPU moves only when the model says
// so, and the daemon lends a unit again only when its fence is reached.

namespace sluice::test {
namespace {

using protocol::FrameType;
using Stream = StreamOrder::Stream;
using Clock = StreamOrder::Clock;

constexpr uint32_t kUnits = 32;
constexpr uint32_t kLimitUnits = 24;
constexpr uint64_t kMostLive = 14 * kUnit;
constexpr int kSteps = 20'000;

class ClientRandom : public ClientTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  struct Range {
    CUdeviceptr start;
    CUdeviceptr end;
    bool Touches(const Range& other) const { return start < other.end && other.start < end; }
  };
  struct Live {
    uint64_t bytes;
    bool sync;   // of cuMemAlloc
    Clock uses;  // and what was queued on the stream that it was allocated for
  };
  struct Past {
    Range range;
    Clock uses;
  };
  struct Returned {
    protocol::Release frame;
    Clock uses;
  };

  ClientRandom() : order_(driver), random_(GetParam()) {}

  void SetUp() override {
    Start({.limit_units = kLimitUnits});
    daemon->on_request = [this](const protocol::Header& request) { Answer(request); };
    daemon->on_release = [this](const protocol::Release& frame) {
      const std::lock_guard lock(came_mutex_);
      came_.push_back(frame);
    };
    const uint32_t streams = many_ ? protocol::kStreamSlots + 44 : 1 + GetParam() % 5;
    for (uint32_t i = 0; i < streams; ++i) {
      streams_.push_back(&order_.Create(FakeDriver::Stream(static_cast<int>(i))));
    }
  }
  void TearDown() override {
    driver.RunAll();  // what is queued names the model's streams
    ClientTest::TearDown();
    daemon.reset();  // its thread calls into the model
  }

  uint32_t Pick(size_t below) { return static_cast<uint32_t>(random_() % below); }
  Stream& AnyStream() { return *streams_[Pick(streams_.size())]; }
  auto AnyBlock() { return std::next(live_.begin(), Pick(live_.size())); }
  Range RangeOf(const protocol::Extent& units) const {
    const CUdeviceptr start = base_ + units.offset * kUnit;
    return {start, start + units.length * kUnit};
  }

  // The daemon. Answer runs on its thread while the program waits for it.

  void Answer(const protocol::Header& request) {
    ASSERT_EQ(request.type, static_cast<uint16_t>(FrameType::kLease));
    const uint32_t units = reinterpret_cast<const protocol::Lease&>(request).units;
    TakeReturned();
    if (Held() + units <= kLimitUnits && Lend(request.seq, units)) return;
    // The GPU goes on while somebody waits for memory, and for as long as the client then drains.
    driver.RunAll();
    driver.immediate = true;
    CheckReturned();
    if (Held() + units > kLimitUnits) {
      daemon->Deny(request.seq, protocol::DenyCode::kOverLimit, "over the limit");
    } else if (!Lend(request.seq, units)) {
      daemon->Deny(request.seq, protocol::DenyCode::kExhausted, "nothing is free");
    }
  }

  bool Lend(uint32_t seq, uint32_t units) {
    for (uint32_t first = 0; first + units <= kUnits; ++first) {
      const auto run = held_.begin() + first;
      if (!std::all_of(run, run + units, [](Unit unit) { return unit == kFree; })) continue;
      std::fill(run, run + units, kHeld);
      daemon->Grant(seq, {{first, units}}, protocol::kNoGate);
      return true;
    }
    return false;
  }

  uint32_t Held() const {
    return static_cast<uint32_t>(std::count(held_.begin(), held_.end(), kHeld));
  }

  // What came back: nobody owns any of it, and the fence covers all that may still touch it.
  void TakeReturned() {
    std::vector<protocol::Release> came;
    {
      const std::lock_guard lock(came_mutex_);
      came.swap(came_);
    }
    for (const protocol::Release& frame : came) {
      Returned& returned = returned_.emplace_back(Returned{frame, {}});
      for (uint32_t i = 0; i < frame.extents; ++i) {
        const protocol::Extent& units = frame.extent[i];
        std::fill_n(held_.begin() + units.offset, units.length, kFenced);
        const Range range = RangeOf(units);
        for (const auto& [start, block] : live_) {
          EXPECT_FALSE(range.Touches({start, start + block.bytes})) << "a live block's";
        }
        for (const Past& past : past_) {
          if (range.Touches(past.range)) StreamOrder::Join(&returned.uses, past.uses);
        }
      }
      fenced_ += frame.terms > 0 && !returned.uses.empty() ? 1 : 0;
    }
    CheckReturned();
  }
  void CheckReturned() {
    std::erase_if(returned_, [this](const Returned& returned) {
      const protocol::Release& frame = returned.frame;
      for (uint32_t i = 0; i < frame.terms; ++i) {
        const auto& term = frame.fence[i];
        if (!protocol::MarkReached(daemon->marks->mark[term.slot].load(), term.value)) return false;
      }
      EXPECT_TRUE(StreamOrder::Done(returned.uses)) << "the fence is reached, the GPU is at work";
      for (uint32_t i = 0; i < frame.extents; ++i) {
        std::fill_n(held_.begin() + frame.extent[i].offset, frame.extent[i].length, kFree);
      }
      return true;
    });
  }
  // All that the client has given back so far has come.
  void Settle() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (true) {
      TakeReturned();
      if (Held() * kUnit == daemon->client->held_bytes.load()) return;
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << "not what the daemon lent";
      std::this_thread::yield();
    }
  }

  // The program.

  // `stream` null: for any stream at once.
  void HandedOut(CUdeviceptr at, uint64_t bytes, Stream* stream) {
    driver.immediate = false;
    bytes = (bytes + 511) / 512 * 512;
    const Range range{at, at + bytes};
    const auto next = live_.lower_bound(at);
    EXPECT_TRUE(next == live_.end() || range.end <= next->first) << "a live block's";
    EXPECT_TRUE(next == live_.begin() ||
                std::prev(next)->first + std::prev(next)->second.bytes <= at)
        << "a live block's";
    for (uint64_t unit = (at - base_) / kUnit; unit * kUnit < range.end - base_; ++unit) {
      EXPECT_TRUE(unit < kUnits && held_[unit] == kHeld) << "unit " << unit << " is not lent";
    }
    std::erase_if(past_, [](const Past& past) { return StreamOrder::Done(past.uses); });
    bool still_used = false;
    for (const Past& past : past_) {
      if (!range.Touches(past.range)) continue;
      still_used = true;
      EXPECT_TRUE(StreamOrder::IsBehind(stream, past.uses)) << "an earlier owner still works on it";
    }
    reused_ += still_used ? 1 : 0;
    ++handed_out_;
    Clock uses;
    if (stream != nullptr) uses[stream] = stream->issued;
    live_[at] = {bytes, stream == nullptr, uses};
    live_bytes_ += bytes;
  }

  void AllocateAny() {
    constexpr uint64_t kSmall[] = {5000, 20'000, 512, 1000, 4096, 20'000, 48'000};
    constexpr uint64_t kLarge[] = {kUnit, 2 * kUnit, 3 * kUnit - 100, 5 * kUnit};
    const uint64_t bytes = Pick(repeats_ ? 40 : 4) == 0
                               ? kLarge[Pick(std::size(kLarge))]
                               : kSmall[Pick(repeats_ ? 2 : std::size(kSmall))];
    Stream* stream = Pick(16) == 0 ? nullptr : &AnyStream();
    CUdeviceptr at = 0;
    const CUresult result = stream == nullptr ? client->Alloc(&at, bytes)
                                              : client->AllocAsync(&at, bytes, stream->queue);
    if (base_ == 0) base_ = at;  // the daemon lent the lowest units first
    Settle();
    if (result == CUDA_SUCCESS) return HandedOut(at, bytes, stream);
    driver.immediate = false;
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
    ++failed_;
  }

  // Whatever `uses` names is before what comes next on the stream, or done (null).
  void PutBefore(Stream* stream, Clock uses) {
    for (const auto& [other, number] : uses) {
      if (stream != nullptr && StreamOrder::IsBehind(*stream, other, number)) continue;
      if (other->done >= number) continue;
      if (other->destroyed || Pick(64) == 0) {
        order_.RunThrough(*other, number);  // polled until it was done
      } else if (stream != nullptr && Pick(64) != 0) {
        order_.Wait(*stream, *other);
      } else {
        EXPECT_EQ(client->StreamSynchronize(other->queue), CUDA_SUCCESS);
      }
    }
  }

  void UseAny() {
    Stream& stream = AnyStream();
    Live& block = AnyBlock()->second;
    PutBefore(&stream, block.uses);
    const char* names[] = {"gemm", "add", "norm"};
    const auto issue = [&] {
      StreamOrder::Join(&block.uses, {{&stream, order_.Enqueue(stream)}});
      return CUDA_SUCCESS;
    };
    for (uint32_t left = 1 + Pick(repeats_ ? 12 : 4); left > 0; --left) {
      EXPECT_EQ(client->Launch(FakeDriver::Function(names[Pick(3)]), stream.queue, issue),
                CUDA_SUCCESS);
    }
  }

  void FreeAny(bool async) {
    const auto found = AnyBlock();
    const CUdeviceptr at = found->first;
    const Live gone = found->second;
    Stream& stream = AnyStream();
    // cuMemFree waits for the GPU where the block is cuMemAlloc's; else the program has done so.
    if (async || !gone.sync) PutBefore(async ? &stream : nullptr, gone.uses);
    live_.erase(found);
    live_bytes_ -= gone.bytes;
    past_.push_back({{at, at + gone.bytes}, gone.uses});
    EXPECT_EQ(async ? client->FreeAsync(at, stream.queue) : client->Free(at), CUDA_SUCCESS);
  }

  // The handle comes again at once, and means another stream.
  void RenewAny() {
    Stream*& stream = streams_[Pick(streams_.size())];
    const CUstream handle = stream->queue;
    EXPECT_EQ(client->StreamDestroy(handle), CUDA_SUCCESS);
    order_.Destroyed(*stream);
    ending_.push_back(stream);
    stream = &order_.Create(handle);
  }

  // Mostly not to the end, so that there always is something to wait for.
  void RunAny() {
    const uint32_t which = Pick(streams_.size() + ending_.size());
    Stream& stream = which < streams_.size() ? *streams_[which] : *ending_[which - streams_.size()];
    for (uint32_t left = 1 + Pick(repeats_ ? 8 : 2); left > 0; --left) {
      driver.Run(stream.queue, 1);
      CheckReturned();
    }
    std::erase_if(ending_, [this](Stream* ended) {
      const bool over = driver.Pending(ended->queue) == 0;
      if (over) order_.Forget(*ended);
      return over;
    });
  }

  void Step() {
    const uint32_t what = Pick(100);
    if (what < 22 && live_bytes_ < kMostLive) {
      AllocateAny();
    } else if (what < 40 && !live_.empty()) {
      FreeAny(true);
    } else if (what < 41 && !live_.empty()) {
      FreeAny(false);
    } else if (what < 70 && !live_.empty()) {
      UseAny();
    } else if (what < 71) {
      EXPECT_EQ(client->StreamSynchronize(AnyStream().queue), CUDA_SUCCESS);
    } else if (what < 72 && Pick(16) == 0) {
      EXPECT_EQ(client->ContextSynchronize(nullptr), CUDA_SUCCESS);
    } else if (what < 74) {
      RenewAny();
    } else if (what < 75) {
      daemon->daemon->flags = Pick(2) * protocol::kPressure;
    } else if (what < 78 && Pick(repeats_ ? 16 : 1) == 0) {
      auto* pool = reinterpret_cast<CUmemoryPool>(0x9001);
      EXPECT_EQ(client->PoolTrimTo(pool, Pick(2) * Pick(kLimitUnits) * kUnit), CUDA_SUCCESS);
    } else if (what < 80) {
      order_.Wait(AnyStream(), AnyStream());
    } else {
      RunAny();
    }
    Settle();
    EXPECT_EQ(daemon->client->live_bytes.load(), live_bytes_);
  }

  void Run() {
    AllocateAny();  // begins the session
    for (int step = 0; step < kSteps && !HasFailure(); ++step) {
      SCOPED_TRACE(step);
      Step();
    }
  }

  enum Unit : uint8_t { kFree, kHeld, kFenced };

  StreamOrder order_;
  std::mt19937 random_;
  const bool repeats_ = GetParam() % 2 == 1;  // few sizes, and what is freed is mostly kept
  std::vector<Stream*> streams_;
  std::vector<Stream*> ending_;  // destroyed, with work left
  std::map<CUdeviceptr, Live> live_;
  std::vector<Past> past_;  // some of its uses are not done
  uint64_t live_bytes_ = 0;
  CUdeviceptr base_ = 0;

  std::mutex came_mutex_;
  std::vector<protocol::Release> came_;  // not looked at
  std::vector<Returned> returned_;       // the fence is not reached
  std::vector<Unit> held_ = std::vector<Unit>(kUnits, kFree);

  const bool many_ = GetParam() >= 16;  // more streams than there are slots
  int handed_out_ = 0;
  int reused_ = 0;  // while an earlier owner was at work
  int fenced_ = 0;  // releases with such units
  int failed_ = 0;
};

TEST_P(ClientRandom, NothingIsHandedOutThatSomebodyStillWorksOn) {
  // A thread of its own: what the library remembers of streams by thread is another client's here.
  std::thread([this] { Run(); }).join();
  EXPECT_GT(handed_out_, kSteps / 8);
  EXPECT_TRUE(many_ || reused_ > handed_out_ / 30) << "streams get back what they freed";
  EXPECT_TRUE(repeats_ || many_ || fenced_ > 5) << fenced_;
  EXPECT_LT(failed_, handed_out_ / 20);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClientRandom, ::testing::Range(0u, 20u));

}  // namespace
}  // namespace sluice::test
