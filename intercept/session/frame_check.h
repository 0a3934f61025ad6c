// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "intercept/protocol/wire.h"

namespace sluice {

/// One datagram from the daemon, in memory of our own: nobody changes it while it is looked at.
union Frame {
  protocol::Header header;
  protocol::Welcome welcome;
  protocol::Handles handles;
  protocol::Grant grant;
  protocol::Deny deny;
  protocol::Charged charged;
  protocol::Told told;
  protocol::Notice notice;
  protocol::Close close;
  protocol::Resumed resumed;
  uint8_t raw[protocol::kMaxFrameBytes];
};

/// Null when the datagram is a well-formed frame that a daemon may send, with `fds` descriptors
/// beside it; else what is wrong with it. Texts are zero-terminated afterwards. What a frame says
/// about the pool is checked by whoever knows the pool.
const char* CheckFrame(Frame& frame, size_t bytes, size_t fds);

protocol::Header MakeHeader(protocol::FrameType type, size_t bytes, uint32_t seq);

}  // namespace sluice
