// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/program_files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace sluice {
namespace {

TEST(ProgramFiles, TheRunningProgramIsInItsFolder) {
  const Result<std::string> folder = ProgramFolder();
  ASSERT_TRUE(folder.ok());
  EXPECT_TRUE(std::filesystem::exists(*folder + "/unit.common.program_files_test")) << *folder;
}

TEST(ProgramFiles, TheSimulatedGpuIsBesideTheProgramsFolder) {
  EXPECT_EQ(SimulatedGpuFolder("/opt/sluice/bin"), "/opt/sluice/simgpu");
}

}  // namespace
}  // namespace sluice
