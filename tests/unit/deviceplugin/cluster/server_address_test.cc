// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/server_address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::deviceplugin {
namespace {

/// TLS or not, host, port, base, with blanks between them.
std::string Read(const std::string& url) {
  const Result<ServerAddress> address = ServerAddress::Parse(url);
  if (!address.ok()) return address.status().message();
  return std::string(address->tls ? "tls " : "plain ") + address->host + " " + address->port + " " +
         address->base;
}

TEST(ServerAddress, IsInAUrl) {
  EXPECT_EQ(Read("https://10.96.0.1:443"), "tls 10.96.0.1 443 ");
  EXPECT_EQ(Read("https://[fd00::1]:6443"), "tls fd00::1 6443 ");
  EXPECT_EQ(Read("http://127.0.0.1:80/"), "plain 127.0.0.1 80 ");
  EXPECT_EQ(Read("https://lab.example:8443/k8s/clusters/c-1/"),
            "tls lab.example 8443 /k8s/clusters/c-1");
}

TEST(ServerAddress, APortIsTheProtocolsOwnWhereNoneIsSaid) {
  EXPECT_EQ(Read("https://localhost"), "tls localhost 443 ");
  EXPECT_EQ(Read("http://[::1]"), "plain ::1 80 ");
}

TEST(ServerAddress, WhatIsNoneIsNamed) {
  for (const std::string& url : std::vector<std::string>{"",
                                                         "10.0.0.1:443",
                                                         "ftp://a:1",
                                                         "https://",
                                                         "https://:443",
                                                         "https://a:",
                                                         "https://a:x",
                                                         "https://a:123456",
                                                         "https://a:65536",
                                                         "https://a:0",
                                                         "https://a\x01:1",
                                                         "https://a/\x7f",
                                                         "https://[::1",
                                                         "https://[::1]x",
                                                         "https://::1:443",
                                                         "https://a b:1",
                                                         "https://a\r\nX: y:1",
                                                         "https://u@a:1",
                                                         "https://a:1/b c",
                                                         "https://a:1/?q",
                                                         "https://[]:1"}) {
    EXPECT_EQ(Read(url), "'" + url + "' is no address of a server: https://HOST:PORT");
  }
}

TEST(ServerAddress, IsWrittenAsItIsInAUrl) {
  EXPECT_EQ((ServerAddress{true, "10.0.0.1", "443", ""}.Authority()), "10.0.0.1:443");
  EXPECT_EQ((ServerAddress{true, "fd00::1", "6443", "/x"}.Authority()), "[fd00::1]:6443");
}

}  // namespace
}  // namespace sluice::deviceplugin
