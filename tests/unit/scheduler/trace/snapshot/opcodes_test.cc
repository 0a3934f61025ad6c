// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/opcodes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace sluice::scheduler::trace {
namespace {

TEST(FindOpcode, KnowsAllOfThem) {
  std::map<OpcodeUse, size_t> uses;
  std::set<std::string_view> names;
  for (int byte = 0; byte < 256; ++byte) {
    const Opcode opcode = FindOpcode(static_cast<uint8_t>(byte));
    ++uses[opcode.use];
    if (opcode.use == OpcodeUse::kUnknown) continue;
    EXPECT_EQ(opcode.byte, byte);
    EXPECT_TRUE(names.insert(opcode.name).second) << opcode.name;
  }
  EXPECT_EQ(names.size(), 68u) << "as many as Python's pickletools.opcodes";
  EXPECT_EQ(uses[OpcodeUse::kCode], 15u);
  EXPECT_EQ(uses[OpcodeUse::kUnused], 10u);
}

TEST(FindOpcode, WhatRunsCodeIsNoData) {
  for (const char byte : std::string("cibRoPQ\x81\x82\x83\x84\x92\x93\x97\x98")) {
    EXPECT_EQ(FindOpcode(static_cast<uint8_t>(byte)).use, OpcodeUse::kCode);
  }
  EXPECT_EQ(FindOpcode('c').name, "GLOBAL");
  EXPECT_EQ(FindOpcode(0x93).name, "STACK_GLOBAL");
  EXPECT_EQ(FindOpcode('}').use, OpcodeUse::kData);
  EXPECT_EQ(FindOpcode(0xff).use, OpcodeUse::kUnknown);
}

}  // namespace
}  // namespace sluice::scheduler::trace
