// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/session/client.h"

// Client's members around captures. Whichever streams belong to one, no mark is in it: a mark asks
// whether its stream is captured and then queues its write, so a stream enters a capture (it is
// begun there, or joins by an event) only while no mark of its own is between the two.

namespace sluice {

// Marks of other streams may be under way, and take as long as the GPU does with a full queue.
template <class Issue>
CUresult Client::Unmarked(CUstream stream, Issue issue) {
  const uint32_t slot = SlotByHandle(stream);
  if (slot == kNoSlot) return issue();
  const LockGuard marking(mark_locks_[slot]);
  return issue();
}

template <class Issue>
CUresult Client::CaptureBegin(CUstream stream, Issue issue) {
  captures_.Add();
  if (has_session()) AwaitSynchronised();
  const CUcontext context = ContextOf(stream);
  const CUresult result = Unmarked(stream, issue);
  result == CUDA_SUCCESS ? captures_.Began(stream, context) : captures_.Remove();
  return result;
}

template <class Issue>
CUresult Client::StreamWait(CUstream stream, Issue issue) {
  if (captures_.load() == 0) [[likely]]
    return issue();
  return Unmarked(stream, issue);
}

template <class Issue>
CUresult Client::CaptureEnd(CUstream stream, Issue issue) {
  const bool before = Capturing(stream);
  const CUresult result = issue();
  // A failure may have ended it, or not.
  if (before && !Capturing(stream)) captures_.Ended(stream, ContextOf(stream));
  return result;
}

}  // namespace sluice
