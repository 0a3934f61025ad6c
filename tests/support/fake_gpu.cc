// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/fake_gpu.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice::testing {

Result<std::vector<UniqueFd>> FakeGpu::CreateHandles(uint32_t count, uint64_t) {
  std::vector<UniqueFd> fds;
  for (uint32_t i = 0; i < count; ++i) fds.emplace_back(::memfd_create("handle", MFD_CLOEXEC));
  return fds;
}

Status FakeGpu::Poison(uint64_t offset, uint64_t bytes) {
  poisoned.emplace_back(offset, bytes);
  return {};
}

uint64_t FakeGpu::host_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [address, memory] : host_) bytes += memory.size();
  return bytes;
}

Result<std::byte*> FakeGpu::AllocateHost(uint64_t bytes) {
  if (bytes > host_memory - std::min(host_memory, host_bytes())) {
    return Status(StatusCode::kResourceExhausted, "the fake machine is out of memory");
  }
  ++allocations;
  std::vector<std::byte> memory(bytes);
  std::byte* const address = memory.data();
  host_[address] = std::move(memory);
  return address;
}

void FakeGpu::FreeHost(std::byte* host) {
  const auto found = host_.find(host);
  if (found == host_.end()) {
    ++violations_;
    return;
  }
  const std::byte* const end = host + found->second.size();
  for (const auto& [ticket, copies] : copies_) {
    for (const gpu::CopySpan& span : copies.spans) {
      if (!copies.ended && span.host >= host && span.host < end) ++violations_;
    }
  }
  host_.erase(found);
}

bool FakeGpu::Reaches(const gpu::CopySpan& span) const {
  auto memory = host_.upper_bound(span.host);
  if (memory == host_.begin()) return false;
  --memory;
  const auto within = static_cast<uint64_t>(span.host - memory->first);
  return span.bytes > 0 && within <= memory->second.size() &&
         span.bytes <= memory->second.size() - within && span.offset <= pool.size() &&
         span.bytes <= pool.size() - span.offset;
}

void FakeGpu::Move(const Copies& copies, Half half) {
  for (const gpu::CopySpan& span : copies.spans) {
    const uint64_t middle = span.bytes / 2;
    const uint64_t begin = half == Half::kFirst ? 0 : middle;
    const uint64_t bytes = half == Half::kFirst ? middle : span.bytes - middle;
    std::byte* const of_pool = pool.data() + span.offset + begin;
    std::byte* const of_host = span.host + begin;
    if (copies.direction == gpu::CopyDirection::kToHost) {
      std::memcpy(of_host, of_pool, bytes);
    } else {
      std::memcpy(of_pool, of_host, bytes);
    }
  }
}

Result<gpu::CopyTicket> FakeGpu::StartCopies(gpu::CopyDirection direction,
                                             const std::vector<gpu::CopySpan>& spans) {
  if (!next_start.ok()) return std::exchange(next_start, Status());
  for (const gpu::CopySpan& span : spans) {
    if (Reaches(span)) continue;
    ++violations_;
    return Status(StatusCode::kInvalidArgument, "a copy to what is not there");
  }
  Copies& copies = copies_[++last_ticket_];
  copies.direction = direction;
  copies.spans = spans;
  Move(copies, Half::kFirst);
  if (!holds_copies) End(&copies, {});
  return last_ticket_;
}

void FakeGpu::End(Copies* copies, const Status& status) {
  if (status.ok()) Move(*copies, Half::kSecond);
  copies->ended = true;
  copies->status = status;
}

void FakeGpu::EndOldest(const Status& status) {
  for (auto& [ticket, copies] : copies_) {
    if (copies.ended) continue;
    End(&copies, status);
    return;
  }
}

size_t FakeGpu::under_way() const {
  size_t count = 0;
  for (const auto& [ticket, copies] : copies_) count += copies.ended ? 0 : 1;
  return count;
}

Result<bool> FakeGpu::CopiesEnded(gpu::CopyTicket ticket) {
  const auto found = copies_.find(ticket);
  if (found == copies_.end()) {
    ++violations_;
    return Status(StatusCode::kInvalidArgument, "no such copies");
  }
  if (!found->second.ended) return false;
  if (Status s = WaitForCopies(ticket); !s.ok()) return s;
  return true;
}

Status FakeGpu::WaitForCopies(gpu::CopyTicket ticket) {
  const auto found = copies_.find(ticket);
  if (found == copies_.end()) {
    ++violations_;
    return Status(StatusCode::kInvalidArgument, "no such copies");
  }
  if (!found->second.ended) End(&found->second, {});
  const Status status = found->second.status;
  copies_.erase(found);
  return status;
}

}  // namespace sluice::testing
