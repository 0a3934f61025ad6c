// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/import.h"

#include <gtest/gtest.h>

#include <random>

#include "scheduler/trace/parse.h"
#include "scheduler/trace/write.h"
#include "tests/unit/scheduler/trace/snapshot/plain_pickle.h"

namespace sluice::scheduler::trace {
namespace {

using plain::Dict;
using plain::Dump;
using plain::Entry;
using plain::Int;
using plain::List;

std::string FaultOf(const std::string& bytes, const SnapshotOptions& options = {}) {
  return ImportSnapshot(bytes, options).status().message();
}

SnapshotOptions Between(uint64_t from, uint64_t to) { return {0, from, to}; }

const std::vector<std::string> kEntries = {
    Entry("segment_alloc", 0, 4096, 1),   Entry("alloc", 16, 100, 10),
    Entry("alloc", 32, 200, 20),          Entry("free_requested", 32, 200, 30),
    Entry("teleport", 0, 0, 31),          Entry("free_completed", 32, 200, 32),
    Entry("alloc", 64, 300, 40),          Entry("free_requested", 16, 100, 50),
    Entry("free_requested", 64, 300, 60),
};

TEST(ImportSnapshot, ATraceOfTheWindow) {
  const Result<SnapshotImport> import = ImportSnapshot(plain::Snapshot(kEntries), Between(20, 60));
  ASSERT_TRUE(import.ok()) << import.status().message();
  EXPECT_EQ((*import).entries, 6u);
  EXPECT_EQ((*import).unknown_actions, 1u);
  EXPECT_EQ(WriteTrace((*import).trace),
            "# sluice-trace 1\n"
            "# source=PyTorch memory snapshot\n"
            "# device=0\n"
            "# window_us=20..60\n"
            "# entries=6\n"
            "# unknown_actions=1\n"
            "# operators=none, a snapshot has none\n"
            "# batch=that of the recorded run, no number depends on it\n"
            "block 0 persistent 100 0\n"
            "block 1 persistent 300 0\n"
            "block 2 transient 200 0\n"
            "alloc 2\n"
            "free 2\n");
}

TEST(ImportSnapshot, TheWholeRecordWithoutAWindow) {
  const Result<SnapshotImport> import = ImportSnapshot(plain::Snapshot(kEntries));
  ASSERT_TRUE(import.ok()) << import.status().message();
  EXPECT_EQ((*import).entries, kEntries.size());
  EXPECT_EQ((*import).trace.events.size(), 6u);
  ASSERT_NE((*import).trace.Find("window_us"), nullptr);
  EXPECT_EQ(*(*import).trace.Find("window_us"), "..");
}

TEST(ImportSnapshot, TheWindowEndsBeforeItsEnd) {
  const auto entries = [](const SnapshotOptions& options) {
    const auto import = ImportSnapshot(plain::Snapshot(kEntries), options);
    return import.ok() ? (*import).entries : 99;
  };
  EXPECT_EQ(entries(Between(10, 20)), 1u);
  EXPECT_EQ(entries(Between(10, 21)), 2u);
  EXPECT_EQ(entries(Between(10, 10)), 0u);
  EXPECT_EQ(entries(Between(1000, 2000)), 0u);
  EXPECT_EQ(entries({0, std::nullopt, 10}), 1u);
  EXPECT_EQ(entries({0, 60, std::nullopt}), 1u);
  EXPECT_EQ(FaultOf(plain::Snapshot(kEntries), Between(5, 4)),
            "window: begins at 5 us, after its end 4");
}

TEST(ImportSnapshot, NamesTheField) {
  EXPECT_EQ(FaultOf("cos\nsystem\n."), "byte 0: GLOBAL: refused, it would look up or run code");
  EXPECT_EQ(FaultOf(Dump(List({}))), "snapshot: is of type list, must be dict");
  EXPECT_EQ(FaultOf(Dump(Dict({}))), "device_traces: missing");
  EXPECT_EQ(FaultOf(Dump(Dict({{"device_traces", Dict({})}}))),
            "device_traces: is of type dict, must be list");
  EXPECT_EQ(FaultOf(plain::Snapshot({}), {1, {}, {}}),
            "device_traces: there is no device 1 among its 1");
  EXPECT_EQ(FaultOf(Dump(Dict({{"device_traces", List({"N"})}}))),
            "device_traces[0]: is of type None, must be list");
  EXPECT_EQ(FaultOf(plain::Snapshot({Entry("alloc", 1, 1, 1), Int(3)})),
            "device_traces[0][1].entry: is of type int, must be dict");
  EXPECT_EQ(FaultOf(plain::Snapshot({Entry("alloc", 1, -5, 1)})),
            "device_traces[0][0].size: -5 must be between 0 and 9007199254740992");
  EXPECT_EQ(FaultOf(plain::Snapshot({Entry("alloc", 1, 1, 1), Entry("alloc", 1, 1, 2)})),
            "device_traces[0][1].addr: 1 is allocated and was not freed before");
}

TEST(ImportSnapshot, ATraceHasABound) {
  // Two entries that the memo repeats: a small dump of many blocks.
  std::string pairs;
  for (int i = 0; i < 1024; ++i) pairs += std::string("h\0h\1", 4);
  std::string list = "]";
  for (int i = 0; i <= 1024; ++i) list += "(" + pairs + "e";
  const std::string entries =
      Entry("alloc", 1, 1, 1) + std::string("q\0", 2) + Entry("free_requested", 1, 1, 1) + "q\1";
  const std::string bytes =
      Dump(Dict({{"more", List({entries})}, {"device_traces", List({list})}}));
  EXPECT_EQ(FaultOf(bytes), "device_traces: block: more than 1048576 blocks");
}

TEST(ImportSnapshot, WhateverTheBytesItGivesAValidTraceOrAFault) {
  const std::string snapshot = plain::Snapshot(kEntries);
  std::mt19937 random(11);
  size_t valid = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = snapshot;
    for (size_t i = 1 + random() % 3; i > 0; --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? random() : 0);
    }
    const Result<SnapshotImport> import = ImportSnapshot(bytes);
    if (!import.ok()) {
      ASSERT_FALSE(import.status().message().empty());
      continue;
    }
    ++valid;
    const Result<Trace> again = ParseTrace(WriteTrace((*import).trace));
    ASSERT_TRUE(again.ok()) << again.status().message();
    ASSERT_EQ(*again, (*import).trace);
  }
  EXPECT_GT(valid, 1000u);
}

}  // namespace
}  // namespace sluice::scheduler::trace
