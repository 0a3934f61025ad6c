// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// How much of a job may be moved to host memory is its pod's to say.
#include "tests/support/grants_bed.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;

constexpr int kOutOfMemory = 4;  // exit code of the workload

/// The pair of evict_test, as containers. In each 40th iteration the first wants more than its
/// profile knows of, while the second has the rest.
class HostMemory : public Grants {
 protected:
  void UpWithHostMemory() {
    BedOptions options;
    options.pool = "4MiB";
    options.unit = "32KiB";
    options.noded_flags = {"--grants", root_, "--terms", "wait", "--host-memory", "64MiB"};
    bed_.emplace(options);
  }
  /// Runs them until the first was moved, or has ended.
  void Run(std::optional<uint64_t> host_memory_bytes) {
    UpWithHostMemory();
    InputPipe input = MakeInputPipe();
    cli::JobGroup jobs;
    for (const bool deviates : {true, false}) {
      const GrantRecord grant = Make(256 * kKiB);
      GrantTerms terms = Terms(grant, 3840 * kKiB);
      if (deviates) terms.host_memory_bytes = host_memory_bytes;
      SetTerms(grant, terms);
      std::vector<std::string> arguments = {"--blocks",     "22",        "--block-bytes", "128KiB",
                                            "--base-bytes", "128KiB",    "--iterations",  "60",
                                            "--until-eof",  "--progress"};
      if (deviates) {
        for (const char* flag : {"--grow-at", "40:512KiB", "--grow-every", "40", "--read-beside"}) {
          arguments.emplace_back(flag);
        }
      }
      jobs.Add(bed_->Start(InContainer(grant, arguments, input.read_end.get())));
    }
    Finish(jobs, 300'000, [&](cli::JobGroup& running) {
      const auto& records = bed_->log().Read();
      evicted_ = std::count_if(records.begin(), records.end(), [](const auto& record) {
        return record.event == EventKind::kEvict;
      });
      if (running.jobs().front().ended() || evicted_ > 0) input.write_end.reset();
    });
    deviating_ = jobs.jobs()[0].status().code;
    EXPECT_TRUE(jobs.jobs()[1].status().ok()) << Describe(jobs.jobs()[1]);
  }

  int deviating_ = -1;
  long evicted_ = 0;
};

TEST_F(HostMemory, IsForEverybodyWhoSaysNothing) {
  Run(std::nullopt);
  EXPECT_GT(evicted_, 0);
  EXPECT_EQ(deviating_, 0);
}

TEST_F(HostMemory, IsForWhoeverMayBeThereAsAWhole) {
  Run(4 * kMiB);
  EXPECT_GT(evicted_, 0);
  EXPECT_EQ(deviating_, 0);
}

TEST_F(HostMemory, IsNotForWhoeverWantsNone) {
  Run(0);
  EXPECT_EQ(evicted_, 0);
  EXPECT_EQ(deviating_, kOutOfMemory);
}

TEST_F(HostMemory, MoreThanThereIsIsRefusedInWords) {
  UpWithHostMemory();
  const GrantRecord grant = Make(kMiB);
  GrantTerms terms = Terms(grant, kMiB);
  terms.host_memory_bytes = 128 * kMiB;
  SetTerms(grant, terms);
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--one-shot"}));
  EXPECT_FALSE(job.status().ok());
  for (const std::string& text : {Describe(job), ReportOf(grant)}) {
    EXPECT_NE(text.find("sluice.dev/host-memory 128.0 MiB: allowed: up to 64.0 MiB, which all jobs "
                        "of this GPU have together"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace sluice::testing
