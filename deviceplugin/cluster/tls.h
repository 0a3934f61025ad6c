// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "common/status.h"

namespace sluice::deviceplugin {

struct FreeSsl {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
};
using UniqueSsl = std::unique_ptr<SSL, FreeSsl>;

/// The client's side of TLS (1.2 or newer) over the connected socket `fd`, which outlives it;
/// SSL_connect is still to be called. The handshake fails unless the server's certificate is one of
/// those of the CAs in `ca_file` (PEM), and of nobody else's, and names `host`: among its addresses
/// where that is a number, otherwise among its names. What is written to a connection that is
/// closed raises no signal. kUnavailable: there is no CA in that file.
Result<UniqueSsl> ClientTls(int fd, const std::string& host, const std::string& ca_file);

/// Why the last call failed, in a few words: `error` is what SSL_get_error said of it.
/// kUnavailable.
Status TlsFailure(const SSL* ssl, int error);

}  // namespace sluice::deviceplugin
