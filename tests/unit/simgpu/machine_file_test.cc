// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/machine_file.h"

#include <gtest/gtest.h>

namespace sluice::simgpu {
namespace {

TEST(MachineFile, EmptyMeansDefaults) {
  const Result<Machine> machine = ParseMachine("", "m");
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->launch_queue, 1024u);
  EXPECT_EQ(machine->granularity, 2u << 20);
}

TEST(MachineFile, ReadsEveryKindOfKey) {
  const Result<Machine> machine = ParseMachine(
      "# a small one\n"
      "name = Tiny GPU\n"
      "compute_capability = 7.0\n"
      "time_scale = 0.5   # twice as fast as real time\n"
      "launch_queue=16\r\n"
      "\n"
      "granularity = 64KiB\n"
      "context_bytes = 0\n"
      "cost.default = 100\n"
      "cost.conv = 1000 + 2.5\n"
      "delay.conv = 7\n",
      "m");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->name, "Tiny GPU");
  EXPECT_EQ(machine->compute_capability, 70);
  EXPECT_EQ(machine->time_scale, 0.5);
  EXPECT_EQ(machine->launch_queue, 16u);
  EXPECT_EQ(machine->granularity, 65536u);
  EXPECT_EQ(machine->context_bytes, 0u);
  EXPECT_EQ(machine->KernelNs("conv", 10), 1000u + 25u + 7u);
  EXPECT_EQ(machine->KernelNs("other", 1e6), 100u);
}

TEST(MachineFile, NamesTheLineAndWhatIsAllowed) {
  const struct {
    const char* text;
    const char* needle;
  } cases[] = {
      {"launch_queue = 0", "1 to 65536"},   {"launch_queue = -3", "1 to 65536"},
      {"launch_queue = 12x", "1 to 65536"}, {"time_scale = 0", "1e-6"},
      {"time_scale = nan", "1e-6"},         {"granularity = 3MiB", "power of two"},
      {"cost.k = 1 + -2", "BASE_NS"},       {"cost.k = inf", "BASE_NS"},
      {"cost. = 1", "cost.KERNEL"},         {"colour = red", "launch_queue"},
      {"just words", "key = value"},        {"compute_capability = 7.05", "5.0 to 9.0"},
      {"compute_capability = 4", "5.0"},    {"compute_capability = 10.0", "5.0 to 9.0"},
  };
  for (const auto& c : cases) {
    const Result<Machine> machine = ParseMachine(std::string("\n") + c.text, "file");
    ASSERT_FALSE(machine.ok()) << c.text;
    EXPECT_NE(machine.status().message().find("file:2"), std::string::npos);
    EXPECT_NE(machine.status().message().find(c.needle), std::string::npos)
        << machine.status().message();
  }
}

TEST(Machine, DerivesDurations) {
  Machine machine;
  machine.copy_bytes_per_s = 1'000'000'000;
  EXPECT_EQ(machine.CopyNs(4096), 4096u);
  machine.memset_bytes_per_s = 2'000'000'000;
  EXPECT_EQ(machine.MemsetNs(4096), 2048u);
}

}  // namespace
}  // namespace sluice::simgpu
