// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/hostile_frames.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "intercept/protocol/pages.h"
#include "tests/fuzz/frame_bytes.h"

namespace sluice::fuzz {

using protocol::FrameType;

namespace {

constexpr uint64_t kEdges[] = {0,          1,          2,          7,          8,
                               31,         32,         40,         255,        256,
                               0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x100000000,
                               1ull << 62, 1ull << 63, ~1ull,      ~0ull};

class Maker {
 public:
  Maker(const Sight& sight, std::mt19937_64& random) : sight_(sight), random_(random) {}

  std::vector<uint8_t> Make(Kind kind) {
    std::vector<uint8_t> bytes = Wellformed(kind);
    const uint32_t dice = Below(16);
    if (dice < 8) return bytes;
    if (dice < 12) SpoilBody(&bytes);
    if (dice == 12) SpoilHeader(&bytes);
    if (dice == 13) Resize(&bytes, Below(static_cast<uint32_t>(bytes.size())));
    if (dice == 14) Resize(&bytes, bytes.size() + 1 + Below(Below(2) == 0 ? 16 : 9000));
    if (dice == 15) {
      SpoilBody(&bytes);
      SpoilBody(&bytes);
    }
    return bytes;
  }

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  uint64_t Edge() {
    if (Below(8) == 0) return random_();
    return kEdges[Below(static_cast<uint32_t>(std::size(kEdges)))];
  }

  /// One field, of four or eight bytes.
  void SpoilBody(std::vector<uint8_t>* bytes) {
    const size_t words = (bytes->size() - sizeof(protocol::Header)) / 4;
    if (words == 0) return SpoilHeader(bytes);
    const size_t at = sizeof(protocol::Header) + 4 * Below(static_cast<uint32_t>(words));
    const uint64_t edge = Edge();
    const size_t size = Below(2) == 0 ? 4 : 8;
    std::memcpy(bytes->data() + at, &edge, std::min(size, bytes->size() - at));
  }
  void SpoilHeader(std::vector<uint8_t>* bytes) {
    constexpr size_t kFields[][2] = {{offsetof(protocol::Header, magic), 4},
                                     {offsetof(protocol::Header, flags), 2},
                                     {offsetof(protocol::Header, bytes), 4},
                                     {offsetof(protocol::Header, seq), 4}};
    const auto& [at, size] = kFields[Below(4)];
    const uint64_t edge = Edge();
    std::memcpy(bytes->data() + at, &edge, size);
  }
  /// Half of them say so.
  void Resize(std::vector<uint8_t>* bytes, size_t size) {
    const size_t before = bytes->size();
    bytes->resize(size);
    for (size_t i = before; i < size; ++i) (*bytes)[i] = static_cast<uint8_t>(random_());
    const auto said = static_cast<uint32_t>(size);
    if (Below(2) == 0 && size >= sizeof(protocol::Header)) {
      std::memcpy(bytes->data() + offsetof(protocol::Header, bytes), &said, sizeof said);
    }
  }

  std::vector<protocol::Extent> SomeHeld() {
    std::vector<protocol::Extent> extents;
    for (uint32_t left = 1 + Below(3); left > 0; --left) {
      if (sight_.held.empty()) {
        extents.push_back({Below(40), 1 + Below(4)});
        continue;
      }
      const scheduler::Extent& whole =
          sight_.held[Below(static_cast<uint32_t>(sight_.held.size()))];
      const uint32_t first = Below(whole.length);
      extents.push_back({whole.offset + first, 1 + Below(whole.length - first)});
    }
    return extents;
  }
  std::vector<protocol::FenceTerm> SomeFence() {
    std::vector<protocol::FenceTerm> fence(Below(4));
    for (protocol::FenceTerm& term : fence) term = {Below(protocol::kStreamSlots), 0, Below(64)};
    return fence;
  }

  std::vector<uint8_t> Wellformed(Kind kind);
  std::vector<uint8_t> Release();
  std::vector<uint8_t> Resume();
  std::vector<uint8_t> Unknown();

  const Sight& sight_;
  std::mt19937_64& random_;
};

std::vector<uint8_t> Maker::Release() {
  protocol::Release frame = {};
  const auto extents = SomeHeld();
  const auto fence = SomeFence();
  frame.terms = static_cast<uint32_t>(fence.size());
  frame.extents = static_cast<uint32_t>(extents.size());
  std::copy(fence.begin(), fence.end(), frame.fence);
  std::copy(extents.begin(), extents.end(), frame.extent);
  return AsBytes(frame, FrameType::kRelease,
                 offsetof(protocol::Release, extent) + sizeof(protocol::Extent) * extents.size());
}

std::vector<uint8_t> Maker::Resume() {
  protocol::Resume frame = {};
  frame.major = protocol::kMajor;
  frame.minor = protocol::kMinor;
  frame.session = sight_.session;
  frame.part = static_cast<protocol::ResumePart>(Below(3));
  size_t entry = sizeof(protocol::Extent);
  if (frame.part == protocol::ResumePart::kFence) {
    const auto fence = SomeFence();
    frame.count = static_cast<uint32_t>(fence.size());
    std::copy(fence.begin(), fence.end(), frame.term);
    entry = sizeof(protocol::FenceTerm);
  } else {
    const auto extents = SomeHeld();
    frame.count = static_cast<uint32_t>(extents.size());
    std::copy(extents.begin(), extents.end(), frame.extent);
  }
  return AsBytes(frame, FrameType::kResume,
                 offsetof(protocol::Resume, extent) + entry * frame.count, 7,
                 static_cast<uint16_t>(Below(2)));
}

std::vector<uint8_t> Maker::Unknown() {
  constexpr uint16_t kTypes[] = {0,  8,  15, 22, 32, 33, 34, 35, 36, 37, 48,  49,
                                 50, 51, 64, 65, 66, 68, 70, 72, 74, 76, 999, 65535};
  std::vector<uint8_t> body(Below(4) == 0 ? Below(600) : 8 * Below(8));
  for (uint8_t& byte : body) byte = static_cast<uint8_t>(random_());
  return Framed(kTypes[Below(static_cast<uint32_t>(std::size(kTypes)))],
                static_cast<uint16_t>(Below(4)), body);
}

std::vector<uint8_t> Maker::Wellformed(Kind kind) {
  const uint32_t seq = 1000 + Below(1000);
  switch (kind) {
    case Kind::kHello: {
      protocol::Hello frame = {};
      frame.major = protocol::kMajor;
      frame.minor = static_cast<uint16_t>(Below(protocol::kMinor + 2u));
      frame.client_page_bytes = sizeof(protocol::ClientPage);
      frame.daemon_page_bytes = sizeof(protocol::DaemonPage);
      frame.mark_page_bytes = sizeof(protocol::MarkPage);
      std::copy(sight_.device.begin(), sight_.device.end(), frame.device_uuid);
      return AsBytes(frame, FrameType::kHello);
    }
    case Kind::kReady:
      return AsBytes(protocol::Ready{}, FrameType::kReady);
    case Kind::kLease: {
      protocol::Lease frame = {};
      frame.units = 1 + Below(12);
      frame.contiguous = 1 + Below(frame.units);
      const bool if_there = Below(4) == 0;
      return AsBytes(frame, FrameType::kLease, sizeof frame, seq,
                     if_there ? uint16_t{protocol::kIfThere} : uint16_t{0});
    }
    case Kind::kGate: {
      protocol::Gate frame = {};
      frame.gate = Below(2) == 0 ? 0 : Below(6);
      frame.profile = sight_.profile;
      frame.iteration = sight_.iteration + Below(2);
      frame.held_units = TotalUnits(sight_.held);
      frame.drained = Below(2);
      return AsBytes(frame, FrameType::kGate, sizeof frame, seq);
    }
    case Kind::kRelease:
      return Release();
    case Kind::kMismatch: {
      protocol::Mismatch frame = {};
      frame.profile = Below(2) == 0 ? sight_.profile : Below(4);
      frame.reason = Below(5);
      return AsBytes(frame, FrameType::kMismatch);
    }
    case Kind::kCharge:
    case Kind::kUncharge:
    case Kind::kCount: {
      protocol::Charge frame = {};
      frame.family = (kind == Kind::kCount ? 16 : 1) + Below(6);
      frame.bytes = Below(5) * sight_.unit_bytes / 2;
      return AsBytes(frame,
                     kind == Kind::kCharge     ? FrameType::kCharge
                     : kind == Kind::kUncharge ? FrameType::kUncharge
                                               : FrameType::kCount,
                     sizeof frame, seq);
    }
    case Kind::kQuiet: {
      protocol::Quiet frame = {};
      frame.reason = Below(2) == 0 ? 0 : Below(4);
      return AsBytes(frame, FrameType::kQuiet, sizeof frame, sight_.seq);
    }
    case Kind::kAsk: {
      protocol::Ask frame = {};
      frame.major = protocol::kMajor;
      frame.minor = static_cast<uint16_t>(Below(protocol::kMinor + 2u));
      return AsBytes(frame, FrameType::kAsk);
    }
    case Kind::kResume:
      return Resume();
    case Kind::kBye:
      return AsBytes(protocol::Bye{}, FrameType::kBye);
    case Kind::kUnknown:
      break;
  }
  return Unknown();
}

}  // namespace

const char* NameOf(Kind kind) {
  constexpr const char* kNames[kKinds] = {"Hello", "Ready",  "Lease", "Gate",  "Release",
                                          "Mism.", "Charge", "Unch.", "Count", "Quiet",
                                          "Ask",   "Resume", "Bye",   "other"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<uint8_t> MakeFrame(Kind kind, const Sight& sight, std::mt19937_64& random) {
  return Maker(sight, random).Make(kind);
}

}  // namespace sluice::fuzz
