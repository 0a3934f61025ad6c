// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/socket.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "tests/support/test_ca.h"

namespace sluice::testing {

/// In the place of an API server, on a loopback address: hears a request on each connection, and
/// answers with bytes that the test makes up. Of a body it hears at most a MiB, and answers before
/// the rest. Throws std::runtime_error where there is no such address.
class ApiStandIn {
 public:
  /// What is done after the answer: the connection is ended as it should be; cut off; kept open,
  /// and silent, for as long as this lives.
  enum class Then { kEnd, kCut, kStay };
  struct Answer {
    std::string bytes;
    Then then = Then::kEnd;
  };
  /// Called in a thread of its own, for one request after another. `request`: head and body.
  using Answerer = std::function<Answer(const std::string& request)>;

  /// With an identity it speaks TLS. `family`: AF_INET or AF_INET6.
  explicit ApiStandIn(Answerer answerer, const std::optional<ServerIdentity>& identity = {},
                      int family = AF_INET);
  ~ApiStandIn();

  const std::string& port() const { return port_; }
  /// Those that were heard to their end, as soon as there are so many; none: they do not come.
  std::vector<std::string> Await(size_t count);

  /// An answer as the API server gives it.
  static std::string Ok(const std::string& body);
  /// A piece of a body that is not counted ahead.
  static std::string Chunk(const std::string& bytes);

 private:
  class Client;
  void Serve();
  void Hear(std::unique_ptr<Client> client);

  const Answerer answerer_;
  std::shared_ptr<void> tls_;  // an SSL_CTX; null without TLS
  UniqueFd listener_;
  UniqueFd end_;
  std::string port_;
  std::vector<std::unique_ptr<Client>> open_;  // that are silent; of the thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace sluice::testing
