// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/watcher.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "noderuntime/cli/answer.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/cli/layout.h"

namespace sluice::bench {

Watcher::Watcher(std::string runtime_dir)
    : runtime_dir_(std::move(runtime_dir)), thread_([this] { Watch(); }) {}

Watcher::~Watcher() {
  ended_ = true;
  thread_.join();
}

void Watcher::Watch() {
  constexpr auto kPeriod = std::chrono::milliseconds(10);
  Result<cli::DaemonClient> daemon = cli::DaemonClient::Connect(cli::DaemonSocket(runtime_dir_));
  uint64_t seen = 0;
  for (auto next = std::chrono::steady_clock::now(); daemon.ok() && !ended_; next += kPeriod) {
    const Result<std::string> live = daemon->FetchLive(seen);
    if (live.ok()) {
      seen = cli::answer::Number(nlohmann::json::parse(*live, nullptr, false), "seq");
      ++answers_;
    }
    if (daemon->FetchStatus().ok()) ++answers_;
    std::this_thread::sleep_until(next + kPeriod);
  }
}

}  // namespace sluice::bench
