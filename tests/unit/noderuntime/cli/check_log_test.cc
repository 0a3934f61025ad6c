// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/check_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "noderuntime/cli/work_dir.h"
#include "noderuntime/eventlog/record_json.h"

namespace sluice::cli {
namespace {

using scheduler::EventKind;
using scheduler::Record;

Record Make(uint64_t t_ns, EventKind event, scheduler::JobId job) {
  Record record;
  record.t_ns = t_ns;
  record.event = event;
  record.job = job;
  return record;
}

/// One job of a pool of 8 units that holds 4 of them for a while.
std::vector<Record> GoodLog() {
  Record pool = Make(0, EventKind::kPool, scheduler::kNoJob);
  pool.units = 8;
  pool.unit_bytes = 1024;
  pool.policy = "flow";
  Record admit = Make(1, EventKind::kAdmit, 1);
  admit.name = "train";
  admit.limit = 8;
  Record gate = Make(2, EventKind::kGate, 1);
  gate.claim = 8;
  Record grant = Make(3, EventKind::kGrant, 1);
  grant.claim = 8;
  grant.extents = {{0, 4}};
  Record release = Make(4, EventKind::kRelease, 1);
  release.extents = {{0, 4}};
  release.release = 1;
  Record fenced = Make(5, EventKind::kFenced, 1);
  fenced.release = 1;
  return {pool,
          admit,
          gate,
          grant,
          release,
          fenced,
          Make(6, EventKind::kTrough, 1),
          Make(7, EventKind::kLeave, 1)};
}

class CheckLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto work = WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_ = std::make_unique<WorkDir>(std::move(*work));
  }
  int Check(const std::vector<Record>& records, const std::string& rest = "") {
    std::ofstream file(work_->File("log"));
    for (const Record& record : records) file << eventlog::ToJson(record) << '\n';
    file << rest;
    file.close();
    out_.clear();
    err_.clear();
    return CheckLog(work_->File("log"), out_, err_);
  }

  std::unique_ptr<WorkDir> work_;
  std::string out_;
  std::string err_;
};

TEST_F(CheckLogTest, AGoodLogIsSummedUp) {
  EXPECT_EQ(Check(GoodLog()), 0) << out_ << err_;
  EXPECT_NE(out_.find("8 records, pool 8.0 KiB in units of 1.0 KiB, policy flow"),
            std::string::npos)
      << out_;
  EXPECT_NE(out_.find("job 1 'train': peak 4.0 KiB of limit 8.0 KiB"), std::string::npos) << out_;
  EXPECT_NE(out_.find("ok: every promise was kept"), std::string::npos) << out_;
}

TEST_F(CheckLogTest, AUnitWithTwoHoldersIsFoundOnItsLine) {
  std::vector<Record> records = GoodLog();
  records.insert(records.begin() + 4, records[3]);
  EXPECT_EQ(Check(records), 1);
  EXPECT_NE(out_.find("line 5: "), std::string::npos) << out_;
  EXPECT_NE(out_.find("FAILED"), std::string::npos) << out_;
}

TEST_F(CheckLogTest, ACopyOfWhatIsNotTheJobsIsFoundOnItsLine) {
  std::vector<Record> records = GoodLog();
  records.resize(4);
  records.push_back(Make(4, EventKind::kTrough, 1));
  records.push_back(Make(5, EventKind::kCopyOut, 1));
  records.back().extents = {{0, 4}};
  records.push_back(Make(6, EventKind::kEvict, 1));
  records.back().extents = {{0, 4}};
  records.push_back(Make(7, EventKind::kBringBack, 1));
  records.back().extents = {{0, 4}};
  records.push_back(Make(8, EventKind::kCopyBack, 1));
  records.back().extents = {{0, 4}};
  EXPECT_EQ(Check(records), 0) << out_ << err_;
  records.back().extents = {{0, 5}};
  EXPECT_EQ(Check(records), 1);
  EXPECT_NE(out_.find("line 9: I1: unit 4 is overwritten"), std::string::npos) << out_;
  EXPECT_NE(out_.find("FAILED"), std::string::npos) << out_;
}

TEST_F(CheckLogTest, ATroughAboveTheRequestIsCountedAndNoFailure) {
  std::vector<Record> records = GoodLog();
  records.resize(4);
  records.push_back(Make(4, EventKind::kTrough, 1));
  records.back().drained = true;
  EXPECT_EQ(Check(records), 0) << out_ << err_;
  EXPECT_NE(out_.find("troughs at which a job kept more than its request: 1"), std::string::npos)
      << out_;
  EXPECT_EQ(Check(GoodLog()), 0);
  EXPECT_EQ(out_.find("its request"), std::string::npos) << out_;
}

TEST_F(CheckLogTest, TwoJobsMeasuredAtOnceAreFound) {
  std::vector<Record> records = GoodLog();
  records.resize(4);
  for (const EventKind event : {EventKind::kAdmit, EventKind::kGate}) {
    records.push_back(Make(4, event, 2));
    records.back().name = "second";
    records.back().limit = records.back().claim = 8;
  }
  EXPECT_EQ(Check(records), 1);
  EXPECT_NE(out_.find("line 6: I7: "), std::string::npos) << out_;
}

TEST_F(CheckLogTest, AMalformedLineIsNamed) {
  EXPECT_EQ(Check(GoodLog(), "{\"t_ns\":9,\"event\":\"gra\n"), 1);
  EXPECT_EQ(err_, "sluice: " + work_->File("log") + ": line 9: not a JSON object\n");
}

TEST_F(CheckLogTest, AnEmptyOrMissingLogIsAnError) {
  EXPECT_EQ(Check({}), 1);
  EXPECT_NE(err_.find("starts with the event 'pool'"), std::string::npos) << err_;
  EXPECT_EQ(CheckLog("/no/such/log", out_, err_), 1);
  EXPECT_EQ(err_, "sluice: /no/such/log: No such file or directory\n");
}

TEST_F(CheckLogTest, ThePictureHoldsWhatTheLogSays) {
  const auto report = scheduler::Audit(GoodLog(), SIZE_MAX);
  const MemoryHistory history =
      HistoryOf(GoodLog(), report, {{"other", "job 1"}, {"train", "job 2"}});
  EXPECT_EQ(history.labels, (std::vector<std::string>{"job 1", "job 2"}));
  EXPECT_EQ(history.pool_bytes, 8192u);
  ASSERT_EQ(history.marks.size(), 1u);
  EXPECT_EQ(history.marks[0].t_ns, 2u);
  EXPECT_EQ(history.marks[0].job, 1u);
  ASSERT_GE(history.steps.size(), 2u);
  EXPECT_EQ(history.steps.front().t_ns, 3u);
  EXPECT_EQ(history.steps.front().bytes, 4096u);
  EXPECT_EQ(history.steps.back().bytes, 0u);
}

}  // namespace
}  // namespace sluice::cli
