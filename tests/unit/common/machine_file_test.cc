// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/machine_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace sluice {
namespace {

TEST(MachineFileName, IsAPathOrOneThatIsShipped) {
  const Result<std::string> shipped = ReadMachineText("v100-32", SLUICE_MACHINES);
  ASSERT_TRUE(shipped.ok()) << shipped.status().message();
  const Result<std::string> path = ReadMachineText(SLUICE_MACHINES "/v100-32.machine", "/nowhere");
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(*shipped, *path);
  const Result<Machine> machine = ReadMachineFile(SLUICE_MACHINES "/v100-32.machine");
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->sm_count, 80u);
}

TEST(MachineFileName, AnErrorSaysWhichThereAre) {
  EXPECT_EQ(ReadMachineText("v101", SLUICE_MACHINES).status().message(),
            "cannot read machine file v101; allowed: a path, or one of 2080ti-11, demo, h200, "
            "p100-16, v100-32");
  EXPECT_EQ(ReadMachineText("./v101", SLUICE_MACHINES).status().message(),
            "cannot read machine file ./v101");
  EXPECT_EQ(ReadMachineFile("/no/such").status().message(), "cannot read machine file /no/such");
}

TEST(MachineFileName, AFolderIsNoMachine) {
  const testing::TempFolder work;
  const std::string said = "machine file " + work.path() + ": is a directory";
  EXPECT_EQ(ReadMachineText(work.path(), SLUICE_MACHINES).status().message(), said);
  EXPECT_EQ(ReadMachineFile(work.path()).status().message(), said);
  EXPECT_EQ(ReadNamedMachine(work.path(), SLUICE_MACHINES).status().message(), said);
}

TEST(MachineFileName, AFolderHidesNoneThatIsShipped) {
  const testing::TempFolder work;
  std::filesystem::create_directory(work / "v100-32");
  std::filesystem::create_directory(work / "other");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(work.path());
  const Result<Machine> shipped = ReadNamedMachine("v100-32", SLUICE_MACHINES);
  const Result<Machine> folder = ReadNamedMachine("other", SLUICE_MACHINES);
  std::filesystem::current_path(before);
  EXPECT_TRUE(shipped.ok()) << shipped.status().message();
  EXPECT_EQ(folder.status().message(), "machine file other: is a directory");
}

TEST(MachineFileName, AnEmptyFileSaysNothingOfAMachine) {
  const testing::TempFolder work;
  const std::string file = work / "empty.machine";
  for (const char* text : {"", " \n\n"}) {
    std::ofstream(file) << text;
    EXPECT_EQ(ReadNamedMachine(file, SLUICE_MACHINES).status().message(),
              "machine file " + file + ": is empty; allowed: lines of 'key = value'");
    // What a simulated GPU keeps of its machine is empty where it is as by default.
    EXPECT_TRUE(ReadMachineFile(file).ok());
  }
}

TEST(MachineFileName, AFaultOfTheFileNamesIt) {
  const testing::TempFolder work;
  std::ofstream(work / "bad.machine") << "bogus = 1\n";
  const Result<Machine> bad = ReadNamedMachine(work / "bad.machine", SLUICE_MACHINES);
  EXPECT_NE(bad.status().message().find("bad.machine"), std::string::npos);
  EXPECT_EQ(ReadNamedMachine("v100-32", SLUICE_MACHINES)->sm_count, 80u);
}

}  // namespace
}  // namespace sluice
