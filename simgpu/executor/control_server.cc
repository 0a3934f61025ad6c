// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/control_server.h"

#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "common/cuda/abi.h"
#include "common/unique_fd.h"
#include "simgpu/streams/fd_passing.h"

namespace sluice::simgpu {

void ControlServer::Run() {
  for (;;) {
    pollfd fds[2] = {{client_pidfd_, POLLIN, 0}, {socket_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;
    // Leaving without any clean-up: the kernel drops mappings and descriptors, and readers of the
    // state page count this process only as long as it exists.
    if (fds[0].revents != 0) _exit(0);
    ControlRequest request;
    int fd = -1;
    if (!ReceivePacket(socket_, &request, sizeof request, &fd)) _exit(0);
    request.text[sizeof request.text - 1] = 0;
    static ControlReply reply;
    memset(&reply, 0, sizeof reply);
    Answer(request, fd, &reply);
    if (!SendPacket(socket_, &reply, sizeof reply)) _exit(0);
  }
}

void ControlServer::Answer(const ControlRequest& request, int fd_in, ControlReply* reply) {
  UniqueFd fd(fd_in);
  std::string why;
  CUresult failure = CUDA_ERROR_OPERATING_SYSTEM;
  switch (request.op) {
    case ControlOp::kStart:
      reply->result = static_cast<uint32_t>(start_);
      reply->b = static_cast<uint64_t>(getpid());
      mappings_->SetOwnGpu(request.a);
      break;
    case ControlOp::kMapMemory:
      why = mappings_->MapDevice(request.a, request.b, fd.get(), request.c, request.d);
      break;
    case ControlOp::kProtect:
      why = mappings_->Protect(request.a, request.b, request.c);
      break;
    case ControlOp::kUnmapMemory:
      why = mappings_->UnmapDevice(request.a, request.b);
      break;
    case ControlOp::kMapHost:
      why = mappings_->MapHost(request.a, request.b, fd.get(), request.c, request.d != 0);
      break;
    case ControlOp::kUnmapHost:
      why = mappings_->UnmapHost(request.a);
      break;
    case ControlOp::kLoadModule:
      failure = CUDA_ERROR_INVALID_IMAGE;
      why = modules_->Load(fd.release(), &reply->a);
      break;
    case ControlOp::kUnloadModule:
      failure = CUDA_ERROR_INVALID_HANDLE;
      if (!modules_->Unload(request.a)) why = "no such module";
      break;
    case ControlOp::kGetFunction: {
      failure = CUDA_ERROR_NOT_FOUND;
      const Function* function = modules_->Find(request.a, request.text, &reply->a, &why);
      if (function == nullptr) break;
      reply->b = function->kernel->param_count;
      for (uint32_t i = 0; i < function->kernel->param_count; ++i) {
        reply->sizes[i] = function->kernel->param_sizes[i];
      }
      break;
    }
    case ControlOp::kMapPeer:
      reply->a = peers_->Add(fd.get());
      if (reply->a == 0) why = "cannot map another context's channel";
      break;
    case ControlOp::kMapShadow:
      why = mappings_->MapShadow(request.a, request.b, fd.get(), request.c, request.d);
      break;
    case ControlOp::kProtectShadow:
      why = mappings_->ProtectShadow(request.a, request.b, request.c);
      break;
    case ControlOp::kUnmapShadow:
      why = mappings_->UnmapShadow(request.a);
      break;
  }
  if (why.empty()) return;
  reply->result = failure;
  snprintf(reply->text, sizeof reply->text, "%s", why.c_str());
}

}  // namespace sluice::simgpu
