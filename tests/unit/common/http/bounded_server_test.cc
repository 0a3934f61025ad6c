// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/http/bounded_server.h"

#include <gtest/gtest.h>

#include "tests/support/http_peer.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;

/// Nobody's time is ever over, so what is answered is answered beside those who wait.
class BoundedServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BoundedServer::Bounds bounds;
    bounds.requests.connections = 8;
    bounds.requests.request_time = 1h;
    bounds.threads = 2;
    server_.emplace(bounds);
    server_->Get("/metrics", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("all is well", "text/plain");
    });
    server_->Post("/echo", [](const httplib::Request& request, httplib::Response& response) {
      response.set_content(request.body, "text/plain");
    });
    const int port = server_->Start("127.0.0.1", 0);
    ASSERT_GT(port, 0);
    port_ = static_cast<uint16_t>(port);
  }
  std::string Get() const {
    return loopback::Ask(port_, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  }

  std::optional<BoundedServer> server_;
  uint16_t port_ = 0;
};

TEST_F(BoundedServerTest, AnswersBesideConnectionsThatSayNothing) {
  const std::vector<UniqueFd> half = loopback::HalfOpen(port_, 300);
  for (int i = 0; i < 3; ++i) EXPECT_NE(Get().find("all is well"), std::string::npos);
}

// A head that is whole does not take a thread either, as long as its body is missing.
TEST_F(BoundedServerTest, AnswersBesideRequestsWithoutTheirBody) {
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
  std::vector<UniqueFd> half;
  for (int i = 0; i < 20; ++i) {
    half.push_back(loopback::Dial(port_));
    ASSERT_GT(::send(half.back().get(), head.data(), head.size(), MSG_NOSIGNAL), 0);
  }
  EXPECT_NE(Get().find("all is well"), std::string::npos);
  EXPECT_NE(loopback::Ask(port_, head + "hello").find("\r\n\r\nhello"), std::string::npos);
}

TEST_F(BoundedServerTest, WaitsForNoBodyWithoutItsLength) {
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(loopback::Ask(port_, chunked).rfind("HTTP/1.1 4", 0), 0u);
  const std::string large = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n";
  EXPECT_EQ(loopback::Ask(port_, large).rfind("HTTP/1.1 413", 0), 0u);
  EXPECT_NE(Get().find("all is well"), std::string::npos);
}

TEST_F(BoundedServerTest, StopsBesideThoseWhoWait) {
  const std::vector<UniqueFd> half = loopback::HalfOpen(port_, 8);
  server_->Stop();
  EXPECT_EQ(Get(), "");
}

}  // namespace
}  // namespace sluice::http
