// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "simgpu/nvrtc/cache.h"
#include "simgpu/nvrtc/toolchain.h"

namespace sluice::simgpu::nvrtc {
namespace {

TEST(NvrtcCacheTest, HashDependsOnWhereAPartEnds) {
  EXPECT_EQ(HashParts({"ab", "c"}), HashParts({"ab", "c"}));
  EXPECT_NE(HashParts({"ab", "c"}), HashParts({"a", "bc"}));
  EXPECT_NE(HashParts({""}), HashParts({}));
  EXPECT_EQ(HashParts({}), "6c62272e07bb014262b821756295c58d");  // the offset basis of FNV-1a
}

TEST(NvrtcCacheTest, GivesBackWhatWasPutAndLeavesNoParts) {
  const ScratchDir scratch;
  const std::string folder = scratch.path() + "/deep/cache";
  const Cache cache(folder);
  EXPECT_FALSE(cache.Get("key"));
  const std::string object("\177ELF\0bytes", 10);
  cache.Put("key", object);
  EXPECT_EQ(cache.Get("key"), object);
  EXPECT_FALSE(cache.Get("other"));
  const auto files = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(NvrtcCacheTest, IgnoresAFileThatWasCutShort) {
  const ScratchDir scratch;
  const Cache cache(scratch.path());
  cache.Put("key", std::string(1000, 'x'));
  std::filesystem::resize_file(scratch.path() + "/key.so", 900);
  EXPECT_FALSE(cache.Get("key"));
  std::filesystem::resize_file(scratch.path() + "/key.so", 3);
  EXPECT_FALSE(cache.Get("key"));
}

TEST(NvrtcCacheTest, ANamedFolderGoesFirst) {
  ASSERT_EQ(setenv("SLUICE_SIMGPU_CACHE", "/named", 1), 0);
  EXPECT_EQ(Cache::DefaultFolder(), "/named");
  ASSERT_EQ(unsetenv("SLUICE_SIMGPU_CACHE"), 0);
  ASSERT_EQ(setenv("XDG_CACHE_HOME", "/xdg", 1), 0);
  EXPECT_EQ(Cache::DefaultFolder(), "/xdg/sluice-simgpu");
  ASSERT_EQ(unsetenv("XDG_CACHE_HOME"), 0);
  ASSERT_EQ(setenv("HOME", "/home/somebody", 1), 0);
  EXPECT_EQ(Cache::DefaultFolder(), "/home/somebody/.cache/sluice-simgpu");
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
