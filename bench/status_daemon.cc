// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/status_daemon.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "intercept/protocol/wire.h"
#include "noderuntime/cli/layout.h"

namespace sluice::bench {
namespace {

namespace wire = ::sluice::protocol;

}  // namespace

StatusDaemon::StatusDaemon(const std::string& folder, std::function<std::string(bool)> status)
    : status_(std::move(status)), listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  const std::string path = cli::DaemonSocket(folder);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 16) != 0) {
    throw std::runtime_error(path + ": " + std::strerror(errno));
  }
  thread_ = std::thread([this] { Serve(); });
}

StatusDaemon::~StatusDaemon() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void StatusDaemon::Serve() const {
  for (;;) {
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) return;
    Answer(connection.get());
  }
}

void StatusDaemon::Answer(int connection) const {
  wire::Status question = {};
  while (::recv(connection, &question, sizeof question, 0) > 0) {
    const std::string text = status_((question.header.flags & wire::kWithoutEvents) == 0);
    const UniqueFd file(::memfd_create("status", MFD_CLOEXEC));
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return;
    wire::StatusReply reply = {};
    reply.header = {wire::kMagic, static_cast<uint16_t>(wire::FrameType::kStatusReply), 0,
                    sizeof reply, 1};
    reply.json_bytes = text.size();
    iovec part = {&reply, sizeof reply};
    const int fd = file.get();
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
    if (::sendmsg(connection, &message, MSG_NOSIGNAL) < 0) return;
  }
}

}  // namespace sluice::bench
