// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/work_dir.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

namespace sluice::cli {

Result<WorkDir> WorkDir::Create(const std::string& keep) {
  if (!keep.empty()) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::absolute(keep);
    std::filesystem::create_directories(path, error);
    // Somebody else's files must not be mistaken for results, nor be overwritten.
    if (error || !std::filesystem::is_empty(path, error) || error) {
      return Status(
          StatusCode::kInvalidArgument,
          "--keep: " + keep + " cannot be used; allowed: a folder that is empty or absent");
    }
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
    return WorkDir(path.string(), true);
  }
  const char* base = ::getenv("TMPDIR");
  std::string path =
      std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/sluice-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return Status::FromErrno(errno, path);
  return WorkDir(path, false);
}

WorkDir::WorkDir(WorkDir&& other) noexcept
    : path_(std::exchange(other.path_, {})), keep_(other.keep_) {}

WorkDir::~WorkDir() {
  if (path_.empty() || keep_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Result<Interrupts> Interrupts::Catch() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, number);
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return Status::FromErrno(errno, "signals");
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Status::FromErrno(errno, "signalfd");
  return Interrupts(std::move(fd));
}

bool Interrupts::Pending() const {
  pollfd readable = {fd_.get(), POLLIN, 0};
  return ::poll(&readable, 1, 0) > 0;
}

}  // namespace sluice::cli
