// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/process_id.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "common/unique_fd.h"

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

uint64_t SpaceOf(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 ? info.st_ino : 0;
}

/// Read anew each time: a child of fork may be in another one.
uint64_t OwnSpace() { return SpaceOf("/proc/self/ns/pid"); }

/// By folder. Never closed: to close any descriptor of such a file ends the locks of the process.
struct Lives {
  std::mutex mutex;
  std::map<std::string, UniqueFd> files;
};
Lives& AllLives() {
  static auto* lives = new Lives;
  return *lives;
}

/// A byte of its own for each process, far from those of others with any likelihood.
struct flock LockOf(const ProcessId& process) {
  uint64_t hash = process.space;
  for (const uint64_t part : {static_cast<uint64_t>(process.pid), process.start}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(hash >> 2);
  lock.l_len = 1;
  return lock;
}

bool ShowsLife(const ProcessId& process) {
  Lives& lives = AllLives();
  const std::lock_guard guard(lives.mutex);
  for (const auto& [folder, file] : lives.files) {
    struct flock lock = LockOf(process);
    if (fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return true;
  }
  return false;
}

/// The number of `pid` in the innermost of its PID namespaces; 0: it is gone.
pid_t InnermostNumber(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  char text[4096];
  if (ReadSmallFile(path, text, sizeof text) == 0) return 0;
  const char* line = strstr(text, "\nNSpid:");
  if (line == nullptr) return 0;
  const std::string numbers(line + 7, strcspn(line + 7, "\n"));
  const size_t last = numbers.find_last_of(" \t");
  return static_cast<pid_t>(atoi(numbers.c_str() + (last == std::string::npos ? 0 : last)));
}

}  // namespace

ProcessId FindProcess(pid_t pid) {
  const Stat stat = ReadStat(pid);
  return {pid, stat.found ? stat.start : 0, OwnSpace()};
}

ProcessId SelfProcess() { return FindProcess(getpid()); }

void WatchLives(const std::string& folder) {
  Lives& lives = AllLives();
  const std::lock_guard guard(lives.mutex);
  if (lives.files.contains(folder)) return;
  const std::string path = folder + "/lives";
  // Its number stays what it is: to close the first one of two would end the locks, too.
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.valid()) lives.files.emplace(folder, std::move(file));
}

void ShowLife() {
  const ProcessId self = SelfProcess();
  Lives& lives = AllLives();
  const std::lock_guard guard(lives.mutex);
  for (const auto& [folder, file] : lives.files) {
    struct flock lock = LockOf(self);
    fcntl(file.get(), F_SETLK, &lock);
  }
}

pid_t NumberHere(const ProcessId& process) {
  if (process.space == OwnSpace()) return process.pid;
  DIR* all = opendir("/proc");
  if (all == nullptr) return 0;
  pid_t found = 0;
  while (const dirent* entry = readdir(all)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0 || InnermostNumber(pid) != process.pid) continue;
    const Stat stat = ReadStat(pid);
    if (!stat.found || stat.start != process.start) continue;
    // Not told of processes with more rights than the caller's.
    const uint64_t space = SpaceOf(("/proc/" + std::to_string(pid) + "/ns/pid").c_str());
    if (space != 0 && space != process.space) continue;
    found = pid;
    break;
  }
  closedir(all);
  return found;
}

bool ProcessGone(const ProcessId& process) {
  if (process.space != OwnSpace()) return !ShowsLife(process);
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
