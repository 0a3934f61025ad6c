// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// simgpu-executor DIR CLIENT_PID CLIENT_START PROCESS_INDEX
//
// Stands for the GPU side of one context: started by the simulated driver, never by hand.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "simgpu/executor/control_server.h"
#include "simgpu/executor/faults.h"
#include "simgpu/executor/runner.h"

namespace {

int Fail(const char* what) {
  fprintf(stderr, "simgpu-executor: %s\n", what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sluice::simgpu;
  if (argc != 5) return Fail("started by the simulated driver, not by hand");
  // Our parent's.
  const ProcessId client{static_cast<int32_t>(atoi(argv[2])), strtoull(argv[3], nullptr, 10),
                         SelfProcess().space};
  const auto process = static_cast<uint32_t>(strtoul(argv[4], nullptr, 10));
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, client.pid, 0));
  // The order matters: a descriptor of a process that still has the expected start time.
  if (pidfd < 0 || ProcessGone(client)) return 0;

  auto gpu = GpuState::Open(argv[1]);
  if (!gpu.ok()) return Fail(gpu.status().message().c_str());
  const uint32_t executor = (*gpu)->RegisterExecutor(SelfProcess(), client, process);
  if (executor == kNobody) return Fail("too many contexts on this GPU");
  void* shared = mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, kChannelFd, 0);
  if (shared == MAP_FAILED) return Fail("cannot map the channel");

  static std::unique_ptr<VirtualExecutor> virtual_time;
  if ((*gpu)->machine().virtual_time) {
    virtual_time =
        VirtualExecutor::Attach(gpu->get(), executor, client, static_cast<const Channel*>(shared));
    if (virtual_time == nullptr) return Fail("its program takes no part in virtual time");
  }

  // What a context itself costs. Held here and not in the client, so that it ends with this process
  // even if a forked child of the client lives on.
  sluice::UniqueFd own_memory;
  const uint64_t bytes = (*gpu)->machine().context_bytes;
  const Payer payer{process, Family::kContext};
  CUresult start = CUDA_SUCCESS;
  if (bytes > 0) {
    auto memory = (*gpu)->CreateMemory(bytes, payer);
    if (memory.ok()) {
      (*gpu)->CountRequested(static_cast<int64_t>(bytes), payer);
      own_memory = std::move(*memory);
    } else {
      start = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }

  prctl(PR_SET_TIMERSLACK, 1UL);
  static Mappings mappings(client.pid);
  static Modules modules;
  static Peers peers;
  static ControlServer server(kControlFd, pidfd, start, &mappings, &modules, &peers);
  InstallFaultHandler(&mappings, gpu->get(), client.pid);
  std::thread([] { server.Run(); }).detach();
  Runner runner(gpu->get(), executor, static_cast<Channel*>(shared), &mappings, &modules, &peers,
                virtual_time.get());
  runner.Run();
}
