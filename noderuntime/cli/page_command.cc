// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/page_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "noderuntime/cli/child.h"
#include "noderuntime/cli/daemon_commands.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/node_daemons.h"
#include "noderuntime/page/page_file.h"

namespace sluice::cli {
namespace {

constexpr int kReadyTimeoutMs = 20'000;
constexpr char kIdleExitSeconds[] = "120";

/// Callers take turns, so that two do not start one gateway each.
Result<UniqueFd> TakeTurn(const std::string& runtime_dir) {
  const std::string path = runtime_dir + "/page-start.lock";
  UniqueFd turn(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!turn.valid()) return Status::FromErrno(errno, path);
  while (::flock(turn.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Status::FromErrno(errno, path);
  }
  return turn;
}

/// Starts one and waits for the byte that says "listening".
Status StartGateway(const std::string& runtime_dir, const Layout& layout,
                    const Environment& environment) {
  const std::string log_path = runtime_dir + "/page.log";
  const UniqueFd log(
      ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log.valid()) return Status::FromErrno(errno, log_path);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  SpawnOptions spawn;
  spawn.argv = {layout.Program("sluice-gateway"),
                "--runtime-dir",
                runtime_dir,
                "--metrics",
                "off",
                "--page",
                "127.0.0.1:0",
                "--page-idle-exit",
                kIdleExitSeconds,
                "--ready-fd",
                std::to_string(write_end.get())};
  spawn.environment = DaemonEnvironment(environment, layout);
  spawn.output = log.get();
  spawn.error = log.get();
  spawn.keep = write_end.get();
  if (Status started = SpawnDetached(std::move(spawn)); !started.ok()) return started;
  write_end.reset();
  pollfd readable = {read_end.get(), POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&readable, 1, kReadyTimeoutMs);
  } while (count < 0 && errno == EINTR);
  char byte = 0;
  if (count > 0 && ::read(read_end.get(), &byte, 1) == 1) return {};
  const std::string last = LastLine(log_path);
  return Status(StatusCode::kUnavailable, last.empty() ? "sluice-gateway did not start" : last);
}

/// One that is just ending keeps its lock for a moment.
Result<page::PageAddress> FindOrStart(const std::string& runtime_dir, const Layout& layout,
                                      const Environment& environment) {
  const Result<UniqueFd> turn = TakeTurn(runtime_dir);
  if (!turn.ok()) return turn.status();
  Status failed;
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    Result<page::PageAddress> found = page::FindPage(runtime_dir);
    if (found.ok()) return found;
    failed = StartGateway(runtime_dir, layout, environment);
    if (failed.ok()) return page::FindPage(runtime_dir);
    if (!page::IsClaimed(runtime_dir)) break;
  }
  return failed;
}

}  // namespace

Result<std::string> PageUrlOf(const PageOptions& options, const Layout& layout,
                              const Environment& environment) {
  const bool of_node = DaemonsIn(options.runtime_dir).of_node;
  if (!of_node && options.gpu > 0) {
    return Status(StatusCode::kInvalidArgument, "--gpu " + std::to_string(options.gpu) +
                                                    ": allowed: none; the daemon of " +
                                                    options.runtime_dir + " has one GPU");
  }
  // What a file there says goes to a browser: not before it is known whose folder it is.
  if (Status checked = CheckRuntimeDir(options.runtime_dir, peer::Use::kFiles);
      !checked.ok() && checked.code() != StatusCode::kNotFound) {
    return checked;
  }
  Result<page::PageAddress> found = page::FindPage(options.runtime_dir);
  if (!found.ok() && of_node) {
    return Status(StatusCode::kNotFound,
                  found.status().message() +
                      "; the node's sluice-gateway serves one with --page 127.0.0.1:PORT");
  }
  if (!found.ok()) {
    if (Status made = MakeRuntimeDir(options.runtime_dir); !made.ok()) return made;
    found = FindOrStart(options.runtime_dir, layout, environment);
  }
  if (!found.ok()) return found.status();
  return page::PageUrl(*found, of_node ? options.gpu : -1);
}

int ShowPage(const PageOptions& options, const Layout& layout) {
  const Result<std::string> url = PageUrlOf(options, layout, Environment::Current());
  if (!url.ok()) return Complain(url.status().message(), 1);
  std::printf("%s\n", url->c_str());
  return 0;
}

}  // namespace sluice::cli
