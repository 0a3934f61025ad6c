// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/pod_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "tests/support/api_stand_in.h"

namespace sluice::deviceplugin {
namespace {

using testing::ApiStandIn;

constexpr std::chrono::seconds kPatience{60};  // only ends a test that fails
constexpr char kResource[] = "sluice.dev/gpu-memory";

std::string Pod(const std::string& name) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","uid":"uid-)" + name +
         R"(","resourceVersion":"7"},"spec":{"containers":[]},"status":{"phase":"Running"}})";
}

/// The stand-in answers a list with the pods that it is told of, and a watch with the events that
/// it is told of; a watch then stays open, and is silent.
class PodWatchTest : public ::testing::Test {
 protected:
  void Set(const std::string& listed, const std::string& events) {
    const std::lock_guard lock(mutex_);
    listed_ = listed;
    events_ = events;
  }
  ApiStandIn::Answer AnswerTo(const std::string& request) {
    const std::lock_guard lock(mutex_);
    // Without a length an answer lasts as long as its connection.
    if (request.find("watch=1") != std::string::npos) {
      return {"HTTP/1.1 200 OK\r\n\r\n" + events_, ApiStandIn::Then::kStay};
    }
    return {ApiStandIn::Ok(R"({"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[)" +
                           listed_ + "]}")};
  }
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

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string listed_;
  std::string events_;
  ApiStandIn stand_in_{[this](const std::string& request) { return AnswerTo(request); }};
  const ApiServer api_{ApiAccess{"http://127.0.0.1:" + stand_in_.port(), "", ""}};
  std::unique_ptr<PodWatch> watch_;  // last: its thread uses all of them
};

TEST_F(PodWatchTest, PodsAreThoseOfTheListAndOfTheEventsAfterIt) {
  Set(Pod("a"), R"({"type":"ADDED","object":)" + Pod("b") + "}\n");
  Start();
  EXPECT_TRUE(AwaitPods(2));
}

TEST_F(PodWatchTest, AWatchOnWhichNothingComesIsLeftForAList) {
  Set(Pod("a"), "");
  Start();
  ASSERT_TRUE(AwaitPods(1));
  Set(Pod("a") + "," + Pod("b"), "");
  watch_->Renew();
  EXPECT_TRUE(AwaitPods(2)) << "no event told of it";
}

TEST_F(PodWatchTest, WhatIsOnNoListAnyMoreIsGone) {
  Set(Pod("a") + "," + Pod("b"), "");
  Start();
  ASSERT_TRUE(AwaitPods(2));
  Set(Pod("a"), "");
  watch_->Renew();
  EXPECT_TRUE(AwaitPods(1));
}

}  // namespace
}  // namespace sluice::deviceplugin
