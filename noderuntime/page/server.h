// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "noderuntime/page/feed.h"
#include "noderuntime/page/guard.h"
#include "noderuntime/page/source.h"

namespace sluice::page {

struct ServerOptions {
  Listen listen;
  std::string token;  // what changes need; empty: nobody may change anything
  int max_viewers = 16;
  std::chrono::milliseconds write_time{5000};  // who takes no byte for so long is dropped
  Feed::Pace pace;
};

/// The live page over HTTP, for this machine alone.
///
///   GET /, /page.css, ...              the page
///   GET /api/gpus                      which GPUs there are, and the policies that may be chosen
///   GET /api/live?gpu=N                server-sent events at up to 10 Hz (History)
///   GET /api/jobs/ID?gpu=N             all that the daemon says of a job
///   POST /api/policy                   {"gpu", "policy", "lanes"}; header X-Sluice-Token
///
/// What is refused is {"error": a sentence} with 400, 403 (token), 404, 413, 421 (a Host that is
/// not this machine), 429 (too many viewers) or 503 (no daemon). Threads, viewers, and what a
/// request may hold are bounded; who does not read what it asked for is dropped after five seconds.
class Server {
 public:
  /// Listens afterwards. kUnavailable: it cannot. `source` outlives it.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options, const Source* source);
  /// Ends all connections.
  ~Server();

  /// Where it listens, with the port that it was given.
  Listen listen() const;
  /// How many look just now.
  int viewers() const;
  /// How long ago the last request came, or the last viewer left; 0 while there are viewers.
  std::chrono::seconds quiet_for() const;

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::page
