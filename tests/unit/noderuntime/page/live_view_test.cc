// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/live_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::page {
namespace {

using Json = nlohmann::json;

constexpr char kLive[] = R"({
  "seq": 7, "now_ms": 1000, "step_ms": 20, "pool": 4096, "budget": 4000, "unit": 256, "free": 1024,
  "policy": "flow", "lanes": 2,
  "jobs": [
    {"id": 1, "name": "ns/pod/container", "phase": "running", "held": 2048, "live": 2000,
     "claim": 2500, "limit": 3000, "request": 100, "base": 90, "lent": 0, "borrowed": 512,
     "gate": 3, "gates": 10, "iteration": 12, "waits_ms": 0, "waits_for": "", "code": "", "pid": 9},
    {"id": 2, "name": "b", "phase": "waiting", "held": 1024, "waits_ms": 5, "code": "turn",
     "waits_for": "for its turn"}],
  "loans": [[2, 1, 512], [1], "no", [3, 1, -4]],
  "frames": [[980, [1, 8, 2, 4]], [1000, [1, 8]], [1], [1020, [1]], [1040, [1, -2]]]})";

TEST(ReadLive, ShowsWhatTheDaemonSaysUnderItsOwnNames) {
  const auto view = ReadLive(kLive, 3);
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(view->seq, 7u);
  EXPECT_EQ(view->now_ms, 1000u);
  const Json json = Json::parse(view->json);
  const Json from = Json::parse(kLive);
  for (const char* key :
       {"seq", "now_ms", "step_ms", "pool", "budget", "unit", "free", "policy", "lanes"}) {
    EXPECT_EQ(json[key], from[key]) << key;
  }
  EXPECT_EQ(json["gpu"], 3);
  EXPECT_EQ(json["held"], 3072);
  EXPECT_EQ(json["lent"], 512);
  EXPECT_EQ(json["loans"], Json::parse("[[2, 1, 512]]"));
  Json first = from["jobs"][0];
  first.erase("pid");
  EXPECT_EQ(json["jobs"][0], first);
  EXPECT_EQ(json["jobs"][1]["limit"], 0) << "what is not said";
  EXPECT_EQ(json["jobs"][1]["waits_for"], "for its turn");
}

TEST(ReadLive, KeepsFramesThatAreSound) {
  const auto view = ReadLive(kLive, 0);
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(view->frames.size(), 2u);
  EXPECT_EQ(view->frames[0].t_ms, 980u);
  EXPECT_EQ(view->frames[0].json, "[980,[1,8,2,4]]");
  const Json whole = Json::parse(WithFrames(view->json, view->frames));
  EXPECT_EQ(whole["frames"], Json::parse("[[980,[1,8,2,4]],[1000,[1,8]]]"));
  EXPECT_EQ(whole["seq"], 7);
  EXPECT_EQ(Json::parse(WithFrames(view->json, {}))["frames"], Json::array());
}

TEST(ReadLive, RefusesWhatIsNone) {
  for (const char* bad : {"", "[]", "{}", "{", "null"}) {
    EXPECT_EQ(ReadLive(bad, 0).status().code(), StatusCode::kUnavailable) << bad;
  }
  EXPECT_TRUE(ReadLive(R"({"seq": 1, "jobs": 5, "loans": {}, "frames": null})", 0).ok());
}

TEST(ReadLive, CutsLongTextsBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 500; ++i) name += "ü";
  const Json from = {{"seq", 1}, {"jobs", {{{"id", 1}, {"name", name}}}}};
  const auto view = ReadLive(from.dump(), 0);
  ASSERT_TRUE(view.ok());
  const std::string shown = Json::parse(view->json)["jobs"][0]["name"];
  EXPECT_EQ(shown, name.substr(0, 400) + "…");
}

TEST(ReadJob, FindsRunningAndEndedOnes) {
  const std::string status =
      R"({"gpu": 1, "policy": "flow", "lanes": 2, "figures": {"bounds_ns": {"wait": [1, 2]}},
          "jobs": [{"id": 4, "phase": "running", "figures": {"iterations": 3}}],
          "ended": [{"id": 3, "phase": "ended"}]})";
  const Json running = Json::parse(*ReadJob(status, 4));
  EXPECT_EQ(running["job"]["figures"]["iterations"], 3);
  EXPECT_EQ(running["bounds_ns"]["wait"], Json::parse("[1, 2]"));
  EXPECT_EQ(Json::parse(*ReadJob(status, 3))["job"]["phase"], "ended");
  EXPECT_EQ(ReadJob(status, 5).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadJob("{", 4).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(ReadJob(R"({"jobs": [{"id": 4}]})", 4).ok()) << "an older daemon's";
}

TEST(ReadGpu, SaysWhetherItsDaemonAnswers) {
  const Json up = Json::parse(
      ReadGpu(std::string(R"({"gpu": 5, "gpu_name": "A", "pool_bytes": 8, "jobs": [{}, {}]})"), 0));
  EXPECT_EQ(up["up"], true);
  EXPECT_EQ(up["gpu"], 0);
  EXPECT_EQ(up["number"], 5);
  EXPECT_EQ(up["name"], "A");
  EXPECT_EQ(up["jobs"], 2);
  const Json down = Json::parse(ReadGpu(Status(StatusCode::kUnavailable, "gone"), 2));
  EXPECT_EQ(down["up"], false);
  EXPECT_EQ(down["number"], 2);
}

}  // namespace
}  // namespace sluice::page
