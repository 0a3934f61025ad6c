// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/host_name.h"
#include "common/metrics/address.h"
#include "noderuntime/gateway/metric_table.h"
#include "noderuntime/page/guard.h"

namespace sluice::gateway {
namespace {

/// The longest name of a machine.
constexpr size_t kMostNode = 253;

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

}  // namespace

Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status) {
  Options options;
  bool describe = false;
  options.node = HostName();
  CLI::App app("Serves metrics of this node's daemons, and orders to them, to who is elsewhere.",
               "sluice-gateway");
  app.set_version_flag("--version", SLUICE_VERSION);
  app.add_option("--runtime-dir", options.runtime_dir,
                 "sluice-node's folder, or that of one daemon (required)");
  app.add_option("--metrics", options.metrics,
                 "where Prometheus finds /metrics, ADDRESS:PORT, or off")
      ->capture_default_str();
  app.add_option("--node", options.node, "What metrics call this machine")->capture_default_str();
  app.add_flag("--describe-metrics", describe, "Print what /metrics has, in Markdown, and end");
  app.add_option("--admin-socket", options.admin_socket,
                 "path of the socket for programs of operators (gRPC); empty: none");
  app.add_option("--page", options.page,
                 "where the live page is served, 127.0.0.1:PORT (port 0: any), or off; "
                 "'sluice page' says its address")
      ->capture_default_str();
  app.add_option("--page-idle-exit", options.page_idle_exit_s,
                 "end after so many seconds without a daemon and without a viewer; 0: never")
      ->check(CLI::Range(0, 86'400));
  app.add_option("--ready-fd", options.ready_fd,
                 "descriptor that gets a byte as soon as everything listens")
      ->check(CLI::Range(0, 1'000'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *status = app.exit(error);
      return std::optional<Options>();
    }
    return Bad(error.what());
  }
  if (describe) {
    std::fputs(metrics::Describe(MetricGroups()).c_str(), stdout);
    *status = 0;
    return std::optional<Options>();
  }
  if (!options.runtime_dir.starts_with('/')) {
    return Bad("--runtime-dir '" + options.runtime_dir + "': allowed: an absolute path");
  }
  if (options.metrics != kOff && !metrics::IsAddress(options.metrics)) {
    return Bad(
        "--metrics '" + options.metrics +
        "': allowed: ADDRESS:PORT with a port up to 65535 ([ADDRESS]:PORT for IPv6), or off");
  }
  if (options.node.empty() || options.node.size() > kMostNode) {
    return Bad("--node '" + options.node + "': allowed: a name of up to 253 bytes");
  }
  // The longest path of a socket.
  if (!options.admin_socket.empty() &&
      (!options.admin_socket.starts_with('/') || options.admin_socket.size() > 107)) {
    return Bad("--admin-socket '" + options.admin_socket +
               "': allowed: an absolute path of up to 107 bytes, or nothing");
  }
  if (options.page != kOff) {
    const auto listen = page::ParseListen(options.page);
    if (!listen.ok()) return Bad("--page " + listen.status().message());
  }
  if (options.page == kOff && options.page_idle_exit_s != 0) {
    return Bad("--page-idle-exit: means nothing without --page");
  }
  if (options.metrics == kOff && options.admin_socket.empty() && options.page == kOff) {
    return Bad("--metrics, --admin-socket, --page: allowed: at least one of them");
  }
  return std::optional(std::move(options));
}

}  // namespace sluice::gateway
