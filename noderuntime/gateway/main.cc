// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-gateway: what of a node may be asked from elsewhere. It keeps nothing and decides nothing;
// without it everything goes on.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "common/log/log.h"
#include "common/metrics/exposer.h"
#include "common/printable.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/gateway/admin_service.h"
#include "noderuntime/gateway/answer_ages.h"
#include "noderuntime/gateway/metrics.h"
#include "noderuntime/gateway/options.h"
#include "noderuntime/gateway/page_service.h"

namespace sluice::gateway {
namespace {

/// A byte says that everything listens; the end of the pipe without one, that it does not.
void SayReady(int fd) {
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, "1", 1);
  ::close(fd);
}

uint64_t MonotonicNs() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

/// Until a signal, or until nobody needs the page that this was started for.
void AwaitEnd(const sigset_t& signals, PageService* page) {
  constexpr timespec kLook = {5, 0};
  while (true) {
    const int number = ::sigtimedwait(&signals, nullptr, page != nullptr ? &kLook : nullptr);
    if (number > 0) {
      logging::Info("stopping (signal {})", number);
      return;
    }
    if (page != nullptr && page->Over()) {
      logging::Info("stopping: there is no daemon, and nobody looks");
      return;
    }
  }
}

Status Serve(const Options& options) {
  // It hands on what it is told there, and puts the page's token there.
  if (Status checked = cli::CheckRuntimeDir(options.runtime_dir, peer::Use::kSockets);
      !checked.ok() && checked.code() != StatusCode::kNotFound) {
    return checked;
  }
  // Before any thread is made: they inherit what is blocked.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const Node node(options.runtime_dir);
  std::unique_ptr<AdminServer> admin;
  if (!options.admin_socket.empty()) {
    Result<std::unique_ptr<AdminServer>> started = AdminServer::Start(options.admin_socket, &node);
    if (!started.ok()) return started.status().Annotate("--admin-socket");
    admin = std::move(*started);
    logging::Info("orders are taken at {}", options.admin_socket);
  }
  AnswerAges ages;
  std::unique_ptr<metrics::Exposer> metrics;
  if (options.metrics != kOff) {
    auto started = metrics::Exposer::Start(options.metrics, [&] {
      std::vector<GpuView> gpus = node.Look();
      ages.Note(MonotonicNs(), &gpus);
      return MetricsOf(options.node, gpus);
    });
    if (!started.ok()) return started.status();
    metrics = std::move(*started);
    logging::Info("metrics at port {}", metrics->port());
  }
  std::unique_ptr<PageService> page;
  if (options.page != kOff) {
    Result<std::unique_ptr<PageService>> started =
        PageService::Start(options.runtime_dir, options.page, options.page_idle_exit_s);
    if (!started.ok()) return started.status().Annotate("--page");
    page = std::move(*started);
    logging::Info("the live page is at {}; 'sluice page' says its address", page->authority());
  }
  SayReady(options.ready_fd);
  AwaitEnd(signals, options.page_idle_exit_s > 0 ? page.get() : nullptr);
  return {};
}

}  // namespace
}  // namespace sluice::gateway

int main(int argc, char** argv) {
  sluice::logging::SetUp();
  int status = 0;
  const auto options = sluice::gateway::ReadCommandLine(argc, argv, &status);
  if (options.ok() && !options->has_value()) return status;
  const sluice::Status done = options.ok() ? sluice::gateway::Serve(**options) : options.status();
  if (done.ok()) return 0;
  std::fprintf(stderr, "sluice-gateway: %s\n", sluice::PrintableLines(done.message()).c_str());
  return options.ok() ? 1 : 2;
}
