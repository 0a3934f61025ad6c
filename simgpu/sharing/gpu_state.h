// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/machine_file.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "simgpu/sharing/state_page.h"

namespace sluice::simgpu {

/// One simulated GPU as a process sees it: the shared page, the machine file and the memory folder.
class GpuState {
 public:
  /// Opens the GPU in folder `dir` (made by simgpu-ctl up).
  static Result<std::unique_ptr<GpuState>> Open(const std::string& dir);

  /// Writes DIR/state for a new GPU. The folder, its machine file and DIR/gpu0 exist already.
  static Status Initialise(const std::string& dir, uint64_t capacity, bool kernel_enforced);

  ~GpuState();
  GpuState(const GpuState&) = delete;
  GpuState& operator=(const GpuState&) = delete;

  const std::string& dir() const { return dir_; }
  const Machine& machine() const { return machine_; }
  StatePage* page() const { return page_; }
  std::string UuidText() const;  // "GPU-..." as NVML writes it

  /// Free and total bytes of the GPU.
  struct Memory {
    uint64_t free = 0;
    uint64_t total = 0;
  };
  Memory MemoryNow() const;

  /// A new file of `bytes` in the GPU's memory, all of it backed; `payer` says for whom and
  /// for what. Fails with kResourceExhausted when the GPU is full.
  Result<UniqueFd> CreateMemory(uint64_t bytes, Payer payer);
  /// A new file of `bytes` without any backing, for heaps that grow and shrink inside it.
  Result<UniqueFd> CreateSparse(uint64_t bytes);
  /// Backs or drops a range of a sparse file.
  Status Back(int fd, uint64_t offset, uint64_t bytes, Payer payer);
  void Drop(int fd, uint64_t offset, uint64_t bytes, Payer payer);
  /// Drops a range of a sparse file that is not charged any more.
  void Discard(int fd, uint64_t offset, uint64_t bytes);
  /// Ends the charge of bytes whose file is closed by the caller.
  void Uncharge(uint64_t bytes, Payer payer);
  /// Counts what the program asked for; `bytes` is negative when it gives back.
  void CountRequested(int64_t bytes, Payer payer);
  /// Whether `fd` is memory of this GPU, and how much.
  Result<uint64_t> ImportedBytes(int fd) const;

  /// Entry of a process, made on first use. kNobody when the table is full of running processes.
  /// `draws`: NVML lists it among those that use the GPU for graphics, too.
  uint32_t RegisterProcess(const ProcessId& id, const std::string& name, bool draws);
  uint32_t RegisterExecutor(const ProcessId& executor, const ProcessId& client, uint32_t process);
  /// An error that NVML tells to who waits for one.
  void ReportXid(uint64_t code);
  /// Replaces what calls have to suffer from now on; an empty list ends it.
  void Inject(const std::vector<Injection>& rules);
  /// Forgets executors and processes that are gone. Call before reading lists.
  void Reap();

 private:
  GpuState(std::string dir, Machine machine, StatePage* page)
      : dir_(std::move(dir)), machine_(std::move(machine)), page_(page) {}
  Status Charge(uint64_t bytes, Payer payer);
  void ReapLocked();

  std::string dir_;
  Machine machine_;
  StatePage* page_;
  uint64_t memory_device_ = 0;  // st_dev of DIR/gpu0
};

/// Holds the page's guard.
class StateLock {
 public:
  explicit StateLock(StatePage* page) : guard_(page->guard) {}

 private:
  std::lock_guard<SharedMutex> guard_;
};

}  // namespace sluice::simgpu
