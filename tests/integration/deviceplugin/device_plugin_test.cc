// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <sstream>
#include <thread>

#include "common/bytes.h"
#include "common/grant/record.h"
#include "common/grant/store.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/support/fake_kubelet.h"
#include "tests/support/resident.h"
#include "tests/support/scrape.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;
using Devices = FakeKubelet::Devices;

using Clock = std::chrono::steady_clock;

constexpr int kPatienceMs = 60'000;

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

size_t Healthy(const Devices& devices) {
  return static_cast<size_t>(std::count_if(devices.healthy.begin(), devices.healthy.end(),
                                           [](const auto& d) { return d.second; }));
}
bool AllHealthy(const Devices& devices) { return Healthy(devices) == devices.healthy.size(); }
std::vector<std::string> Ids(const Devices& devices) {
  std::vector<std::string> ids;
  for (const auto& [id, healthy] : devices.healthy) ids.push_back(id);
  return ids;
}

/// Simulated GPUs, the plugin as a process of its own, and a kubelet that comes and goes.
class DevicePlugin : public ::testing::Test {
 protected:
  void Up(unsigned gpus, uint64_t memory, const std::string& machine = "") {
    auto work = cli::WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_.emplace(std::move(*work));
    std::ofstream(work_->File("machine")) << machine;
    auto gpu =
        cli::SimulatedGpu::Up(layout_, work_->File("gpu"), memory, work_->File("machine"), gpus);
    ASSERT_TRUE(gpu.ok()) << gpu.status().message();
    gpu_.emplace(std::move(*gpu));
    kubelet_dir_ = work_->File("kubelet");
    fs::create_directories(kubelet_dir_);
    // On a node it is below /run, which is a tmpfs, too.
    memory_.emplace("/dev/shm");
    root_ = memory_->path();
  }
  void TearDown() override {
    if (!plugin_.has_value()) return;
    if (!plugin_->ended()) Stop(SIGTERM);
    EXPECT_EQ(plugin_->status().Describe(), "exit code 0") << Describe(*plugin_);
  }

  void Start(std::vector<std::string> flags = {}) {
    cli::SpawnOptions options;
    options.environment = gpu_->Select(cli::Environment::Current());
    options.argv = {layout_.Program("sluice-device-plugin"), "--kubelet-dir", kubelet_dir_,
                    "--root", root_};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    auto plugin = cli::JobProcess::Start("plugin", std::move(options));
    ASSERT_TRUE(plugin.ok()) << plugin.status().message();
    plugin_.emplace(std::move(*plugin));
  }
  void Stop(int signal) {
    plugin_->Signal(signal);
    Finish(*plugin_, kPatienceMs);
  }
  /// Of this process alone: all of 127.0.0.0/8 is this machine, and a process's number has 22 bits.
  static uint32_t MetricsHost() { return INADDR_LOOPBACK | (static_cast<uint32_t>(getpid()) << 2); }
  static std::string MetricsAddress() {
    const uint32_t host = MetricsHost();
    return "127." + std::to_string(host >> 16 & 255) + '.' + std::to_string(host >> 8 & 255) + '.' +
           std::to_string(host & 255) + ":9454";
  }
  static std::string ScrapePlugin() { return Scrape(9454, MetricsHost()); }
  Devices Await(FakeKubelet& kubelet, const std::function<bool(const Devices&)>& good) {
    const auto devices = kubelet.AwaitDevices(good);
    EXPECT_TRUE(devices.has_value());
    return devices.value_or(Devices());
  }
  GrantRecord RecordBeside(const FakeKubelet::Container& container) {
    const std::string folder = container.mounts.at(0).first;
    std::ostringstream text;
    text << std::ifstream(root_ + "/g/" + fs::path(folder).filename().string()).rdbuf();
    const Result<GrantRecord> grant = ParseGrant(text.str());
    EXPECT_TRUE(grant.ok()) << grant.status().message();
    return grant.ok() ? *grant : GrantRecord();
  }
  /// What a container gets that asks for one granule, with a driver of this version.
  std::map<std::string, std::string> EnvironmentWith(const std::string& driver,
                                                     std::vector<std::string> flags) {
    Up(1, 64 * kMiB, "driver = " + driver + "\n");
    fs::create_directories(work_->File("cgroup"));
    std::ofstream(work_->File("cgroup/cgroup.controllers")) << "cpu memory\n";
    FakeKubelet kubelet(kubelet_dir_);
    for (const char* flag : {"--granule", "4MiB", "--reserve", "16MiB", "--cgroups"}) {
      flags.emplace_back(flag);
    }
    flags.push_back(work_->File("cgroup"));
    Start(std::move(flags));
    const auto given = kubelet.Allocate({{Ids(Await(kubelet, AllHealthy)).front()}});
    EXPECT_TRUE(given.ok()) << given.status().message();
    Stop(SIGTERM);
    return given.ok() ? given->front().environment : std::map<std::string, std::string>();
  }
  void Xid(unsigned gpu, unsigned code) { Control(gpu, "xid", std::to_string(code)); }
  /// What happens to a GPU.
  void Control(unsigned gpu, const std::string& what, const std::string& value) {
    cli::SpawnOptions options;
    options.argv = {layout_.Program("simgpu-ctl"),
                    what,
                    work_->File("gpu"),
                    value,
                    "--gpu",
                    std::to_string(gpu)};
    options.environment = cli::Environment::Current();
    const auto done = cli::RunCommand(std::move(options));
    ASSERT_TRUE(done.ok()) << done.status().message();
  }

  const cli::Layout layout_ = cli::Layout::At(Program("BIN"));
  std::optional<cli::WorkDir> work_;
  std::optional<cli::SimulatedGpu> gpu_;
  std::optional<cli::JobProcess> plugin_;
  std::string kubelet_dir_;
  std::optional<TempFolder> memory_;
  std::string root_;
};

TEST_F(DevicePlugin, RegistersAndOffersEveryGranule) {
  Up(2, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB"});
  const auto registration = kubelet.AwaitRegistration();
  ASSERT_TRUE(registration.has_value());
  EXPECT_EQ(registration->version, "v1beta1");
  EXPECT_EQ(registration->resource, "sluice.dev/gpu-memory");
  EXPECT_TRUE(registration->preferred);
  const Devices devices = Await(kubelet, AllHealthy);
  EXPECT_EQ(devices.healthy.size(), 2u * 12);
}

TEST_F(DevicePlugin, AnAllocationIsAGrantOnOneGpu) {
  Up(2, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--library", "/opt/sluice/1"});
  const std::vector<std::string> all = Ids(Await(kubelet, AllHealthy));
  // As kubelet does: the ids that were preferred, in any order.
  Result<std::vector<std::string>> chosen = kubelet.Prefer(all, {}, 8);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  std::reverse(chosen->begin(), chosen->end());
  const auto given = kubelet.Allocate({*chosen});
  ASSERT_TRUE(given.ok()) << given.status().message();
  ASSERT_EQ(given->size(), 1u);
  const GrantRecord grant = RecordBeside(given->front());
  EXPECT_EQ(grant.bytes, 32 * kMiB);
  EXPECT_EQ(given->front().environment.at("NVIDIA_VISIBLE_DEVICES"), grant.gpu);
  std::sort(chosen->begin(), chosen->end());
  EXPECT_EQ(grant.devices, *chosen);
  EXPECT_TRUE(fs::is_directory(given->front().mounts.at(0).first));

  const Status too_large = kubelet.Prefer(all, {}, 13).status();
  EXPECT_EQ(too_large.code(), StatusCode::kResourceExhausted);
  const Status scattered = kubelet.Allocate({all}).status();
  EXPECT_EQ(scattered.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(scattered.message().find("on no single GPU"), std::string::npos);
  EXPECT_EQ(kubelet.Allocate({{"nobody-1"}}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(DevicePlugin, CountsWhatItDoes) {
  Up(1, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  kubelet.Refuse("not now");
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--metrics", MetricsAddress(), "--node", "n1"});
  ASSERT_TRUE(kubelet.AwaitCalls(2));
  kubelet.Refuse("");
  const std::vector<std::string> ids = Ids(Await(kubelet, AllHealthy));
  ASSERT_TRUE(kubelet.Allocate({{ids[0]}, {ids[1]}}).ok());
  ASSERT_FALSE(kubelet.Allocate({{"nobody-1"}}).ok());
  std::string text = ScrapePlugin();
  // Kubelet says yes before the plugin hears it.
  const auto deadline = Clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (text.find("sluice_plugin_registered{node=\"n1\"} 0") != std::string::npos &&
         Clock::now() < deadline) {
    text = ScrapePlugin();
  }
  for (const char* line : {R"(sluice_plugin_registered{node="n1"} 1)",
                           R"(sluice_plugin_registrations_total{node="n1",result="ok"} 1)",
                           R"(sluice_plugin_allocations_total{node="n1",result="granted"} 1)",
                           R"(sluice_plugin_allocations_total{node="n1",result="refused"} 1)",
                           R"(sluice_plugin_allocations_total{node="n1",result="failed"} 0)",
                           R"(sluice_plugin_allocate_seconds_count{node="n1"} 2)",
                           R"(sluice_plugin_grants{node="n1"} 2)", R"(state="healthy"} 12)"}) {
    EXPECT_NE(text.find(line + std::string("\n")), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(text.find(R"(sluice_plugin_registrations_total{node="n1",result="failed"} 0)"),
            std::string::npos);
}

TEST_F(DevicePlugin, FollowsAKubeletThatComesAgainWithinASecond) {
  Up(1, 64 * kMiB);
  Start({"--granule", "4MiB"});
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    FakeKubelet kubelet(kubelet_dir_);
    const Clock::time_point there = Clock::now();
    ASSERT_TRUE(kubelet.AwaitRegistration().has_value()) << i;
    // The first one waits for the plugin's own start.
    if (i > 0) {
      EXPECT_LT(Milliseconds(Clock::now() - there), 1000) << i;
    }
    const std::vector<std::string> now = Ids(Await(kubelet, AllHealthy));
    if (i == 0) ids = now;
    EXPECT_EQ(now, ids) << i;
    EXPECT_TRUE(kubelet.Allocate({{ids.front()}}).ok());
  }
}

TEST_F(DevicePlugin, ItsSocketIsMadeAgainWhenSomebodyRemovesIt) {
  Up(1, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  Start();
  const auto registration = kubelet.AwaitRegistration();
  ASSERT_TRUE(registration.has_value());
  Await(kubelet, AllHealthy);
  fs::remove(kubelet_dir_ + "/" + registration->endpoint);
  ASSERT_TRUE(kubelet.AwaitCalls(2));
  const std::vector<std::string> ids = Ids(Await(kubelet, AllHealthy));
  EXPECT_TRUE(kubelet.Allocate({{ids.front()}}).ok());
}

TEST_F(DevicePlugin, KeepsTryingWhereKubeletSaysNo) {
  Up(1, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  kubelet.Refuse("not now");
  Start();
  ASSERT_TRUE(kubelet.AwaitCalls(3));
  kubelet.Refuse("");
  EXPECT_TRUE(kubelet.AwaitRegistration().has_value());
}

TEST_F(DevicePlugin, ShowsWhetherKubeletKnowsIt) {
  Up(1, 64 * kMiB);
  const std::string file = work_->File("registered");
  std::ofstream(file) << "of a plugin that was killed";
  const auto becomes = [&file](bool there) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (fs::exists(file) != there && Clock::now() < deadline) std::this_thread::yield();
    return fs::exists(file) == there;
  };
  {
    FakeKubelet kubelet(kubelet_dir_);
    kubelet.Refuse("not now");
    Start({"--ready-file", file});
    ASSERT_TRUE(kubelet.AwaitCalls(3));
    EXPECT_FALSE(fs::exists(file));
    kubelet.Refuse("");
    EXPECT_TRUE(becomes(true));
    EXPECT_TRUE(kubelet.AwaitRegistration().has_value());
    fs::remove(kubelet_dir_ + "/kubelet.sock");
    EXPECT_TRUE(becomes(false)) << "kubelet is gone";
  }
  FakeKubelet next(kubelet_dir_);
  EXPECT_TRUE(becomes(true));
  Stop(SIGTERM);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(DevicePlugin, SurvivesADeathOfItsOwn) {
  Up(1, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  Start({"--granule", "4MiB"});
  const std::vector<std::string> before = Ids(Await(kubelet, AllHealthy));
  const auto given = kubelet.Allocate({{before.front()}});
  ASSERT_TRUE(given.ok());
  const GrantRecord grant = RecordBeside(given->front());
  Stop(SIGKILL);
  Start({"--granule", "4MiB"});
  ASSERT_TRUE(kubelet.AwaitCalls(2));
  EXPECT_EQ(Ids(Await(kubelet, AllHealthy)), before);
  EXPECT_EQ(RecordBeside(given->front()), grant);
}

TEST_F(DevicePlugin, AGpuWithAnErrorIsNotOffered) {
  Up(2, 64 * kMiB);
  std::optional<FakeKubelet> kubelet(std::in_place, kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--probation", "1"});
  Await(*kubelet, AllHealthy);
  Xid(1, 31);  // a program's fault
  Xid(0, 94);
  Await(*kubelet, [](const Devices& devices) { return Healthy(devices) == 12; });
  Await(*kubelet, AllHealthy);  // after its probation
  Xid(1, 79);                   // fallen off the bus
  const Devices rest =
      Await(*kubelet, [](const Devices& devices) { return Healthy(devices) == 12; });
  EXPECT_EQ(rest.healthy.size(), 24u) << "the capacity stays";
  // A plugin that is started anew has reset nothing.
  Stop(SIGKILL);
  kubelet.emplace(kubelet_dir_);  // which knows nothing of the one before
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--probation", "1"});
  EXPECT_EQ(Healthy(Await(*kubelet, [](const Devices&) { return true; })), 12u);
  Stop(SIGKILL);
  // As the runbook has it after a reset.
  for (const auto& file : fs::directory_iterator(root_ + "/x")) fs::remove(file);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--probation", "1"});
  Await(*kubelet, AllHealthy);
}

TEST_F(DevicePlugin, AThousandAtATimeOnTheLargestNode) {
  Up(8, 288 * kGiB);
  FakeKubelet kubelet(kubelet_dir_);
  const Clock::time_point begin = Clock::now();
  Start({"--metrics", MetricsAddress()});
  const Devices devices = Await(kubelet, AllHealthy);
  const double ready_ms = Milliseconds(Clock::now() - begin);
  const uint64_t resident_kb = ResidentKb(plugin_->pid());
  EXPECT_LE(devices.healthy.size(), 4096u);
  for (const auto& [id, healthy] : devices.healthy) EXPECT_LT(id.size(), 24u);
  EXPECT_LE(devices.message_bytes, 256 * kKiB);
  EXPECT_LT(ready_ms, 1000);
  EXPECT_LE(resident_kb, 24 * 1024u);
  std::printf("%zu ids in %zu bytes, ready after %.0f ms, %llu kB resident\n",
              devices.healthy.size(), devices.message_bytes, ready_ms,
              static_cast<unsigned long long>(resident_kb));  // NOLINT: printf

  const std::vector<std::string> ids = Ids(devices);
  std::vector<double> times;
  for (size_t i = 0; i < 500; ++i) {
    const Clock::time_point asked = Clock::now();
    EXPECT_TRUE(kubelet.Allocate({{ids[0]}}).ok());
    times.push_back(Milliseconds(Clock::now() - asked));
  }
  std::sort(times.begin(), times.end());
  std::printf("Allocate, one after the other: p50 %.2f ms, p99 %.2f ms (goal: 1 ms)\n", times[250],
              times[495]);

  constexpr size_t kCalls = 1000;
  std::vector<std::string> folders(kCalls);
  std::vector<double> took_ms(kCalls);
  std::latch together(kCalls);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kCalls; ++i) {
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      const Clock::time_point asked = Clock::now();
      // Sorted by GPU, two granules each.
      const auto given = kubelet.Allocate({{ids[2 * i], ids[2 * i + 1]}});
      took_ms[i] = Milliseconds(Clock::now() - asked);
      if (!given.ok()) return;
      folders[i] = given->front().mounts.at(0).first;
      const std::vector<std::string> own = {ids[2 * i], ids[2 * i + 1]};
      EXPECT_EQ(RecordBeside(given->front()).devices, own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<std::string> all(folders.begin(), folders.end());
  EXPECT_EQ(all.size(), kCalls) << "each its own, none twice";
  EXPECT_FALSE(all.contains("")) << "none was refused";
  std::sort(took_ms.begin(), took_ms.end());
  std::printf("%zu at a time: p50 %.2f ms, p99 %.2f ms, then %llu kB resident\n", kCalls,
              took_ms[kCalls / 2], took_ms[kCalls * 99 / 100],
              static_cast<unsigned long long>(ResidentKb(plugin_->pid())));  // NOLINT: printf
}

TEST_F(DevicePlugin, CollectsWhatNoContainerHasAnyMore) {
  Up(1, 64 * kMiB);
  const auto store = GrantStore::Open(root_);
  ASSERT_TRUE(store.ok());
  const auto over = store->Make({"", "GPU-a", 1, 1, {"a-1"}});
  const auto runs = store->Make({"", "GPU-a", 1, 1, {"a-2"}});
  const auto other = store->Make({"", "GPU-a", 1, 1, {"a-3"}});
  ASSERT_TRUE(over.ok() && runs.ok() && other.ok());
  FakeKubelet kubelet(kubelet_dir_);
  kubelet.Own("sluice.dev/gpu-memory", "a-2", "main");
  kubelet.Own("example.com/other", "a-3", "main");
  // The next pod with its ids has them.
  const auto next = store->Make({"", "GPU-a", 1, 3'600'000'000'000, {"a-1"}});
  ASSERT_TRUE(next.ok());
  Start({"--pod-resources", kubelet.pod_resources(), "--unseen", "1"});
  while (fs::exists(store->FolderOf(over->id))) {
  }
  EXPECT_TRUE(fs::exists(store->FolderOf(runs->id)));
  EXPECT_TRUE(fs::exists(store->FolderOf(other->id))) << "kubelet does not list init containers";
  EXPECT_TRUE(fs::exists(store->FolderOf(next->id)));
  // One that was just given stays, listed or not.
  const auto given = kubelet.Allocate({{Ids(Await(kubelet, AllHealthy)).front()}});
  ASSERT_TRUE(given.ok());
  EXPECT_TRUE(fs::exists(given->front().mounts.at(0).first));
}

TEST_F(DevicePlugin, SweepsWhatAPluginThatWasKilledLeftOfGrants) {
  Up(1, 64 * kMiB);
  const auto store = GrantStore::Open(root_);
  ASSERT_TRUE(store.ok());
  const std::string old = std::string(31, 'a') + "1";
  const std::string in_the_making = std::string(31, 'a') + "2";
  for (const std::string& id : {old, in_the_making}) fs::create_directory(store->FolderOf(id));
  ASSERT_TRUE(store->SetReport(old, "of a grant that had just ended").ok());
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(store->FolderOf(old), hour_ago);
  fs::last_write_time(store->report_folder() + "/" + old, hour_ago);
  Start({"--granule", "4MiB", "--reserve", "16MiB"});
  const auto gone = [&] {
    return !fs::exists(store->FolderOf(old)) && !fs::exists(store->report_folder() + "/" + old);
  };
  const auto until = Clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!gone() && Clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(gone());
  EXPECT_TRUE(fs::exists(store->FolderOf(in_the_making)));
}

TEST_F(DevicePlugin, AGpuOfAnotherPluginIsWithheldUntilThatOneIsGone) {
  Up(2, 64 * kMiB);
  FakeKubelet kubelet(kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--pod-resources", kubelet.pod_resources()});
  const Devices all = Await(kubelet, AllHealthy);
  const auto given = kubelet.Allocate({{Ids(all).front()}, {Ids(all).back()}});
  ASSERT_TRUE(given.ok()) << given.status().message();
  const std::string uuid = given->front().environment.at("NVIDIA_VISIBLE_DEVICES");
  ASSERT_NE(uuid, given->back().environment.at("NVIDIA_VISIBLE_DEVICES"));

  kubelet.OfferOf("nvidia.com/gpu.shared", {uuid + "::0", uuid + "::1"});
  const Devices rest =
      Await(kubelet, [](const Devices& devices) { return Healthy(devices) == 12; });
  ASSERT_EQ(rest.healthy.size(), 24u) << "the capacity stays";
  EXPECT_FALSE(rest.healthy.at(Ids(all).front()));
  EXPECT_TRUE(rest.healthy.at(Ids(all).back()));
  // Kubelet may have chosen before it was told; the other GPU is as it was.
  const Status late = kubelet.Allocate({{Ids(all).front()}}).status();
  EXPECT_EQ(late.message(), uuid +
                                " is not offered: nvidia.com/gpu.shared offers it; allowed: a "
                                "GPU that nobody else manages (leave it out there or here, or "
                                "say --foreign-gpus share)");
  EXPECT_TRUE(kubelet.Allocate({{Ids(all).back()}}).ok());
  // Who has a grant there keeps it.
  EXPECT_EQ(RecordBeside(given->front()).gpu, uuid);

  kubelet.OfferOf("nvidia.com/gpu.shared", {});
  kubelet.OfferOf("example.com/nic", {"mlx5_0"});
  Await(kubelet, AllHealthy);
  EXPECT_TRUE(kubelet.Allocate({{Ids(all).front()}}).ok());
}

TEST_F(DevicePlugin, AGpuThatIsSomebodyElsesFromTheBeginningIsNeverOffered) {
  Up(1, 64 * kMiB);
  std::string uuid;
  {
    FakeKubelet kubelet(kubelet_dir_);
    Start({"--granule", "4MiB", "--reserve", "16MiB", "--foreign-gpus", "share"});
    const auto given = kubelet.Allocate({{Ids(Await(kubelet, AllHealthy)).front()}});
    ASSERT_TRUE(given.ok());
    uuid = given->front().environment.at("NVIDIA_VISIBLE_DEVICES");
    Stop(SIGTERM);
  }
  FakeKubelet kubelet(kubelet_dir_);
  kubelet.Own("nvidia.com/gpu", uuid, "main");
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--pod-resources", kubelet.pod_resources()});
  // The first list that kubelet sees.
  const Devices devices = Await(kubelet, [](const Devices&) { return true; });
  EXPECT_EQ(devices.healthy.size(), 12u);
  EXPECT_EQ(Healthy(devices), 0u);
  const Status refused = kubelet.Allocate({{Ids(devices).front()}}).status();
  EXPECT_NE(refused.message().find("nvidia.com/gpu gave it to default/pod/main"), std::string::npos)
      << refused.message();
  Stop(SIGTERM);
  // Who says so has both.
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--pod-resources", kubelet.pod_resources(),
         "--foreign-gpus", "share"});
  Await(kubelet, AllHealthy);
}

TEST_F(DevicePlugin, AGpuInMigModeIsNotOfferedAsIfItWereWhole) {
  Up(2, 64 * kMiB);
  Control(1, "mig", "on");
  FakeKubelet kubelet(kubelet_dir_);
  // Whoever shares GPUs with others cannot share this one either.
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--foreign-gpus", "share"});
  const Devices first = Await(kubelet, [](const Devices&) { return true; });
  ASSERT_EQ(first.healthy.size(), 24u);
  EXPECT_EQ(Healthy(first), 12u);
  size_t refused = 0;
  for (const auto& [id, healthy] : first.healthy) {
    const auto given = kubelet.Allocate({{id}});
    EXPECT_EQ(given.ok(), healthy) << id;
    if (given.ok()) continue;
    ++refused;
    EXPECT_NE(given.status().message().find(" is not offered: its MIG mode is on, "),
              std::string::npos)
        << given.status().message();
  }
  EXPECT_EQ(refused, 12u);
  Control(1, "mig", "off");
  Await(kubelet, AllHealthy);
}

TEST_F(DevicePlugin, AGpuThatDoesNotAnswerLeavesTheOthersOffered) {
  Up(3, 64 * kMiB);
  Control(1, "lose", "on");
  std::optional<FakeKubelet> kubelet(std::in_place, kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB"});
  EXPECT_EQ(Await(*kubelet, AllHealthy).healthy.size(), 24u);
  Stop(SIGTERM);
  const std::string said = Describe(*plugin_);
  EXPECT_NE(said.find("GPU 1 is left out: NVML: device 1: error 15"), std::string::npos) << said;
  EXPECT_EQ(said.find("GPU 2 is left out"), std::string::npos) << said;
  // The one behind it still has its own number.
  kubelet.emplace(kubelet_dir_);
  Start({"--granule", "4MiB", "--reserve", "16MiB", "--gpus", "1,2"});
  EXPECT_EQ(Await(*kubelet, AllHealthy).healthy.size(), 12u);
}

TEST_F(DevicePlugin, ANodeOfWhichNoGpuAnswersIsAnError) {
  Up(1, 64 * kMiB);
  Control(0, "lose", "on");
  Start();
  Finish(*plugin_, kPatienceMs);
  EXPECT_EQ(plugin_->status().Describe(), "exit code 1");
  EXPECT_NE(Describe(*plugin_).find("NVML: device 0: error 15"), std::string::npos)
      << Describe(*plugin_);
  plugin_.reset();
}

TEST_F(DevicePlugin, ANewDriverIsToldOfALimit) {
  const auto environment = EnvironmentWith("615.21.04", {});
  EXPECT_EQ(environment.at("NVIDIA_GPU_MEMORY_LIMIT"), "64") << "the pool and the reserve";
  EXPECT_EQ(environment.at("NVIDIA_GPU_MEMORY_REQUEST"), "0");
}

TEST_F(DevicePlugin, ADriverThatChargesWhatIsMadeIsToldOfTheReserve) {
  const auto environment = EnvironmentWith("615.21.04", {"--driver-charges", "made"});
  EXPECT_EQ(environment.at("NVIDIA_GPU_MEMORY_LIMIT"), "16");
}

TEST_F(DevicePlugin, AnOldDriverIsToldOfNone) {
  const auto environment = EnvironmentWith("580.65.06", {});
  EXPECT_FALSE(environment.contains("NVIDIA_GPU_MEMORY_LIMIT"));
  EXPECT_FALSE(environment.contains("NVIDIA_GPU_MEMORY_REQUEST"));
}

TEST_F(DevicePlugin, NoDriverIsToldWhereItIsOff) {
  const auto environment = EnvironmentWith("615.21.04", {"--driver-limit", "off"});
  EXPECT_FALSE(environment.contains("NVIDIA_GPU_MEMORY_LIMIT"));
}

TEST_F(DevicePlugin, ALimitThatMustBeAndCannotKeepsItFromStarting) {
  Up(1, 64 * kMiB, "driver = 580.65.06\n");
  Start({"--driver-limit", "on"});
  Finish(*plugin_, kPatienceMs);
  EXPECT_NE(Describe(*plugin_).find("--driver-limit on: the driver is 580.65.06; allowed: on with "
                                    "a driver from 615"),
            std::string::npos)
      << Describe(*plugin_);
  EXPECT_EQ(plugin_->status().Describe(), "exit code 1");
  plugin_.reset();
}

TEST_F(DevicePlugin, WaitsForAKubeletThatIsNotThereYet) {
  Up(1, 64 * kMiB);
  Start();
  FakeKubelet kubelet(kubelet_dir_);
  EXPECT_TRUE(kubelet.AwaitRegistration().has_value());
  Stop(SIGTERM);
  EXPECT_FALSE(fs::exists(kubelet_dir_ + "/sluice.sock"));
}

}  // namespace
}  // namespace sluice::testing
