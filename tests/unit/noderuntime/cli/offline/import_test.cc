// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/import.h"

#include <gtest/gtest.h>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/place.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/unit/scheduler/trace/snapshot/plain_pickle.h"

namespace sluice::cli {
namespace {

using scheduler::trace::plain::Entry;

class ImportTest : public testing::Test {
 protected:
  ImportTest() {
    Result<WorkDir> work = WorkDir::Create("");
    if (!work.ok()) throw std::runtime_error(work.status().message());
    work_.emplace(*std::move(work));
    options_.file = work_->File("snapshot.pickle");
    options_.output = work_->File("out.trace");
  }
  Output Import(const std::string& pickle) {
    EXPECT_TRUE(WriteWholeFile(options_.file, pickle).ok());
    return RunImport(options_);
  }
  static std::string Snapshot() {
    return scheduler::trace::plain::Snapshot({
        Entry("alloc", 16, 1000, 10),
        Entry("alloc", 2048, 200, 20),
        Entry("alloc", 4096, 300, 30),
        Entry("teleport", 0, 0, 31),
        Entry("free_requested", 2048, 200, 40),
        Entry("free_requested", 4096, 300, 50),
    });
  }

  std::optional<WorkDir> work_;
  ImportOptions options_;
};

TEST_F(ImportTest, WritesATraceThatCanBePlaced) {
  const Output output = Import(Snapshot());
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_EQ(output.out, options_.file + ": 6 entries of device 0\n" +
                            "  persistent  1 blocks, 1000 B\n"
                            "  transient   2 blocks, at most 500 B at once\n"
                            "  passed over 1 entries of an unknown kind\n"
                            "  written     " +
                            options_.output + ": sluice place " + options_.output +
                            " --batch 1; a snapshot has no times to simulate with\n");
  PlaceOptions place;
  place.file = options_.output;
  place.batch = 1;
  place.effort = scheduler::kUsualEffort;
  const Output placed = RunPlace(place);
  EXPECT_EQ(placed.code, 0) << placed.err;
  EXPECT_NE(placed.out.find("footprint    500 B"), std::string::npos) << placed.out;
}

TEST_F(ImportTest, OfAWindowAsJson) {
  options_.from_us = 30;
  options_.to_us = 51;
  options_.json = true;
  const Output output = Import(Snapshot());
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_NE(output.out.find("\"transient_blocks\": 1"), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("\"persistent_bytes\": 1200"), std::string::npos) << output.out;
}

TEST_F(ImportTest, SaysWhatIsWrong) {
  const Output broken = Import("no pickle");
  EXPECT_EQ(broken.code, 2);
  EXPECT_NE(broken.err.find(options_.file + ": byte 0: "), std::string::npos) << broken.err;
  options_.output = work_->File("no/folder");
  const Output nowhere = Import(Snapshot());
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("--output: "), std::string::npos) << nowhere.err;
}

}  // namespace
}  // namespace sluice::cli
