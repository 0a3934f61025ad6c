// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <httplib.h>

#include <chrono>
#include <functional>

namespace sluice::page {

/// What httplib leaves open: how much a request may hold in all, and how long it may take to arrive
/// and its answer to be taken. One request for each connection, so that none occupies a thread
/// while nothing is asked.
class BoundedServer final : public httplib::Server {
 public:
  struct Bounds {
    size_t request_bytes = 16u << 10;
    std::chrono::milliseconds request_time{5000};
    std::chrono::milliseconds write_time{5000};  // without a byte taken
    size_t send_buffer_bytes = 256u << 10;       // of the kernel, per connection
    size_t threads = 24;
    size_t queue = 64;  // connections that wait for a thread; more wait in the kernel
  };

  explicit BoundedServer(const Bounds& bounds);

 private:
  bool process_and_close_socket(socket_t socket) override;

  const Bounds bounds_;
};

}  // namespace sluice::page
