// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "common/http/waiting_room.h"

namespace sluice::http {

/// What httplib leaves open: how much a request may hold in all, how long it may take to arrive and
/// its answer to be taken, and how many may be at it. One request for each connection, and no
/// thread for one that has not arrived whole (WaitingRoom), so that none occupies a thread while
/// nothing is asked.
class BoundedServer final : public httplib::Server {
 public:
  struct Bounds {
    WaitingRoom::Bounds requests;
    std::chrono::milliseconds write_time{5000};  // without a byte taken
    size_t send_buffer_bytes = 256u << 10;       // of the kernel, per connection
    size_t threads = 24;
    size_t queue = 64;  // whole requests that wait for a thread; more are hung up on
  };

  explicit BoundedServer(const Bounds& bounds);
  /// Stops.
  ~BoundedServer() override;

  /// Serves from now on what was routed, in threads of its own. `port` 0: any. Its port; -1: it
  /// cannot listen there.
  int Start(const std::string& host, int port);
  /// Ends all connections; returns when no handler runs.
  void Stop();

 private:
  bool process_and_close_socket(socket_t socket) override;
  void Serve(const UniqueFd& connection, const std::string& request);

  class Desk;

  const Bounds bounds_;
  Desk* desk_ = nullptr;  // httplib's, while it listens
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace sluice::http
