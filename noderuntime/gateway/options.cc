// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace sluice::gateway {
namespace {

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

bool IsPort(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() <= 5 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && std::stoul(text) <= 65535;
}

}  // namespace

Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status) {
  Options options;
  CLI::App app("Serves metrics of this node's daemons, and orders to them, to who is elsewhere.",
               "sluice-gateway");
  app.set_version_flag("--version", SLUICE_VERSION);
  app.add_option("--runtime-dir", options.runtime_dir,
                 "sluice-node's folder, or that of one daemon (required)");
  app.add_option("--metrics", options.metrics,
                 "where Prometheus finds /metrics, ADDRESS:PORT, or off")
      ->capture_default_str();
  app.add_option("--admin-socket", options.admin_socket,
                 "path of the socket for programs of operators (gRPC); empty: none");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *status = app.exit(error);
      return std::optional<Options>();
    }
    return Bad(error.what());
  }
  if (!options.runtime_dir.starts_with('/')) {
    return Bad("--runtime-dir '" + options.runtime_dir + "': allowed: an absolute path");
  }
  const size_t colon = options.metrics.rfind(':');
  if (options.metrics != kOff &&
      (colon == std::string::npos || colon == 0 || !IsPort(options.metrics.substr(colon + 1)))) {
    return Bad("--metrics '" + options.metrics +
               "': allowed: ADDRESS:PORT with a port up to 65535, or off");
  }
  // The longest path of a socket.
  if (!options.admin_socket.empty() &&
      (!options.admin_socket.starts_with('/') || options.admin_socket.size() > 107)) {
    return Bad("--admin-socket '" + options.admin_socket +
               "': allowed: an absolute path of up to 107 bytes, or nothing");
  }
  if (options.metrics == kOff && options.admin_socket.empty()) {
    return Bad("--metrics, --admin-socket: allowed: at least one of them");
  }
  return std::optional(std::move(options));
}

}  // namespace sluice::gateway
