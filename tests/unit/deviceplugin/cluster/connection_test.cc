// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/connection.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>

#include "tests/support/api_stand_in.h"
#include "tests/support/temp_folder.h"

namespace sluice::deviceplugin {
namespace {

using testing::ApiStandIn;

/// With TLS and without.
class ConnectionTest : public ::testing::TestWithParam<bool> {
 protected:
  ConnectionTest() { std::ofstream(folder_ / "ca.crt") << ca_.pem(); }
  ApiStandIn StandIn(ApiStandIn::Then then) const {
    const auto answerer = [then](const std::string&) { return ApiStandIn::Answer{"hello", then}; };
    return GetParam() ? ApiStandIn(answerer, ca_.Issue("IP:127.0.0.1")) : ApiStandIn(answerer);
  }
  Result<Connection> To(const ApiStandIn& stand_in) const {
    return Connection::Open({GetParam(), "127.0.0.1", stand_in.port(), ""}, folder_ / "ca.crt",
                            patience_);
  }

  const testing::TempFolder folder_;
  const testing::TestCa ca_;
  const Patience patience_{std::chrono::minutes(1), nullptr};
};

TEST_P(ConnectionTest, CarriesBytesBothWays) {
  ApiStandIn stand_in = StandIn(ApiStandIn::Then::kEnd);
  Result<Connection> connection = To(stand_in);
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->Write("a request\r\n\r\n", patience_).ok());
  EXPECT_EQ(stand_in.Await(1).at(0), "a request\r\n\r\n");
  std::string heard;
  std::array<char, 2> part;
  while (true) {
    const Result<size_t> count = connection->Read(part, patience_);
    ASSERT_TRUE(count.ok()) << count.status().message();
    if (*count == 0) break;
    heard.append(part.data(), *count);
  }
  EXPECT_EQ(heard, "hello");
}

TEST_P(ConnectionTest, WhoWritesToSomebodyWhoIsGoneGoesOn) {
  ApiStandIn stand_in = StandIn(ApiStandIn::Then::kEnd);
  Result<Connection> connection = To(stand_in);
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->Write("a request\r\n\r\n", patience_).ok());
  std::array<char, 100> part;
  while (connection->Read(part, patience_).value() > 0) {
  }
  // The first bytes find out, for the kernel, that nobody is there; those behind them raise a
  // signal unless it is told not to.
  Status written;
  while (written.ok()) written = connection->Write("more", patience_);
  EXPECT_EQ(written.code(), StatusCode::kUnavailable) << written.message();
}

INSTANTIATE_TEST_SUITE_P(All, ConnectionTest, ::testing::Bool());

}  // namespace
}  // namespace sluice::deviceplugin
