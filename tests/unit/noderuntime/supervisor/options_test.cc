// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/supervisor/options.h"

#include <gtest/gtest.h>

namespace sluice::supervisor {
namespace {

Result<std::optional<Options>> Read(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice-node");
  int status = 0;
  return ReadCommandLine(static_cast<int>(arguments.size()), arguments.data(), &status);
}
std::string ErrorOf(std::vector<const char*> arguments) {
  return Read(std::move(arguments)).status().message();
}

TEST(NodeOptions, TheDaemonsGetWhatStandsBehindTheDashes) {
  const auto options = Read({"--runtime-dir", "/run/n", "--", "--pool", "8MiB", "--lanes=3"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ((*options)->what, Options::What::kServe);
  EXPECT_EQ((*options)->runtime_dir, "/run/n");
  EXPECT_FALSE((*options)->gpus.has_value());
  EXPECT_EQ((*options)->arguments, (std::vector<std::string>{"--pool", "8MiB", "--lanes=3"}));
}

TEST(NodeOptions, GpusAreAllOrNumbers) {
  const auto options = Read({"--runtime-dir", "/n", "--gpus", "3,0"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ((*options)->gpus, (std::vector<uint32_t>{0, 3}));
  for (const char* bad : {"", "1,", "x", "1,1", "-1", "4294967296"}) {
    EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--gpus", bad}),
              "--gpus '" + std::string(bad) + "': allowed: all, or numbers such as 0,1");
  }
}

TEST(NodeOptions, MpsIsAskedFor) {
  const auto without = Read({"--runtime-dir", "/n"});
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE((*without)->mps);
  const auto with = Read({"--runtime-dir", "/n", "--compute", "mps"});
  ASSERT_TRUE(with.ok());
  EXPECT_TRUE((*with)->mps);
  EXPECT_EQ((*with)->mps_control, "/usr/bin/nvidia-cuda-mps-control");
  EXPECT_EQ((*with)->mps_dir, "/run/sluice/mps");
  EXPECT_EQ((*with)->mps_version, MpsChoice::kAuto);
  EXPECT_FALSE((*with)->wait_for_terms);
  const auto third = Read({"--runtime-dir", "/n", "--compute", "mps", "--mps-version", "3",
                           "--grants", "/g", "--terms", "wait"});
  ASSERT_TRUE(third.ok());
  EXPECT_EQ((*third)->mps_version, MpsChoice::kV3);
  EXPECT_EQ((*third)->grants, "/g");
  EXPECT_TRUE((*third)->wait_for_terms);
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--mps-version", "2"}),
            "--mps-version '2': allowed: auto, legacy, 3");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--terms", "on"}), "--terms 'on': allowed: wait, off");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--grants", "g"}),
            "--grants 'g': allowed: an absolute path");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--compute", "both"}),
            "--compute 'both': allowed: timeslice, mps");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--mps-control", "mps"}),
            "--mps-control 'mps': allowed: an absolute path");
  const std::string longest = "/" + std::string(46, 'm');
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--mps-dir", longest.c_str()}), "");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--mps-dir", (longest + "m").c_str()}),
            "--mps-dir '" + longest + "m': allowed: an absolute path of at most 47 characters");
}

TEST(NodeOptions, WhatIsWrongIsNamed) {
  EXPECT_EQ(ErrorOf({}), "--runtime-dir '': allowed: an absolute path");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "run"}), "--runtime-dir 'run': allowed: an absolute path");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--", "--gpu=1"}),
            "--gpu behind --: each daemon gets its own from sluice-node");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--", "--runtime-dir", "/m"}),
            "--runtime-dir behind --: each daemon gets its own from sluice-node");
  EXPECT_EQ(ErrorOf({"--runtime-dir", "/n", "--check", "--check-alive"}),
            "--check, --check-alive: allowed: one of them");
}

}  // namespace
}  // namespace sluice::supervisor
