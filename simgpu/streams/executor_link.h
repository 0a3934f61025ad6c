// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/status.h"
#include "common/unique_fd.h"
#include "simgpu/sharing/gpu_state.h"
#include "simgpu/streams/channel.h"
#include "simgpu/streams/control.h"

namespace sluice::simgpu {

/// A context's end of its executor: the process, the shared channel and the control socket.
class ExecutorLink {
 public:
  /// Starts `simgpu-executor` from the folder of this library. The client knows the GPU as number
  /// `ordinal`.
  static Result<std::unique_ptr<ExecutorLink>> Start(const GpuState& gpu, uint32_t process,
                                                     int ordinal);
  /// Ends the executor and waits until its memory is free.
  ~ExecutorLink();

  Channel* channel() const { return channel_; }
  /// One request and its reply. A dead executor answers CUDA_ERROR_LAUNCH_FAILED.
  ControlReply Call(const ControlRequest& request, int fd = -1);
  bool Alive() const;
  int pid() const { return pid_; }
  /// The channel's file, for executors of other contexts that wait for this one's work.
  int channel_fd() const { return channel_fd_.get(); }

 private:
  ExecutorLink() = default;
  Channel* channel_ = nullptr;
  UniqueFd channel_fd_;
  UniqueFd socket_;
  UniqueFd pidfd_;
  int pid_ = 0;
  std::mutex mutex_;  // one request at a time
};

}  // namespace sluice::simgpu
