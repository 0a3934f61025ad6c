// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/command_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace sluice::mps {
namespace {

/// Far above what the lists of one GPU have.
constexpr size_t kMostBytes = 1 << 20;

std::string TextOf(int fd) {
  std::string text;
  char part[4096];
  off_t at = 0;
  ssize_t got = 0;
  while (text.size() < kMostBytes && (got = ::pread(fd, part, sizeof part, at)) > 0) {
    text.append(part, static_cast<size_t>(got));
    at += got;
  }
  return text;
}

/// For a line of the log.
std::string OneLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  constexpr size_t kMost = 300;
  return text.substr(0, kMost);
}

}  // namespace

Result<CommandRun> CommandRun::Start(const Command& command, uint64_t now_ns) {
  UniqueFd out(::memfd_create("mps-out", MFD_CLOEXEC));
  UniqueFd err(::memfd_create("mps-err", MFD_CLOEXEC));
  if (!out.valid() || !err.valid()) return Status::FromErrno(errno, "memfd_create");
  cli::SpawnOptions spawn;
  spawn.argv = command.argv;
  spawn.environment = command.environment;
  spawn.output = out.get();
  spawn.error = err.get();
  Result<cli::Child> child = cli::Child::Spawn(spawn);
  if (!child.ok()) return child.status();
  return CommandRun(std::move(*child), std::move(out), std::move(err), now_ns + kLongestNs);
}

std::optional<CommandRun::Outcome> CommandRun::Look(uint64_t now_ns) {
  const std::optional<cli::ExitStatus> ended = child_.Wait(0);
  if (!ended.has_value() && now_ns < until_ns_) return std::nullopt;
  if (!ended.has_value()) {
    child_.Signal(SIGKILL);
    return Outcome{false, "no answer in " + std::to_string(kLongestNs / 1'000'000'000) + " s"};
  }
  std::string out = TextOf(out_.get());
  if (ended->ok()) return Outcome{true, std::move(out)};
  // It says why on either.
  return Outcome{false, ended->Describe() + ": " + OneLine(TextOf(err_.get()) + out)};
}

uint64_t CommandRun::LeftNs(uint64_t now_ns) const {
  return now_ns < until_ns_ ? until_ns_ - now_ns : 0;
}

}  // namespace sluice::mps
