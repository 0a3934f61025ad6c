// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/eventlog/record_json.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sluice::eventlog {
namespace {

using scheduler::EventKind;
using scheduler::Record;

/// A record in which no field has its default.
Record Full() {
  Record record;
  record.t_ns = 18'446'744'073'709'551'615u;
  record.event = EventKind::kGrant;
  record.job = 3;
  record.name = "train \"a\" \\ 猫";
  record.policy = "flow";
  record.text = "why";
  record.unit_bytes = 262'144;
  record.units = 1;
  record.contiguous = 2;
  record.request = 4;
  record.limit = 5;
  record.claim = 6;
  record.waives = 2;
  record.piece = 7;
  record.gate = 8;
  record.iteration = 9;
  record.release = 10;
  record.returns = record.profiled = record.drained = record.sums_only = true;
  record.extents = {{0, 4}, {16, 1}};
  record.reclaim = {{7, 2}};
  return record;
}

TEST(RecordJson, EveryFieldComesBack) {
  const std::string line = ToJson(Full());
  const auto read = FromJson(line);
  ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << line;
  EXPECT_EQ(read->t_ns, Full().t_ns);
  EXPECT_EQ(read->event, Full().event);
  EXPECT_EQ(read->job, 3u);
  EXPECT_EQ(read->name, Full().name);
  EXPECT_EQ(read->policy, "flow");
  EXPECT_EQ(read->text, "why");
  EXPECT_EQ(read->unit_bytes, 262'144u);
  EXPECT_EQ(read->units, 1u);
  EXPECT_EQ(read->contiguous, 2u);
  EXPECT_EQ(read->request, 4u);
  EXPECT_EQ(read->limit, 5u);
  EXPECT_EQ(read->claim, 6u);
  EXPECT_EQ(read->waives, 2u);
  EXPECT_EQ(read->piece, 7u);
  EXPECT_EQ(read->gate, 8u);
  EXPECT_EQ(read->iteration, 9u);
  EXPECT_EQ(read->release, 10u);
  EXPECT_TRUE(read->returns && read->profiled && read->drained && read->sums_only);
  EXPECT_EQ(read->extents, Full().extents);
  EXPECT_EQ(read->reclaim, Full().reclaim);
  EXPECT_EQ(ToJson(*read), line);
}

// A grant that frees spare units is one line: what is granted and what is reclaimed must not mix.
TEST(RecordJson, AGrantKeepsItsReclaimedUnitsApart) {
  Record record;
  record.t_ns = 5;
  record.event = EventKind::kGrant;
  record.job = 1;
  record.reclaim = {{3, 1}, {5, 2}};
  const std::string only = "{\"t_ns\":5,\"event\":\"grant\",\"job\":1,\"reclaim\":[[3,1],[5,2]]}";
  EXPECT_EQ(ToJson(record), only);
  auto read = FromJson(only);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->reclaim, record.reclaim);
  EXPECT_TRUE(read->extents.empty());

  record.extents = {{8, 4}};
  read = FromJson(ToJson(record));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->extents, record.extents);
  EXPECT_EQ(read->reclaim, record.reclaim);
}

TEST(RecordJson, DefaultsAreLeftOut) {
  Record record;
  record.t_ns = 5;
  record.event = EventKind::kTrough;
  record.job = 1;
  EXPECT_EQ(ToJson(record), "{\"t_ns\":5,\"event\":\"trough\",\"job\":1}");
  const auto read = FromJson(ToJson(record));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->piece, scheduler::kWholeClaim);
}

TEST(RecordJson, AJobsNameCannotBreakTheLog) {
  Record record = Full();
  record.name = "\xff\xfe}\x01\u202e\u009b猫\U000e0041";
  const std::string line = ToJson(record);
  EXPECT_NE(line.find("\"\\ufffd\\ufffd}\\u0001\\u202e\\u009b猫\\udb40\\udc41\""),
            std::string::npos)
      << line;
  const auto read = FromJson(line);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->name, "\uFFFD\uFFFD}\\u0001\\u202e\\u009b猫\\U000e0041") << "for people";
}

struct BadLine {
  std::string line;
  std::string error;
};
class BadLines : public testing::TestWithParam<BadLine> {};

TEST_P(BadLines, NameTheKeyAndWhatIsAllowed) {
  const auto read = FromJson(GetParam().line);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().message(), GetParam().error);
}

const char kUnitRule[] = "' must be a whole number from 0 to 4294967295";
const char kExtentRule[] =
    "'extents' must be a list of [offset, length] in lease units with a length from 1";

INSTANTIATE_TEST_SUITE_P(
    Lines, BadLines,
    testing::Values(
        BadLine{"", "not a JSON object"}, BadLine{"[1]", "not a JSON object"},
        BadLine{"{\"t_ns\":1,\"event\":\"gra", "not a JSON object"},
        BadLine{"{\"event\":\"grant\"}", "'t_ns' is missing"},
        BadLine{"{\"t_ns\":1}", "'event' is missing"},
        BadLine{"{\"t_ns\":1,\"event\":\"steal\"}",
                "'event' must be the name of an event (docs/design/runtime.md, 5), not \"steal\""},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"colour\":1}",
                "'colour' is not a key of the event log"},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"job\":-1}", std::string("'job") + kUnitRule},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"claim\":4294967296}",
                std::string("'claim") + kUnitRule},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"claim\":1.5}",
                std::string("'claim") + kUnitRule},
        BadLine{"{\"t_ns\":1,\"event\":\"trough\",\"drained\":1}",
                "'drained' must be true or false"},
        BadLine{"{\"t_ns\":1,\"event\":\"admit\",\"name\":1}", "'name' must be a text"},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"extents\":[[1]]}", kExtentRule},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"extents\":[[1,0]]}", kExtentRule},
        BadLine{"{\"t_ns\":1,\"event\":\"grant\",\"extents\":[[4294967295,1]]}", kExtentRule},
        BadLine{
            "{\"t_ns\":1,\"event\":\"grant\",\"reclaim\":[[1,0]]}",
            "'reclaim' must be a list of [offset, length] in lease units with a length from 1"}));

TEST(ReadLog, NamesTheLine) {
  std::istringstream good(
      "{\"t_ns\":1,\"event\":\"pool\",\"units\":8}\n{\"t_ns\":2,\"event\":\"leave\"}\n");
  const auto records = ReadLog(good);
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records->size(), 2u);
  std::istringstream bad("{\"t_ns\":1,\"event\":\"pool\"}\n\n{\"t_ns\":2,\"event\":\"leave\"}\n");
  EXPECT_EQ(ReadLog(bad).status().message(), "line 2: not a JSON object");
}

TEST(ReadLogFile, AMissingFileIsNamed) {
  EXPECT_EQ(ReadLogFile("/no/such/log").status().message(),
            "/no/such/log: No such file or directory");
  EXPECT_FALSE(ReadLogFile("/tmp").ok());
}

}  // namespace
}  // namespace sluice::eventlog
