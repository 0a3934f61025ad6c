// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/event_wait.h"

namespace sluice::simgpu {

CUresult WaitCommand(Context* context, CUevent event, Command* out) {
  *out = {};
  out->kind = CommandKind::kNothing;
  if (event->is_shared()) {
    const EventBoard* board = context->driver()->Events();
    if (!board->Exists(event->shared)) return CUDA_ERROR_INVALID_HANDLE;
    const uint64_t record = board->LastRecord(event->shared.index);
    if (record == 0) return CUDA_SUCCESS;
    out->kind = CommandKind::kWaitEvent;
    out->wait_event.shared = event->shared.index + 1;
    out->wait_event.id = record;
    return CUDA_SUCCESS;
  }
  const uint64_t mark = event->mark.load();
  if (mark == 0) return CUDA_SUCCESS;
  out->wait_event.stream = MarkStream(mark);
  out->wait_event.id = MarkId(mark);
  if (event->context != context) {
    const std::lock_guard lock(context->driver()->mutex);
    // What a destroyed context was asked to do is over.
    if (event->context->destroyed()) return CUDA_SUCCESS;
    out->wait_event.peer = context->PeerOf(event->context);
    if (out->wait_event.peer == 0) return CUDA_ERROR_OPERATING_SYSTEM;
  }
  out->kind = CommandKind::kWaitEvent;
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
