// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/command_run.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice::mps {
namespace {

CommandRun::Outcome EndOf(const std::string& script, uint64_t later_ns = 0) {
  auto run = CommandRun::Start({{"/bin/sh", "-c", script}, cli::Environment::Current()}, 1);
  EXPECT_TRUE(run.ok()) << run.status().message();
  EXPECT_NE(run->pid(), 0);
  EXPECT_EQ(run->LeftNs(1), CommandRun::kLongestNs);
  if (later_ns != 0) return run->Look(1 + later_ns).value();
  const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, run->pid(), 0)));
  pollfd end = {ended.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 60'000), 1);
  return run->Look(2).value();
}

TEST(MpsCommandRun, WhatItPrintsIsKept) {
  const auto outcome = EndOf("echo one; echo two; echo aside >&2");
  EXPECT_TRUE(outcome.ok);
  EXPECT_EQ(outcome.text, "one\ntwo\n");
  EXPECT_EQ(EndOf("yes | head -c 200000").text.size(), 200'000u) << "more than a pipe holds";
}

TEST(MpsCommandRun, AFailureSaysHowAndWhyInOneLine) {
  const auto outcome = EndOf("echo what; echo why >&2; exit 3");
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.text, "exit code 3: why what");
}

TEST(MpsCommandRun, OneThatHangsIsEnded) {
  const auto outcome = EndOf("exec sleep 1000", CommandRun::kLongestNs);
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(outcome.text, "no answer in 10 s");
}

TEST(MpsCommandRun, AProgramThatIsNotThereIsAnError) {
  EXPECT_FALSE(CommandRun::Start({{"/none"}, cli::Environment()}, 1).ok());
}

}  // namespace
}  // namespace sluice::mps
