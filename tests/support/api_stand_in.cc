// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/api_stand_in.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

namespace sluice::testing {
namespace {

constexpr std::chrono::seconds kPatience{60};  // only ends a test that fails
constexpr size_t kMostHeard = size_t{1} << 20;

void Require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

std::shared_ptr<void> Context(const ServerIdentity& identity) {
  std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(::TLS_server_method()), &::SSL_CTX_free);
  const auto read = [](const std::string& pem) {
    return std::unique_ptr<BIO, decltype(&::BIO_free)>(
        ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &::BIO_free);
  };
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      ::PEM_read_bio_X509(read(identity.certificate).get(), nullptr, nullptr, nullptr),
      &::X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
      ::PEM_read_bio_PrivateKey(read(identity.key).get(), nullptr, nullptr, nullptr),
      &::EVP_PKEY_free);
  Require(::SSL_CTX_use_certificate(context.get(), certificate.get()) == 1 &&
              ::SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1,
          "an identity");
  return context;
}

/// On any free port of the loopback address; which.
std::string Listen(int fd, int family) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  auto* const address =
      family == AF_INET ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
  socklen_t size = family == AF_INET ? sizeof v4 : sizeof v6;
  Require(::bind(fd, address, size) == 0 && ::listen(fd, 16) == 0, "an address");
  Require(::getsockname(fd, address, &size) == 0, "getsockname");
  return std::to_string(::ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port));
}

}  // namespace

/// A connection to it, which blocks.
class ApiStandIn::Client {
 public:
  Client(UniqueFd fd, void* tls) : fd_(std::move(fd)) {
    const timeval patience = {kPatience.count(), 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (tls == nullptr) return;
    ssl_.reset(::SSL_new(static_cast<SSL_CTX*>(tls)));
    ::SSL_set_fd(ssl_.get(), fd_.get());
    there_ = ::SSL_accept(ssl_.get()) == 1;
  }

  /// Whatever has come, at least a byte; empty: nobody is there.
  std::string Read() {
    char bytes[4096];
    const auto size = ssl_ != nullptr ? ::SSL_read(ssl_.get(), bytes, sizeof bytes)
                                      : static_cast<int>(::read(fd_.get(), bytes, sizeof bytes));
    return there_ && size > 0 ? std::string(bytes, static_cast<size_t>(size)) : "";
  }
  void Write(const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const size_t left = bytes.size() - done;
      const ssize_t size =
          ssl_ != nullptr ? ::SSL_write(ssl_.get(), bytes.data() + done, static_cast<int>(left))
                          : ::write(fd_.get(), bytes.data() + done, left);
      if (size <= 0) return;
      done += static_cast<size_t>(size);
    }
  }
  /// Says that it is over, which a connection that is cut does not.
  void End() {
    if (ssl_ != nullptr) ::SSL_shutdown(ssl_.get());
  }

 private:
  UniqueFd fd_;
  bool there_ = true;
  std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_{nullptr, &::SSL_free};
};

ApiStandIn::ApiStandIn(Answerer answerer, const std::optional<ServerIdentity>& identity, int family)
    : answerer_(std::move(answerer)),
      tls_(identity.has_value() ? Context(*identity) : nullptr),
      listener_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      end_(::eventfd(0, EFD_CLOEXEC)) {
  port_ = Listen(listener_.get(), family);
  thread_ = std::thread([this] { Serve(); });
}

ApiStandIn::~ApiStandIn() {
  ::eventfd_write(end_.get(), 1);
  thread_.join();
}

void ApiStandIn::Serve() {
  // Whoever hangs up on this thread. On the code under test nobody may have to wait for that.
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (true) {
    pollfd polled[] = {{listener_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    ::poll(polled, 2, -1);
    if (polled[1].revents != 0) return;
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd.valid()) Hear(std::make_unique<Client>(std::move(fd), tls_.get()));
  }
}

void ApiStandIn::Hear(std::unique_ptr<Client> client) {
  constexpr char kEnd[] = "\r\n\r\n";
  constexpr char kLength[] = "Content-Length: ";
  std::string request;
  size_t wanted = std::string::npos;
  while (request.size() < std::min(wanted, kMostHeard)) {
    const std::string more = client->Read();
    if (more.empty()) return;
    request += more;
    const size_t head = request.find(kEnd);
    if (wanted != std::string::npos || head == std::string::npos) continue;
    const size_t length = request.find(kLength);
    wanted = head + sizeof kEnd - 1;
    if (length < head) wanted += std::stoul(request.substr(length + sizeof kLength - 1));
  }
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  changed_.notify_all();
  const Answer answer = answerer_(request);
  client->Write(answer.bytes);
  if (answer.then == Then::kEnd) client->End();
  if (answer.then == Then::kStay) open_.push_back(std::move(client));
}

std::vector<std::string> ApiStandIn::Await(size_t count) {
  std::unique_lock lock(mutex_);
  const bool there = changed_.wait_for(lock, kPatience, [&] { return requests_.size() >= count; });
  return there ? requests_ : std::vector<std::string>();
}

std::string ApiStandIn::Ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string ApiStandIn::Chunk(const std::string& bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

}  // namespace sluice::testing
