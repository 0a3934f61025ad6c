// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/node.h"

#include <chrono>
#include <filesystem>
#include <future>

#include "noderuntime/cli/job_lookup.h"
#include "noderuntime/cli/node_daemons.h"

namespace sluice::gateway {
namespace {

struct Asked {
  std::optional<uint32_t> number;  // where a folder says it
  uint64_t took_ns = 0;
  bool there = false;
  Result<std::string> json = Status(StatusCode::kUnavailable, "not asked");
};

/// Prometheus, as most set it up, gives up a scrape after ten seconds, and then nothing of this
/// node is known: nobody is waited for so long. Where the folder is a daemon's own (`of_node` is
/// false), its GPU's number is what it says.
Asked AskOne(const std::string& folder, bool of_node) {
  Asked asked;
  const std::string name = std::filesystem::path(folder).filename();
  if (of_node) asked.number = static_cast<uint32_t>(std::stoul(name));
  const auto began = std::chrono::steady_clock::now();
  Result<cli::DaemonClient> client = cli::ConnectIn(folder, cli::kLookPatience);
  // kInternal: its queue is full of those that it does not answer.
  asked.there = client.ok() || client.status().code() == StatusCode::kInternal;
  asked.json =
      client.ok() ? client->FetchStatus(/*events=*/false) : Result<std::string>(client.status());
  asked.took_ns = static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
  return asked;
}

/// All at once: one that hangs must not keep the others' figures from who asks.
std::vector<Asked> Ask(const std::string& runtime_dir) {
  const cli::NodeDaemons daemons = cli::DaemonsIn(runtime_dir);
  std::vector<std::future<Asked>> asking;
  for (size_t i = 1; i < daemons.folders.size(); ++i) {
    asking.push_back(std::async(std::launch::async, AskOne, daemons.folders[i], daemons.of_node));
  }
  std::vector<Asked> answers = {AskOne(daemons.folders.front(), daemons.of_node)};
  for (std::future<Asked>& each : asking) answers.push_back(each.get());
  return answers;
}

}  // namespace

std::vector<GpuView> Node::Look() const {
  std::vector<GpuView> gpus;
  for (const Asked& asked : Ask(runtime_dir_)) {
    Result<GpuView> view = asked.json.ok() ? ParseStatus(*asked.json) : asked.json.status();
    GpuView& gpu = gpus.emplace_back(view.ok() ? std::move(*view) : GpuView());
    gpu.number = asked.number.value_or(gpu.number);
    gpu.look_ns = asked.took_ns;
    gpu.there = asked.there;
  }
  return gpus;
}

Result<Node::Found> Node::Find(const std::string& job) const {
  std::vector<Found> found;
  for (GpuView& gpu : Look()) {
    for (size_t i = 0; i < gpu.jobs.size(); ++i) {
      if (cli::MayMean(job, gpu.jobs[i].id, gpu.jobs[i].name)) found.push_back({gpu, i});
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return Status(StatusCode::kNotFound,
                  "job '" + job + "': there is none; allowed: one that List names");
  }
  std::string text = "job '" + job + "': several are meant";
  for (const Found& each : found) {
    text += (&each == &found.front() ? "; allowed: " : ", ") + each.gpu.jobs[each.job].name;
  }
  return Status(StatusCode::kInvalidArgument, text);
}

Result<cli::DaemonClient> Node::Connect(uint32_t gpu) const {
  const cli::NodeDaemons daemons = cli::DaemonsIn(runtime_dir_);
  if (!daemons.of_node) return cli::ConnectIn(runtime_dir_);
  for (const std::string& folder : daemons.folders) {
    if (std::filesystem::path(folder).filename() == std::to_string(gpu)) {
      return cli::ConnectIn(folder);
    }
  }
  return Status(StatusCode::kNotFound,
                "gpu " + std::to_string(gpu) + ": there is none; allowed: one that List names");
}

std::vector<uint32_t> Node::Numbers(const std::vector<uint32_t>& given) const {
  if (!given.empty()) return given;
  std::vector<uint32_t> numbers;
  for (const GpuView& gpu : Look()) numbers.push_back(gpu.number);
  return numbers;
}

}  // namespace sluice::gateway
