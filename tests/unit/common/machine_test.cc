// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice {
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
      "driver = 615.21.04\n"
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
  EXPECT_EQ(machine->driver, "615.21.04");
  EXPECT_EQ(machine->time_scale, 0.5);
  EXPECT_EQ(machine->launch_queue, 16u);
  EXPECT_EQ(machine->granularity, 65536u);
  EXPECT_EQ(machine->context_bytes, 0u);
  EXPECT_EQ(machine->KernelNs("conv", 10), 1000u + 25u + 7u);
  EXPECT_EQ(machine->KernelNs("other", 1e6), 100u);
  EXPECT_EQ(machine->DeclaredNs("conv", 40), 47u);
  EXPECT_EQ(machine->DeclaredNs("other", UINT64_MAX), 1'000'000'000'000'000u);
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
      {"bound.k = 1.5", "from 0 to 1"},     {"sharing = fair", "time-slice or mps"},
      {"memory = 1KiB", "1MiB to 16TiB"},   {"l2 = x", "up to 1GiB"},
      {"serialised = 1", "no or yes"},      {"sm_count = 0", "1 to 1024"},
      {"sm_count = 2 | rumour", "cited"},   {"cost.k", "key = value"},
      {"time = fast", "real or virtual"},   {"query_ns = 0", "1 to"},
      {"participants = 17", "1 to 16"},     {"participants = 0", "1 to 16"},
      {"driver = R615", "615.21.04"},       {"driver = .1", "615.21.04"},
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

TEST(MachineFile, SeveralParticipantsNeedVirtualTime) {
  const Result<Machine> machine = ParseMachine("time = virtual\nparticipants = 2\n", "m");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_TRUE(machine->virtual_time);
  EXPECT_EQ(machine->participants, 2u);
  const Result<Machine> real = ParseMachine("participants = 2\n", "m");
  ASSERT_FALSE(real.ok());
  EXPECT_EQ(real.status().message(),
            "m: 'participants = 2': allowed: 1, or an integer up to 16 with time = virtual");
}

TEST(MachineFile, KnowsWhereANumberIsFrom) {
  const Result<Machine> machine =
      ParseMachine("sources = required\nname = X\nsm_count = 80 | datasheet: page 2\n", "m");
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_EQ(machine->sources.at("sm_count"), "datasheet: page 2");
  const Result<Machine> silent = ParseMachine("sources = required\nsm_count = 80\n", "m");
  ASSERT_FALSE(silent.ok());
  EXPECT_NE(silent.status().message().find("m:2"), std::string::npos);
  EXPECT_NE(silent.status().message().find("datasheet measured cited header assumed"),
            std::string::npos)
      << silent.status().message();
}

std::string Text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(MachineFile, ThoseOfRealGpusSayWhereEachNumberIsFrom) {
  int real = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_MACHINES)) {
    if (entry.path().extension() != ".machine") continue;
    const Result<Machine> machine = ParseMachine(Text(entry.path()), entry.path().string());
    ASSERT_TRUE(machine.ok()) << machine.status().message();
    if (entry.path().stem() == "demo") continue;
    ++real;
    EXPECT_TRUE(machine->sources_required) << entry.path();
    EXPECT_GT(machine->memory, 0u);
    EXPECT_GT(machine->flops_per_s, 0);
    // The product of bus and clock is the bandwidth, two transfers per clock.
    const double bus = static_cast<double>(machine->bus_bits) / 8 * 2 * 1e3 *
                       static_cast<double>(machine->memory_clock_khz);
    EXPECT_NEAR(bus / static_cast<double>(machine->memory_bytes_per_s), 1, 0.01) << entry.path();
  }
  EXPECT_EQ(real, 4);
}

TEST(MachineFile, WhatItDescribesItReads) {
  const Result<Machine> first = ParseMachine(Text(SLUICE_MACHINES "/v100-32.machine"), "m");
  ASSERT_TRUE(first.ok());
  const Result<Machine> second = ParseMachine(DescribeMachine(*first), "described");
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(DescribeMachine(*second), DescribeMachine(*first));
  EXPECT_EQ(second->sm_count, 80u);
  EXPECT_EQ(second->sources, first->sources);
  EXPECT_TRUE(ParseMachine(DescribeMachine(Machine{}), "defaults").ok());
}

TEST(Machine, SaysWhatAKernelAsksOfTheGpu) {
  Result<Machine> machine = ParseMachine("fill_ns = 50000\nbound.gemv = 0.2 + 0.9\n", "m");
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(machine->Demand("gemm", 100'000).sm, 1);
  EXPECT_EQ(machine->Demand("gemm", 25'000).sm, 0.5);
  EXPECT_EQ(machine->Demand("gemm", 1).sm, 0.1);
  EXPECT_EQ(machine->Demand("gemv", 100'000).sm, 1);
  EXPECT_EQ(machine->Demand("gemv", 100'000).bandwidth, 0.9);
  machine->sharing_variant = SharingVariant::kRoofline;
  EXPECT_EQ(machine->Demand("gemv", 100'000).sm, 0.2);
  EXPECT_EQ(machine->Demand("gemm", 100'000).sm, 1);
}

TEST(Machine, DerivesDurations) {
  Machine machine;
  machine.copy_bytes_per_s = 1'000'000'000;
  EXPECT_EQ(machine.CopyNs(4096), 4096u);
  EXPECT_EQ(machine.PeerCopyNs(4096), 4096u);
  machine.peer_bytes_per_s = 4'000'000'000;
  EXPECT_EQ(machine.PeerCopyNs(4096), 1024u);
  machine.memset_bytes_per_s = 2'000'000'000;
  EXPECT_EQ(machine.MemsetNs(4096), 2048u);
  EXPECT_EQ(machine.DeviceCopyNs(4096), 4096u);
  machine.memory_bytes_per_s = 8'000'000'000;
  EXPECT_EQ(machine.DeviceCopyNs(4096), 1024u);
}

}  // namespace
}  // namespace sluice
