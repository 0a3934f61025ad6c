// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/http/waiting_room.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <utility>

namespace sluice::http {
namespace {

using namespace std::chrono_literals;

constexpr char kRequest[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(RequestBytes, EndsWithTheHeadWhereThereIsNoBody) {
  const std::string request = kRequest;
  EXPECT_EQ(RequestBytes("", 1000), std::nullopt);
  for (size_t size = 0; size < request.size(); ++size) {
    EXPECT_EQ(RequestBytes(request.substr(0, size), 1000), std::nullopt) << size;
  }
  EXPECT_EQ(RequestBytes(request, 1000), request.size());
  EXPECT_EQ(RequestBytes(request + request, 1000), request.size()) << "one at a time";
}

TEST(RequestBytes, CountsTheBody) {
  for (const char* name : {"Content-Length: ", "content-length:", "CONTENT-LENGTH:\t "}) {
    const std::string head = std::string("POST / HTTP/1.1\r\nHost: a\r\n") + name + "3\r\n\r\n";
    EXPECT_EQ(RequestBytes(head, 1000), std::nullopt) << name;
    EXPECT_EQ(RequestBytes(head + "ab", 1000), std::nullopt) << name;
    EXPECT_EQ(RequestBytes(head + "abc", 1000), head.size() + 3) << name;
  }
}

TEST(RequestBytes, DoesNotWaitForWhatWouldNotFitOrSaysNoLength) {
  for (const char* length : {"1001", "18446744073709551617", "99999999999999999999999"}) {
    const std::string head =
        std::string("POST / HTTP/1.1\r\nContent-Length: ") + length + "\r\n\r\n";
    EXPECT_EQ(RequestBytes(head, 1000), head.size()) << length;
  }
  for (const char* header : {"Transfer-Encoding: chunked", "Content-Length: x",
                             "Content-Length:", "X-Content-Length: 9"}) {
    const std::string head = std::string("POST / HTTP/1.1\r\n") + header + "\r\n\r\n";
    EXPECT_EQ(RequestBytes(head, 1000), head.size()) << header;
  }
}

/// Both ends of a connection.
struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    client.reset(fds[0]);
    server.reset(fds[1]);
  }
  void Send(const std::string& text) const {
    ASSERT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// Waits until the server's end is closed.
  void AwaitEnd() const {
    char byte;
    EXPECT_LE(::recv(client.get(), &byte, 1, 0), 0);  // reset, where not all of it was read
  }
  bool open() const {
    char byte;
    return ::recv(client.get(), &byte, 1, MSG_DONTWAIT) < 0;
  }
  UniqueFd client;
  UniqueFd server;
};

/// A room whose visitors never come to their time, unless a test says so.
class WaitingRoomTest : public ::testing::Test {
 protected:
  void Open(size_t connections, std::chrono::milliseconds request_time = 1h) {
    room_.emplace(WaitingRoom::Bounds{connections, 4096, request_time},
                  [this](UniqueFd, std::string request) {
                    const std::lock_guard lock(mutex_);
                    admitted_.push_back(std::move(request));
                    changed_.notify_all();
                  });
  }
  Pair Enter(const std::string& text = "") {
    Pair pair;
    if (!text.empty()) pair.Send(text);
    room_->Enter(std::move(pair.server));
    return pair;
  }
  std::vector<std::string> Await(size_t admitted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return admitted_.size() >= admitted; });
    return admitted_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> admitted_;
  std::optional<WaitingRoom> room_;  // last: its thread uses the others
};

TEST_F(WaitingRoomTest, AdmitsARequestWhenItIsWhole) {
  Open(4);
  const Pair whole = Enter(kRequest);
  EXPECT_EQ(Await(1).back(), kRequest);
  const Pair slow = Enter("GET / HT");
  slow.Send("TP/1.1\r\nHost: a\r\n\r");
  const Pair other = Enter(kRequest);
  EXPECT_EQ(Await(2).size(), 2u);
  slow.Send("\n");
  EXPECT_EQ(Await(3).back(), kRequest);
}

TEST_F(WaitingRoomTest, TheOldestGivesWay) {
  Open(3);
  std::vector<Pair> half;
  for (int i = 0; i < 10; ++i) half.push_back(Enter(i % 2 == 0 ? "" : "GET / HTTP/1.1\r\n"));
  for (size_t i = 0; i < 7; ++i) half[i].AwaitEnd();
  const Pair whole = Enter(kRequest);
  EXPECT_EQ(Await(1).back(), kRequest);
  for (size_t i = 7; i < 10; ++i) EXPECT_TRUE(half[i].open()) << "there was room for " << i;
  half[9].Send("Host: a\r\n\r\n");
  EXPECT_EQ(Await(2).back(), kRequest);
}

TEST_F(WaitingRoomTest, WhoSendsTooMuchOrHangsUpIsForgotten) {
  Open(1);
  const Pair large = Enter(std::string(4096, 'x'));
  large.AwaitEnd();
  {
    const Pair gone = Enter("GET / HTTP");
    gone.Send("/1.1\r\n");
  }
  const Pair whole = Enter(kRequest);
  EXPECT_EQ(Await(1), std::vector<std::string>{kRequest});
}

TEST_F(WaitingRoomTest, NobodyWaitsForEver) {
  Open(4, 1ms);
  const Pair half = Enter("GET / HTTP");
  half.AwaitEnd();
}

TEST_F(WaitingRoomTest, EndsWithThoseWhoWait) {
  Open(4);
  const Pair half = Enter("GET / HTTP");
  room_.reset();
  half.AwaitEnd();
}

}  // namespace
}  // namespace sluice::http
