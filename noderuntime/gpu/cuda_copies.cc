// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Copies between the pool and host memory, on a stream of the daemon's own.
#include "common/bytes.h"
#include "noderuntime/gpu/cuda_device.h"

namespace sluice::gpu {

Result<std::byte*> CudaDevice::AllocateHost(uint64_t bytes) {
  if (Status s = Enter(); !s.ok()) return s.Annotate("host memory");
  void* memory = nullptr;
  if (Status s = driver_.Check(driver_.cuMemHostAlloc(&memory, bytes, 0),
                               FormatBytes(bytes) + " of host memory");
      !s.ok()) {
    return s;
  }
  return static_cast<std::byte*>(memory);
}

void CudaDevice::FreeHost(std::byte* memory) {
  if (Enter().ok()) driver_.cuMemFreeHost(memory);
}

Result<CopyTicket> CudaDevice::BeginCopies(Direction direction, const std::vector<Piece>& pieces) {
  if (Status s = Enter(); !s.ok()) return s.Annotate("copy");
  if (copy_stream_ == nullptr) {
    if (Status s = driver_.Check(driver_.cuStreamCreate(&copy_stream_, CU_STREAM_NON_BLOCKING),
                                 "cuStreamCreate");
        !s.ok()) {
      copy_stream_ = nullptr;
      return s;
    }
  }
  CUevent event = nullptr;
  if (Status s = driver_.Check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "copy");
      !s.ok()) {
    return s;
  }
  CUresult result = CUDA_SUCCESS;
  for (const Piece& piece : pieces) {
    const CUdeviceptr at = arena_ + piece.offset;
    result = direction == Direction::kToHost
                 ? driver_.cuMemcpyDtoHAsync_v2(piece.host, at, piece.bytes, copy_stream_)
                 : driver_.cuMemcpyHtoDAsync_v2(at, piece.host, piece.bytes, copy_stream_);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) result = driver_.cuEventRecord(event, copy_stream_);
  if (result == CUDA_SUCCESS) {
    copies_[next_ticket_] = event;
    return next_ticket_++;
  }
  // What was begun before it went wrong must not go on behind the caller's back.
  driver_.cuStreamSynchronize(copy_stream_);
  driver_.cuEventDestroy_v2(event);
  return driver_.Check(result, "copy");
}

Result<bool> CudaDevice::CopiesEnded(CopyTicket ticket) {
  const auto found = copies_.find(ticket);
  if (found == copies_.end()) return true;
  if (Status s = Enter(); !s.ok()) return s.Annotate("copy");
  const CUresult result = driver_.cuEventQuery(found->second);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (Status s = End(ticket, result); !s.ok()) return s;
  return true;
}

Status CudaDevice::AwaitCopies(CopyTicket ticket) {
  const auto found = copies_.find(ticket);
  if (found == copies_.end()) return {};
  if (Status s = Enter(); !s.ok()) return s.Annotate("copy");
  return End(ticket, driver_.cuEventSynchronize(found->second));
}

Status CudaDevice::End(CopyTicket ticket, CUresult how) {
  driver_.cuEventDestroy_v2(copies_.at(ticket));
  copies_.erase(ticket);
  return driver_.Check(how, "copy");
}

}  // namespace sluice::gpu
