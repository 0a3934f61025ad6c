// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/status.h"
#include "intercept/protocol/wire.h"

namespace sluice::session {

/// A release as a value: only what was sent of it.
struct ReleaseFrame {
  std::vector<protocol::FenceTerm> fence;
  std::vector<protocol::Extent> extents;
};

/// One frame of a client that goes on with its session (protocol::Resume).
struct ResumeFrame {
  bool last = false;
  uint16_t major = 0;
  uint16_t minor = 0;
  uint32_t session = 0;
  uint64_t epoch = 0;
  uint32_t rejected = 0;
  std::array<uint64_t, protocol::kMaxOutsideFamilies> outside_bytes = {};
  protocol::ResumePart part = protocol::ResumePart::kHeld;
  std::vector<protocol::Extent> extents;
  std::vector<protocol::FenceTerm> terms;
};

/// A registration as a value: the name is for people (Printable).
struct RegisterFrame {
  uint32_t seq = 0;
  uint64_t limit_bytes = 0;
  uint64_t request_bytes = 0;
  uint32_t gpu = 0;
  bool observe = false;
  std::string name;
};

/// Another policy, as the command line asks for it. 0 lanes: as many as now.
struct SetPolicyFrame {
  uint32_t seq = 0;
  uint32_t lanes = 0;
  std::string policy;
};

/// Everything a client, launcher or command line may send.
using Frame =
    std::variant<protocol::Hello, protocol::Ready, protocol::Lease, protocol::Gate, ReleaseFrame,
                 protocol::Mismatch, protocol::Charge, protocol::Uncharge, protocol::Count,
                 protocol::Quiet, protocol::Bye, protocol::Ask, ResumeFrame, RegisterFrame,
                 SetPolicyFrame, protocol::SetBudget, protocol::SetLimit, protocol::Drain,
                 protocol::Status, protocol::Live, protocol::Recording>;

/// Reads one datagram, which may be anything. Checks what a frame can tell by itself: magic, type,
/// sizes, counts, ranges that do not depend on the pool. The error is one line for the sender.
Result<Frame> ParseFrame(std::span<const std::byte> datagram);

/// A header for a frame of `bytes` in all.
protocol::Header MakeHeader(protocol::FrameType type, size_t bytes, uint32_t seq = 0,
                            uint16_t flags = 0);

/// Copies `text` into a fixed field, cut to fit (CutText) and always terminated.
void CopyText(std::string_view text, std::span<char> field);

}  // namespace sluice::session
