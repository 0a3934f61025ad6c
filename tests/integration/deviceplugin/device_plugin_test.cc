// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

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
#include "tests/integration/deviceplugin/device_plugin_bed.h"
#include "tests/support/fake_kubelet.h"
#include "tests/support/resident.h"
#include "tests/support/scrape.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class DevicePlugin : public DevicePluginBed {
 protected:
  /// Of this process alone: all of 127.0.0.0/8 is this machine, and a process's number has 22 bits.
  static uint32_t MetricsHost() { return INADDR_LOOPBACK | (static_cast<uint32_t>(getpid()) << 2); }
  static std::string MetricsAddress() {
    const uint32_t host = MetricsHost();
    return "127." + std::to_string(host >> 16 & 255) + '.' + std::to_string(host >> 8 & 255) + '.' +
           std::to_string(host & 255) + ":9454";
  }
  static std::string ScrapePlugin() { return Scrape(9454, MetricsHost()); }
  void Xid(unsigned gpu, unsigned code) { Control(gpu, "xid", std::to_string(code)); }
};

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

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
