// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace sluice::testing {

using scheduler::EventKind;
using scheduler::Record;

namespace {
constexpr int kWaitMs = 30'000;
/// It does at a stretch what the job did beside hundreds of kills.
constexpr int kAloneMs = 600'000;
}  // namespace

std::vector<std::string> Peer::Command(const std::vector<std::string>& extra) {
  std::vector<std::string> command = {Program("WORKLOAD"),
                                      "--blocks",
                                      "20",
                                      "--block-bytes",
                                      "512KiB",
                                      "--base-bytes",
                                      "1MiB",
                                      "--seed",
                                      "9",
                                      "--sync",
                                      "iteration"};
  command.insert(command.end(), extra.begin(), extra.end());
  return command;
}

Peer::Peer(TestBed& bed)
    : bed_(bed),
      input_(MakeInputPipe()),
      process_(bed.Start({.label = "peer",
                          .command = Command({"--iterations", "20", "--until-eof"}),
                          .run_flags = {"--limit", "12MiB", "--request", "2MiB"},
                          .input = input_.read_end.get()})) {
  const auto admitted = [](const std::vector<Record>& records) {
    return std::any_of(records.begin(), records.end(),
                       [](const Record& record) { return record.event == EventKind::kAdmit; });
  };
  if (!bed.log().Await(admitted, kWaitMs)) throw std::runtime_error("the peer was not admitted");
  job_ = *bed.log().FindJob("workload");
}

void Peer::AwaitProfile() {
  const auto profiled = [&](const std::vector<Record>& records) {
    return std::any_of(records.begin(), records.end(), [&](const Record& record) {
      return record.event == EventKind::kGate && record.job == job_ && record.profiled;
    });
  };
  if (!bed_.log().Await(profiled, kWaitMs)) throw std::runtime_error("the peer has no profile");
}

bool Peer::AwaitIterations(size_t count) {
  const size_t until = bed_.log().Count(EventKind::kTrough, job_) + count;
  return bed_.log().Await(
      [&](const auto&) { return bed_.log().Count(EventKind::kTrough, job_) >= until; }, kWaitMs);
}

const cli::JobProcess& Peer::AwaitOutOfMemory() {
  Finish(process_);
  EXPECT_EQ(process_.status().code, 4) << Describe(process_);
  return process_;
}

void Peer::FinishAndCompare() {
  input_.write_end.reset();
  Finish(process_);
  EXPECT_TRUE(process_.status().ok()) << Describe(process_);
  EXPECT_EQ(Value(process_.out(), "mismatches"), "0");
  const cli::JobProcess alone =
      bed_.Run({.label = "peer alone",
                .command = Command({"--iterations", Value(process_.out(), "iterations")}),
                .under_sluice = false},
               kAloneMs);
  EXPECT_TRUE(alone.status().ok()) << Describe(alone);
  EXPECT_EQ(Value(process_.out(), "digest"), Value(alone.out(), "digest"));
}

}  // namespace sluice::testing
