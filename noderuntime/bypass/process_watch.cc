// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/bypass/process_watch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace sluice::bypass {

Result<std::unique_ptr<ProcessWatch>> ProcessWatch::Start(const Nvml::Uuid& gpu) {
  Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) return nvml.status();
  UniqueFd news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news.valid()) return Status::FromErrno(errno, "eventfd");
  std::unique_ptr<ProcessWatch> watch(new ProcessWatch(gpu, std::move(*nvml), std::move(news)));
  // Signals are the daemon's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  watch->thread_ = std::thread([self = watch.get()] { self->Work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return watch;
}

ProcessWatch::ProcessWatch(const Nvml::Uuid& gpu, std::unique_ptr<Nvml> nvml, UniqueFd news)
    : gpu_(gpu), nvml_(std::move(nvml)), news_(std::move(news)) {}

ProcessWatch::~ProcessWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ends_changed_.notify_all();
  thread_.join();
}

std::optional<ProcessWatch::Seen> ProcessWatch::Take() {
  uint64_t count = 0;
  (void)!::read(news_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(seen_, std::nullopt);
}

void ProcessWatch::Work() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    Result<std::vector<pid_t>> pids = nvml_->ComputeProcesses(gpu_);
    const Result<uint64_t> used = nvml_->UsedBytes(gpu_);
    Seen seen;
    // A driver that does not answer says nothing about anybody.
    if (pids.ok()) seen.pids = std::move(*pids);
    if (used.ok()) seen.used_bytes = *used;
    lock.lock();
    seen_ = std::move(seen);
    const uint64_t one = 1;
    (void)!::write(news_.get(), &one, sizeof one);
    ends_changed_.wait_for(lock, std::chrono::milliseconds(kEveryMs), [this] { return ends_; });
  }
}

}  // namespace sluice::bypass
