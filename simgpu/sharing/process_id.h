// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::simgpu {

/// A process, safe against reuse of its number: the kernel's start time (clock ticks since boot)
/// makes the pair unique until the next boot.
struct ProcessId {
  int32_t pid = 0;  // as the process itself sees it
  uint64_t start = 0;
  uint64_t space = 0;  // its PID namespace, by inode: programs in containers share a GPU, too
  bool operator==(const ProcessId&) const = default;
};

/// The calling process.
ProcessId SelfProcess();

/// `pid` as it runs now; start 0 when there is no such process.
ProcessId FindProcess(pid_t pid);

/// True once nothing of the process can hold memory any more: it is reaped, or a zombie whose other
/// threads have ended too (a zombie leader alone may still share its memory with running threads).
/// One of another PID namespace is there as long as it shows life in a folder that is watched.
bool ProcessGone(const ProcessId& process);

/// Processes show life in `folder` (the GPU's) by a lock, which ends with them whatever namespace
/// they are in, and which no fork inherits. WatchLives makes the calling process look there and
/// able to show; ShowLife shows that it lives, in all folders that it watches.
void WatchLives(const std::string& folder);
void ShowLife();

/// The number by which the calling process knows it: its own, unless it is of a PID namespace
/// below; 0 if it cannot be seen from here.
pid_t NumberHere(const ProcessId& process);

/// CPU time (clock ticks) that the process has used, if all its threads sleep; nothing if one of
/// them runs, could run or waits for a disk.
std::optional<uint64_t> SleepingProcessCpu(pid_t pid);

/// The short name (comm) of a process, empty if it is gone.
std::string ProcessName(pid_t pid);

}  // namespace sluice::simgpu
