// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// What nearly every call of the application passes: inline, because calling these functions costs
// as much as what they do. Included by client.h.

#include "intercept/session/client.h"
#include "intercept/streams/known_streams.h"

namespace sluice {

inline CUcontext Client::CurrentContext() const {
  CUcontext context = nullptr;
  if (driver_->cuCtxGetCurrent != nullptr) static_cast<void>(driver_->cuCtxGetCurrent(&context));
  return context;
}

// What this thread remembers of the stream, or null.
inline const KnownStream* Client::Known(CUstream stream) const {
  const KnownStream& known = PlaceOfKnown(stream);
  const uint64_t generation = stream_generation_.load(std::memory_order_acquire);
  if (known.handle != stream || known.owner != this || known.generation != generation ||
      (IsDefault(stream) && known.name.context != CurrentContext())) {
    return nullptr;
  }
  return &known;
}

inline CUresult Client::SlotOf(CUstream stream, uint32_t* slot) {
  const KnownStream* known = Known(stream);
  if (known == nullptr) [[unlikely]]
    return FindSlot(stream, slot);
  *slot = known->slot;
  return CUDA_SUCCESS;
}

// An error counts as capturing (the legacy stream is unusable while another thread captures).
inline bool Client::Capturing(CUstream stream) const {
  if (captures_.load() == 0) [[likely]]
    return false;
  if (driver_->cuStreamIsCapturing == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver_->cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

inline void Client::Record(protocol::OpKind kind, uint32_t slot, uint32_t detail, uint64_t value) {
  const protocol::OpRecord record{static_cast<uint8_t>(kind),
                                  static_cast<uint8_t>(slot < kNoSlot ? slot : kNoSlot - 1), 0,
                                  detail, value};
  protocol::PushRecord(session_.client_page(), session_.daemon_page(), ring_tail_, record);
}

inline CUdeviceptr Client::AddressOf(const Block& block) const {
  return session_.arena().base() + (CUdeviceptr{block.start} << kGranuleShift);
}

// Under state_lock_: the live block that starts at this address, or kNoBlock.
inline uint32_t Client::FindLiveAt(CUdeviceptr address) const {
  const CUdeviceptr offset = address - session_.arena().base();
  if (offset % kGranuleBytes != 0) return kNoBlock;
  return arena_.FindLive(static_cast<uint32_t>(offset >> kGranuleShift));
}

template <class Issue>
CUresult Client::Moving(Issue issue) {
  if (!has_session()) return issue();
  if (!standstill_.Enter()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = issue();
  standstill_.Leave();
  return result;
}

template <class Issue>
CUresult Client::LaunchAs(uint64_t function, CUstream stream, Issue issue) {
  Ticket ticket;
  if (!BeforeLaunch(function, stream, &ticket)) return Moving(issue);
  const CUresult result = Moving(issue);
  AfterLaunch(ticket, result == CUDA_SUCCESS);
  return result;
}

template <class Issue>
CUresult Client::Copy(size_t bytes, CUstream stream, Issue issue) {
  const CUresult result = Moving(issue);
  if (result == CUDA_SUCCESS && has_session() && !Capturing(stream)) NoteCopy(bytes, stream);
  return result;
}

}  // namespace sluice
