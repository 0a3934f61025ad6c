// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/bytes.h"
#include "common/grant/store.h"
#include "tests/support/restart_bed.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {

inline bool IsZombie(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  return line.empty() || line.find(") Z ") != std::string::npos;
}

/// A daemon that serves grants, and programs as in containers: nothing registers them, the socket
/// in their folder is their grant.
class Grants : public ::testing::Test {
 protected:
  void Up(bool keeper = false, const std::string& terms = "off", BedOptions options = SmallBed()) {
    options.keeper = keeper;
    for (const std::string& flag :
         {std::string("--grants"), root_, std::string("--terms"), terms}) {
      options.noded_flags.push_back(flag);
    }
    bed_.emplace(options);
  }
  GrantRecord Make(uint64_t bytes, const std::string& gpu = "") {
    const auto store = GrantStore::Open(root_);
    const auto grant =
        store->Make({"",
                     gpu.empty() ? bed_->Status().at("gpu_uuid").get<std::string>() : gpu,
                     bytes,
                     1,
                     {"x-0"}});
    EXPECT_TRUE(grant.ok()) << grant.status().message();
    return *grant;
  }
  /// As the plugin does when it has found the grant's pod.
  void SetTerms(const GrantRecord& grant, const GrantTerms& terms) {
    const auto store = GrantStore::Open(root_);
    ASSERT_TRUE(store->SetTerms(grant.id, terms).ok());
  }
  std::string ReportOf(const GrantRecord& grant) {
    return GrantStore::Open(root_)->ReportOf(grant.id);
  }
  void AwaitAnswer(const GrantRecord& grant, const TermsAnswer& wanted) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const auto now = [&] { return GrantStore::Open(root_)->AnswerOf(grant.id); };
    const auto there = [&](const std::optional<TermsAnswer>& answer) {
      return answer.has_value() && answer->limit_bytes == wanted.limit_bytes &&
             answer->terms == wanted.terms;
    };
    while (!there(now()) && std::chrono::steady_clock::now() < until) {
    }
    EXPECT_TRUE(there(now())) << "limit " << wanted.limit_bytes;
  }
  std::string AwaitReport(const GrantRecord& grant) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ReportOf(grant).empty() && std::chrono::steady_clock::now() < until) {
    }
    return ReportOf(grant);
  }
  /// What its pod is told of what happened to it under this word; nothing: nothing did.
  std::optional<Happening> HappeningOf(const GrantRecord& grant, const std::string& word) const {
    for (const Happening& happened : GrantStore::Open(root_)->HappeningsOf(grant.id)) {
      if (happened.word == word) return happened;
    }
    return std::nullopt;
  }
  std::string FolderOf(const GrantRecord& grant) const { return root_ + "/a/" + grant.id; }
  void AwaitSocket(const GrantRecord& grant) const {
    while (!std::filesystem::exists(FolderOf(grant) + "/sluice.sock")) {
    }
  }
  /// As the device plugin's answer to kubelet makes a container's environment.
  JobSpec InContainer(const GrantRecord& grant, std::vector<std::string> arguments,
                      int input = -1) const {
    AwaitSocket(grant);
    JobSpec spec{.label = "container",
                 .command = {Program("WORKLOAD")},
                 .under_sluice = false,
                 .input = input};
    spec.command.insert(spec.command.end(), arguments.begin(), arguments.end());
    spec.environment = {{"LD_PRELOAD", Program("LIBRARY")},
                        {"SLUICE_SOCKET", FolderOf(grant) + "/sluice.sock"},
                        {"SLUICE_ORACLE", bed_->work().File("oracle")}};
    return spec;
  }
  /// A program that has 6 MiB, looked at once and then let go.
  void WhileItHolds(const GrantRecord& grant,
                    const std::function<void(const cli::JobProcess&)>& look) {
    InputPipe input = MakeInputPipe();
    cli::JobGroup jobs;
    jobs.Add(bed_->Start(InContainer(grant, {"--one-shot", "--block-bytes", "6MiB", "--hold"},
                                     input.read_end.get())));
    Finish(jobs, 60'000, [&](cli::JobGroup& running) {
      const cli::JobProcess& program = running.jobs().front();
      const auto& out = program.out();
      if (!input.write_end.valid() || std::find(out.begin(), out.end(), "holding") == out.end()) {
        return;
      }
      look(program);
      input.write_end.reset();
    });
    EXPECT_TRUE(jobs.jobs().front().status().ok()) << Describe(jobs.jobs().front());
  }
  nlohmann::json JobOf(const GrantRecord& grant) const {
    const nlohmann::json status = bed_->Status();
    for (const auto& job : status.at("jobs")) {
      if (job.at("name") == "grant " + grant.id.substr(0, 8)) return job;
      if (job.at("name") == "ns/" + grant.id.substr(0, 8) + "/main") return job;
    }
    return {};
  }

  static GrantTerms Terms(const GrantRecord& grant, uint64_t limit,
                          const std::string& group = "ns") {
    return {"ns/" + grant.id.substr(0, 8) + "/main", "", limit, 0, group, ""};
  }

  const TempFolder temp_;
  const std::string root_ = temp_.path();
  std::optional<TestBed> bed_;
};

}  // namespace sluice::testing
