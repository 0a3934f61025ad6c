// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/command.h"

#include <gtest/gtest.h>

#include "common/mps_folder.h"

namespace sluice::mps {
namespace {

const Control kControl = {"/bin/mps", "/run/m", "GPU-1"};

cli::Environment Base() {
  cli::Environment base;
  base.Set("CUDA_VISIBLE_DEVICES", "0,1");
  base.Set("CUDA_MPS_PIPE_DIRECTORY", "/elsewhere");
  base.Set("LD_LIBRARY_PATH", "/driver");
  return base;
}

TEST(MpsCommand, OneInTheForegroundForOneGpuInItsFolders) {
  const Command command = StartCommand(kControl, Base());
  EXPECT_EQ(command.argv, (std::vector<std::string>{"/bin/mps", "-f"}));
  EXPECT_EQ(
      command.environment.Entries(),
      (std::vector<std::string>{
          "CUDA_MPS_LOG_DIRECTORY=/run/m/log/GPU-1", "CUDA_MPS_PIPE_DIRECTORY=/run/m/GPU-1",
          "CUDA_MPS_PROTOCOL_VERSION=2", "CUDA_VISIBLE_DEVICES=GPU-1", "LD_LIBRARY_PATH=/driver"}));
}

TEST(MpsCommand, ItIsToldToQuitWhereItListens) {
  const Command command = QuitCommand(kControl, Base());
  EXPECT_EQ(command.argv, (std::vector<std::string>{"/bin/mps"}));
  EXPECT_EQ(command.environment.Get("CUDA_MPS_PIPE_DIRECTORY"), "/run/m/GPU-1");
}

TEST(MpsCommand, Version3ServesManyUsersAndTakesCommandsAsArguments) {
  const Control control = {"/bin/mps", "/run/m", "GPU-1", true};
  const Command start = StartCommand(control, Base());
  EXPECT_EQ(start.argv, (std::vector<std::string>{"/bin/mps", "-f", "-m", "-p", "3"}));
  EXPECT_EQ(start.environment.Get("CUDA_MPS_PROTOCOL_VERSION"), "3");
  EXPECT_EQ(QuitCommand(control, Base()).argv, (std::vector<std::string>{"/bin/mps", "-q"}));
  const Command command = ControlCommand(control, {"server", "list"}, Base());
  EXPECT_EQ(command.argv, (std::vector<std::string>{"/bin/mps", "server", "list"}));
  EXPECT_EQ(command.environment.Entries(), start.environment.Entries());
}

TEST(MpsFolder, TheLongestLeavesRoomForASocketsPath) {
  const std::string gpu = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  EXPECT_EQ((MpsPipeFolder(std::string(kMaxMpsDir, 'm'), gpu) + "/control_privileged").size(),
            107u);
}

}  // namespace
}  // namespace sluice::mps
