// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::deviceplugin {

/// Where the cluster's API server is, and how it knows us.
struct ApiAccess {
  std::string url;         // https://HOST:PORT; http only for tests
  std::string token_file;  // read again for each call: tokens change
  std::string ca_file;     // of the server's certificate

  /// As every pod finds it. kNotFound: this is none, or its service account has no token.
  static Result<ApiAccess> OfThisPod();
};

/// The part of Kubernetes' API that the plugin speaks: plain HTTP, JSON as text. Each call stands
/// on its own; for several threads.
class ApiServer {
 public:
  explicit ApiServer(ApiAccess access);

  /// The answer's body. kNotFound: 404; kPermissionDenied: 401, 403; kFailedPrecondition: 409, 410;
  /// kInvalidArgument: 400, 413, 422; kUnavailable: any other, or nobody answers.
  Result<std::string> Get(const std::string& path) const;
  /// Ends early, without an error, when `stopped` is true (asked once a second or more often).
  Status Post(const std::string& path, const std::string& body,
              const std::function<bool()>& stopped) const;
  /// Lines as they come, until the server ends the answer, `on_line` returns false or `stopped`
  /// true (asked once a second or more often). Not an error, all three.
  Status Watch(const std::string& path, const std::function<bool(std::string_view)>& on_line,
               const std::function<bool()>& stopped) const;

 private:
  ApiAccess access_;
};

}  // namespace sluice::deviceplugin
