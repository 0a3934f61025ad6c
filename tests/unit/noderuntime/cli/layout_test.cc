// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/layout.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace sluice::cli {
namespace {

TEST(RuntimeDir, FollowsItsThreeRules) {
  Environment environment;
  EXPECT_EQ(RuntimeDir(environment, 17), "/tmp/sluice-17");
  environment.Set("XDG_RUNTIME_DIR", "/run/user/17");
  EXPECT_EQ(RuntimeDir(environment, 17), "/run/user/17/sluice");
  environment.Set("SLUICE_RUNTIME_DIR", "/mine");
  EXPECT_EQ(RuntimeDir(environment, 17), "/mine");
  environment.Set("SLUICE_RUNTIME_DIR", "");
  EXPECT_EQ(RuntimeDir(environment, 17), "/run/user/17/sluice");
}

TEST(MakeRuntimeDir, RefusesAFolderThatOthersMayEnter) {
  const std::string dir = testing::TempDir() + "runtime_dir_" + std::to_string(::getpid());
  EXPECT_TRUE(MakeRuntimeDir(dir).ok());
  EXPECT_TRUE(MakeRuntimeDir(dir).ok()) << "an existing one is fine";
  ASSERT_EQ(::chmod(dir.c_str(), 0755), 0);
  EXPECT_EQ(MakeRuntimeDir(dir).code(), StatusCode::kPermissionDenied);
  std::filesystem::remove(dir);
  std::filesystem::create_directory_symlink("/tmp", dir);
  EXPECT_EQ(MakeRuntimeDir(dir).code(), StatusCode::kPermissionDenied) << "a link is not a folder";
  std::filesystem::remove(dir);
}

TEST(Layout, LibraryAndSimulatedDriverLieBesideThePrograms) {
  const Layout layout = Layout::At("/opt/sluice/bin");
  EXPECT_EQ(layout.library, "/opt/sluice/lib/libsluice.so");
  EXPECT_EQ(layout.preload, layout.library) << "there are no links";
  EXPECT_EQ(layout.simgpu, "/opt/sluice/simgpu");
  EXPECT_EQ(layout.Program("sluice-noded"), "/opt/sluice/bin/sluice-noded");
}

TEST(Layout, TheLibraryIsPreloadedByAWordThatOnlyGlibcKnows) {
  char root[] = "/tmp/sluice-layout-test-XXXXXX";
  ASSERT_NE(::mkdtemp(root), nullptr);
  std::filesystem::create_directories(std::string(root) + "/lib/preload");
  EXPECT_EQ(Layout::At(std::string(root) + "/bin").preload,
            std::string(root) + "/lib/preload/$LIB/libsluice.so");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace sluice::cli
