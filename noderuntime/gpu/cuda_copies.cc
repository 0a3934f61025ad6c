// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Copies between the pool and host memory: one stream for each direction, one event for each start.
#include "common/bytes.h"
#include "noderuntime/gpu/cuda_device.h"

namespace sluice::gpu {
namespace {

const char* Name(CopyDirection direction) {
  return direction == CopyDirection::kToHost ? "copy to host memory" : "copy to the pool";
}

}  // namespace

Result<std::byte*> CudaDevice::AllocateHost(uint64_t bytes) {
  const std::string what = FormatBytes(bytes) + " of pinned host memory";
  if (Status s = EnterContext(); !s.ok()) return s.Annotate(what);
  void* host = nullptr;
  if (Status s = driver_.Check(driver_.cuMemHostAlloc(&host, bytes, 0), what); !s.ok()) return s;
  return static_cast<std::byte*>(host);
}

void CudaDevice::FreeHost(std::byte* host) {
  if (host == nullptr || !EnterContext().ok()) return;
  driver_.cuMemFreeHost(host);
}

Result<CUstream> CudaDevice::StreamOf(CopyDirection direction) {
  CUstream& stream = streams_[static_cast<size_t>(direction)];
  if (stream == nullptr) {
    // Not ordered with the default stream, on which bytes are poisoned: those have no holder.
    if (Status s = driver_.Check(driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                                 "cuStreamCreate");
        !s.ok()) {
      stream = nullptr;
      return s;
    }
  }
  return stream;
}

Status CudaDevice::Queue(CopyDirection direction, const std::vector<CopySpan>& spans,
                         CUstream stream, CUevent ended) {
  for (const CopySpan& span : spans) {
    const CUdeviceptr pool = arena_ + span.offset;
    const CUresult result = direction == CopyDirection::kToHost
                                ? driver_.cuMemcpyDtoHAsync_v2(span.host, pool, span.bytes, stream)
                                : driver_.cuMemcpyHtoDAsync_v2(pool, span.host, span.bytes, stream);
    if (Status s = driver_.Check(result, Name(direction)); !s.ok()) return s;
  }
  return driver_.Check(driver_.cuEventRecord(ended, stream), "cuEventRecord");
}

Result<CopyTicket> CudaDevice::StartCopies(CopyDirection direction,
                                           const std::vector<CopySpan>& spans) {
  for (const CopySpan& span : spans) {
    if (span.offset <= pool_bytes() && span.bytes <= pool_bytes() - span.offset) continue;
    return Status(StatusCode::kInvalidArgument,
                  std::string(Name(direction)) + ": " + std::to_string(span.bytes) +
                      " bytes at offset " + std::to_string(span.offset) + ": the pool has " +
                      std::to_string(pool_bytes()));
  }
  if (Status s = MapArena(); !s.ok()) return s.Annotate(Name(direction));
  const Result<CUstream> stream = StreamOf(direction);
  if (!stream.ok()) return stream.status().Annotate(Name(direction));
  UnderWay copies;
  copies.stream = *stream;
  if (Status s = driver_.Check(driver_.cuEventCreate(&copies.ended, CU_EVENT_DISABLE_TIMING),
                               "cuEventCreate");
      !s.ok()) {
    return s.Annotate(Name(direction));
  }
  const CopyTicket ticket = ++last_ticket_;
  under_way_[ticket] = copies;
  if (Status s = Queue(direction, spans, copies.stream, copies.ended); !s.ok()) {
    return Drop(ticket, s);
  }
  return ticket;
}

/// Forgets the copies. After an error it is not known how far they are, and their memory may be
/// somebody else's next: so it waits for the stream. Where that fails, too, the driver has given up
/// the context, and with it everything that was queued.
Status CudaDevice::Drop(CopyTicket ticket, const Status& status) {
  const auto found = under_way_.find(ticket);
  if (!status.ok()) driver_.cuStreamSynchronize(found->second.stream);
  driver_.cuEventDestroy_v2(found->second.ended);
  under_way_.erase(found);
  return status;
}

Result<bool> CudaDevice::CopiesEnded(CopyTicket ticket) {
  const auto found = under_way_.find(ticket);
  if (found == under_way_.end()) {
    return Status(StatusCode::kInvalidArgument, "no such copies: " + std::to_string(ticket));
  }
  // An unusable context is no answer about the copies: Drop finds out.
  if (Status s = EnterContext(); !s.ok()) return Drop(ticket, s);
  const CUresult result = driver_.cuEventQuery(found->second.ended);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (Status s = Drop(ticket, driver_.Check(result, "copy")); !s.ok()) return s;
  return true;
}

Status CudaDevice::WaitForCopies(CopyTicket ticket) {
  const auto found = under_way_.find(ticket);
  if (found == under_way_.end()) {
    return Status(StatusCode::kInvalidArgument, "no such copies: " + std::to_string(ticket));
  }
  Status status = EnterContext();
  if (status.ok()) {
    status = driver_.Check(driver_.cuEventSynchronize(found->second.ended), "copy");
  }
  return Drop(ticket, status);
}

}  // namespace sluice::gpu
