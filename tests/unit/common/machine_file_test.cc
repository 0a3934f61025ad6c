// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/machine_file.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
