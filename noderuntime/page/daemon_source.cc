// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/daemon_source.h"

#include <chrono>
#include <filesystem>

#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/cli/node_daemons.h"

namespace sluice::page {
namespace {

class DaemonConnection final : public LiveConnection {
 public:
  explicit DaemonConnection(cli::DaemonClient client) : client_(std::move(client)) {}
  Result<std::string> Fetch(uint64_t cursor) override { return client_.FetchLive(cursor); }

 private:
  cli::DaemonClient client_;
};

/// On a workstation there is one daemon, and the page calls its GPU 0, whatever it was started
/// with.
Result<cli::DaemonClient> Open(const std::string& runtime_dir, uint32_t gpu,
                               std::chrono::milliseconds patience = cli::kPatience) {
  const cli::NodeDaemons daemons = cli::DaemonsIn(runtime_dir);
  for (const std::string& folder : daemons.folders) {
    const bool meant = daemons.of_node
                           ? std::filesystem::path(folder).filename() == std::to_string(gpu)
                           : gpu == 0;
    if (meant) return cli::ConnectIn(folder, patience);
  }
  return sluice::Status(StatusCode::kNotFound, "gpu " + std::to_string(gpu) + ": there is none");
}

}  // namespace

std::vector<uint32_t> DaemonSource::Gpus() const {
  const cli::NodeDaemons daemons = cli::DaemonsIn(runtime_dir_);
  if (!daemons.of_node) return {0};
  std::vector<uint32_t> gpus;
  for (const std::string& folder : daemons.folders) {
    const std::string name = std::filesystem::path(folder).filename();
    gpus.push_back(static_cast<uint32_t>(std::stoul(name)));
  }
  return gpus;
}

Result<std::unique_ptr<LiveConnection>> DaemonSource::Connect(uint32_t gpu) const {
  Result<cli::DaemonClient> client = Open(runtime_dir_, gpu);
  if (!client.ok()) return client.status();
  return std::unique_ptr<LiveConnection>(new DaemonConnection(std::move(*client)));
}

Result<std::string> DaemonSource::Status(uint32_t gpu) const {
  Result<cli::DaemonClient> client = Open(runtime_dir_, gpu, cli::kLookPatience);
  if (!client.ok()) return client.status();
  return client->FetchStatus(/*events=*/false);
}

Result<uint32_t> DaemonSource::SetPolicy(uint32_t gpu, const std::string& policy,
                                         uint32_t lanes) const {
  Result<cli::DaemonClient> client = Open(runtime_dir_, gpu);
  if (!client.ok()) return client.status();
  return client->SetPolicy(policy, lanes);
}

}  // namespace sluice::page
