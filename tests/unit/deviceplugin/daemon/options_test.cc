// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/options.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

Result<std::optional<Options>> Read(std::vector<const char*> arguments, int* status) {
  arguments.insert(arguments.begin(), "sluice-device-plugin");
  return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data(), status);
}
Options Good(const std::vector<const char*>& arguments) {
  int status = 0;
  Result<std::optional<Options>> options = Read(arguments, &status);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.ok() && options->has_value() ? **options : Options();
}
std::string Fault(const std::vector<const char*>& arguments) {
  int status = 0;
  const Result<std::optional<Options>> options = Read(arguments, &status);
  EXPECT_FALSE(options.ok());
  return options.status().message();
}

TEST(Options, WithoutAnyTheyAreThoseOfANode) {
  const Options options = Good({});
  EXPECT_EQ(options.resource, "sluice.dev/gpu-memory");
  EXPECT_EQ(options.kubelet_dir, "/var/lib/kubelet/device-plugins");
  EXPECT_EQ(options.granule_bytes, 0u);
  EXPECT_FALSE(options.reserve_bytes.has_value());
  EXPECT_EQ(options.packing, Packing::kPack);
  EXPECT_TRUE(options.delivery.visible_devices);
  EXPECT_EQ(options.health.probation_ns, 600'000'000'000u);
  EXPECT_EQ(options.unseen_s, 120u);
  EXPECT_TRUE(options.refuse_foreign_gpus);
  EXPECT_EQ(options.driver_limit, DriverLimitMode::kAuto);
  EXPECT_EQ(options.driver_charges, DriverCharges::kMapped);
  EXPECT_EQ(options.cgroups, "/sys/fs/cgroup");
  EXPECT_EQ(options.ready_file, "");
  EXPECT_EQ(options.metrics, "off");
  EXPECT_NE(options.node, "");
}

TEST(Options, GpusAreThoseOfTheNodesDaemons) {
  EXPECT_EQ(Good({}).gpus, GpuNumbers());
  EXPECT_EQ(Good({"--gpus", "1,0"}).gpus, GpuNumbers({0, 1}));
  EXPECT_EQ(Fault({"--gpus", "first"}), "--gpus 'first': allowed: all, or numbers such as 0,1");
}

TEST(Options, OfMetricsAreTaken) {
  const Options options = Good({"--metrics", "127.0.0.1:9454", "--node", "n1"});
  EXPECT_EQ(options.metrics, "127.0.0.1:9454");
  EXPECT_EQ(options.node, "n1");
  EXPECT_NE(Fault({"--metrics", "9454"}).find("--metrics '9454': allowed: ADDRESS:PORT"),
            std::string::npos);
  int status = -1;
  ::testing::internal::CaptureStdout();
  const auto described = Read({"--describe-metrics"}, &status);
  const std::string text = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(described.ok());
  EXPECT_FALSE(described->has_value());
  EXPECT_EQ(status, 0);
  EXPECT_NE(text.find("| `sluice_plugin_grants` | gauge |"), std::string::npos) << text;
}

TEST(Options, OfOthersAndOfTheDriverAreTaken) {
  const Options options =
      Good({"--foreign-gpus", "share", "--driver-limit", "on", "--driver-charges", "made",
            "--cgroups", "/c", "--ready-file", "/r"});
  EXPECT_EQ(options.ready_file, "/r");
  EXPECT_FALSE(options.refuse_foreign_gpus);
  EXPECT_EQ(options.driver_limit, DriverLimitMode::kOn);
  EXPECT_EQ(options.driver_charges, DriverCharges::kMade);
  EXPECT_EQ(options.cgroups, "/c");
  EXPECT_EQ(Good({"--driver-limit", "off"}).driver_limit, DriverLimitMode::kOff);
  EXPECT_EQ(Fault({"--foreign-gpus", "no", "--driver-limit", "615", "--driver-charges", "both",
                   "--cgroups", "c", "--ready-file", "r"}),
            "--foreign-gpus 'no': allowed: refuse, share\n"
            "--driver-limit '615': allowed: auto, on, off\n"
            "--driver-charges 'both': allowed: mapped, made\n"
            "--cgroups 'c': allowed: an absolute path\n"
            "--ready-file 'r': allowed: an absolute path");
}

TEST(Options, TheServiceAccountsFolderIsThatOfEveryPod) {
  EXPECT_EQ(Good({}).service_account, "/var/run/secrets/kubernetes.io/serviceaccount");
  EXPECT_EQ(Good({"--service-account", "/a"}).service_account, "/a");
  EXPECT_EQ(Fault({"--service-account", "a"}), "--service-account 'a': allowed: an absolute path");
}

TEST(Options, AllOfThemAreTaken) {
  const Options options = Good({"--resource",
                                "example.com/memory",
                                "--kubelet-dir",
                                "/k",
                                "--root",
                                "/r",
                                "--granule",
                                "512MiB",
                                "--reserve",
                                "1GiB",
                                "--packing",
                                "spread",
                                "--library",
                                "/opt/sluice/1",
                                "--visible-devices",
                                "off",
                                "--env",
                                "A=b=c",
                                "--env",
                                "B=",
                                "--mount",
                                "/h:/c",
                                "--mount",
                                "/h2:/c2:rw",
                                "--probation",
                                "5",
                                "--ignore-xid",
                                "62",
                                "--ignore-xid",
                                "63"});
  EXPECT_EQ(options.resource, "example.com/memory");
  EXPECT_EQ(options.kubelet_dir, "/k");
  EXPECT_EQ(options.root, "/r");
  EXPECT_EQ(options.granule_bytes, 512 * kMiB);
  EXPECT_EQ(options.reserve_bytes, kGiB);
  EXPECT_EQ(options.packing, Packing::kSpread);
  EXPECT_EQ(options.delivery.library, "/opt/sluice/1");
  EXPECT_FALSE(options.delivery.visible_devices);
  EXPECT_EQ(options.delivery.environment,
            (std::map<std::string, std::string>{{"A", "b=c"}, {"B", ""}}));
  EXPECT_EQ(options.delivery.mounts,
            (std::vector<Mount>{{"/h", "/c", true}, {"/h2", "/c2", false}}));
  EXPECT_EQ(options.health.probation_ns, 5'000'000'000u);
  EXPECT_EQ(options.health.overlooked, (std::set<uint64_t>{62, 63}));
}

TEST(Options, EveryFaultIsNamedAtOnce) {
  EXPECT_EQ(Fault({"--granule",  "much",        "--packing", "tight",        "--visible-devices",
                   "1",          "--probation", "-1",        "--unseen",     "0",
                   "--resource", "memory",      "--root",    "here",         "--env",
                   "=x",         "--mount",     "/h",        "--ignore-xid", "a"}),
            "--granule: 'much' is not an amount of memory; allowed: a positive number and k, M, G, "
            "T, Ki, Mi, "
            "Gi or Ti with an optional B, for example 3GiB\n"
            "--packing 'tight': allowed: pack, spread\n"
            "--visible-devices '1': allowed: on, off\n"
            "--probation '-1': allowed: 0 to 9999999 seconds\n"
            "--unseen '0': allowed: 1 to 9999999 seconds\n"
            "--ignore-xid 'a': allowed: a number\n"
            "--resource 'memory': allowed: DOMAIN/NAME, for example sluice.dev/gpu-memory\n"
            "--root 'here': allowed: an absolute path\n"
            "--env '=x': allowed: NAME=VALUE\n"
            "--mount '/h': allowed: /HOST/PATH:/CONTAINER/PATH, with :rw or :ro behind it");
}

TEST(Options, ARootLeavesRoomForASocketsPath) {
  const std::string longest = "/" + std::string(59, 'r');
  EXPECT_EQ(Good({"--root", longest.c_str()}).root, longest);
  EXPECT_EQ(Fault({"--root", (longest + "r").c_str()}),
            "--root '" + longest + "r': allowed: a path of at most 60 characters");
}

TEST(Options, PipesOfMpsAreDeliveredOnlyWhereItIsAskedFor) {
  EXPECT_EQ(Good({}).delivery.mps_dir, "");
  EXPECT_EQ(Good({"--compute", "timeslice", "--mps-dir", "/m"}).delivery.mps_dir, "");
  EXPECT_EQ(Good({"--compute", "mps"}).delivery.mps_dir, "/run/sluice/mps");
  EXPECT_EQ(Good({"--compute", "mps", "--mps-dir", "/m"}).delivery.mps_dir, "/m");
  EXPECT_EQ(Good({}).mps_version, MpsChoice::kAuto);
  EXPECT_EQ(Good({"--mps-version", "legacy"}).mps_version, MpsChoice::kLegacy);
  EXPECT_EQ(Fault({"--mps-version", "4"}), "--mps-version '4': allowed: auto, legacy, 3");
  EXPECT_EQ(Fault({"--compute", "MPS", "--mps-dir", "m"}),
            "--compute 'MPS': allowed: timeslice, mps\n"
            "--mps-dir 'm': allowed: an absolute path of at most 47 characters");
}

TEST(Options, UnknownOnesAreFaults) {
  EXPECT_NE(Fault({"--granules", "1GiB"}).find("--granules"), std::string::npos);
  EXPECT_NE(Fault({"--reserve", "much"}).find("--reserve"), std::string::npos);
}

TEST(Options, HelpIsAnAnswer) {
  int status = 7;
  ::testing::internal::CaptureStdout();
  const auto options = Read({"--help"}, &status);
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("--granule"), std::string::npos);
  ASSERT_TRUE(options.ok());
  EXPECT_FALSE(options->has_value());
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace sluice::deviceplugin
