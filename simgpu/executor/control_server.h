// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "simgpu/executor/mappings.h"
#include "simgpu/executor/modules.h"
#include "simgpu/streams/control.h"

namespace sluice::simgpu {

/// Answers the context's synchronous requests, in a thread of its own so that mapping memory does not
/// wait for a running kernel, and ends the process the moment the client is gone.
class ControlServer {
 public:
  ControlServer(int socket, int client_pidfd, uint32_t executor, Mappings* mappings,
                Modules* modules)
      : socket_(socket),
        client_pidfd_(client_pidfd),
        executor_(executor),
        mappings_(mappings),
        modules_(modules) {}
  [[noreturn]] void Run();

 private:
  void Answer(const ControlRequest& request, int fd, ControlReply* reply);

  int socket_;
  int client_pidfd_;
  uint32_t executor_;
  Mappings* mappings_;
  Modules* modules_;
};

}  // namespace sluice::simgpu
