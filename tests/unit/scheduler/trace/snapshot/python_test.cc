// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What Python's own pickle module writes (dump.py beside this), in every protocol.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "scheduler/trace/snapshot/import.h"
#include "scheduler/trace/snapshot/pickle.h"

namespace sluice::scheduler::trace {
namespace {

class Python : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const char* python = std::getenv("SLUICE_TEST_PYTHON");
    const char* script = std::getenv("SLUICE_TEST_DUMP");
    if (python == nullptr || script == nullptr) GTEST_FAIL() << "SLUICE_TEST_PYTHON is not set";
    if (std::string(python).find("NOTFOUND") != std::string::npos) GTEST_SKIP() << "no python3";
    command_ = "'" + std::string(python) + "' -I '" + script + "' ";
  }
  /// What dump.py writes.
  std::string Dump(const std::string& what) {
    FILE* pipe = ::popen((command_ + what + " " + std::to_string(GetParam())).c_str(), "r");
    if (pipe == nullptr) return "";
    std::string bytes;
    char buffer[4096];
    for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
      bytes.append(buffer, got);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command_ << what;
    return bytes;
  }
  std::string command_;
};

TEST_P(Python, WritesASnapshot) {
  const std::string bytes = Dump("snapshot");
  constexpr uint64_t kStart = 1'700'000'000'000'000;
  // The first iteration is the entries 2 to 10, 10 us each.
  SnapshotOptions options;
  options.device = 1;
  options.from_us = kStart + 20;
  options.to_us = kStart + 110;
  const Result<SnapshotImport> import = ImportSnapshot(bytes, options);
  ASSERT_TRUE(import.ok()) << import.status().message();
  EXPECT_EQ((*import).entries, 9u);
  EXPECT_EQ((*import).unknown_actions, 0u);
  const Trace& trace = (*import).trace;
  EXPECT_EQ(trace.blocks, (std::vector<Block>{{BlockKind::kPersistent, {4000, 0}},
                                              {BlockKind::kTransient, {1000, 0}},
                                              {BlockKind::kTransient, {500, 0}},
                                              {BlockKind::kTransient, {70000, 0}}}));
  EXPECT_EQ(trace.events, (std::vector<Event>{{EventKind::kAlloc, 1},
                                              {EventKind::kAlloc, 2},
                                              {EventKind::kFree, 1},
                                              {EventKind::kAlloc, 3},
                                              {EventKind::kFree, 2},
                                              {EventKind::kFree, 3}}));
  options.device = 0;
  EXPECT_TRUE(ImportSnapshot(bytes, options).ok()) << "a device without entries";
}

TEST_P(Python, WritesEveryKindOfValue) {
  const std::string bytes = Dump("values");
  const Result<Pickle> read = ReadPickle(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Values& values = (*read).values;
  const std::span<const ValueId> items = values.Items((*read).root);
  ASSERT_EQ(items.size(), GetParam() >= 3 ? 38u : 35u);
  EXPECT_EQ(values.kind(items[0]), ValueKind::kNone);
  EXPECT_EQ(values.Bool(items[1]), true);
  EXPECT_EQ(values.Bool(items[2]), false);
  const int64_t integers[] = {
      0, 255, 256, 65535, 65536, -1, INT32_MIN, INT64_C(1) << 31U, INT64_MIN, INT64_MAX};
  for (size_t i = 0; i < std::size(integers); ++i) {
    EXPECT_EQ(values.Integer(items[3 + i]), integers[i]);
  }
  EXPECT_EQ(values.kind(items[13]), ValueKind::kLargeInteger);
  EXPECT_EQ(values.kind(items[14]), ValueKind::kLargeInteger);
  EXPECT_EQ(values.Float(items[15]), 0.0);
  EXPECT_EQ(values.Float(items[16]), -1.5);
  EXPECT_EQ(values.Float(items[17]), 1e300);
  EXPECT_EQ(values.Text(items[18]), "");
  EXPECT_EQ(values.Text(items[19]), "text");
  EXPECT_EQ(values.Text(items[20]), "\xc3\xa9\\\n\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(values.Text(items[21]), std::string(300, 'x'));
  for (size_t i = 0; i <= 4; ++i) {
    EXPECT_EQ(values.kind(items[22 + i]), ValueKind::kTuple);
    EXPECT_EQ(values.Items(items[22 + i]).size(), i);
  }
  EXPECT_EQ(values.Items(items[27]).size(), 0u);
  EXPECT_EQ(values.Items(items[28]).size(), 1u);
  ASSERT_EQ(values.Items(items[29]).size(), 2500u);
  EXPECT_EQ(values.Integer(values.Items(items[29])[2499]), 2499);
  EXPECT_EQ(values.kind(items[30]), ValueKind::kDict);
  ASSERT_TRUE(values.Get(items[31], "a").has_value());
  EXPECT_EQ(values.Integer(*values.Get(items[31], "a")), 1);
  ASSERT_TRUE(values.Get(items[32], "1234").has_value());
  EXPECT_EQ(values.Integer(*values.Get(items[32], "1234")), 1234);
  EXPECT_EQ(items[33], items[34]) << "one list, twice";
  if (GetParam() < 3) return;
  EXPECT_EQ(values.kind(items[36]), ValueKind::kBytes);
  EXPECT_EQ(values.Text(items[36]), "bytes");
  EXPECT_EQ(values.Text(items[37]), std::string(300, 'y'));
}

TEST_P(Python, WritesACallThatIsRefused) {
  const std::string fault = ReadPickle(Dump("code")).status().message();
  const std::string name = GetParam() >= 4 ? ": STACK_GLOBAL: " : ": GLOBAL: ";
  EXPECT_NE(fault.find(name + "refused, it would look up or run code"), std::string::npos) << fault;
}

INSTANTIATE_TEST_SUITE_P(Protocols, Python, ::testing::Range(0, 6));

}  // namespace
}  // namespace sluice::scheduler::trace
