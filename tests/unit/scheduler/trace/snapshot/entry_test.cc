// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/entry.h"

#include <gtest/gtest.h>

#include "scheduler/trace/snapshot/pickle.h"
#include "tests/unit/scheduler/trace/snapshot/plain_pickle.h"

namespace sluice::scheduler::trace {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Result<SnapshotEntry> Read(const std::string& value, bool with_time) {
  const std::string bytes = plain::Dump(value);
  const Result<Pickle> read = ReadPickle(bytes);
  if (!read.ok()) return read.status();
  return ReadSnapshotEntry((*read).values, (*read).root, with_time);
}

std::string FaultOf(const std::string& value) { return Read(value, true).status().message(); }

/// A good entry with one field replaced, or without it.
std::string With(const std::string& name, const std::string& value) {
  Fields fields = {{"action", plain::Str("alloc")},
                   {"addr", plain::Int(1)},
                   {"size", plain::Int(2)},
                   {"time_us", plain::Int(3)}};
  Fields changed;
  for (const auto& field : fields) {
    if (field.first != name) changed.push_back(field);
    if (field.first == name && !value.empty()) changed.emplace_back(name, value);
  }
  return plain::Dict(changed);
}

TEST(ReadSnapshotEntry, ReadsWhatIsNeeded) {
  const Result<SnapshotEntry> entry = Read(plain::Entry("free_requested", 5, 6, 7), true);
  ASSERT_TRUE(entry.ok()) << entry.status().message();
  EXPECT_EQ((*entry).action, SnapshotAction::kFreeRequested);
  EXPECT_EQ((*entry).address, 5u);
  EXPECT_EQ((*entry).bytes, 6u);
  EXPECT_EQ((*entry).time_us, 7u);
}

TEST(ReadSnapshotEntry, KnowsTheActions) {
  const auto action = [](const std::string& name) {
    // Only what concerns blocks needs an address: an "oom" has none.
    const Result<SnapshotEntry> entry = Read(plain::Dict({{"action", plain::Str(name)}}), false);
    return entry.ok() ? std::optional((*entry).action) : std::nullopt;
  };
  for (const char* name :
       {"segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom"}) {
    EXPECT_EQ(action(name), SnapshotAction::kOther) << name;
  }
  EXPECT_EQ(action("teleport"), SnapshotAction::kUnknown);
  EXPECT_EQ(action("alloc"), std::nullopt);
  EXPECT_EQ((*Read(plain::Entry("alloc", 1, 1, 1), true)).action, SnapshotAction::kAlloc);
  EXPECT_EQ((*Read(plain::Entry("free_completed", 1, 1, 1), true)).action,
            SnapshotAction::kFreeCompleted);
}

TEST(ReadSnapshotEntry, NeedsATimeOnlyWhenAsked) {
  EXPECT_TRUE(Read(With("time_us", ""), false).ok());
  EXPECT_EQ(FaultOf(With("time_us", "")), "time_us: missing");
}

TEST(ReadSnapshotEntry, NamesTheField) {
  EXPECT_EQ(FaultOf(plain::Int(1)), "entry: is of type int, must be dict");
  EXPECT_EQ(FaultOf(With("action", "")), "action: missing");
  EXPECT_EQ(FaultOf(With("action", "N")), "action: is of type None, must be str");
  EXPECT_EQ(FaultOf(With("action",
                         "C\x05"
                         "alloc")),
            "action: is of type bytes, must be str");
  EXPECT_EQ(FaultOf(With("addr", "")), "addr: missing");
  EXPECT_EQ(FaultOf(With("addr", plain::Int(-1))),
            "addr: -1 must be between 0 and 9223372036854775807");
  EXPECT_EQ(FaultOf(With("addr", "\x8a\x09" + std::string(9, '\1'))),
            "addr: is of type large int, must be int");
  EXPECT_EQ(FaultOf(With("size", plain::Str("2"))), "size: is of type str, must be int");
  EXPECT_EQ(FaultOf(With("size", "\x88")), "size: is of type bool, must be int");
  EXPECT_EQ(FaultOf(With("size", plain::Int((int64_t{1} << 53) + 1))),
            "size: 9007199254740993 must be between 0 and 9007199254740992");
  EXPECT_TRUE(Read(With("size", plain::Int(int64_t{1} << 53)), true).ok());
  EXPECT_EQ(FaultOf(With("time_us", "]")), "time_us: is of type list, must be int");
}

TEST(ReadSnapshotEntry, ZeroIsANumber) {
  EXPECT_TRUE(Read(plain::Entry("alloc", 0, 0, 0), true).ok());
}

TEST(ReadSnapshotEntry, RefusesADictThatIsTooLarge) {
  Fields fields = {{"action", plain::Str("oom")}};
  while (fields.size() < 64) fields.emplace_back("more", "N");
  EXPECT_TRUE(Read(plain::Dict(fields), false).ok());
  fields.emplace_back("more", "N");
  EXPECT_EQ(Read(plain::Dict(fields), false).status().message(), "entry: more than 64 fields");
}

}  // namespace
}  // namespace sluice::scheduler::trace
