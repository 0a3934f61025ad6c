// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/resident.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/support/api_stand_in.h"
#include "tests/support/fake_kubelet.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using nlohmann::json;

constexpr uint64_t kMostKb = 24 * 1024;
constexpr uint64_t kMostKbEver = 32 * 1024;  // while a list is taken apart
constexpr int kPods = 110;                   // kubelet's own limit
constexpr int kEventsOfEach = 3;
constexpr std::chrono::seconds kPatience{60};

/// What managers write down about who set which field: a third of what a real pod is made of.
json Managed(const char* manager, int fields) {
  json set;
  for (int i = 0; i < fields; ++i) {
    const std::string env = R"(k:{"name":"VARIABLE_)" + std::to_string(i) + R"("})";
    set["f:spec"]["f:containers"][R"(k:{"name":"main"})"]["f:env"][env] = {
        {".", json::object()}, {"f:name", json::object()}, {"f:value", json::object()}};
  }
  return {{"manager", manager},       {"operation", "Update"},          {"apiVersion", "v1"},
          {"fieldsType", "FieldsV1"}, {"time", "2026-11-25T10:00:00Z"}, {"fieldsV1", set}};
}

json Container(const std::string& name, bool shares) {
  json environment = json::array();
  for (int i = 0; i < 24; ++i) {
    environment.push_back({{"name", "VARIABLE_" + std::to_string(i)},
                           {"value", "a-value-of-some-length-as-they-are-" + std::to_string(i)}});
  }
  json container = {
      {"name", name},
      {"image", "registry.example.com/team/" + name + ":v1.2.3"},
      {"command", {"python3", "-m", "trainer", "--config", "/etc/trainer/config.yaml"}},
      {"env", environment},
      {"imagePullPolicy", "IfNotPresent"},
      {"terminationMessagePath", "/dev/termination-log"},
      {"livenessProbe",
       {{"httpGet", {{"path", "/healthz"}, {"port", 8080}}}, {"periodSeconds", 10}}},
      {"volumeMounts",
       {{{"name", "config"}, {"mountPath", "/etc/trainer"}},
        {{"name", "token"}, {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"}}}},
      {"resources", {{"limits", {{"cpu", "2"}, {"memory", "4Gi"}}}}}};
  if (shares) container["resources"]["limits"]["sluice.dev/gpu-memory"] = "4";
  return container;
}

/// As the API server tells of one that runs, with a sidecar; every fourth has GPU memory.
json Pod(int number) {
  const std::string name = "trainer-" + std::to_string(number) + "-7d4b9c6f5d-x2x7q";
  json conditions = json::array();
  for (const char* type : {"Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    conditions.push_back({{"type", type},
                          {"status", "True"},
                          {"lastProbeTime", nullptr},
                          {"lastTransitionTime", "2026-11-25T10:00:01Z"}});
  }
  json statuses = json::array();
  for (const char* container : {"main", "sidecar"}) {
    statuses.push_back({{"name", container},
                        {"ready", true},
                        {"restartCount", 0},
                        {"containerID", "containerd://" + std::string(64, 'a')},
                        {"imageID", "registry.example.com/team@sha256:" + std::string(64, 'b')},
                        {"state", {{"running", {{"startedAt", "2026-11-25T10:00:01Z"}}}}}});
  }
  json pod;
  pod["metadata"] = {
      {"name", name},
      {"namespace", "team-" + std::to_string(number % 7)},
      {"uid", "5c0a7c1e-7a3e-4d1b-9d1e-" + std::to_string(100'000'000'000 + number)},
      {"resourceVersion", std::to_string(100'000 + number)},
      {"creationTimestamp", "2026-11-25T10:00:00Z"},
      {"labels", {{"app", "trainer"}, {"pod-template-hash", "7d4b9c6f5d"}}},
      {"annotations", {{"sluice.dev/memory-limit", "8GiB"}}},
      {"managedFields", {Managed("kube-controller-manager", 24), Managed("kubelet", 8)}}};
  pod["spec"] = {{"nodeName", "n1"},
                 {"containers", {Container("main", number % 4 == 0), Container("sidecar", false)}},
                 {"volumes", {{{"name", "config"}, {"configMap", {{"name", "trainer"}}}}}},
                 {"serviceAccountName", "trainer"}};
  pod["status"] = {{"phase", "Running"},       {"startTime", "2026-11-25T10:00:00Z"},
                   {"podIP", "10.1.2.3"},      {"qosClass", "Burstable"},
                   {"conditions", conditions}, {"containerStatuses", statuses}};
  return pod;
}

/// In chunks, as the API server sends what it has not counted.
std::string InChunks(const std::string& body) {
  constexpr size_t kChunk = 8192;
  std::string text =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (size_t at = 0; at < body.size(); at += kChunk) {
    text += testing::ApiStandIn::Chunk(body.substr(at, kChunk));
  }
  return text;
}

std::string PodList() {
  json list = {{"kind", "PodList"}, {"metadata", {{"resourceVersion", "200000"}}}};
  for (int i = 0; i < kPods; ++i) list["items"].push_back(Pod(i));
  return list.dump();
}

std::string Events() {
  std::string events;
  for (int i = 0; i < kEventsOfEach * kPods; ++i) {
    events += json{{"type", "MODIFIED"}, {"object", Pod(i % kPods)}}.dump() + "\n";
  }
  return events;
}

/// The plugin on the largest node, with all that the chart turns on.
class Resident : public ::testing::Test {
 protected:
  void SetUp() override {
    auto work = cli::WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_.emplace(std::move(*work));
    std::ofstream(work_->File("machine")) << "";
    auto gpu =
        cli::SimulatedGpu::Up(layout_, work_->File("gpu"), 288 * kGiB, work_->File("machine"), 8);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    gpu_.emplace(std::move(*gpu));
    std::filesystem::create_directories(work_->File("kubelet"));
    kubelet_.emplace(work_->File("kubelet"));
  }
  void TearDown() override {
    if (!plugin_.has_value()) return;
    plugin_->Signal(SIGTERM);
    Finish(*plugin_, 60'000);
    EXPECT_EQ(plugin_->status().Describe(), "exit code 0") << Describe(*plugin_);
  }

  void Start(const std::string& api_port, const std::vector<std::string>& flags) {
    cli::SpawnOptions options;
    cli::Environment environment = cli::Environment::Current();
    environment.Set("KUBERNETES_SERVICE_HOST", "127.0.0.1");
    environment.Set("KUBERNETES_SERVICE_PORT", api_port);
    options.environment = gpu_->Select(environment);
    options.argv = {layout_.Program("sluice-device-plugin"),
                    "--kubelet-dir",
                    work_->File("kubelet"),
                    "--pod-resources",
                    kubelet_->pod_resources(),
                    "--root",
                    work_->File("grants"),
                    "--metrics",
                    "127.0.0.1:0",
                    "--node",
                    "n1"};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    auto plugin = cli::JobProcess::Start("plugin", std::move(options));
    ASSERT_TRUE(plugin.ok()) << plugin.status().message();
    plugin_.emplace(std::move(*plugin));
    const auto devices =
        kubelet_->AwaitDevices([](const auto& now) { return now.healthy.size() > 2000; });
    ASSERT_TRUE(devices.has_value());
    for (const auto& [id, healthy] : devices->healthy) {
      ASSERT_TRUE(kubelet_->Allocate({{id}}).ok());
      if (++grants_ == kPods / 4) break;
    }
  }
  void ExpectFew(const char* how) const {
    const pid_t pid = plugin_->pid();
    const uint64_t kb = ResidentKb(pid);
    std::printf("%s: %.1f MiB resident, %.1f of them its own, %.1f at most before\n", how,
                static_cast<double>(kb) / 1024,
                static_cast<double>(ResidentKb(pid, "RssAnon")) / 1024,
                static_cast<double>(ResidentKb(pid, "VmHWM")) / 1024);
    EXPECT_GT(kb, 0u);
    EXPECT_LE(kb, kMostKb);
    EXPECT_LE(ResidentKb(pid, "VmHWM"), kMostKbEver);
  }

  const cli::Layout layout_ = cli::Layout::At(Program("BIN"));
  std::optional<cli::WorkDir> work_;
  std::optional<cli::SimulatedGpu> gpu_;
  std::optional<FakeKubelet> kubelet_;
  std::optional<cli::JobProcess> plugin_;
  int grants_ = 0;
};

TEST_F(Resident, WithoutAnnotations) {
  Start("1", {});
  ExpectFew("without annotations");
}

TEST_F(Resident, WithAnnotationsOverTlsAndAFullNode) {
  const std::string list = InChunks(PodList()) + "0\r\n\r\n";
  const std::string events = InChunks(Events());
  std::promise<void> all_taken;
  int watches = 0;
  // Once everything that has happened to the pods, then a list again, and then nothing: a watch is
  // asked for when all that came before it has been looked at.
  const auto answerer = [&](const std::string& request) -> ApiStandIn::Answer {
    if (request.find("watch=1") == std::string::npos) return {list};
    if (++watches == 1) return {events + "0\r\n\r\n"};
    if (watches == 2) all_taken.set_value();
    return {InChunks(""), ApiStandIn::Then::kStay};
  };
  const TestCa ca;
  const std::string account = work_->File("account");
  std::filesystem::create_directories(account);
  std::ofstream(account + "/ca.crt") << ca.pem();
  std::ofstream(account + "/token") << "a.token";
  ApiStandIn api(answerer, ca.Issue("DNS:kubernetes,IP:127.0.0.1"));
  Start(api.port(), {"--annotations", "on", "--service-account", account});
  ASSERT_EQ(all_taken.get_future().wait_for(kPatience), std::future_status::ready);
  std::printf("a list of %d pods of %zu kB\n", kPods, list.size() / 1000);
  ExpectFew("with annotations");
  TearDown();  // before the API server
  plugin_.reset();
}

}  // namespace
}  // namespace sluice::testing
