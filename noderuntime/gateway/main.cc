// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-gateway: what of a node may be asked from elsewhere. It keeps nothing and decides nothing;
// without it everything goes on.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>

#include "noderuntime/gateway/admin_service.h"
#include "noderuntime/gateway/metrics_server.h"
#include "noderuntime/gateway/options.h"

namespace sluice::gateway {
namespace {

Status Serve(const Options& options) {
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
    spdlog::info("orders are taken at {}", options.admin_socket);
  }
  std::unique_ptr<MetricsServer> metrics;
  if (options.metrics != kOff) {
    Result<std::unique_ptr<MetricsServer>> started = MetricsServer::Start(options.metrics, &node);
    if (!started.ok()) return started.status();
    metrics = std::move(*started);
    spdlog::info("metrics at port {}", metrics->port());
  }
  int number = 0;
  sigwait(&signals, &number);
  spdlog::info("stopping (signal {})", number);
  return {};
}

}  // namespace
}  // namespace sluice::gateway

int main(int argc, char** argv) {
  auto logger = std::make_shared<spdlog::logger>("gateway",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%H:%M:%S.%e %l %v");
  spdlog::set_default_logger(std::move(logger));
  int status = 0;
  const auto options = sluice::gateway::ReadCommandLine(argc, argv, &status);
  if (options.ok() && !options->has_value()) return status;
  const sluice::Status done = options.ok() ? sluice::gateway::Serve(**options) : options.status();
  if (done.ok()) return 0;
  std::fprintf(stderr, "sluice-gateway: %s\n", done.message().c_str());
  return options.ok() ? 1 : 2;
}
