// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/eventlog/event_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "noderuntime/eventlog/record_json.h"

namespace sluice::eventlog {
namespace {

using scheduler::EventKind;
using scheduler::Record;

class EventLogTest : public ::testing::Test {
 protected:
  std::string path_ = ::testing::TempDir() + "/event_log_test." + std::to_string(::getpid());
  void TearDown() override { ::unlink(path_.c_str()); }
};

TEST_F(EventLogTest, WhatWasWrittenIsReadBackInOrder) {
  Result<EventLog> log = EventLog::Create(path_);
  ASSERT_TRUE(log.ok());
  Record pool;
  pool.units = 40;
  pool.policy = "flow";
  log->Write(pool);
  Record grant;
  grant.t_ns = 5;
  grant.event = EventKind::kGrant;
  grant.job = 2;
  grant.extents = {{3, 4}, {9, 1}};
  log->Write(grant);
  EXPECT_TRUE(ReadLogFile(path_)->empty()) << "lines go out together";
  ASSERT_TRUE(log->Flush().ok());
  const auto read = ReadLogFile(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].policy, "flow");
  EXPECT_EQ((*read)[1].extents, grant.extents);
}

TEST_F(EventLogTest, StartsAnew) {
  std::ofstream(path_) << "old\n";
  ASSERT_TRUE(EventLog::Create(path_).ok());
  EXPECT_TRUE(ReadLogFile(path_)->empty());
}

TEST_F(EventLogTest, AFolderThatIsNotThereIsNamed) {
  const auto log = EventLog::Create("/nonexistent/log");
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.status().message().find("/nonexistent/log"), std::string::npos);
}

TEST_F(EventLogTest, AFullDiskIsReportedOnce) {
  Result<EventLog> log = EventLog::Create("/dev/full");
  ASSERT_TRUE(log.ok());
  log->Write(Record());
  EXPECT_FALSE(log->Flush().ok());
  log->Write(Record());
  EXPECT_TRUE(log->Flush().ok());
}

}  // namespace
}  // namespace sluice::eventlog
