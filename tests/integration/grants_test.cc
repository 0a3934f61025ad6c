// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/grants_bed.h"

namespace sluice::testing {
namespace {

TEST_F(Grants, AProgramHasWhatItsGrantIsWorth) {
  Up();
  const GrantRecord grant = Make(8 * kMiB);
  WhileItHolds(grant, [&](const cli::JobProcess& program) {
    const nlohmann::json job = JobOf(grant);
    EXPECT_EQ(job.at("limit_bytes"), 8 * kMiB);
    EXPECT_EQ(job.at("request_bytes"), 8 * kMiB);
    EXPECT_GE(job.at("held_bytes").get<uint64_t>(), 6 * kMiB);
    EXPECT_EQ(job.at("pid"), program.pid());
  });
  ExpectAllGivenBack(*bed_);
}

TEST_F(Grants, NobodyHasMore) {
  Up();
  const GrantRecord grant = Make(4 * kMiB);
  JobSpec spec = InContainer(grant, {"--one-shot", "--block-bytes", "6MiB"});
  // What a program might try.
  for (const char* name : {"SLUICE_LIMIT", "SLUICE_REQUEST", "SLUICE_MEMORY_LIMIT"}) {
    spec.environment.emplace_back(name, "16MiB");
  }
  const cli::JobProcess job = bed_->Run(spec);
  EXPECT_FALSE(job.status().ok());
  EXPECT_NE(Describe(job).find("its limit is 4.0 MiB"), std::string::npos) << Describe(job);
  // Its pod is told the same.
  const auto happened = HappeningOf(grant, "refused");
  ASSERT_TRUE(happened.has_value());
  EXPECT_NE(Describe(job).find(happened->text), std::string::npos) << happened->text;
  ExpectAllGivenBack(*bed_);
}

TEST_F(Grants, AContainerThatStartsAgainHasTheSameGrant) {
  Up();
  const GrantRecord grant = Make(8 * kMiB);
  for (int i = 0; i < 3; ++i) {
    const cli::JobProcess job = bed_->Run(InContainer(grant, {"--iterations", "3"}));
    EXPECT_TRUE(job.status().ok()) << i << Describe(job);
  }
  EXPECT_FALSE(JobOf(grant).is_null());
}

TEST_F(Grants, OnlyItsContainerSeesASocketAndAnybodyInItMayUseIt) {
  Up();
  const GrantRecord grant = Make(8 * kMiB);
  AwaitStatus(*bed_, [&](const nlohmann::json&) { return !JobOf(grant).is_null(); });
  struct stat state = {};
  ASSERT_EQ(::stat((FolderOf(grant) + "/sluice.sock").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0666u);
  EXPECT_EQ(bed_->Status().at("free_bytes"), bed_->Status().at("pool_bytes"))
      << "nothing is reserved for who does not come";
}

TEST_F(Grants, AGrantThatDoesNotFitIsRefusedInWords) {
  Up();
  const GrantRecord grant = Make(64 * kMiB);
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--iterations", "1"}));
  EXPECT_FALSE(job.status().ok());
  EXPECT_NE(Describe(job).find(
                "limit 64.0 MiB: allowed: 256.0 KiB (a lease unit) to 16.0 MiB (the pool)"),
            std::string::npos)
      << Describe(job);
}

TEST_F(Grants, AGrantThatIsTakenBackEndsWithWhoUsesIt) {
  Up();
  const GrantRecord grant = Make(8 * kMiB);
  WhileItHolds(grant, [&](const cli::JobProcess&) {
    ASSERT_TRUE(GrantStore::Open(root_)->Remove(grant.id).ok());
    EXPECT_GE(JobOf(grant).at("held_bytes").get<uint64_t>(), 6 * kMiB);
  });
  AwaitStatus(*bed_, [](const nlohmann::json& status) { return status.at("jobs").empty(); });
}

TEST_F(Grants, GrantsOfOtherGpusAreLeftAlone) {
  Up();
  const GrantRecord other = Make(8 * kMiB, "GPU-of-somebody-else");
  const GrantRecord own = Make(8 * kMiB);
  AwaitStatus(*bed_, [&](const nlohmann::json&) { return !JobOf(own).is_null(); });
  EXPECT_TRUE(JobOf(other).is_null());
}

/// With a keeper: its memory and its session go on.
TEST_F(Grants, AProgramGoesOnBehindARestart) {
  Up(true);
  const GrantRecord grant = Make(8 * kMiB);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed_->Start(InContainer(grant, {"--iterations", "20", "--until-eof", "--progress"},
                                   input.read_end.get())));
  int restarts = 0;
  size_t seen = 0;
  Finish(jobs, 120'000, [&](cli::JobGroup& running) {
    const size_t lines = running.jobs().front().out().size();
    if (!input.write_end.valid() || lines < seen + 5) return;
    seen = lines;
    if (++restarts <= 3) return bed_->RestartDaemon();
    EXPECT_EQ(JobOf(grant).at("limit_bytes"), 8 * kMiB);
    input.write_end.reset();
  });
  EXPECT_TRUE(jobs.jobs().front().status().ok()) << Describe(jobs.jobs().front());
  EXPECT_EQ(bed_->GpuStats().oracle_violations, 0u);
  const cli::JobProcess again = bed_->Run(InContainer(grant, {"--iterations", "2"}));
  EXPECT_TRUE(again.status().ok()) << Describe(again);
}

/// Grants that fill the pool: neither is in the way of itself or of the other.
TEST_F(Grants, FullyGrantedPoolsStaySoBehindARestart) {
  Up(true);
  const GrantRecord grants[] = {Make(8 * kMiB), Make(8 * kMiB)};
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  for (const GrantRecord& grant : grants) {
    jobs.Add(bed_->Start(InContainer(grant, {"--iterations", "20", "--until-eof", "--progress"},
                                     input.read_end.get())));
  }
  Finish(jobs, 120'000, [&](cli::JobGroup& running) {
    const auto begun = [](const cli::JobProcess& job) { return job.out().size() > 5; };
    if (!input.write_end.valid() ||
        !std::all_of(running.jobs().begin(), running.jobs().end(), begun))
      return;
    bed_->RestartDaemon();
    input.write_end.reset();
  });
  for (const cli::JobProcess& job : jobs.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
  cli::JobGroup again;
  for (const GrantRecord& grant : grants)
    again.Add(bed_->Start(InContainer(grant, {"--iterations", "3"})));
  Finish(again);
  for (const cli::JobProcess& job : again.jobs()) EXPECT_TRUE(job.status().ok()) << Describe(job);
}

/// Without one, and taken back meanwhile.
TEST_F(Grants, TheNextDaemonKnowsWhatIsThere) {
  Up();
  const GrantRecord stays = Make(8 * kMiB);
  const GrantRecord goes = Make(8 * kMiB);
  AwaitSocket(stays);
  AwaitSocket(goes);
  bed_->KillDaemon();
  ASSERT_TRUE(GrantStore::Open(root_)->Remove(goes.id).ok());
  bed_->StartDaemon();
  const cli::JobProcess job = bed_->Run(InContainer(stays, {"--iterations", "2"}));
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_TRUE(JobOf(goes).is_null());
}

/// A record that is refused must not become one without a limit behind a restart.
TEST_F(Grants, WhatWasRefusedStaysRefusedBehindARestart) {
  Up(true);
  const GrantRecord grant = Make(64 * kMiB);
  AwaitSocket(grant);
  AwaitStatus(*bed_, [&](const nlohmann::json&) { return !JobOf(grant).is_null(); });
  bed_->RestartDaemon();
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--iterations", "1"}));
  EXPECT_FALSE(job.status().ok());
  EXPECT_NE(Describe(job).find("limit 64.0 MiB: allowed"), std::string::npos) << Describe(job);
}

TEST_F(Grants, WithTermsToComeAProgramWaitsForThem) {
  Up(false, "wait");
  const GrantRecord grant = Make(4 * kMiB);
  cli::JobGroup jobs;
  jobs.Add(bed_->Start(InContainer(grant, {"--one-shot", "--block-bytes", "6MiB"})));
  // Its Hello has come by the time that it is among the daemon's connections.
  AwaitStatus(*bed_, [&](const nlohmann::json&) { return !JobOf(grant).is_null(); });
  EXPECT_FALSE(jobs.jobs().front().ended());
  SetTerms(grant, Terms(grant, 8 * kMiB));
  Finish(jobs);
  EXPECT_TRUE(jobs.jobs().front().status().ok()) << Describe(jobs.jobs().front());
  EXPECT_EQ(JobOf(grant).at("limit_bytes"), 8 * kMiB);
  EXPECT_EQ(JobOf(grant).at("request_bytes"), 4 * kMiB);
  EXPECT_EQ(ReportOf(grant), "");
}

TEST_F(Grants, WhoseTermsNeverComeIsRefusedInWords) {
  Up(false, "wait");
  const GrantRecord grant = Make(8 * kMiB);
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--one-shot"}));
  EXPECT_FALSE(job.status().ok());
  EXPECT_NE(Describe(job).find("this pod's terms (its annotations) are not known"),
            std::string::npos)
      << Describe(job);
  EXPECT_NE(ReportOf(grant), "");
}

TEST_F(Grants, TermsThatRefuseAreSaidToWhoComes) {
  Up(false, "wait");
  const GrantRecord grant = Make(8 * kMiB);
  GrantTerms terms = Terms(grant, 8 * kMiB);
  terms.refusal = "sluice.dev/priority 'high': allowed: -1000 to 1000";
  SetTerms(grant, terms);
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--one-shot"}));
  EXPECT_FALSE(job.status().ok());
  EXPECT_NE(Describe(job).find(terms.refusal), std::string::npos) << Describe(job);
  EXPECT_EQ(AwaitReport(grant), terms.refusal);
}

TEST_F(Grants, ALimitThatThePoolDoesNotHaveIsReported) {
  Up(false, "wait");
  const GrantRecord grant = Make(8 * kMiB);
  SetTerms(grant, Terms(grant, 64 * kMiB));
  EXPECT_EQ(AwaitReport(grant),
            "sluice.dev/memory-limit 64.0 MiB: allowed: 256.0 KiB (a lease unit) to 16.0 MiB (the "
            "pool)");
}

TEST_F(Grants, AProgramOfAnotherPodIsNobody) {
  Up(false, "wait");
  const GrantRecord grant = Make(8 * kMiB);
  GrantTerms terms = Terms(grant, 8 * kMiB);
  terms.pod = "0035512f-328e-4a51-94db-4fd35ad6c3e5";
  SetTerms(grant, terms);
  const cli::JobProcess job = bed_->Run(InContainer(grant, {"--one-shot"}));
  EXPECT_FALSE(job.status().ok());
  EXPECT_NE(Describe(job).find("this grant is pod " + terms.pod + "'s"), std::string::npos)
      << Describe(job);
}

TEST_F(Grants, WhoUsesTheGpuWithoutTheLibraryIsFoundAndNobodyElse) {
  Up();
  const GrantRecord grant = Make(8 * kMiB);
  const GrantRecord idle = Make(1 * kMiB);
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed_->Start(InContainer(grant, {"--one-shot", "--hold"}, input.read_end.get())));
  // With a context and nothing else, it has no session.
  jobs.Add(bed_->Start(InContainer(idle, {"--no-memory", "--hold"}, input.read_end.get())));
  JobSpec past =
      InContainer(grant, {"--one-shot", "--block-bytes", "6MiB", "--hold"}, input.read_end.get());
  past.environment.clear();
  jobs.Add(bed_->Start(past));
  Finish(jobs, 60'000, [&](cli::JobGroup& running) {
    const bool all = std::all_of(running.jobs().begin(), running.jobs().end(), [](const auto& job) {
      return std::find(job.out().begin(), job.out().end(), "holding") != job.out().end();
    });
    if (!all || !input.write_end.valid()) return;
    AwaitStatus(*bed_, [](const nlohmann::json& status) {
      return status.at("bypassed").at("others") != 0;
    });
    EXPECT_EQ(bed_->Status().at("bypassed").at("others"), 1);
    EXPECT_EQ(bed_->Status().at("bypassed").at("pods"), 0) << "a pod is known by its cgroup";
    EXPECT_EQ(JobOf(grant).at("processes").size(), 1u);
    EXPECT_EQ(JobOf(idle).at("processes").size(), 1u);
    EXPECT_EQ(JobOf(idle).at("phase"), "registered");
    EXPECT_NE(bed_->Sluice({"status"}).out.find("without the library: 0 of pods, 1 others"),
              std::string::npos);
    input.write_end.reset();
  });
  EXPECT_EQ(bed_->Status().at("bypassed").at("others"), 1);
}

TEST_F(Grants, ADrainedGpuTakesNoNewJobsAndGoesOnWithItsOwn) {
  Up(true);
  const GrantRecord grant = Make(8 * kMiB);
  const auto drained = [&] { return GrantStore::Open(root_)->DrainedGpus(); };
  WhileItHolds(grant, [&](const cli::JobProcess&) {
    const cli::CommandOutput said = bed_->Sluice({"drain", "on"});
    EXPECT_EQ(said.status.code, 0) << said.err;
    EXPECT_EQ(said.out, "drain on, 1 jobs are there\n");
    EXPECT_EQ(drained().size(), 1u) << "for the plugin";
    EXPECT_EQ(bed_->Status().at("draining"), true);
  });
  const auto run = [&] {
    return bed_->Run(
        {.label = "new", .command = {Program("WORKLOAD"), "--one-shot"}, .run_flags = {}});
  };
  const cli::JobProcess refused = run();
  EXPECT_FALSE(refused.status().ok());
  EXPECT_NE(Describe(refused).find("takes no new jobs: it is being drained"), std::string::npos)
      << Describe(refused);
  bed_->RestartDaemon();
  EXPECT_EQ(bed_->Status().at("draining"), true) << "an order outlives the daemon";
  EXPECT_EQ(bed_->Sluice({"drain", "off"}).status.code, 0);
  EXPECT_TRUE(drained().empty());
  EXPECT_TRUE(run().status().ok());
}

TEST_F(Grants, AnOperatorChangesALimitUntilThePodAsksForAnother) {
  Up(true, "wait");
  const GrantRecord grant = Make(7 * kMiB);
  SetTerms(grant, Terms(grant, 8 * kMiB));
  const std::string job = "ns/" + grant.id.substr(0, 8);
  const auto limit_is = [&](uint64_t bytes) {
    AwaitStatus(*bed_, [&](const nlohmann::json&) {
      const nlohmann::json now = JobOf(grant);
      return !now.is_null() && now.at("limit_bytes") == bytes;
    });
  };
  WhileItHolds(grant, [&](const cli::JobProcess&) {
    const cli::CommandOutput raised = bed_->Sluice({"limit", job, "12MiB"});
    EXPECT_EQ(raised.status.code, 0) << raised.err;
    EXPECT_NE(raised.out.find("limit 12.0 MiB"), std::string::npos) << raised.out;
    EXPECT_EQ(JobOf(grant).at("limit_bytes"), 12 * kMiB);
    // Terms that say the same as before are no news.
    GrantTerms again = Terms(grant, 8 * kMiB);
    again.priority = 5;
    SetTerms(grant, again);
    for (const auto& [size, why] :
         {std::pair("64MiB", "16.0 MiB (the pool)"), std::pair("6MiB", "7.0 MiB (its request)")}) {
      const cli::CommandOutput refused = bed_->Sluice({"limit", job, size});
      EXPECT_NE(refused.status.code, 0) << size;
      EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
    }
    EXPECT_EQ(JobOf(grant).at("limit_bytes"), 12 * kMiB);
    EXPECT_EQ(bed_->Sluice({"limit", job, "asked"}).status.code, 0);
    EXPECT_EQ(JobOf(grant).at("limit_bytes"), 8 * kMiB);
    EXPECT_EQ(bed_->Sluice({"limit", job, "10MiB"}).status.code, 0);
    SetTerms(grant, Terms(grant, 9 * kMiB));
    limit_is(9 * kMiB);
    SetTerms(grant, Terms(grant, 8 * kMiB));
    limit_is(8 * kMiB);
    EXPECT_NE(bed_->Sluice({"limit", "no-such", "8MiB"}).status.code, 0);
  });
}

TEST_F(Grants, WhatAPodMayNotAskForIsNotGivenByAnOperatorEither) {
  Up(false, "wait");
  const GrantRecord grant = Make(7 * kMiB);
  SetTerms(grant, Terms(grant, 8 * kMiB));
  WhileItHolds(grant, [&](const cli::JobProcess&) {
    GrantTerms beyond = Terms(grant, 12 * kMiB);
    beyond.refusal = "sluice.dev/memory-limit 12.0 MiB: allowed: up to 8.0 MiB";
    SetTerms(grant, beyond);
    EXPECT_EQ(AwaitReport(grant), beyond.refusal);
    const cli::CommandOutput asked =
        bed_->Sluice({"limit", "ns/" + grant.id.substr(0, 8), "asked"});
    EXPECT_NE(asked.status.code, 0);
    EXPECT_NE(asked.err.find("what its pod asks for is refused (" + beyond.refusal +
                             "); allowed: a size"),
              std::string::npos)
        << asked.err;
    EXPECT_EQ(JobOf(grant).at("limit_bytes"), 8 * kMiB);
  });
}

TEST_F(Grants, ALimitChangesWhileAProgramRuns) {
  Up(false, "wait");
  const GrantRecord grant = Make(7 * kMiB);
  SetTerms(grant, Terms(grant, 8 * kMiB));
  WhileItHolds(grant, [&](const cli::JobProcess&) {
    SetTerms(grant, Terms(grant, 12 * kMiB));
    AwaitStatus(*bed_,
                [&](const nlohmann::json&) { return JobOf(grant).at("limit_bytes") == 12 * kMiB; });
    // More than the pool, and then something that is possible again.
    SetTerms(grant, Terms(grant, 64 * kMiB));
    EXPECT_NE(AwaitReport(grant).find("16.0 MiB (the pool)"), std::string::npos);
    EXPECT_EQ(JobOf(grant).at("limit_bytes"), 12 * kMiB);
    // Behind the report: for the plugin, which keeps no room for what was refused.
    const GrantTerms refused = Terms(grant, 64 * kMiB);
    AwaitAnswer(grant, {12 * kMiB, TermsText(refused)});
    SetTerms(grant, Terms(grant, 9 * kMiB));
    AwaitStatus(*bed_,
                [&](const nlohmann::json&) { return JobOf(grant).at("limit_bytes") == 9 * kMiB; });
    EXPECT_EQ(ReportOf(grant), "");
    const GrantTerms asked = Terms(grant, 9 * kMiB);
    AwaitAnswer(grant, {9 * kMiB, TermsText(asked)});
    const std::string job = "ns/" + grant.id.substr(0, 8);
    EXPECT_EQ(bed_->Sluice({"limit", job, "10MiB"}).status.code, 0);
    AwaitAnswer(grant, {10 * kMiB, TermsText(asked)});
    EXPECT_EQ(bed_->Sluice({"limit", job, "asked"}).status.code, 0);
    AwaitAnswer(grant, {9 * kMiB, TermsText(asked)});
  });
  ExpectAllGivenBack(*bed_);
}

/// A stranger on its socket, for example.
TEST_F(Grants, WhyAProcessWasRefusedIsOverWhenAnotherOneBegins) {
  Up(false, "wait");
  const GrantRecord grant = Make(8 * kMiB);
  SetTerms(grant, Terms(grant, 8 * kMiB));
  AwaitAnswer(grant, {8 * kMiB, TermsText(Terms(grant, 8 * kMiB))});
  ASSERT_TRUE(GrantStore::Open(root_)->SetReport(grant.id, "this grant is another pod's").ok());
  WhileItHolds(grant, [&](const cli::JobProcess&) { EXPECT_EQ(ReportOf(grant), ""); });
}

TEST_F(Grants, JobsOfTwoGroupsAreNeverThereTogether) {
  Up(false, "wait");
  const GrantRecord ours = Make(8 * kMiB);
  const GrantRecord theirs = Make(8 * kMiB);
  SetTerms(ours, Terms(ours, 8 * kMiB, "a"));
  WhileItHolds(ours, [&](const cli::JobProcess&) {
    SetTerms(theirs, Terms(theirs, 8 * kMiB, "b"));
    const cli::JobProcess other = bed_->Run(InContainer(theirs, {"--one-shot"}));
    EXPECT_FALSE(other.status().ok());
    EXPECT_NE(Describe(other).find("this GPU's memory is shared by jobs of group 'a'"),
              std::string::npos)
        << Describe(other);
  });
}

TEST_F(Grants, APoolThatOneGroupHadIsNeverAnothers) {
  Up(true, "wait");
  const GrantRecord ours = Make(8 * kMiB);
  SetTerms(ours, Terms(ours, 8 * kMiB, "a"));
  EXPECT_TRUE(bed_->Run(InContainer(ours, {"--one-shot"})).status().ok());
  // The daemon is a moment behind its program's end.
  AwaitStatus(*bed_,
              [&](const nlohmann::json&) { return JobOf(ours).at("phase") == "registered"; });
  const GrantRecord theirs = Make(8 * kMiB);
  AwaitSocket(theirs);
  SetTerms(theirs, Terms(theirs, 8 * kMiB, "b"));
  // On a node sluice-node starts the next one.
  const pid_t before = bed_->daemon_pid();
  while (::kill(before, 0) == 0 && !IsZombie(before)) {
  }
  EXPECT_EQ(KeeperOf(*bed_), 0) << "the old pool would live on with it";
  bed_->KillDaemon();
  bed_->StartDaemon();
  const cli::JobProcess job = bed_->Run(InContainer(theirs, {"--one-shot"}));
  EXPECT_TRUE(job.status().ok()) << Describe(job);
}

}  // namespace
}  // namespace sluice::testing
