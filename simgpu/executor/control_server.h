// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/cuda/abi.h"
#include "simgpu/executor/mappings.h"
#include "simgpu/executor/modules.h"
#include "simgpu/executor/peers.h"
#include "simgpu/streams/control.h"

namespace sluice::simgpu {

/// Answers the context's synchronous requests, in a thread of its own so that mapping memory does
/// not wait for a running kernel, and ends the process the moment the client is gone.
class ControlServer {
 public:
  /// `start` answers the first request: whether the context exists.
  ControlServer(int socket, int client_pidfd, CUresult start, Mappings* mappings, Modules* modules,
                Peers* peers)
      : socket_(socket),
        client_pidfd_(client_pidfd),
        start_(start),
        mappings_(mappings),
        modules_(modules),
        peers_(peers) {}
  [[noreturn]] void Run();

 private:
  void Answer(const ControlRequest& request, int fd, ControlReply* reply);

  int socket_;
  int client_pidfd_;
  CUresult start_;
  Mappings* mappings_;
  Modules* modules_;
  Peers* peers_;
};

}  // namespace sluice::simgpu
