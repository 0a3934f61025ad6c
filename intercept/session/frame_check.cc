// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/frame_check.h"

namespace sluice {

using protocol::FrameType;

const char* CheckFrame(Frame& frame, size_t bytes, size_t fds) {
  if (bytes < sizeof(protocol::Header)) return "a frame is shorter than its header";
  if (frame.header.magic != protocol::kMagic) return "a frame does not start with SLC1";
  if (frame.header.bytes != bytes) return "a frame's length field is not its length";
  size_t wanted = 0;
  size_t wanted_fds = 0;
  switch (static_cast<FrameType>(frame.header.type)) {
    case FrameType::kWelcome:
      wanted = sizeof(protocol::Welcome);
      wanted_fds = 4;
      break;
    case FrameType::kHandles:
      wanted = sizeof(protocol::Handles);
      if (bytes != wanted) return "a Handles frame has the wrong size";
      if (frame.handles.count == 0 || frame.handles.count > protocol::kMaxFdsPerFrame) {
        return "a Handles frame announces no or too many handles";
      }
      wanted_fds = frame.handles.count;
      break;
    case FrameType::kResumed:
      wanted = sizeof(protocol::Resumed);
      wanted_fds = 1;
      break;
    case FrameType::kGrant: {
      constexpr size_t kFixed = offsetof(protocol::Grant, extent);
      if (bytes < kFixed) return "a Grant frame has the wrong size";
      if (frame.grant.extents > protocol::kMaxExtentsPerFrame)
        return "a Grant has too many extents";
      wanted = kFixed + frame.grant.extents * sizeof(protocol::Extent);
      break;
    }
    case FrameType::kCharged:
      wanted = sizeof(protocol::Charged);
      break;
    case FrameType::kQuiesce:
      wanted = sizeof(protocol::Quiesce);
      break;
    case FrameType::kTold:
      wanted = sizeof(protocol::Told);
      break;
    case FrameType::kDeny:
      wanted = sizeof(protocol::Deny);
      if (bytes == wanted) frame.deny.text[protocol::kMaxTextBytes - 1] = 0;
      break;
    case FrameType::kNotice:
    case FrameType::kClose:
      wanted = sizeof(protocol::Notice);
      if (bytes == wanted) frame.notice.text[protocol::kMaxTextBytes - 1] = 0;
      break;
    default:
      return "a frame of a type that no daemon sends";
  }
  if (bytes != wanted) return "a frame has the wrong size for its type";
  if (fds != wanted_fds) return "a frame has the wrong number of descriptors";
  return nullptr;
}

protocol::Header MakeHeader(FrameType type, size_t bytes, uint32_t seq) {
  return {protocol::kMagic, static_cast<uint16_t>(type), 0, static_cast<uint32_t>(bytes), seq};
}

}  // namespace sluice
