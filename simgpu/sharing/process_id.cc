// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/process_id.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice::simgpu {
namespace {

struct Stat {
  bool found = false;
  char state = 0;
  long threads = 0;
  uint64_t start = 0;
  uint64_t cpu = 0;
};

size_t ReadSmallFile(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, buffer, size - 1);
  close(fd);
  if (n <= 0) return 0;
  buffer[n] = 0;
  return static_cast<size_t>(n);
}

Stat ReadStatFile(const char* path) {
  char text[1024];
  if (ReadSmallFile(path, text, sizeof text) == 0) return {};
  // The second field is the name in parentheses and may hold anything; the last ')' ends it.
  const char* p = strrchr(text, ')');
  if (p == nullptr || p[1] == 0) return {};
  Stat stat;
  long long threads = 0;
  unsigned long long start = 0;
  unsigned long long user = 0;
  unsigned long long system = 0;
  // Fields 3 (state), 14 and 15 (CPU time), 20 (threads) and 22 (start time).
  if (sscanf(p + 2,
             "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu %*s %*s %*s %*s %lld %*s %llu",
             &stat.state, &user, &system, &threads, &start) != 5) {
    return {};
  }
  stat.cpu = user + system;
  stat.threads = static_cast<long>(threads);
  stat.start = start;
  stat.found = true;
  return stat;
}

Stat ReadStat(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  return ReadStatFile(path);
}

}  // namespace

ProcessId FindProcess(pid_t pid) {
  const Stat stat = ReadStat(pid);
  return {pid, stat.found ? stat.start : 0};
}

ProcessId SelfProcess() { return FindProcess(getpid()); }

bool ProcessGone(const ProcessId& process) {
  const Stat stat = ReadStat(process.pid);
  if (!stat.found || stat.start != process.start) return true;
  return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

std::optional<uint64_t> SleepingProcessCpu(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* tasks = opendir(folder.c_str());
  if (tasks == nullptr) return std::nullopt;
  std::optional<uint64_t> cpu = 0;
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const Stat stat = ReadStatFile((folder + "/" + task->d_name + "/stat").c_str());
    if (!stat.found || stat.state != 'S') {
      cpu.reset();
      break;
    }
    *cpu += stat.cpu;
  }
  closedir(tasks);
  return cpu;
}

std::string ProcessName(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/comm", pid);
  char text[64];
  const size_t n = ReadSmallFile(path, text, sizeof text);
  std::string name(text, n);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace sluice::simgpu
