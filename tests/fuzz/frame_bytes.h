// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "noderuntime/session/frames.h"

namespace sluice::fuzz {

/// A frame with a right header, whatever its type and body.
inline std::vector<uint8_t> Framed(uint16_t type, uint16_t flags, std::vector<uint8_t> body,
                                   uint32_t seq = 7) {
  const protocol::Header header = session::MakeHeader(
      static_cast<protocol::FrameType>(type), sizeof(protocol::Header) + body.size(), seq, flags);
  const auto* at = reinterpret_cast<const uint8_t*>(&header);
  body.insert(body.begin(), at, at + sizeof header);
  return body;
}

/// `bytes`: what is sent of it.
template <typename Frame>
std::vector<uint8_t> AsBytes(const Frame& frame, protocol::FrameType type,
                             size_t bytes = sizeof(Frame), uint32_t seq = 7, uint16_t flags = 0) {
  const auto* at = reinterpret_cast<const uint8_t*>(&frame);
  return Framed(static_cast<uint16_t>(type), flags, {at + sizeof(protocol::Header), at + bytes},
                seq);
}

}  // namespace sluice::fuzz
