// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace sluice::deviceplugin {
namespace {

Status Unavailable(const std::string& text) { return Status(StatusCode::kUnavailable, text); }

/// OpenSSL's own words for what is first in this thread's list of errors.
std::string Reason() {
  const char* const text = ::ERR_reason_error_string(::ERR_peek_error());
  return text != nullptr ? text : "TLS failed";
}

int FdOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(::BIO_get_data(bio))); }

/// `done` of a call that moves bytes, as OpenSSL wants to be told.
int Moved(BIO* bio, ssize_t done, int again) {
  ::BIO_clear_retry_flags(bio);
  if (done < 0 && (errno == EAGAIN || errno == EINTR)) ::BIO_set_flags(bio, again);
  return static_cast<int>(done);
}

int Send(BIO* bio, const char* data, int size) {
  // OpenSSL's own way to write to a socket raises SIGPIPE where the other side is gone.
  return Moved(bio, ::send(FdOf(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL),
               BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
}

int Receive(BIO* bio, char* data, int size) {
  const ssize_t done = ::recv(FdOf(bio), data, static_cast<size_t>(size), 0);
  if (done == 0) ::BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return Moved(bio, done, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
}

long Control(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_EOF) return ::BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

/// Lives as long as the program.
const BIO_METHOD* Socket() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    ::BIO_meth_set_write(made, &Send);
    ::BIO_meth_set_read(made, &Receive);
    ::BIO_meth_set_ctrl(made, &Control);
    return made;
  }();
  return method;
}

/// What the peer has to be called.
bool Expect(SSL* ssl, const std::string& host) {
  in6_addr number = {};
  if (::inet_pton(AF_INET, host.c_str(), &number) == 1 ||
      ::inet_pton(AF_INET6, host.c_str(), &number) == 1) {
    return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), host.c_str()) == 1;
  }
  // A subject's common name is for people.
  ::SSL_set_hostflags(ssl,
                      X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return ::SSL_set1_host(ssl, host.c_str()) == 1 &&
         ::SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

}  // namespace

Result<UniqueSsl> ClientTls(int fd, const std::string& host, const std::string& ca_file) {
  ::ERR_clear_error();
  const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context(
      ::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free);
  if (context == nullptr || ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return Unavailable(Reason());
  }
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // 34 KiB less while a watch is silent.
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  if (::SSL_CTX_load_verify_file(context.get(), ca_file.c_str()) != 1) {
    return Unavailable("no CA in '" + ca_file + "': " + Reason());
  }
  // A cluster's CA may be one that another, which the file leaves out, vouches for.
  ::X509_STORE_set_flags(::SSL_CTX_get_cert_store(context.get()), X509_V_FLAG_PARTIAL_CHAIN);
  UniqueSsl ssl(::SSL_new(context.get()));
  BIO* const bio = ssl == nullptr ? nullptr : ::BIO_new(Socket());
  if (bio == nullptr) return Unavailable(Reason());
  ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(ssl.get(), bio, bio);
  if (!Expect(ssl.get(), host)) return Unavailable("'" + host + "' can be in no certificate");
  return ssl;
}

Status TlsFailure(const SSL* ssl, int error) {
  const long checked = ::SSL_get_verify_result(ssl);
  if (checked != X509_V_OK) {
    return Unavailable(std::string("the server's certificate: ") +
                       ::X509_verify_cert_error_string(checked));
  }
  if (error == SSL_ERROR_SYSCALL && ::ERR_peek_error() == 0) {
    return Unavailable(Status::FromErrno(errno, "TLS").message());
  }
  // A connection that is cut, by whomever, ends without the word that it is over.
  if (ERR_GET_REASON(::ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return Unavailable("the connection was cut");
  }
  return Unavailable(Reason());
}

}  // namespace sluice::deviceplugin
