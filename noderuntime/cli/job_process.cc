// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/job_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace sluice::cli {
namespace {

constexpr int kObservedEveryMs = 50;

/// Reads what is there. Closes `fd` at its end.
void DrainStream(UniqueFd& fd, LineBuffer& buffer, std::vector<std::string>& lines) {
  while (fd.valid()) {
    char bytes[16384];
    const ssize_t got = ::read(fd.get(), bytes, sizeof bytes);
    if (got > 0) {
      buffer.Feed({bytes, static_cast<size_t>(got)}, lines);
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else {
      fd.reset();
    }
  }
}

}  // namespace

void LineBuffer::Feed(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    rest_ += bytes.substr(0, end);
    if (end == std::string_view::npos) return;
    lines.push_back(std::move(rest_));
    rest_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LineBuffer::Finish(std::vector<std::string>& lines) {
  if (!rest_.empty()) lines.push_back(std::move(rest_));
  rest_.clear();
}

JobProcess::JobProcess(std::string label, Child child, UniqueFd out, UniqueFd err)
    : label_(std::move(label)),
      child_(std::move(child)),
      out_fd_(std::move(out)),
      err_fd_(std::move(err)) {}

Result<JobProcess> JobProcess::Start(std::string label, SpawnOptions options) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  UniqueFd err_read(err[0]);
  UniqueFd err_write(err[1]);
  ::fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err_read.get(), F_SETFL, O_NONBLOCK);
  options.output = out_write.get();
  options.error = err_write.get();
  Result<Child> child = Child::Spawn(options);
  if (!child.ok()) return child.status().Annotate(label);
  return JobProcess(std::move(label), std::move(*child), std::move(out_read), std::move(err_read));
}

void JobProcess::Drain() {
  DrainStream(out_fd_, out_lines_, out_);
  DrainStream(err_fd_, err_lines_, err_);
}

void JobGroup::KillAll() {
  for (JobProcess& job : jobs_) job.Signal(SIGKILL);
}

Status JobGroup::Run(const Observer& observer, int cancel_fd, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  Status result;
  for (;;) {
    std::vector<pollfd> fds;
    for (const JobProcess& job : jobs_) {
      if (job.ended()) continue;
      fds.push_back({job.child_.pidfd(), POLLIN, 0});
      if (job.out_fd_.valid()) fds.push_back({job.out_fd_.get(), POLLIN, 0});
      if (job.err_fd_.valid()) fds.push_back({job.err_fd_.get(), POLLIN, 0});
    }
    if (fds.empty()) return result;
    if (result.ok() && cancel_fd >= 0) fds.push_back({cancel_fd, POLLIN, 0});

    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    int wait_ms = result.ok() ? static_cast<int>(std::max<int64_t>(left, 0)) : -1;
    if (observer && (wait_ms < 0 || wait_ms > kObservedEveryMs)) wait_ms = kObservedEveryMs;
    const int ready = ::poll(fds.data(), fds.size(), wait_ms);
    if (ready < 0 && errno != EINTR) return Status::FromErrno(errno, "poll");
    if (result.ok() && Clock::now() >= deadline) {
      result = Status(StatusCode::kFailedPrecondition,
                      "not finished after " + std::to_string(timeout_ms / 1000) + " s");
      KillAll();
    }
    if (result.ok() && cancel_fd >= 0 && fds.back().revents != 0) {
      result = Status(StatusCode::kUnavailable, "interrupted");
      KillAll();
    }
    for (JobProcess& job : jobs_) {
      if (job.ended()) continue;
      // The exit first, then the pipes: what it wrote before it ended is then certainly there. The
      // pipes alone would not do, because a forked child may hold them open for longer.
      const auto status = job.child_.Wait(0);
      job.Drain();
      if (!status) continue;
      job.out_lines_.Finish(job.out_);
      job.err_lines_.Finish(job.err_);
      job.out_fd_.reset();
      job.err_fd_.reset();
      job.status_ = status;
    }
    if (observer) observer(*this);
  }
}

}  // namespace sluice::cli
