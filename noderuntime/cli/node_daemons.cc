// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/node_daemons.h"

#include <algorithm>
#include <filesystem>

#include "noderuntime/cli/layout.h"

namespace sluice::cli {

namespace fs = std::filesystem;

NodeDaemons DaemonsIn(const std::string& runtime_dir) {
  std::error_code error;
  NodeDaemons found;
  if (fs::exists(DaemonSocket(runtime_dir), error)) return {{runtime_dir}, false};
  std::vector<std::pair<unsigned long, std::string>> numbered;
  for (const auto& entry : fs::directory_iterator(runtime_dir, error)) {
    const std::string name = entry.path().filename();
    const bool number =
        name.size() <= 3 &&
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (number && entry.is_directory(error)) numbered.emplace_back(std::stoul(name), entry.path());
  }
  if (numbered.empty()) return {{runtime_dir}, false};
  std::sort(numbered.begin(), numbered.end());
  found.of_node = true;
  for (auto& [number, folder] : numbered) found.folders.push_back(std::move(folder));
  return found;
}

Result<DaemonClient> ConnectIn(const std::string& folder, std::chrono::milliseconds patience) {
  const std::string socket = DaemonSocket(folder);
  Result<DaemonClient> client = DaemonClient::Connect(socket, patience);
  if (client.ok()) return client;
  const StatusCode code = client.status().code();
  if (code != StatusCode::kNotFound && code != StatusCode::kUnavailable) return client;
  return Status(code, "no daemon runs in " + folder +
                          "; 'sluice run' starts one, or name another folder with --runtime-dir");
}

}  // namespace sluice::cli
