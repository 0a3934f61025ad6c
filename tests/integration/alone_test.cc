// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A container that has all of a GPU and asks for it as it is.
#include <future>
#include <latch>
#include <thread>

#include "tests/support/grants_bed.h"

namespace sluice::testing {
namespace {

constexpr uint64_t kPool = 16 * kMiB;
constexpr uint64_t kHandle = 2 * kMiB;

class Alone : public Grants {
 protected:
  static GrantTerms AsItIs(const GrantRecord& grant) {
    GrantTerms terms = Terms(grant, grant.bytes);
    terms.inject = false;
    return terms;
  }
  bool DaemonEnded() const {
    const pid_t pid = bed_->daemon_pid();
    return ::kill(pid, 0) != 0 || IsZombie(pid);
  }
  /// As sluice-node does.
  void FollowDaemon() {
    bed_->KillDaemon();
    bed_->StartDaemon();
  }
  /// The same as soon as the daemon has ended, in a thread of its own, which stays: a daemon ends
  /// with the thread that started it.
  std::future<void> FollowWhenItEnds() {
    std::promise<void> followed;
    std::future<void> future = followed.get_future();
    threads_.emplace_back([this, followed = std::move(followed)]() mutable {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (!DaemonEnded() && std::chrono::steady_clock::now() < deadline) {
      }
      FollowDaemon();
      followed.set_value();
      over_.wait();
    });
    return future;
  }
  void TearDown() override {
    bed_.reset();
    over_.count_down();
    for (std::thread& thread : threads_) thread.join();
  }
  uint64_t Pool() const { return bed_->Status().at("pool_bytes").get<uint64_t>(); }
  static bool Holds(const cli::JobProcess& job) {
    return std::find(job.out().begin(), job.out().end(), "holding") != job.out().end();
  }
  /// A program that takes more than the pool ever had; `look` while it has it.
  void RunWithMoreThanThePool(const GrantRecord& grant, const std::function<void()>& look) {
    InputPipe input = MakeInputPipe();
    cli::JobGroup jobs;
    jobs.Add(bed_->Start(InContainer(grant, {"--one-shot", "--block-bytes", "40MiB", "--hold"},
                                     input.read_end.get())));
    std::future<void> followed = FollowWhenItEnds();
    Finish(jobs, 60'000, [&](cli::JobGroup& running) {
      if (!input.write_end.valid() || !Holds(running.jobs().front())) return;
      followed.wait();
      look();
      input.write_end.reset();
    });
    followed.wait();
    EXPECT_TRUE(jobs.jobs().front().status().ok()) << Describe(jobs.jobs().front());
  }

 private:
  std::latch over_{1};
  std::vector<std::thread> threads_;
};

TEST_F(Alone, TheGpuIsTheContainersAndThePoolComesBack) {
  Up(true, "wait");
  const GrantRecord grant = Make(kPool);
  SetTerms(grant, AsItIs(grant));
  AwaitStatus(*bed_, [&](const nlohmann::json&) { return !JobOf(grant).is_null(); });
  EXPECT_EQ(Pool(), kPool) << "nobody has come yet";
  RunWithMoreThanThePool(grant, [&] {
    EXPECT_EQ(Pool(), kHandle);
    EXPECT_EQ(bed_->Status().at("bypassed").at("others"), 0) << "it was asked for";
    // A daemon that is killed is followed by one of the same kind.
    FollowDaemon();
    EXPECT_EQ(Pool(), kHandle);
    // Not yet anybody's.
    const GrantRecord other = Make(8 * kMiB);
    SetTerms(other, Terms(other, 8 * kMiB));
    const cli::JobProcess early = bed_->Run(InContainer(other, {"--one-shot"}));
    EXPECT_FALSE(early.status().ok());
    EXPECT_NE(Describe(early).find("/main''s alone (sluice.dev/inject 'false'); it can begin when "
                                   "that has ended"),
              std::string::npos)
        << Describe(early);
  });
  ASSERT_TRUE(GrantStore::Open(root_)->Remove(grant.id).ok());
  while (!DaemonEnded()) {
  }
  FollowDaemon();
  EXPECT_EQ(Pool(), kPool);
  const GrantRecord next = Make(8 * kMiB);
  SetTerms(next, Terms(next, 8 * kMiB));
  const cli::JobProcess job = bed_->Run(InContainer(next, {"--one-shot"}));
  EXPECT_TRUE(job.status().ok()) << Describe(job);
}

/// Kubelet starts containers before anybody knows whose they are.
TEST_F(Alone, AProgramThatComesBeforeItsTermsWaitsForThem) {
  Up(true, "wait");
  const GrantRecord grant = Make(kPool);
  cli::JobProcess job = bed_->Start(InContainer(grant, {"--one-shot", "--block-bytes", "40MiB"}));
  AwaitStatus(*bed_, [&](const nlohmann::json&) {
    const nlohmann::json now = JobOf(grant);
    return !now.is_null() && !now.at("processes").empty();
  });
  std::future<void> followed = FollowWhenItEnds();
  SetTerms(grant, AsItIs(grant));
  Finish(job);
  followed.wait();
  EXPECT_TRUE(job.status().ok()) << Describe(job);
}

TEST_F(Alone, APartOfAGpuIsNobodysAlone) {
  Up(false, "wait");
  const GrantRecord grant = Make(8 * kMiB);
  SetTerms(grant, AsItIs(grant));
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--one-shot"}));
  EXPECT_FALSE(job.status().ok());
  for (const std::string& text : {Describe(job), ReportOf(grant)}) {
    EXPECT_NE(text.find("sluice.dev/inject 'false': allowed for a container that has all granules "
                        "of a GPU (16.0 MiB, and this one has 8.0 MiB)"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(Pool(), kPool);
}

/// Kubelet may give ids out again a moment before everybody who had them has gone.
TEST_F(Alone, WhoeverIsThereIsWaitedFor) {
  Up(true, "wait");
  const GrantRecord first = Make(8 * kMiB);
  SetTerms(first, Terms(first, 8 * kMiB));
  const GrantRecord grant = Make(kPool);
  WhileItHolds(first, [&](const cli::JobProcess&) {
    SetTerms(grant, AsItIs(grant));
    const cli::JobProcess early = bed_->Run(InContainer(grant, {"--one-shot"}));
    EXPECT_FALSE(early.status().ok());
    EXPECT_NE(Describe(early).find("still has memory of this GPU"), std::string::npos)
        << Describe(early);
  });
  // The daemon hears of its end a moment later.
  AwaitStatus(*bed_, [&](const nlohmann::json&) {
    const nlohmann::json now = JobOf(first);
    return now.is_null() || (now.at("processes").empty() && now.at("held_bytes") == 0);
  });
  RunWithMoreThanThePool(grant, [] {});
}

}  // namespace
}  // namespace sluice::testing
