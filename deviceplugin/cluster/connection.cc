// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/connection.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "deviceplugin/cluster/tcp.h"

namespace sluice::deviceplugin {
namespace {

/// Calls `act` of OpenSSL until it has moved something; how much. 0: the server has said that it
/// will send no more.
template <typename Act>
Result<size_t> Drive(SSL* ssl, int fd, const Patience& patience, const Act& act) {
  while (true) {
    if (Status s = patience.Check(); !s.ok()) return s;
    ::ERR_clear_error();
    const int done = act();
    if (done > 0) return static_cast<size_t>(done);
    const int error = ::SSL_get_error(ssl, done);
    if (error == SSL_ERROR_ZERO_RETURN) return size_t{0};
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return TlsFailure(ssl, error);
    }
    const short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    if (Status s = patience.Await(fd, events); !s.ok()) return s;
  }
}

/// The same without TLS, for a system call.
template <typename Act>
Result<size_t> DrivePlain(int fd, short events, const Patience& patience, const Act& act) {
  while (true) {
    if (Status s = patience.Check(); !s.ok()) return s;
    const ssize_t done = act();
    if (done >= 0) return static_cast<size_t>(done);
    if (errno != EAGAIN && errno != EINTR) {
      return Status(StatusCode::kUnavailable, Status::FromErrno(errno, "the connection").message());
    }
    if (Status s = patience.Await(fd, events); !s.ok()) return s;
  }
}

int Most(size_t size) { return static_cast<int>(std::min<size_t>(size, INT_MAX)); }

}  // namespace

Result<Connection> Connection::Open(const ServerAddress& address, const std::string& ca_file,
                                    const Patience& patience) {
  Result<UniqueFd> fd = ConnectTcp(address, patience);
  if (!fd.ok()) return fd.status();
  if (!address.tls) return Connection(std::move(*fd), nullptr);
  Result<UniqueSsl> tls = ClientTls(fd->get(), address.host, ca_file);
  if (!tls.ok()) return tls.status();
  SSL* const ssl = tls->get();
  const Result<size_t> shaken =
      Drive(ssl, fd->get(), patience, [ssl] { return ::SSL_connect(ssl); });
  if (!shaken.ok()) return shaken.status();
  if (*shaken == 0) return Status(StatusCode::kUnavailable, "the server wants no TLS");
  return Connection(std::move(*fd), std::move(*tls));
}

Status Connection::Write(std::string_view bytes, const Patience& patience) {
  while (!bytes.empty()) {
    const Result<size_t> done =
        ssl_ != nullptr
            ? Drive(ssl_.get(), fd_.get(), patience,
                    [&] { return ::SSL_write(ssl_.get(), bytes.data(), Most(bytes.size())); })
            : DrivePlain(fd_.get(), POLLOUT, patience, [&] {
                return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
              });
    if (!done.ok()) return done.status();
    if (*done == 0) return Status(StatusCode::kUnavailable, "the server has ended the connection");
    bytes.remove_prefix(*done);
  }
  return {};
}

Result<size_t> Connection::Read(std::span<char> into, const Patience& patience) {
  if (ssl_ == nullptr) {
    return DrivePlain(fd_.get(), POLLIN, patience,
                      [&] { return ::recv(fd_.get(), into.data(), into.size(), 0); });
  }
  return Drive(ssl_.get(), fd_.get(), patience,
               [&] { return ::SSL_read(ssl_.get(), into.data(), Most(into.size())); });
}

}  // namespace sluice::deviceplugin
