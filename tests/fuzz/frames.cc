// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/frames.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/daemon_world.h"
#include "tests/fuzz/frame_bytes.h"

namespace sluice::fuzz {

using protocol::FrameType;

namespace {

constexpr size_t kMaxSteps = 96;

enum class Step : uint8_t {
  kNoise,
  kFrame,
  kBrokenFrame,
  kOpen,
  kConnect,
  kControl,
  kHangUp,
  kRead,
  kHonest,
  kMark,
  kRing,
  kPageWords,
  kTrain,
  kGate,
  kReleaseHeld,
  kPass,
  kRegister,
  kLease,
  kCharge,
  kBurst,
  kCount,
};

/// Every type that the daemon takes, those that it sends, and none at all.
constexpr uint16_t kTypes[] = {1,  2,  3,  4,  5,  6,  7,  16, 17, 18, 19, 32,
                               34, 49, 64, 65, 66, 67, 68, 69, 70, 71, 0,  999};

class Player {
 public:
  Player(std::span<const uint8_t> input, const std::string& dir, const flow::FaultPlan& faults)
      : source_(input), world_(dir, faults) {}

  Played Play() {
    for (size_t i = 0; i < kMaxSteps && !source_.empty() && !world_.violation(); ++i) {
      Once(static_cast<Step>(source_.Below(static_cast<uint32_t>(Step::kCount))));
      world_.Turn();
    }
    world_.End();
    return {frames_, world_.violation()};
  }

 private:
  void Once(Step step);
  void Send(const std::vector<uint8_t>& bytes) {
    FuzzClient* client = world_.client(source_.Byte());
    if (client == nullptr || !client->Send(bytes)) return;
    ++frames_;
    world_.Turn();
  }
  std::vector<uint8_t> Wellformed();
  std::vector<protocol::Extent> Extents();
  std::vector<protocol::FenceTerm> Fence();
  void WriteRing();
  void WritePageWords();
  void ReleaseHeld();
  void StandAtGate();
  void Burst();

  ByteSource source_;
  DaemonWorld world_;
  size_t frames_ = 0;
};

std::vector<protocol::Extent> Player::Extents() {
  std::vector<protocol::Extent> extents(1 + source_.Below(4));
  for (protocol::Extent& extent : extents) extent = {source_.Amount(), source_.Amount()};
  return extents;
}

std::vector<protocol::FenceTerm> Player::Fence() {
  std::vector<protocol::FenceTerm> fence(source_.Below(4));
  for (protocol::FenceTerm& term : fence) {
    term = {source_.Below(2) == 0 ? source_.Byte() : source_.Amount(), 0, source_.Amount()};
  }
  return fence;
}

/// A frame whose length is right, with fields that may mean something.
std::vector<uint8_t> Player::Wellformed() {
  switch (source_.Below(11)) {
    case 0: {
      protocol::Lease frame = {};
      frame.units = source_.Amount();
      frame.contiguous = source_.Amount();
      return AsBytes(frame, FrameType::kLease);
    }
    case 1: {
      protocol::Gate frame = {};
      frame.gate = source_.Amount();
      frame.profile = source_.Amount();
      frame.iteration = source_.Amount();
      frame.held_units = source_.Amount();
      frame.drained = source_.Below(3);
      return AsBytes(frame, FrameType::kGate);
    }
    case 2: {
      protocol::Release frame = {};
      const auto extents = Extents();
      const auto fence = Fence();
      frame.terms = static_cast<uint32_t>(fence.size());
      frame.extents = static_cast<uint32_t>(extents.size());
      std::copy(fence.begin(), fence.end(), frame.fence);
      std::copy(extents.begin(), extents.end(), frame.extent);
      return AsBytes(frame, FrameType::kRelease,
                     offsetof(protocol::Release, extent) + 8 * extents.size());
    }
    case 3: {
      protocol::Mismatch frame = {};
      frame.profile = source_.Amount();
      frame.reason = source_.Amount();
      return AsBytes(frame, FrameType::kMismatch);
    }
    case 4:
    case 5: {
      protocol::Charge frame = {};
      frame.family = source_.Below(20);
      frame.bytes = uint64_t{source_.Amount()} << source_.Below(33);
      constexpr FrameType kKinds[] = {FrameType::kCharge, FrameType::kUncharge, FrameType::kCount};
      return AsBytes(frame, kKinds[source_.Below(3)]);
    }
    case 6: {
      protocol::Resume frame = {};
      frame.major = protocol::kMajor;
      frame.minor = protocol::kMinor;
      frame.session = source_.Amount();
      frame.part = static_cast<protocol::ResumePart>(source_.Below(4));
      const auto extents = Extents();
      frame.count = static_cast<uint32_t>(extents.size());
      std::copy(extents.begin(), extents.end(), frame.extent);
      auto bytes = AsBytes(frame, FrameType::kResume,
                           offsetof(protocol::Resume, extent) + 8 * extents.size());
      bytes[offsetof(protocol::Header, flags)] = source_.Byte() & 1;
      return bytes;
    }
    case 7: {
      protocol::Hello frame = {};
      frame.major = protocol::kMajor;
      frame.minor = source_.Byte();
      frame.client_page_bytes = sizeof(protocol::ClientPage);
      frame.daemon_page_bytes = sizeof(protocol::DaemonPage);
      frame.mark_page_bytes = sizeof(protocol::MarkPage);
      std::copy(world_.device().begin(), world_.device().end(), frame.device_uuid);
      return AsBytes(frame, FrameType::kHello);
    }
    case 8:
      return AsBytes(protocol::Ready{}, FrameType::kReady);
    case 9: {
      protocol::Quiet frame = {};
      frame.reason = source_.Below(5);
      auto bytes = AsBytes(frame, FrameType::kQuiet);
      bytes[offsetof(protocol::Header, seq)] = source_.Below(2) == 0 ? 0 : 3;  // of a gate
      return bytes;
    }
    default: {
      protocol::Register frame = {};
      frame.limit_bytes = uint64_t{source_.Amount()} * 1024;
      frame.request_bytes = uint64_t{source_.Amount()} * 1024;
      frame.gpu = source_.Below(2);
      const std::vector<uint8_t> name = source_.Bytes(source_.Below(sizeof frame.name));
      std::copy(name.begin(), name.end(), frame.name);
      frame.flags = source_.Below(2);  // kObserve or none
      // The jobs that it makes end with the connection; how many there are at once is bounded.
      if (world_.jobs() + 1 >= DaemonWorld::kMaxJobs) frame.gpu = 1;
      return AsBytes(frame, FrameType::kRegister);
    }
  }
}

void Player::WriteRing() {
  FuzzClient* client = world_.client(source_.Byte());
  if (client == nullptr || client->page() == nullptr) return;
  for (uint32_t left = source_.Below(32); left > 0; --left) {
    client->Push(static_cast<protocol::OpKind>(source_.Below(9)),
                 uint64_t{source_.Amount()} << source_.Below(3) * 12, source_.Byte());
  }
}

/// A torn page: its words say anything, between two looks of the daemon.
void Player::WritePageWords() {
  FuzzClient* client = world_.client(source_.Byte());
  if (client == nullptr || client->page() == nullptr) return;
  protocol::ClientPage& page = *client->page();
  std::atomic<uint64_t>* words[] = {&page.head, &page.lost, &page.live_bytes, &page.held_bytes};
  std::atomic<uint64_t>& word = *words[source_.Below(4)];
  word.store(source_.Below(2) == 0 ? word.load() + source_.Byte() : source_.Take<uint64_t>());
  const uint8_t flags = source_.Byte();
  page.resume_wanted.store(flags);
  page.collectives.store(flags >> 7);
  protocol::OpRecord& record = page.ring[source_.Take<uint16_t>()];
  record = {source_.Byte(), source_.Byte(), 0, source_.Byte(), source_.Take<uint64_t>()};
}

void Player::ReleaseHeld() {
  const scheduler::Extents held = world_.HeldByOthers();
  FuzzClient* client = world_.client(source_.Byte());
  if (held.empty() || client == nullptr) return;
  const scheduler::Extent& whole = held[source_.Below(static_cast<uint32_t>(held.size()))];
  const uint32_t first = source_.Below(whole.length);
  const uint32_t count = 1 + source_.Below(whole.length - first);
  frames_ += client->SendRelease({{whole.offset + first, count}}, Fence());
}

void Player::StandAtGate() {
  FuzzClient* client = world_.client(source_.Byte());
  if (client == nullptr) return;
  protocol::Gate frame = {};
  frame.profile = client->profile();
  frame.gate = source_.Below(4) == 0 ? source_.Below(6) : 0;
  frame.iteration = source_.Byte();
  frame.drained = source_.Below(4) != 0;
  frames_ += client->SendFrame(frame, FrameType::kGate, 3);
}

/// Many of one kind, without reading what comes back.
void Player::Burst() {
  const std::vector<uint8_t> frame =
      source_.Below(3) == 0 ? AsBytes(protocol::Status{}, FrameType::kStatus) : Wellformed();
  FuzzClient* client = world_.client(source_.Byte());
  for (uint32_t left = source_.Byte(); left > 0 && client != nullptr; --left) {
    // Full: the daemon has hung up, or takes them up in its next turns.
    if (!client->Send(frame)) return world_.Turns(2);
    ++frames_;
    if (left % 16 == 0) world_.Turn();
  }
}

void Player::Once(Step step) {
  switch (step) {
    case Step::kNoise:
      return Send(source_.Bytes(source_.Byte()));
    case Step::kFrame:
      return Send(Wellformed());
    case Step::kBrokenFrame: {
      const uint16_t type = kTypes[source_.Below(std::size(kTypes))];
      auto bytes = Framed(type, source_.Byte() & 3, source_.Bytes(source_.Byte()));
      if (source_.Below(4) == 0) bytes[source_.Below(static_cast<uint32_t>(bytes.size()))] ^= 1;
      return Send(bytes);
    }
    case Step::kOpen:
      return world_.Open(source_.Byte());
    case Step::kConnect:
      return world_.Connect(source_.Byte());
    case Step::kControl:
      return world_.ConnectControl();
    case Step::kHangUp:
      return world_.HangUp(source_.Byte());
    case Step::kRead: {
      FuzzClient* client = world_.client(source_.Byte());
      while (client != nullptr && client->Receive().has_value()) {
      }
      return;
    }
    case Step::kHonest:
      return world_.HonestStep();
    case Step::kMark: {
      FuzzClient* client = world_.client(source_.Byte());
      if (client == nullptr || client->mark() == nullptr) return;
      auto& mark = client->mark()->mark[source_.Byte()];
      mark.store(source_.Below(2) == 0 ? source_.Amount() : source_.Take<uint64_t>());
      return;
    }
    case Step::kRing:
      return WriteRing();
    case Step::kPageWords:
      return WritePageWords();
    case Step::kTrain: {
      FuzzClient* client = world_.client(source_.Byte());
      const uint32_t layers = 1 + source_.Below(6);
      for (int i = 0; i < 8 && client != nullptr; ++i) {
        client->Iterate(layers, DaemonWorld::kUnit * (1 + layers % 2));
        world_.Pass(5'000'000);
      }
      return;
    }
    case Step::kGate:
      return StandAtGate();
    case Step::kReleaseHeld:
      return ReleaseHeld();
    case Step::kPass:
      return world_.Pass(uint64_t{1000} << source_.Below(26));
    case Step::kRegister: {
      const uint64_t limit = uint64_t{source_.Amount()} * DaemonWorld::kUnit / 2;
      const uint64_t request = uint64_t{source_.Amount()} * DaemonWorld::kUnit / 2;
      return world_.Register(limit, request, 0);
    }
    case Step::kLease: {
      protocol::Lease frame = {};
      frame.units = 1 + source_.Below(12);
      frame.contiguous = 1 + source_.Below(frame.units);
      return Send(AsBytes(frame, FrameType::kLease));
    }
    case Step::kCharge: {
      protocol::Charge frame = {};
      frame.family = 1 + source_.Below(6);
      frame.bytes = source_.Below(8) * DaemonWorld::kUnit / 2;
      const FrameType type = source_.Below(2) == 0 ? FrameType::kCharge : FrameType::kUncharge;
      return Send(AsBytes(frame, type));
    }
    case Step::kBurst:
      return Burst();
    case Step::kCount:
      return;
  }
}

}  // namespace

Played PlayFrames(std::span<const uint8_t> input, const std::string& dir,
                  const flow::FaultPlan& faults) {
  return Player(input, dir, faults).Play();
}

std::string ScratchFolder() {
  std::error_code error;
  const bool memory = std::filesystem::is_directory("/dev/shm", error);
  return std::string(memory ? "/dev/shm" : "/tmp") + "/sluice-fuzz-" + std::to_string(::getpid());
}

}  // namespace sluice::fuzz
