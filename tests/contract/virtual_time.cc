// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/virtual_time.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace sluice::contract {

void TimedProgram::Must(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
  _exit(4);
}

TimedProgram::TimedProgram() {
  Must(cuInit(0), "cuInit");
  work_ = reinterpret_cast<CUresult (*)(uint64_t)>(dlsym(RTLD_DEFAULT, "simgpuHostWork"));
  clock_ = reinterpret_cast<CUresult (*)(uint64_t*)>(dlsym(RTLD_DEFAULT, "simgpuHostClock"));
  if (work_ == nullptr || clock_ == nullptr) _exit(5);
  CUcontext context = nullptr;
  Must(cuDevicePrimaryCtxRetain(&context, 0), "context");
  Must(cuCtxSetCurrent(context), "current");
  Must(cuModuleLoadData(&module_, KernelImage().c_str()), "module");
  Must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), "stream");
  Must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), "stream");
  Must(cuMemAlloc_v2(&device, kBytes), "memory");
  Must(cuMemHostAlloc(&host, kBytes, 0), "host memory");
}

uint64_t TimedProgram::Clock() const {
  uint64_t ns = 0;
  Must(clock_(&ns), "clock");
  return ns;
}

void TimedProgram::Work(uint64_t ns) const { Must(work_(ns), "work"); }

void TimedProgram::Launch(const char* kernel, std::vector<void*> params, CUstream stream) {
  CUfunction function = nullptr;
  Must(cuModuleGetFunction(&function, module_, kernel), kernel);
  Must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params.data(), nullptr), kernel);
}

void TimedProgram::Short(CUstream stream) {
  uint32_t value = 7;
  uint64_t count = 1;
  Launch("fill", {&device, &value, &count}, stream);
}

CUevent TimedProgram::Record(CUstream stream) {
  CUevent event = nullptr;
  Must(cuEventCreate(&event, CU_EVENT_DEFAULT), "event");
  Must(cuEventRecord(event, stream), "record");
  return event;
}

uint64_t TimedProgram::Between(CUevent from, CUevent to) const {
  float ms = 0;
  Must(cuEventElapsedTime(&ms, from, to), "elapsed");
  return static_cast<uint64_t>(std::llround(static_cast<double>(ms) * 1e6));
}

int Send(const Times& times) {
  WriteToTest(times.size());
  for (const uint64_t time : times) WriteToTest(time);
  return 0;
}

Times Receive(OtherProcess* program) {
  Times times(program->Read());
  for (uint64_t& time : times) time = program->Read();
  return times;
}

BusyMachine::BusyMachine() {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < processors; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) asm volatile("");
    }
    pids_.push_back(pid);
  }
}

BusyMachine::~BusyMachine() {
  for (const int pid : pids_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

}  // namespace sluice::contract
