// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/streams/inside_driver.h"

#include <mutex>

namespace sluice::simgpu {
namespace {

/// Of the one driver of this process, which lives as long as the process.
std::mutex g_mutex;
const GpuState* g_gpu = nullptr;
uint32_t g_rank = 0;
uint32_t g_threads = 0;

}  // namespace

void InsideDriver::TellOf(const GpuState* gpu) {
  if (!gpu->machine().virtual_time) return;
  const ProcessId self = SelfProcess();
  const std::lock_guard mine(g_mutex);
  const StateLock lock(gpu->page());
  const std::optional<uint32_t> rank = RankOf(gpu->page()->time, self);
  if (!rank) return;
  g_rank = *rank;
  g_gpu = gpu;
}

InsideDriver::InsideDriver() {
  const std::lock_guard mine(g_mutex);
  if (g_gpu == nullptr || ++g_threads > 1) return;
  const StateLock lock(g_gpu->page());
  g_gpu->page()->time.participant[g_rank].stall = Participant::kComesBack;
}

InsideDriver::~InsideDriver() {
  const std::lock_guard mine(g_mutex);
  if (g_gpu == nullptr || g_threads == 0 || --g_threads > 0) return;
  const StateLock lock(g_gpu->page());
  Participant& participant = g_gpu->page()->time.participant[g_rank];
  if (participant.stall == Participant::kComesBack) participant.stall = Participant::kNone;
}

}  // namespace sluice::simgpu
