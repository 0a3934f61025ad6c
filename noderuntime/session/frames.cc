// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/frames.h"

#include <algorithm>
#include <cstring>

#include "common/printable.h"

namespace sluice::session {
namespace {

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

/// A frame of fixed size. `datagram` has been compared with the header's length already.
template <typename T>
Result<Frame> Fixed(std::span<const std::byte> datagram, const char* name) {
  if (datagram.size() != sizeof(T)) {
    return Bad(std::string(name) + " has " + std::to_string(datagram.size()) +
               " bytes; allowed: " + std::to_string(sizeof(T)));
  }
  T frame;
  std::memcpy(&frame, datagram.data(), sizeof frame);
  return Frame(frame);
}

Result<Frame> ParseLease(std::span<const std::byte> datagram) {
  Result<Frame> frame = Fixed<protocol::Lease>(datagram, "Lease");
  if (!frame.ok()) return frame;
  const auto& lease = std::get<protocol::Lease>(*frame);
  if (lease.units == 0 || lease.contiguous > lease.units) {
    return Bad("Lease asks for " + std::to_string(lease.units) + " units, " +
               std::to_string(lease.contiguous) +
               " of them in one run; allowed: at least 1, and no longer a run than that");
  }
  return frame;
}

Result<Frame> ParseQuiet(std::span<const std::byte> datagram) {
  Result<Frame> frame = Fixed<protocol::Quiet>(datagram, "Quiet");
  if (!frame.ok()) return frame;
  const uint32_t reason = std::get<protocol::Quiet>(*frame).reason;
  constexpr auto kMost = static_cast<uint32_t>(protocol::QuietReason::kDebugging);
  if (reason <= kMost) return frame;
  return Bad("Quiet gives the reason " + std::to_string(reason) + "; allowed: 0 to " +
             std::to_string(kMost));
}

Status CheckTerms(const std::vector<protocol::FenceTerm>& terms, const std::string& name) {
  for (const protocol::FenceTerm& term : terms) {
    if (term.slot < protocol::kStreamSlots) continue;
    return Bad(name + " waits for stream slot " + std::to_string(term.slot) + "; allowed: 0 to " +
               std::to_string(protocol::kStreamSlots - 1));
  }
  return {};
}

Status CheckExtents(const std::vector<protocol::Extent>& extents, const std::string& name) {
  for (const protocol::Extent& extent : extents) {
    if (extent.length > 0 && extent.offset <= UINT32_MAX - extent.length) continue;
    return Bad(name + " names the extent [" + std::to_string(extent.offset) + ", +" +
               std::to_string(extent.length) + "); allowed: 1 unit or more, inside the pool");
  }
  return {};
}

Result<Frame> ParseRelease(std::span<const std::byte> datagram) {
  constexpr size_t kFixed = offsetof(protocol::Release, extent);
  if (datagram.size() < kFixed) {
    return Bad("Release has " + std::to_string(datagram.size()) + " bytes; allowed: at least " +
               std::to_string(kFixed));
  }
  protocol::Release release;
  std::memcpy(&release, datagram.data(), kFixed);
  if (release.terms > protocol::kMaxFenceTerms) {
    return Bad("Release has a fence of " + std::to_string(release.terms) +
               " terms; allowed: " + std::to_string(protocol::kMaxFenceTerms));
  }
  if (release.extents == 0 || release.extents > protocol::kMaxExtentsPerFrame) {
    return Bad("Release names " + std::to_string(release.extents) + " extents; allowed: 1 to " +
               std::to_string(protocol::kMaxExtentsPerFrame));
  }
  const size_t expected = kFixed + release.extents * sizeof(protocol::Extent);
  // The full frame is tolerated: only the first `extents` count.
  if (datagram.size() != expected && datagram.size() != sizeof(protocol::Release)) {
    return Bad("Release with " + std::to_string(release.extents) + " extents has " +
               std::to_string(datagram.size()) + " bytes; allowed: " + std::to_string(expected));
  }
  ReleaseFrame frame;
  frame.fence.assign(release.fence, release.fence + release.terms);
  if (Status s = CheckTerms(frame.fence, "Release"); !s.ok()) return s;
  frame.extents.resize(release.extents);
  std::memcpy(frame.extents.data(), datagram.data() + kFixed,
              release.extents * sizeof(protocol::Extent));
  if (Status s = CheckExtents(frame.extents, "Release"); !s.ok()) return s;
  return Frame(std::move(frame));
}

Result<Frame> ParseResume(const protocol::Header& header, std::span<const std::byte> datagram) {
  constexpr size_t kFixed = offsetof(protocol::Resume, extent);
  if (datagram.size() < kFixed) {
    return Bad("Resume has " + std::to_string(datagram.size()) + " bytes; allowed: at least " +
               std::to_string(kFixed));
  }
  protocol::Resume raw;
  std::memcpy(static_cast<void*>(&raw), datagram.data(), kFixed);
  ResumeFrame frame;
  frame.last = (header.flags & protocol::kLastFrame) != 0;
  frame.major = raw.major;
  frame.minor = raw.minor;
  frame.session = raw.session;
  frame.epoch = raw.epoch;
  frame.rejected = raw.rejected;
  std::copy(std::begin(raw.outside_bytes), std::end(raw.outside_bytes),
            frame.outside_bytes.begin());
  frame.part = raw.part;
  const bool fence = raw.part == protocol::ResumePart::kFence;
  if (!fence && raw.part != protocol::ResumePart::kHeld &&
      raw.part != protocol::ResumePart::kReleased) {
    return Bad("Resume has the part " + std::to_string(static_cast<uint32_t>(raw.part)) +
               "; allowed: 0 to 2");
  }
  const size_t most = fence ? protocol::kMaxResumeTerms : protocol::kMaxExtentsPerFrame;
  if (raw.count > most) {
    return Bad("Resume lists " + std::to_string(raw.count) + " entries; allowed: up to " +
               std::to_string(most));
  }
  const size_t entry = fence ? sizeof(protocol::FenceTerm) : sizeof(protocol::Extent);
  if (datagram.size() != kFixed + raw.count * entry) {
    return Bad("Resume with " + std::to_string(raw.count) + " entries has " +
               std::to_string(datagram.size()) +
               " bytes; allowed: " + std::to_string(kFixed + raw.count * entry));
  }
  if (fence) {
    frame.terms.resize(raw.count);
    if (raw.count > 0) std::memcpy(frame.terms.data(), datagram.data() + kFixed, raw.count * entry);
  } else {
    frame.extents.resize(raw.count);
    if (raw.count > 0)
      std::memcpy(frame.extents.data(), datagram.data() + kFixed, raw.count * entry);
  }
  if (Status s = CheckTerms(frame.terms, "Resume"); !s.ok()) return s;
  if (Status s = CheckExtents(frame.extents, "Resume"); !s.ok()) return s;
  return Frame(std::move(frame));
}

Result<Frame> ParseRegister(std::span<const std::byte> datagram) {
  if (datagram.size() != sizeof(protocol::Register)) {
    return Bad("Register has " + std::to_string(datagram.size()) +
               " bytes; allowed: " + std::to_string(sizeof(protocol::Register)));
  }
  protocol::Register raw;
  std::memcpy(&raw, datagram.data(), sizeof raw);
  RegisterFrame frame;
  frame.seq = raw.header.seq;
  frame.limit_bytes = raw.limit_bytes;
  frame.request_bytes = raw.request_bytes;
  frame.gpu = raw.gpu;
  frame.observe = (raw.flags & protocol::kObserve) != 0;
  frame.name = Printable({raw.name, ::strnlen(raw.name, sizeof raw.name)});
  return Frame(std::move(frame));
}

Result<Frame> ParseSetPolicy(std::span<const std::byte> datagram) {
  if (datagram.size() != sizeof(protocol::SetPolicy)) {
    return Bad("SetPolicy has " + std::to_string(datagram.size()) +
               " bytes; allowed: " + std::to_string(sizeof(protocol::SetPolicy)));
  }
  protocol::SetPolicy raw;
  std::memcpy(&raw, datagram.data(), sizeof raw);
  SetPolicyFrame frame;
  frame.seq = raw.header.seq;
  frame.lanes = raw.lanes;
  frame.policy = Printable({raw.policy, ::strnlen(raw.policy, sizeof raw.policy)});
  return Frame(std::move(frame));
}

}  // namespace

Result<Frame> ParseFrame(std::span<const std::byte> datagram) {
  protocol::Header header;
  if (datagram.size() < sizeof header) {
    return Bad("a frame of " + std::to_string(datagram.size()) + " bytes; allowed: " +
               std::to_string(sizeof header) + " to " + std::to_string(protocol::kMaxFrameBytes));
  }
  std::memcpy(&header, datagram.data(), sizeof header);
  if (header.magic != protocol::kMagic) return Bad("a frame that is not of this protocol");
  if (header.bytes != datagram.size()) {
    return Bad("a frame says it has " + std::to_string(header.bytes) + " bytes and has " +
               std::to_string(datagram.size()));
  }
  switch (static_cast<protocol::FrameType>(header.type)) {
    case protocol::FrameType::kHello:
      return Fixed<protocol::Hello>(datagram, "Hello");
    case protocol::FrameType::kReady:
      return Fixed<protocol::Ready>(datagram, "Ready");
    case protocol::FrameType::kLease:
      return ParseLease(datagram);
    case protocol::FrameType::kGate:
      return Fixed<protocol::Gate>(datagram, "Gate");
    case protocol::FrameType::kRelease:
      return ParseRelease(datagram);
    case protocol::FrameType::kResume:
      return ParseResume(header, datagram);
    case protocol::FrameType::kMismatch:
      return Fixed<protocol::Mismatch>(datagram, "Mismatch");
    case protocol::FrameType::kCharge:
      return Fixed<protocol::Charge>(datagram, "Charge");
    case protocol::FrameType::kUncharge:
      return Fixed<protocol::Uncharge>(datagram, "Uncharge");
    case protocol::FrameType::kCount:
      return Fixed<protocol::Count>(datagram, "Count");
    case protocol::FrameType::kQuiet:
      return ParseQuiet(datagram);
    case protocol::FrameType::kAsk:
      return Fixed<protocol::Ask>(datagram, "Ask");
    case protocol::FrameType::kBye:
      return Fixed<protocol::Bye>(datagram, "Bye");
    case protocol::FrameType::kRegister:
      return ParseRegister(datagram);
    case protocol::FrameType::kSetPolicy:
      return ParseSetPolicy(datagram);
    case protocol::FrameType::kSetBudget:
      return Fixed<protocol::SetBudget>(datagram, "SetBudget");
    case protocol::FrameType::kSetLimit:
      return Fixed<protocol::SetLimit>(datagram, "SetLimit");
    case protocol::FrameType::kDrain:
      return Fixed<protocol::Drain>(datagram, "Drain");
    case protocol::FrameType::kStatus:
      return Fixed<protocol::Status>(datagram, "Status");
    case protocol::FrameType::kLive:
      return Fixed<protocol::Live>(datagram, "Live");
    case protocol::FrameType::kRecording:
      return Fixed<protocol::Recording>(datagram, "Recording");
    default:
      break;
  }
  return Bad("a frame of type " + std::to_string(header.type) +
             ", which nobody sends to the daemon");
}

protocol::Header MakeHeader(protocol::FrameType type, size_t bytes, uint32_t seq, uint16_t flags) {
  return {protocol::kMagic, static_cast<uint16_t>(type), flags, static_cast<uint32_t>(bytes), seq};
}

void CopyText(std::string_view text, std::span<char> field) {
  text = CutText(text, field.size() - 1);
  const size_t length = text.size();
  std::memcpy(field.data(), text.data(), length);
  std::fill(field.begin() + static_cast<std::ptrdiff_t>(length), field.end(), '\0');
}

}  // namespace sluice::session
