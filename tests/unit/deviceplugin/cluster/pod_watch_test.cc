// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/pod_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "common/unique_fd.h"

namespace sluice::deviceplugin {
namespace {

constexpr std::chrono::seconds kPatience{60};  // only ends a test that fails
constexpr char kResource[] = "sluice.dev/gpu-memory";

std::string Pod(const std::string& name) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","uid":"uid-)" + name +
         R"(","resourceVersion":"7"},"spec":{"containers":[]},"status":{"phase":"Running"}})";
}

/// Answers a list with the pods that it is told of, and a watch with the events that it is told of;
/// a watch then stays open, and is silent.
class ApiStandIn {
 public:
  ApiStandIn()
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), end_(::eventfd(0, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    access_.url = "http://127.0.0.1:" + std::to_string(::ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~ApiStandIn() {
    const uint64_t one = 1;
    EXPECT_EQ(::write(end_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }
  const ApiAccess& access() const { return access_; }
  void Set(const std::string& listed, const std::string& events) {
    const std::lock_guard lock(mutex_);
    listed_ = listed;
    events_ = events;
  }

 private:
  void Serve() {
    for (;;) {
      pollfd polled[] = {{listener_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
      ::poll(polled, 2, -1);
      if (polled[1].revents != 0) return;
      UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
      std::string request;
      char byte = 0;
      while (!request.ends_with("\r\n\r\n") && ::read(client.get(), &byte, 1) == 1) request += byte;
      Answer(std::move(client), request.find("watch=1") != std::string::npos);
    }
  }
  void Answer(UniqueFd client, bool watch) {
    const std::lock_guard lock(mutex_);
    const std::string list =
        R"({"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[)" + listed_ + "]}";
    // Without a length an answer lasts as long as its connection.
    const std::string text =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + (watch ? events_ : list);
    EXPECT_EQ(::write(client.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    if (!watch) return;
    open_ = std::move(client);
  }

  UniqueFd listener_;
  UniqueFd end_;
  UniqueFd open_;  // the watch
  ApiAccess access_;
  std::mutex mutex_;
  std::string listed_;
  std::string events_;
  std::thread thread_;
};

class PodWatchTest : public ::testing::Test {
 protected:
  void Start() {
    watch_ = std::make_unique<PodWatch>(&api_, "node", kResource, [this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }
  bool AwaitPods(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] {
      return watch_->Pods().has_value() && watch_->Pods()->pods.size() == count;
    });
  }

  ApiStandIn stand_in_;
  const ApiServer api_{stand_in_.access()};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<PodWatch> watch_;  // last: its thread uses all of them
};

TEST_F(PodWatchTest, PodsAreThoseOfTheListAndOfTheEventsAfterIt) {
  stand_in_.Set(Pod("a"), R"({"type":"ADDED","object":)" + Pod("b") + "}\n");
  Start();
  EXPECT_TRUE(AwaitPods(2));
}

TEST_F(PodWatchTest, AWatchOnWhichNothingComesIsLeftForAList) {
  stand_in_.Set(Pod("a"), "");
  Start();
  ASSERT_TRUE(AwaitPods(1));
  stand_in_.Set(Pod("a") + "," + Pod("b"), "");
  watch_->Renew();
  EXPECT_TRUE(AwaitPods(2)) << "no event told of it";
}

TEST_F(PodWatchTest, WhatIsOnNoListAnyMoreIsGone) {
  stand_in_.Set(Pod("a") + "," + Pod("b"), "");
  Start();
  ASSERT_TRUE(AwaitPods(2));
  stand_in_.Set(Pod("a"), "");
  watch_->Renew();
  EXPECT_TRUE(AwaitPods(1));
}

}  // namespace
}  // namespace sluice::deviceplugin
