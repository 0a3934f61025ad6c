// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/gpu_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "simgpu/sharing/device_token.h"
#include "simgpu/sharing/futex.h"
#include "simgpu/sharing/memory_limits.h"

namespace sluice::simgpu {
namespace {

void Raise(std::atomic<uint64_t>* peak, uint64_t value) {
  uint64_t seen = peak->load(std::memory_order_relaxed);
  while (seen < value && !peak->compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

Status GpuState::Initialise(const std::string& dir, uint64_t capacity, bool kernel_enforced) {
  const std::string path = dir + "/state";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return Status::FromErrno(errno, "create " + path);
  if (ftruncate(fd.get(), sizeof(StatePage)) != 0) return Status::FromErrno(errno, "size " + path);
  void* map = mmap(nullptr, sizeof(StatePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return Status::FromErrno(errno, "map " + path);
  auto* page = static_cast<StatePage*>(map);
  page->version = kStateVersion;
  page->kernel_enforced = kernel_enforced ? 1 : 0;
  page->capacity = capacity;
  if (getrandom(page->uuid, sizeof page->uuid, 0) != sizeof page->uuid) {
    return Status::FromErrno(errno, "getrandom");
  }
  page->guard.Initialise();
  page->mapping_turn.Initialise();
  page->real_mark_ns = MonotonicNs();
  page->first_start_ns = UINT64_MAX;
  page->owner = kNobody;
  page->fluid.turn = kNoTurn;
  page->fluid_mark_ns = page->real_mark_ns;
  std::atomic_thread_fence(std::memory_order_release);
  page->magic = kStateMagic;
  munmap(map, sizeof(StatePage));
  return {};
}

Result<std::unique_ptr<GpuState>> GpuState::Open(const std::string& dir) {
  const std::string path = dir + "/state";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) {
    return Status(StatusCode::kNotFound, "no simulated GPU in '" + dir + "' (" + path + ": " +
                                             strerror(errno) + "); make one with simgpu-ctl up");
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || info.st_size != static_cast<off_t>(sizeof(StatePage))) {
    return Status(StatusCode::kFailedPrecondition, path + " is of another version of Sluice");
  }
  void* map = mmap(nullptr, sizeof(StatePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return Status::FromErrno(errno, "map " + path);
  auto* page = static_cast<StatePage*>(map);
  Result<Machine> machine = ReadMachineFile(dir + "/machine");
  struct stat memory;
  Status status;
  if (page->magic != kStateMagic || page->version != kStateVersion) {
    status = Status(StatusCode::kFailedPrecondition, path + " is not the state of a simulated GPU");
  } else if (!machine.ok()) {
    status = machine.status();
  } else if (stat((dir + "/gpu0").c_str(), &memory) != 0) {
    status = Status::FromErrno(errno, dir + "/gpu0");
  }
  if (!status.ok()) {
    munmap(map, sizeof(StatePage));
    return status;
  }
  WatchLives(dir);
  std::unique_ptr<GpuState> state(new GpuState(dir, std::move(*machine), page));
  state->memory_device_ = memory.st_dev;
  return state;
}

GpuState::~GpuState() { munmap(page_, sizeof(StatePage)); }

std::string GpuState::UuidText() const {
  char text[48];
  const unsigned char* u = page_->uuid;
  snprintf(text, sizeof text,
           "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
           u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
           u[15]);
  return text;
}

GpuState::Memory GpuState::MemoryNow() const {
  if (page_->kernel_enforced != 0) {
    struct statfs info;
    if (statfs((dir_ + "/gpu0").c_str(), &info) == 0) {
      const auto block = static_cast<uint64_t>(info.f_bsize);
      return {info.f_bfree * block, info.f_blocks * block};
    }
  }
  StateLock lock(page_);
  uint64_t used = 0;
  for (const ProcessEntry& p : page_->process) used += p.bytes_now.load();
  return {page_->capacity - std::min(used, page_->capacity), page_->capacity};
}

namespace {

void Count(ProcessEntry* entry, uint64_t bytes, Payer payer) {
  entry->family[static_cast<uint32_t>(payer.family)].held.fetch_add(bytes);
  Raise(&entry->bytes_peak, entry->bytes_now.fetch_add(bytes) + bytes);
}

}  // namespace

Status GpuState::Charge(uint64_t bytes, Payer payer) {
  if (page_->kernel_enforced == 0) {
    // Weaker than a tmpfs: what counts is the entry of the process that made the bytes, and they
    // are given back when that process ends even if another one still maps them.
    StateLock lock(page_);
    ReapLocked();
    uint64_t used = 0;
    for (const ProcessEntry& p : page_->process) used += p.bytes_now.load();
    if (used + bytes > page_->capacity) {
      return Status(StatusCode::kResourceExhausted, "the simulated GPU is full");
    }
  }
  if (payer.process >= kMaxProcesses) return {};
  if (page_->memory_limits.load() == 0) {
    Count(&page_->process[payer.process], bytes, payer);
    return {};
  }
  StateLock lock(page_);
  ReapLocked();
  ProcessEntry& entry = page_->process[payer.process];
  const uint64_t most = FindMemoryLimit(*page_, entry.memory_group).hard;
  const uint64_t used = MemoryOfGroup(*page_, entry.memory_group);
  if (bytes > most - std::min(used, most)) {
    return Status(StatusCode::kResourceExhausted, "the limit of the process's control group");
  }
  Count(&entry, bytes, payer);
  return {};
}

void GpuState::Uncharge(uint64_t bytes, Payer payer) {
  if (payer.process >= kMaxProcesses) return;
  ProcessEntry& entry = page_->process[payer.process];
  entry.bytes_now.fetch_sub(bytes);
  entry.family[static_cast<uint32_t>(payer.family)].held.fetch_sub(bytes);
}

void GpuState::CountRequested(int64_t bytes, Payer payer) {
  if (payer.process >= kMaxProcesses) return;
  page_->process[payer.process].family[static_cast<uint32_t>(payer.family)].requested.fetch_add(
      static_cast<uint64_t>(bytes));
}

Result<UniqueFd> GpuState::CreateSparse(uint64_t bytes) {
  const std::string folder = dir_ + "/gpu0";
  UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) return Status::FromErrno(errno, "memory file in " + folder);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::FromErrno(errno, "size of a memory file in " + folder);
  }
  return fd;
}

Result<UniqueFd> GpuState::CreateMemory(uint64_t bytes, Payer payer) {
  Result<UniqueFd> fd = CreateSparse(bytes);
  if (!fd.ok()) return fd;
  const Status backed = Back(fd->get(), 0, bytes, payer);
  if (!backed.ok()) return backed;
  return fd;
}

Status GpuState::Back(int fd, uint64_t offset, uint64_t bytes, Payer payer) {
  const Status charged = Charge(bytes, payer);
  if (!charged.ok()) return charged;
  int rc = 0;
  do {
    rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  if (rc == 0) return {};
  const int error = errno;
  Uncharge(bytes, payer);
  if (error == ENOSPC) return Status(StatusCode::kResourceExhausted, "the simulated GPU is full");
  return Status::FromErrno(error, "back memory of the simulated GPU");
}

void GpuState::Discard(int fd, uint64_t offset, uint64_t bytes) {
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

void GpuState::Drop(int fd, uint64_t offset, uint64_t bytes, Payer payer) {
  Discard(fd, offset, bytes);
  Uncharge(bytes, payer);
}

void GpuState::ReportXid(uint64_t code) {
  const uint64_t now = DeviceClockNs(*this);
  {
    StateLock lock(page_);
    page_->xid[page_->xids++ % kKeptXids] = {code, now};
  }
  page_->xid_bell.fetch_add(1);
  FutexWakeAll(&page_->xid_bell);
}

void GpuState::Inject(const std::vector<Injection>& rules) {
  StateLock lock(page_);
  page_->injections.store(0);
  const auto count = static_cast<uint32_t>(std::min<size_t>(rules.size(), kMaxInjections));
  for (uint32_t i = 0; i < count; ++i) {
    page_->injection[i].rule = rules[i];
    page_->injection[i].calls.store(0);
    page_->injection[i].hits.store(0);
  }
  page_->injections.store(count, std::memory_order_release);
}

Result<uint64_t> GpuState::ImportedBytes(int fd) const {
  struct stat info;
  if (fstat(fd, &info) != 0) return Status::FromErrno(errno, "imported descriptor");
  if (info.st_dev != memory_device_ || !S_ISREG(info.st_mode)) {
    return Status(StatusCode::kInvalidArgument, "the descriptor is not memory of this GPU");
  }
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace sluice::simgpu
