// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "intercept/protocol/wire.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::bench {

/// A simulated GPU, a sluice-noded, and one session with it that speaks the protocol but maps nothing:
/// what it measures is the daemon.
class LeaseClient {
 public:
  static std::unique_ptr<LeaseClient> Start(std::string* error);

  /// Asks for one unit and waits for the grant.
  bool Ask();
  /// Releases what was granted; nothing used it, so no fence.
  bool GiveBack();
  const std::string& error() const { return error_; }

 private:
  LeaseClient(cli::WorkDir work, cli::SimulatedGpu gpu, cli::DaemonProcess daemon)
      : work_(std::move(work)), gpu_(std::move(gpu)), daemon_(std::move(daemon)) {}
  bool Connect(const std::string& runtime_dir);
  bool Handshake(const std::string& socket_path);
  template <typename T>
  bool Send(T& frame, protocol::FrameType type, size_t bytes);
  /// The next frame but notices, in `frame_`; descriptors beside it are closed.
  bool Receive();
  bool Fail(const std::string& reason);
  const protocol::Header& header() const {
    return *reinterpret_cast<const protocol::Header*>(frame_);
  }

  // Taken down in the opposite order: socket, daemon, GPU, folder.
  cli::WorkDir work_;
  cli::SimulatedGpu gpu_;
  cli::DaemonProcess daemon_;
  UniqueFd registration_;
  UniqueFd socket_;
  uint32_t seq_ = 0;
  protocol::Extent granted_{};
  alignas(8) char frame_[protocol::kMaxFrameBytes];
  std::string error_;
};

}  // namespace sluice::bench
