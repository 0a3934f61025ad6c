// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/access.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

GrantRecord Grant() {
  return {std::string(32, 'a'), "GPU-1", uint64_t{8} << 30, 1, {"x-0", "x-1"}};
}

TEST(Access, NamesSocketLibraryAndGpu) {
  const Access access = AccessTo(Grant(), "/run/sluice/a/1", {.library = "/opt/sluice/0.1.0"});
  const std::map<std::string, std::string> environment = {
      {"SLUICE_SOCKET", "/run/sluice/sluice.sock"},
      {"LD_PRELOAD", "/opt/sluice/$LIB/libsluice.so"},
      {"NVIDIA_VISIBLE_DEVICES", "GPU-1"}};
  EXPECT_EQ(access.environment, environment);
  const std::vector<Mount> mounts = {{"/run/sluice/a/1", "/run/sluice", true},
                                     {"/opt/sluice/0.1.0", "/opt/sluice", true}};
  EXPECT_EQ(access.mounts, mounts);
}

TEST(Access, SaysNothingThatCouldBeTakenForALimit) {
  const Access access = AccessTo(Grant(), "/run/sluice/a/1", {.library = "/opt/sluice/0.1.0"});
  for (const auto& [name, value] : access.environment) {
    EXPECT_EQ(value.find("8589934592"), std::string::npos) << name;
    EXPECT_EQ(value.find("x-0"), std::string::npos) << name;
  }
}

TEST(Access, CarriesTheDriversLimitOfItsGpu) {
  const Delivery delivery = {.driver_limit_mib = {{"GPU-0", 1}, {"GPU-1", 81'559}}};
  const Access access = AccessTo(Grant(), "/run/sluice/a/1", delivery);
  EXPECT_EQ(access.environment.at("NVIDIA_GPU_MEMORY_LIMIT"), "81559");
  EXPECT_EQ(access.environment.at("NVIDIA_GPU_MEMORY_REQUEST"), "0") << "nothing is set aside";
  const Access other = AccessTo(Grant(), "/a", {.driver_limit_mib = {{"GPU-2", 1}}});
  EXPECT_FALSE(other.environment.contains("NVIDIA_GPU_MEMORY_LIMIT"));
  EXPECT_FALSE(other.environment.contains("NVIDIA_GPU_MEMORY_REQUEST"));
}

TEST(Access, LeavesOutWhatIsNotWanted) {
  const Access access = AccessTo(Grant(), "/run/sluice/a/1", {.visible_devices = false});
  EXPECT_EQ(access.environment.size(), 1u);
  EXPECT_EQ(access.mounts.size(), 1u);
}

TEST(Access, UnderMpsItHasThePipesOfItsOwnGpu) {
  const Access access = AccessTo(Grant(), "/run/sluice/a/1",
                                 {.visible_devices = false, .mps_dir = "/run/sluice/mps"});
  EXPECT_EQ(access.environment.at("CUDA_MPS_PIPE_DIRECTORY"), "/run/sluice-mps");
  EXPECT_EQ(access.mounts.back(), (Mount{"/run/sluice/mps/GPU-1", "/run/sluice-mps", false}));
}

TEST(Access, UnderMpsV3ItHasAFolderOfItsOwn) {
  const Access access =
      AccessTo(Grant(), "/run/sluice/a/1",
               {.visible_devices = false, .mps_dir = "/run/sluice/mps", .mps_v3 = true});
  EXPECT_EQ(access.environment.at("CUDA_MPS_PIPE_DIRECTORY"), "/run/sluice-mps");
  EXPECT_EQ(access.mounts.back(),
            (Mount{"/run/sluice/mps/job/" + Grant().id, "/run/sluice-mps", false}));
}

TEST(Access, AddsWhatTheNodeSays) {
  const Access access = AccessTo(Grant(), "/run/sluice/a/1",
                                 {.environment = {{"LD_LIBRARY_PATH", "/opt/driver"}},
                                  .mounts = {{"/srv/driver", "/opt/driver", false}}});
  EXPECT_EQ(access.environment.at("LD_LIBRARY_PATH"), "/opt/driver");
  EXPECT_EQ(access.mounts.back(), (Mount{"/srv/driver", "/opt/driver", false}));
}

}  // namespace
}  // namespace sluice::deviceplugin
