// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "noderuntime/cli/daemon_client.h"

namespace sluice::cli {

/// The daemons that a runtime folder means: its own, or where the folder is sluice-node's, those in
/// the folders named by each GPU's number.
struct NodeDaemons {
  std::vector<std::string> folders;  // by number; one unless several are meant
  bool of_node = false;              // sluice-node's, even if it has one GPU
};

/// Never empty: where nothing is there, it is the folder itself.
NodeDaemons DaemonsIn(const std::string& runtime_dir);

/// Connects to the daemon of one of them. kNotFound, kUnavailable: none runs, in words.
Result<DaemonClient> ConnectIn(const std::string& folder,
                               std::chrono::milliseconds patience = kPatience);

}  // namespace sluice::cli
