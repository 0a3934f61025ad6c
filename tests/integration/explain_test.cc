// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What happens to a job is said in one sentence, and counted by one word, wherever one looks: on
// the program's stderr, in the event log, by `sluice explain`, in what the plugin makes an event on
// its pod of, and in the figures that metrics are made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/support/grants_bed.h"

namespace sluice::testing {
namespace {

using nlohmann::json;
using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;

std::vector<std::string> Workload(std::vector<std::string> flags) {
  flags.insert(flags.begin(), Program("WORKLOAD"));
  return flags;
}

BedOptions SmallPool() {
  BedOptions options;
  options.pool = "16MiB";
  return options;
}

bool Says(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

json Explained(const TestBed& bed, JobId job) {
  const cli::CommandOutput output = bed.Sluice({"explain", std::to_string(job), "--json"});
  return output.status.ok() ? json::parse(output.out) : json();
}

/// The first event of this kind, and with this text if there is one; null: there is none.
json FirstEvent(const json& explained, const std::string& kind,
                const std::optional<std::string>& text = {}) {
  if (!explained.is_object()) return {};
  for (const json& event : explained["job"]["figures"]["events"]) {
    if (event["kind"] == kind && event["text"] == text.value_or(event["text"])) return event;
  }
  return {};
}

/// What `sluice explain` says is in the log and on the program's stderr, word for word.
void ExpectSaidEverywhere(TestBed& bed, const cli::JobProcess& process, JobId job,
                          const json& event, EventKind kind) {
  ASSERT_TRUE(event.is_object());
  const auto text = event["text"].get<std::string>();
  EXPECT_TRUE(Says(process.err(), text)) << text << "\n" << Describe(process);
  const std::vector<Record>& records = bed.log().Read();
  EXPECT_TRUE(std::any_of(records.begin(), records.end(),
                          [&](const Record& record) {
                            return record.event == kind && record.job == job &&
                                   record.text == text && record.reason == event["reason"];
                          }))
      << "not in the log: " << text;
  const cli::CommandOutput said = bed.Sluice({"explain", std::to_string(job)});
  EXPECT_NE(said.out.find(text), std::string::npos) << said.out;
}

/// Each time that it happened is one event of this kind, with its reason, and one line of the log;
/// its sentence is in no other event. `kind` and `counter`: "evicted", "evictions".
void ExpectOneEventEach(TestBed& bed, const json& explained, JobId job, const std::string& kind,
                        const std::string& counter, EventKind logged) {
  const json& figures = explained["job"]["figures"];
  const json first = FirstEvent(explained, kind);
  std::string words;
  size_t of_kind = 0;
  std::map<std::string, uint64_t> by_reason;
  for (const json& event : figures["events"]) {
    words += event.dump() + "\n";
    if (event["kind"] == kind) ++of_kind;
    EXPECT_TRUE(event["kind"] == kind || event["text"] != first["text"]) << event;
  }
  for (const Record& record : bed.log().Read()) {
    if (record.event == logged && record.job == job) ++by_reason[record.reason];
  }
  uint64_t in_log = 0;
  for (const auto& [reason, count] : by_reason) {
    EXPECT_FALSE(reason.empty());
    in_log += count;
  }
  EXPECT_LE(of_kind, figures[counter]) << words;
  // The latest sixteen are kept, of all kinds.
  EXPECT_TRUE(of_kind == figures[counter] || figures["events"].size() == 16) << words;
  EXPECT_EQ(in_log, figures[counter]);
  EXPECT_EQ(figures[counter + "_by"], json(by_reason));
}

class ExplainOfAGrant : public Grants {
 protected:
  void UpWithASmallPool() { Up(false, "off", SmallPool()); }
  JobId IdOf(const GrantRecord& grant) const { return JobOf(grant).at("id").get<JobId>(); }

  /// What its pod was told under this word is what `sluice explain` says of an event of that kind.
  /// That event; null: the pod was told nothing yet.
  json ToldAndExplained(const GrantRecord& grant, const std::string& word) const {
    // In this order: what the pod was told is counted already.
    const std::optional<Happening> told = HappeningOf(grant, word);
    if (!told.has_value()) return {};
    const json explained = Explained(*bed_, IdOf(grant));
    const json event = FirstEvent(explained, word, told->text);
    if (!event.is_null()) return event;
    ADD_FAILURE() << "the pod was told '" << told->text << "': " << explained.dump();
    return FirstEvent(explained, word);
  }
};

TEST_F(ExplainOfAGrant, ARefusal) {
  UpWithASmallPool();
  const GrantRecord grant = Make(8 * kMiB);
  const cli::JobProcess job =
      bed_->Run(InContainer(grant, {"--over-limit", "12MiB", "--one-shot"}));
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  // It has ended; what it was told is still there.
  const JobId id = IdOf(grant);
  const json event = ToldAndExplained(grant, "refused");
  ExpectSaidEverywhere(*bed_, job, id, event, EventKind::kDeny);
  EXPECT_EQ(event["reason"], "over-limit");
  EXPECT_EQ(Explained(*bed_, id)["job"]["figures"]["refusals"]["over-limit"], 1);
}

TEST_F(ExplainOfAGrant, AWait) {
  UpWithASmallPool();
  const GrantRecord grant = Make(11 * kMiB);
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed_->Start({.label = "holder",
                         .command = Workload({"--one-shot", "--hold", "--block-bytes", "12MiB"}),
                         .run_flags = {"--limit", "13MiB"},
                         .input = input.read_end.get()}));
  bool explained = false;
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    if (running.jobs().size() == 1 && Says(running.jobs().front().out(), "holding")) {
      running.Add(bed_->Start(InContainer(grant, {"--one-shot", "--block-bytes", "10MiB"})));
    }
    if (running.jobs().size() < 2 || explained || !Says(running.jobs()[1].err(), "waiting")) return;
    explained = true;
    const JobId id = IdOf(grant);
    const json event = ToldAndExplained(grant, "waited");
    ExpectSaidEverywhere(*bed_, running.jobs()[1], id, event, EventKind::kWait);
    const json answer = Explained(*bed_, id);
    EXPECT_EQ(answer["job"]["waiting"]["code"], event["reason"]);
    EXPECT_EQ(answer["job"]["waiting"]["reason"], event["text"]);
    EXPECT_GE(answer["job"]["figures"]["waits"][event["reason"].get<std::string>()], 1);
    EXPECT_NE(answer["help"], "");
    input.write_end.reset();
  });
  EXPECT_TRUE(explained);
}

/// One more block and its launches in the middle of a cycle that is known. Seldom: what comes often
/// is taken for a part of the cycle.
TEST_F(ExplainOfAGrant, ADeviation) {
  UpWithASmallPool();
  const GrantRecord grant = Make(16 * kMiB);
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(
      bed_->Start(InContainer(grant,
                              {"--blocks", "8", "--block-bytes", "256KiB", "--iterations", "60",
                               "--until-eof", "--grow-at", "500:512KiB", "--grow-every", "500"},
                              input.read_end.get())));
  json event;
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    // The program is told the first one, and the next ones only once a minute.
    if (event.is_null()) event = ToldAndExplained(grant, "deviated");
    // It reads what it is told when it next asks for something.
    if (!event.is_null() && Says(running.jobs().front().err(), "left its iteration")) {
      input.write_end.reset();
    }
  });
  ASSERT_FALSE(event.is_null());
  const JobId id = IdOf(grant);
  const json explained = Explained(*bed_, id);
  EXPECT_GE(explained["job"]["figures"]["deviations"], 1);
  ExpectSaidEverywhere(*bed_, group.jobs().front(), id, event, EventKind::kMismatch);
  EXPECT_TRUE(event["reason"] == "launches" || event["reason"] == "cycle") << event;
  ExpectOneEventEach(*bed_, explained, id, "deviated", "deviations", EventKind::kMismatch);
}

TEST_F(ExplainOfAGrant, AnEviction) {
  BedOptions options;
  options.pool = "4MiB";
  options.unit = "32KiB";
  options.noded_flags = {"--host-memory", "8MiB"};
  Up(false, "wait", options);
  const GrantRecord grant = Make(256 * kKiB);
  SetTerms(grant, Terms(grant, 3840 * kKiB));
  InputPipe input = MakeInputPipe();
  const std::vector<std::string> common = {"--blocks",     "22",           "--block-bytes",
                                           "128KiB",       "--base-bytes", "128KiB",
                                           "--iterations", "60",           "--until-eof"};
  std::vector<std::string> deviates = common;
  for (const char* flag : {"--grow-at", "40:512KiB", "--grow-every", "40"}) {
    deviates.emplace_back(flag);
  }
  cli::JobGroup group;
  group.Add(bed_->Start(InContainer(grant, deviates, input.read_end.get())));
  group.Add(bed_->Start({.label = "conforms",
                         .command = Workload(common),
                         .run_flags = {"--limit", "3840KiB", "--request", "256KiB"},
                         .input = input.read_end.get()}));
  json event;
  Finish(group, 120'000, [&](cli::JobGroup&) {
    if (event.is_null()) event = ToldAndExplained(grant, "evicted");
    if (!event.is_null()) input.write_end.reset();
  });
  ASSERT_FALSE(event.is_null());
  const JobId id = IdOf(grant);
  ExpectSaidEverywhere(*bed_, group.jobs().front(), id, event, EventKind::kEvict);
  EXPECT_TRUE(event["reason"] == "memory" || event["reason"] == "place") << event;
  ExpectOneEventEach(*bed_, Explained(*bed_, id), id, "evicted", "evictions", EventKind::kEvict);
}

/// What happens often takes nothing from what happens once.
TEST_F(ExplainOfAGrant, ARefusalSoonAfterAWait) {
  Up();
  const GrantRecord grant = Make(2 * kMiB);
  const std::vector<std::string> program = {"--one-shot", "--hold", "--block-bytes", "1MiB"};
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed_->Start({.label = "holder",
                         .command = Workload({"--one-shot", "--hold", "--block-bytes", "12MiB"}),
                         .run_flags = {"--limit", "13MiB"},
                         .input = input.read_end.get()}));
  std::optional<Happening> waited;
  std::optional<Happening> refused;
  Finish(group, 60'000, [&](cli::JobGroup& running) {
    if (running.jobs().size() == 1 && Says(running.jobs().front().out(), "holding")) {
      running.Add(bed_->Start(InContainer(grant, program, input.read_end.get())));
    }
    if (waited.has_value() || running.jobs().size() < 2) return;
    waited = HappeningOf(grant, "waited");
    if (!waited.has_value()) return;
    const cli::JobProcess second = bed_->Run(InContainer(grant, program));
    EXPECT_FALSE(second.status().ok());
    refused = HappeningOf(grant, "refused");
    EXPECT_EQ(HappeningOf(grant, "waited"), waited) << "nor the other way round";
    EXPECT_TRUE(refused.has_value() && Says(second.err(), refused->text)) << Describe(second);
    input.write_end.reset();
  });
  ASSERT_TRUE(waited.has_value() && refused.has_value());
  EXPECT_NE(refused->text.find("one process of a job at a time"), std::string::npos);
}

// A report of the same run counts what the daemon counted while it lasted.
TEST(Explain, AReportOfTheRunAgrees) {
  TestBed bed(SmallPool());
  InputPipe input = MakeInputPipe();
  cli::JobGroup group;
  group.Add(bed.Start({.label = "job",
                       .command = Workload({"--blocks", "8", "--block-bytes", "256KiB",
                                            "--iterations", "60", "--until-eof"}),
                       .run_flags = {"--limit", "8MiB"},
                       .input = input.read_end.get()}));
  const auto iterations = [&] {
    const json explained = Explained(bed, 1);
    return explained.is_object() ? explained["job"]["figures"].value("iterations", 0) : 0;
  };
  // They count from where the cycle is known.
  Finish(group, 60'000, [&](cli::JobGroup&) {
    if (iterations() > 10) input.write_end.reset();
  });
  ASSERT_TRUE(group.jobs().front().status().ok()) << Describe(group.jobs().front());
  const json explained = Explained(bed, 1);
  bed.StopDaemon();
  const cli::CommandOutput output = bed.Sluice({"report", bed.log().path(), "--json"});
  ASSERT_TRUE(output.status.ok()) << output.err;
  const json report = json::parse(output.out);
  EXPECT_EQ(report["violations"], 0);
  ASSERT_EQ(report["jobs"].size(), 1u);
  EXPECT_EQ(report["jobs"][0]["iterations"], explained["job"]["figures"]["iterations"]);
}

}  // namespace
}  // namespace sluice::testing
