// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A file of its own, so that a program can end processes that are none (tests/fuzz does).
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "noderuntime/session/socket.h"

// Linux 6.5.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace sluice::session {

Result<Peer> PeerOf(int socket) {
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Status::FromErrno(errno, "peer credentials");
  }
  Peer peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  int pidfd = -1;
  length = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0) {
    peer.pidfd.reset(pidfd);
    return peer;
  }
  peer.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, credentials.pid, 0)));
  if (!peer.pidfd.valid()) {
    return Status::FromErrno(errno, "pidfd of process " + std::to_string(credentials.pid));
  }
  return peer;
}

}  // namespace sluice::session
