// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/doctor/checks.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/bytes.h"
#include "noderuntime/doctor/probe.h"

namespace sluice::doctor {
namespace {

Facts Good() {
  Facts facts;
  facts.driver_version = 12'040;
  facts.exchanges_capture_mode = true;
  facts.devices = {{"a GPU", "GPU-1", 80 * kGiB, true, true, true, {}}};
  facts.library = "/opt/lib/libsluice.so";
  facts.libc_version = "2.36";
  facts.runtime_dir = "/run/sluice";
  facts.keeper_program = true;
  facts.cgroup = "0::/";
  facts.open_files_limit = 1 << 20;
  return facts;
}

/// The one finding that is not ok; its check is "none" when all are, "several" when more are not.
Finding Worst(const std::function<void(Facts*)>& spoil) {
  Facts facts = Good();
  spoil(&facts);
  Finding worst;
  worst.check = "none";
  for (const Finding& finding : Judge(facts)) {
    if (finding.verdict == Verdict::kOk) {
      EXPECT_EQ(finding.advice, "");
      continue;
    }
    EXPECT_NE(finding.advice, "") << finding.text;
    worst = finding;
  }
  return worst;
}

TEST(Doctor, AGoodMachineIsHealthy) {
  EXPECT_EQ(Worst([](Facts*) {}).check, "none");
  EXPECT_TRUE(Healthy(Judge(Good())));
}

TEST(Doctor, WhatEndsEveryJobIsAFailure) {
  const std::pair<const char*, std::function<void(Facts*)>> spoilt[] = {
      {"driver", [](Facts* f) { f->driver_problem = "no CUDA driver"; }},
      {"driver_version", [](Facts* f) { f->driver_version = 11'060; }},
      {"devices", [](Facts* f) { f->devices.clear(); }},
      {"virtual_memory", [](Facts* f) { f->devices[0].virtual_memory = false; }},
      {"posix_handles", [](Facts* f) { f->devices[0].posix_handles = false; }},
      {"stream_values", [](Facts* f) { f->devices[0].stream_values_64 = false; }},
      {"nvml", [](Facts* f) { f->nvml_problem = "it is not there"; }},
      {"library", [](Facts* f) { f->library_problem = "No such file or directory"; }},
      {"libc", [](Facts* f) { f->libc_version = "2.12"; }},
      {"runtime_dir", [](Facts* f) { f->runtime_dir_problem = "others may enter it"; }},
      {"pidfd", [](Facts* f) { f->pidfd_problem = "Function not implemented"; }},
      {"seals", [](Facts* f) { f->seal_problem = "Invalid argument"; }},
      {"open_files", [](Facts* f) { f->open_files_limit = 1024; }},
      {"daemon",
       [](Facts* f) {
         f->daemon = Facts::Daemon::kSilent;
         f->daemon_problem = "no answer";
       }},
  };
  for (const auto& [check, spoil] : spoilt) {
    const Finding worst = Worst(spoil);
    EXPECT_EQ(worst.check, check);
    EXPECT_EQ(worst.verdict, Verdict::kFail) << check;
  }
}

TEST(Doctor, WhatOnlySomeMeetIsAWarning) {
  const std::pair<const char*, std::function<void(Facts*)>> spoilt[] = {
      {"capture_mode", [](Facts* f) { f->exchanges_capture_mode = false; }},
      {"sold_twice", [](Facts* f) { f->devices[0].processes = {4711}; }},
      {"other_plugins", [](Facts* f) { f->other_plugins = {"nvidia-gpu.sock"}; }},
      {"visible_devices", [](Facts* f) { f->gives_gpus = Facts::GivesGpus::kEverybody; }},
      {"libc", [](Facts* f) { f->libc_version = ""; }},
      {"daemon", [](Facts* f) { f->daemon = Facts::Daemon::kDied; }},
      {"keeper", [](Facts* f) { f->keeper_program = false; }},
      {"keeper", [](Facts* f) { f->keeper_missing_s = 3; }},
      {"cgroup", [](Facts* f) { f->cgroup = ""; }},
  };
  for (const auto& [check, spoil] : spoilt) {
    Facts facts = Good();
    spoil(&facts);
    EXPECT_EQ(Worst(spoil).check, check);
    EXPECT_TRUE(Healthy(Judge(facts))) << check;
  }
}

TEST(Doctor, ReadsWhomNvidiasRuntimeGivesGpus) {
  const std::string key = "accept-nvidia-visible-devices-envvar-when-unprivileged";
  const auto of = [](const std::string& text) {
    std::istringstream config("disable-require = false\n" + text + "\n[nvidia-container-cli]\n");
    return GivesGpus(config);
  };
  EXPECT_EQ(of(key + " = false"), Facts::GivesGpus::kPrivileged);
  EXPECT_EQ(of("  " + key + "=false # by policy"), Facts::GivesGpus::kPrivileged);
  EXPECT_EQ(of("#" + key + " = false"), Facts::GivesGpus::kEverybody);
  EXPECT_EQ(of(key + " = true"), Facts::GivesGpus::kEverybody);
  EXPECT_EQ(of(""), Facts::GivesGpus::kEverybody);
  EXPECT_EQ(Worst([](Facts* f) { f->gives_gpus = Facts::GivesGpus::kPrivileged; }).check, "none");
}

TEST(Doctor, OurOwnJobsAreNoStrangers) {
  const auto own = [](Facts* facts) {
    facts->devices[0].processes = {10, 11};
    facts->own_processes = {11, 10};
  };
  EXPECT_EQ(Worst(own).check, "none");
  const Finding stranger = Worst([&](Facts* facts) {
    own(facts);
    facts->devices[0].processes.push_back(12);
  });
  EXPECT_NE(stranger.text.find("too: 12"), std::string::npos) << stranger.text;
}

TEST(Doctor, TheFilesThatAPoolNeedsGrowWithTheGpu) {
  const auto limit = [](uint64_t bytes) {
    return Worst([bytes](Facts* facts) {
             facts->devices[0].total_bytes = bytes;
             facts->open_files_limit = 1024;
           })
        .check;
  };
  EXPECT_EQ(limit(24 * kGiB), "none");
  EXPECT_EQ(limit(25 * kGiB), "open_files");
}

TEST(Doctor, TextAndJsonSayTheSame) {
  Facts facts = Good();
  facts.nvml_problem = "it is not there";
  const std::vector<Finding> findings = Judge(facts);
  const std::string text = RenderText(findings);
  EXPECT_NE(text.find("\nfail  it is not there\n      -> install libnvidia-ml"), std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(RenderJson(findings));
  EXPECT_EQ(json.at("healthy"), false);
  EXPECT_EQ(json.at("checks").size(), findings.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    EXPECT_EQ(json["checks"][i].at("check"), findings[i].check);
    EXPECT_EQ(json["checks"][i].contains("advice"), findings[i].verdict != Verdict::kOk);
  }
}

}  // namespace
}  // namespace sluice::doctor
