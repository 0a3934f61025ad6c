// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/pod_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::deviceplugin {
namespace {

constexpr char kResource[] = "sluice.dev/gpu-memory";
constexpr char kPod[] = R"({
  "metadata": {"namespace": "team", "name": "train-0", "uid": "u-1", "resourceVersion": "41",
               "creationTimestamp": "2026-11-20T10:00:05Z",
               "annotations": {"sluice.dev/priority": "3", "other": "x"}},
  "spec": {
    "initContainers": [
      {"name": "prepare", "resources": {"limits": {"sluice.dev/gpu-memory": "4"}}},
      {"name": "proxy", "restartPolicy": "Always", "resources": {}}],
    "containers": [
      {"name": "main", "resources": {"limits": {"sluice.dev/gpu-memory": "1k", "cpu": "2"}}},
      {"name": "side"}]},
  "status": {"phase": "Running"}})";

TEST(PodJson, APodIsWhatTheApiSaysOfIt) {
  const auto list = ParsePodList(
      std::string(R"({"metadata": {"resourceVersion": "42"}, "items": [)") + kPod + "]}",
      kResource);
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list->version, "42");
  ASSERT_EQ(list->pods.size(), 1u);
  const pods::Pod& pod = list->pods[0];
  EXPECT_EQ(pod.space, "team");
  EXPECT_EQ(pod.name, "train-0");
  EXPECT_EQ(pod.uid, "u-1");
  EXPECT_EQ(pod.created_s, 1795168805u);
  EXPECT_FALSE(pod.over);
  EXPECT_EQ(pod.annotations.at("sluice.dev/priority"), "3");
  ASSERT_EQ(pod.parts.size(), 4u);
  EXPECT_EQ(pod.parts[0].name, "prepare");
  EXPECT_TRUE(pod.parts[0].init);
  EXPECT_EQ(pod.parts[0].granules, 4u);
  EXPECT_FALSE(pod.parts[1].init) << "a sidecar stays";
  EXPECT_EQ(pod.parts[2].granules, 1000u);
  EXPECT_EQ(pod.parts[3].granules, 0u);
}

TEST(PodJson, APodThatHasEndedIsOver) {
  for (const auto& [phase, over] : {std::pair("Pending", false), std::pair("Succeeded", true),
                                    std::pair("Failed", true), std::pair("Unknown", false)}) {
    nlohmann::json pod = nlohmann::json::parse(kPod);
    pod["status"]["phase"] = phase;
    const auto list = ParsePodList(nlohmann::json{{"items", {pod}}}.dump(), kResource);
    ASSERT_TRUE(list.ok());
    EXPECT_EQ(list->pods[0].over, over) << phase;
  }
}

TEST(PodJson, AStaticPodIsKnownAsKubeletKnowsIt) {
  const auto uid = [](const std::string& hash, const std::string& mirror) {
    nlohmann::json pod = nlohmann::json::parse(kPod);
    pod["metadata"]["annotations"] = {{"kubernetes.io/config.hash", hash},
                                      {"kubernetes.io/config.mirror", mirror}};
    const auto list = ParsePodList(nlohmann::json{{"items", {pod}}}.dump(), kResource);
    EXPECT_EQ(list->pods.at(0).object, "u-1") << "for events";
    return list->pods.at(0).uid;
  };
  const std::string hash = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
  EXPECT_EQ(uid(hash, hash), hash);
  EXPECT_EQ(uid(hash, ""), "u-1");
  const std::string others = "0035512f-328e-4a51-94db-4fd35ad6c3e5";
  EXPECT_EQ(uid(others, others), "u-1") << "whoever writes that is not this one";
}

TEST(PodJson, APodHasBegunWhenKubeletHasAdmittedIt) {
  nlohmann::json pod = nlohmann::json::parse(kPod);
  pod["status"] = {{"phase", "Pending"}};
  const auto list = [&pod] {
    return ParsePodList(nlohmann::json{{"items", {pod}}}.dump(), kResource)->pods.at(0);
  };
  EXPECT_FALSE(list().begun);
  pod["status"]["startTime"] = "2026-11-20T10:00:05Z";
  EXPECT_TRUE(list().begun);
}

TEST(PodJson, DaemonsOfGpuFractionsManageGpus) {
  const auto managed = [](const char* component, const char* manager, const char* volumes) {
    nlohmann::json pod = nlohmann::json::parse(kPod);
    pod["metadata"]["labels"] = {{"app.kubernetes.io/component", component},
                                 {"app.kubernetes.io/managed-by", manager}};
    pod["spec"]["volumes"] = nlohmann::json::parse(volumes);
    const auto list = ParsePodList(nlohmann::json{{"items", {pod}}}.dump(), kResource);
    EXPECT_TRUE(list.ok());
    return list.ok() ? list->pods[0].manages_gpus : "";
  };
  constexpr char kHost[] = R"([{"name": "a", "emptyDir": {}},
                               {"name": "mps", "hostPath": {"path": "/run/nvidia-mps"}}])";
  EXPECT_EQ(managed("mpsd", "gpu-fractioning", kHost), "mpsd");
  EXPECT_EQ(managed("fractiond", "gpu-fractioning", kHost), "fractiond");
  EXPECT_EQ(managed("metricsd", "gpu-fractioning", kHost), "");
  EXPECT_EQ(managed("mpsd", "Helm", kHost), "");
  // Whoever may make any pod can write labels, and no more than that.
  EXPECT_EQ(managed("mpsd", "gpu-fractioning", R"([{"name": "a", "emptyDir": {}}])"), "");
  EXPECT_EQ(managed("mpsd", "gpu-fractioning", "3"), "");
  EXPECT_EQ(managed("mpsd", "gpu-fractioning", "[3]"), "");
}

TEST(PodJson, WhatIsNoListOfPodsIsAnError) {
  for (const char* text : {"", "{", "[]", "{}", "3", R"({"items": 3})", R"({"items": {}})"}) {
    EXPECT_FALSE(ParsePodList(text, kResource).ok()) << text;
  }
  // What one of them lacks does not hide the others.
  const auto list =
      ParsePodList(std::string(R"({"items": [{}, 7, null, )") + kPod + "]}", kResource);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->pods.size(), 1u);
}

TEST(PodJson, AWatchTellsWhatChanged) {
  const auto event = [](const std::string& type, const std::string& object) {
    return ParsePodEvent(R"({"type": ")" + type + R"(", "object": )" + object + "}", kResource);
  };
  EXPECT_EQ(event("ADDED", kPod)->kind, PodEvent::Kind::kThere);
  EXPECT_EQ(event("MODIFIED", kPod)->pod.uid, "u-1");
  EXPECT_EQ(event("MODIFIED", kPod)->version, "41");
  EXPECT_EQ(event("DELETED", kPod)->kind, PodEvent::Kind::kGone);
  const auto mark = event("BOOKMARK", R"({"metadata": {"resourceVersion": "50"}})");
  EXPECT_EQ(mark->kind, PodEvent::Kind::kVersion);
  EXPECT_EQ(mark->version, "50");
  const auto error = event("ERROR", R"({"message": "too old resource version", "code": 410})");
  EXPECT_EQ(error->kind, PodEvent::Kind::kError);
  EXPECT_EQ(error->error, "too old resource version");
  EXPECT_FALSE(event("MOVED", kPod).ok());
  EXPECT_FALSE(ParsePodEvent("{\"type\": 3}", kResource).ok());
  EXPECT_FALSE(event("ADDED", "{}").ok());
}

TEST(PodJson, AWarningIsAnEventOnThePod) {
  pods::Pod pod;
  pod.space = "team";
  pod.name = "train-0";
  pod.uid = "u-0";
  pod.object = "u-1";
  const auto event =
      nlohmann::json::parse(WarningOn(pod, "SluiceRefused", "a \"b\"\n" + std::string(5000, 'x'),
                                      "node-1", 1'795'168'805'000'000'007));
  EXPECT_EQ(event["involvedObject"]["uid"], "u-1");
  EXPECT_EQ(event["involvedObject"]["kind"], "Pod");
  EXPECT_EQ(event["metadata"]["namespace"], "team");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "SluiceRefused");
  EXPECT_EQ(event["firstTimestamp"], "2026-11-20T10:00:05Z");
  EXPECT_EQ(event["source"]["host"], "node-1");
  EXPECT_EQ(event["message"].get<std::string>().size(), 1000u) << "the API takes 1024";
  const auto name_of = [&](const std::string& text, uint64_t now_ns) {
    return nlohmann::json::parse(WarningOn(pod, "SluiceRefused", text, "node-1", now_ns))
        .at("metadata")
        .at("name")
        .get<std::string>();
  };
  EXPECT_EQ(name_of("it", 1), name_of("it", 2)) << "a plugin that begins anew says it again";
  EXPECT_NE(name_of("it", 1), name_of("other", 1));
  EXPECT_TRUE(name_of("it", 1).starts_with("train-0.sluice-"));
}

TEST(PodJson, AWarningOnANodeNamesIt) {
  const auto event = nlohmann::json::parse(
      WarningOnNode("node-1", "SluiceGpuRefused", "theirs", 1'795'168'805'000'000'007));
  EXPECT_EQ(event["involvedObject"],
            (nlohmann::json{
                {"apiVersion", "v1"}, {"kind", "Node"}, {"name", "node-1"}, {"uid", "node-1"}}));
  EXPECT_EQ(event["metadata"]["namespace"], "default");
  EXPECT_EQ(event["metadata"]["name"], "node-1.sluice-1795168805000000007");
  EXPECT_EQ(event["reason"], "SluiceGpuRefused");
  EXPECT_EQ(event["message"], "theirs");
  EXPECT_EQ(event["source"]["host"], "node-1");
}

}  // namespace
}  // namespace sluice::deviceplugin
