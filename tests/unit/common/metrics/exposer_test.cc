// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/exposer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/support/http_peer.h"

namespace sluice::metrics {
namespace {

using loopback::Ask;
using loopback::HalfOpen;

constexpr char kScrape[] = "GET /metrics HTTP/1.1\r\nHost: node:9400\r\n\r\n";
constexpr Metric kMetric = {"sluice_test_bytes", Type::kGauge, "", "A number."};
constexpr char kText[] =
    "# HELP sluice_test_bytes A number.\n# TYPE sluice_test_bytes gauge\nsluice_test_bytes 7\n";

class ExposerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = Exposer::Start("127.0.0.1:0", [] {
      Family family(kMetric);
      family.Add(7);
      std::vector<prometheus::MetricFamily> families;
      families.push_back(std::move(family).Take());
      return families;
    });
    ASSERT_TRUE(started.ok()) << started.status().message();
    exposer_ = std::move(*started);
  }
  uint16_t port() const { return static_cast<uint16_t>(exposer_->port()); }
  static std::string BodyOf(const std::string& answer) {
    const size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }

  std::unique_ptr<Exposer> exposer_;
};

TEST_F(ExposerTest, AnswersAScrape) {
  const std::string answer = Ask(port(), kScrape);
  EXPECT_EQ(answer.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << answer;
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            std::string::npos)
      << answer;
  EXPECT_EQ(BodyOf(answer), kText);
  EXPECT_EQ(Ask(port(), "GET / HTTP/1.1\r\n\r\n").rfind("HTTP/1.1 404", 0), 0u);
  EXPECT_NE(Ask(port(), "GARBAGE\r\n\r\n").rfind("HTTP/1.1 200", 0), 0u);
}

TEST_F(ExposerTest, CompressesForWhoCanReadIt) {
  const std::string answer = Ask(port(), "GET /metrics HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n");
  EXPECT_NE(answer.find("Content-Encoding: gzip\r\n"), std::string::npos) << answer;
  const std::string zipped = BodyOf(answer);
  z_stream stream = {};
  ASSERT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zipped.data()));
  stream.avail_in = static_cast<uInt>(zipped.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  ::inflateEnd(&stream);
  EXPECT_EQ(text, kText);
}

// Whoever holds connections open keeps nobody from the figures.
TEST_F(ExposerTest, AnswersWhileOthersHoldHalfOpenConnections) {
  const std::vector<UniqueFd> half = HalfOpen(port(), 300);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(BodyOf(Ask(port(), kScrape)), kText);
}

TEST(Exposer, SaysWhereItCannotListen) {
  const auto nothing = [] { return std::vector<prometheus::MetricFamily>(); };
  for (const char* address : {"", "9400", "localhost", "127.0.0.1:x", "1.2.3.4:70000"}) {
    const auto started = Exposer::Start(address, nothing);
    ASSERT_FALSE(started.ok()) << address;
    EXPECT_EQ(started.status().code(), StatusCode::kInvalidArgument) << address;
  }
  const auto first = Exposer::Start("127.0.0.1:0", nothing);
  ASSERT_TRUE(first.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = Exposer::Start(address, nothing);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("--metrics " + address), std::string::npos);
}

}  // namespace
}  // namespace sluice::metrics
