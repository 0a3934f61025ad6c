// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/contract/fixture.h"

/// What the tests of virtual time share: programs that note times, each in a process of its own.
namespace sluice::contract {

using Times = std::vector<uint64_t>;

/// A program on the simulated GPU with a context, the module of kernels.cc and two streams.
class TimedProgram {
 public:
  TimedProgram();
  /// The CPU clock of this process.
  uint64_t Clock() const;
  void Work(uint64_t ns) const;
  void Launch(const char* kernel, std::vector<void*> params, CUstream stream);
  /// 20 ms, and 100 us.
  void Slow(CUstream stream) { Launch("slow", {}, stream); }
  void Short(CUstream stream);
  CUevent Record(CUstream stream);
  /// Nanoseconds from the first event to the second, as cuEventElapsedTime rounds them.
  uint64_t Between(CUevent from, CUevent to) const;
  void Must(CUresult result, const char* what) const;

  CUstream a = nullptr;
  CUstream b = nullptr;
  CUdeviceptr device = 0;
  void* host = nullptr;  // page-locked, kBytes
  static constexpr size_t kBytes = 1u << 20;

 private:
  CUmodule module_ = nullptr;
  CUresult (*work_)(uint64_t) = nullptr;
  CUresult (*clock_)(uint64_t*) = nullptr;
};

/// In the program: its times go to the test, which gets them by Receive.
int Send(const Times& times);
Times Receive(OtherProcess* program);

/// Children that keep the processors busy as long as this lives.
class BusyMachine {
 public:
  BusyMachine();
  ~BusyMachine();

 private:
  std::vector<int> pids_;
};

}  // namespace sluice::contract
