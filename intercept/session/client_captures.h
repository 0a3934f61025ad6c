// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/session/client.h"

// Client's members around captures. Whichever streams belong to one, no mark is in it: a mark asks
// whether its stream is captured and then queues its write, so a stream enters a capture (it is
// begun there, or joins by an event) only while no mark is between the two.

namespace sluice {

template <class Issue>
CUresult Client::CaptureBegin(CUstream stream, Issue issue) {
  captures_.Add();
  if (has_session()) AwaitSynchronised();
  const CUcontext context = ContextOf(stream);
  CUresult result = CUDA_SUCCESS;
  {
    const LockGuard marks(mark_locks_);
    result = issue();
  }
  result == CUDA_SUCCESS ? captures_.Began(stream, context) : captures_.Remove();
  return result;
}

template <class Issue>
CUresult Client::StreamWait(Issue issue) {
  // Before the first one begins, the marks that were under way are over.
  if (captures_.load() == 0) [[likely]]
    return issue();
  const LockGuard marks(mark_locks_);
  return issue();
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
