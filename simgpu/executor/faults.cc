// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/faults.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "simgpu/executor/mappings.h"
#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {
namespace {

Mappings* g_mappings = nullptr;
GpuState* g_gpu = nullptr;
int32_t g_client_pid = 0;

// Of the run thread only.
thread_local sigjmp_buf t_escape;
thread_local volatile sig_atomic_t t_guarded = 0;
thread_local const char* t_name = "";

void CountViolation(uint64_t pool_offset) {
  StatePage* page = g_gpu->page();
  const StateLock lock(page);
  Violation& v = page->violation[page->oracle_violations % kKeptViolations];
  v.pid = g_client_pid;
  snprintf(v.kernel, sizeof v.kernel, "%s", t_name);
  v.pool_offset = pool_offset;
  ++page->oracle_violations;
}

/// Runs in the middle of device code, which holds none of the locks taken here.
void OnFault(int signal, siginfo_t* info, void*) {
  if (t_guarded == 0) {
    // A fault of the executor itself: die of it, as a crash of the driver would be.
    ::signal(signal, SIG_DFL);
    return;
  }
  uint64_t offset = 0;
  if (signal == SIGSEGV &&
      g_mappings->LiftOracle(reinterpret_cast<uint64_t>(info->si_addr), &offset)) {
    CountViolation(offset);
    return;
  }
  siglongjmp(t_escape, signal);
}

}  // namespace

void InstallFaultHandler(Mappings* mappings, GpuState* gpu, int32_t client_pid) {
  g_mappings = mappings;
  g_gpu = gpu;
  g_client_pid = client_pid;
  static unsigned char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  // Not deferred: the handler is left by siglongjmp, which does not restore the mask.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

CUresult RunGuarded(const char* name, void (*body)(void*), void* argument) {
  t_name = name;
  const int signal = sigsetjmp(t_escape, 0);
  if (signal == 0) {
    t_guarded = 1;
    body(argument);
    t_guarded = 0;
    return CUDA_SUCCESS;
  }
  t_guarded = 0;
  if (signal != SIGSEGV && signal != SIGBUS) return CUDA_ERROR_LAUNCH_FAILED;
  const StateLock lock(g_gpu->page());
  ++g_gpu->page()->faults;
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace sluice::simgpu
