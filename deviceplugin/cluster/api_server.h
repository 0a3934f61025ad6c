// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::deviceplugin {

/// Where the cluster's API server is, and how it knows us: over https alone.
struct ApiAccess {
  std::string url;         // https://HOST:PORT; http only for tests
  std::string token_file;  // read again for each call, as the next: both change
  std::string ca_file;     // whose certificates the server may have; https needs one

  /// Over https with what is in the folder `account` of a service account; over http as nobody: a
  /// token is told to no one who listens.
  static ApiAccess At(const std::string& url, const std::string& account);
  /// As every pod finds it. kNotFound: this is none, or its service account has no token.
  static Result<ApiAccess> OfThisPod(const std::string& account);
};

/// How long a call may take.
struct ApiLimits {
  std::chrono::milliseconds connect{5'000};  // TLS and all
  std::chrono::milliseconds call{30'000};
  std::chrono::milliseconds watch{330'000};  // longer than what a watch asks the server for
};

/// The part of Kubernetes' API that the plugin speaks: HTTP/1.1, JSON as text, paths from the root
/// as they stand in a request. Each call stands on
/// its own and has a connection of its own; for several threads. Whatever the environment says of
/// proxies, they are not asked: it is the cluster's own network.
class ApiServer {
 public:
  explicit ApiServer(ApiAccess access, ApiLimits limits = {});

  static constexpr size_t kMaxBody = size_t{64} << 20;  // of what Get returns

  /// The answer's body. kNotFound: 404; kPermissionDenied: 401, 403; kFailedPrecondition: 409, 410;
  /// kInvalidArgument: 400, 413, 422; kUnavailable: any other, or nobody answers, or not to its
  /// end, or with more than kMaxBody, or it is not who it should be; or `stopped` was true (asked
  /// once a second or more often).
  Result<std::string> Get(const std::string& path, const std::function<bool()>& stopped) const;
  /// Ends early, without an error, when `stopped` is true (asked once a second or more often).
  Status Post(const std::string& path, const std::string& body,
              const std::function<bool()>& stopped) const;
  /// Lines as they come, until the server ends the answer, `on_line` returns false or `stopped`
  /// true (asked once a second or more often). Not an error, all three. A line of more than 16 MiB
  /// is one (kUnavailable).
  Status Watch(const std::string& path, const std::function<bool(std::string_view)>& on_line,
               const std::function<bool()>& stopped) const;

 private:
  const ApiAccess access_;
  const ApiLimits limits_;
};

}  // namespace sluice::deviceplugin
