// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/api_server.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "common/read_whole.h"
#include "deviceplugin/cluster/connection.h"
#include "deviceplugin/cluster/http_answer.h"
#include "deviceplugin/cluster/lines.h"

namespace sluice::deviceplugin {
namespace {

constexpr size_t kMaxShown = 300;
constexpr size_t kAtOnce = 16 << 10;                     // most that TLS has in one record
constexpr std::chrono::milliseconds kForAReason{1'000};  // after a refusal, for its text

Status Unavailable(const std::string& text) { return Status(StatusCode::kUnavailable, text); }

/// What the file says, which editors and `echo` end with a line. Empty: nobody.
Result<std::string> TokenIn(const std::string& file) {
  constexpr char kBlanks[] = " \t\r\n";
  const std::string text = ReadWhole(file);
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return std::string();
  std::string token = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  // It would be more than a header's value.
  if (!IsWord(token)) return Unavailable(file + " is no token");
  return token;
}

/// One call. What comes goes to `take`, which ends it by returning false.
class Call {
 public:
  using Take = std::function<bool(std::string_view)>;

  Call(const ApiAccess& access, Take take, const Patience& patience)
      : access_(access), take_(std::move(take)), patience_(patience) {}

  /// `body` empty: there is none.
  Status Run(const std::string& method, const std::string& path, const std::string& body,
             std::chrono::milliseconds connect) {
    const Status done = Exchange(method, path, body, connect);
    if (answer_.code() >= 300) return Refused();
    if (done.ok() || patience_.stopped()) return {};
    return Unavailable(done.message()).Annotate("the API server");
  }

 private:
  Status Exchange(const std::string& method, const std::string& path, const std::string& body,
                  std::chrono::milliseconds connect) {
    // It would be more than one word of the request.
    if (!path.starts_with('/') || !IsWord(path)) return Unavailable("no path: '" + path + "'");
    const Result<ServerAddress> address = ServerAddress::Parse(access_.url);
    if (!address.ok()) return address.status();
    const Result<std::string> token = TokenIn(access_.token_file);
    if (!token.ok()) return token.status();
    Result<Connection> connection =
        Connection::Open(*address, access_.ca_file, patience_.AtMost(connect));
    if (!connection.ok()) return connection.status().Annotate(address->Authority());
    std::string request = method + " " + address->base + path +
                          " HTTP/1.1\r\nHost: " + address->Authority() +
                          "\r\nAccept: application/json\r\n" +
                          "User-Agent: sluice-device-plugin\r\nConnection: close\r\n";
    if (address->tls && !token->empty()) request += "Authorization: Bearer " + *token + "\r\n";
    if (!body.empty()) {
      request +=
          "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
          "\r\n";
    }
    request += "\r\n" + body;
    if (Status s = connection->Write(request, patience_); !s.ok()) return s;
    return TakeAnswer(&*connection);
  }

  Status TakeAnswer(Connection* connection) {
    std::array<char, kAtOnce> buffer;
    std::string body;
    std::optional<Patience> for_a_reason;
    while (!answer_.complete() && refusal_.size() < kMaxShown) {
      if (answer_.code() >= 300 && !for_a_reason) for_a_reason = patience_.AtMost(kForAReason);
      const Result<size_t> count =
          connection->Read(buffer, for_a_reason ? *for_a_reason : patience_);
      if (!count.ok()) return count.status();
      if (*count == 0) return answer_.Close();
      body.clear();
      Status taken = answer_.Take({buffer.data(), *count}, &body);
      if (answer_.code() >= 300) {
        refusal_.append(body, 0, kMaxShown - refusal_.size());
      } else if (!body.empty() && !take_(body)) {
        return {};
      }
      if (!taken.ok()) return taken;
    }
    return {};
  }

  Status Refused() const {
    const int answer = answer_.code();
    const auto kind = answer == 404                    ? StatusCode::kNotFound
                      : answer == 401 || answer == 403 ? StatusCode::kPermissionDenied
                      : answer == 409 || answer == 410 ? StatusCode::kFailedPrecondition
                      : answer == 400 || answer == 413 || answer == 422
                          ? StatusCode::kInvalidArgument
                          : StatusCode::kUnavailable;
    return Status(kind, "the API server answers " + std::to_string(answer) + ": " + refusal_);
  }

  const ApiAccess& access_;
  const Take take_;
  const Patience patience_;
  HttpAnswer answer_;
  std::string refusal_;  // its beginning
};

}  // namespace

ApiAccess ApiAccess::At(const std::string& url, const std::string& account) {
  if (!url.starts_with("https:")) return {url, "", ""};
  return {url, account + "/token", account + "/ca.crt"};
}

Result<ApiAccess> ApiAccess::OfThisPod(const std::string& account) {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr) {
    return Status(StatusCode::kNotFound, "KUBERNETES_SERVICE_HOST is not set: this is no pod");
  }
  ApiAccess access = At("https://" + ServerAddress{true, host, port, ""}.Authority(), account);
  if (ReadWhole(access.token_file).empty()) {
    return Status(StatusCode::kNotFound,
                  access.token_file + ": this pod's service account has no token");
  }
  return access;
}

ApiServer::ApiServer(ApiAccess access, ApiLimits limits)
    : access_(std::move(access)), limits_(limits) {}

Result<std::string> ApiServer::Get(const std::string& path,
                                   const std::function<bool()>& stopped) const {
  std::string body;
  bool too_long = false;
  const auto take = [&](std::string_view data) {
    too_long = data.size() > kMaxBody - body.size();
    if (!too_long) body.append(data);
    return !too_long;
  };
  Call call(access_, take, Patience(limits_.call, &stopped));
  if (Status s = call.Run("GET", path, "", limits_.connect); !s.ok()) return s;
  if (too_long)
    return Unavailable("the API server: an answer of more than " + std::to_string(kMaxBody >> 20) +
                       " MiB");
  if (stopped()) return Unavailable("stopped");
  return body;
}

Status ApiServer::Post(const std::string& path, const std::string& body,
                       const std::function<bool()>& stopped) const {
  const auto take = [](std::string_view) { return true; };
  Call call(access_, take, Patience(limits_.call, &stopped));
  return call.Run("POST", path, body, limits_.connect);
}

Status ApiServer::Watch(const std::string& path,
                        const std::function<bool(std::string_view)>& on_line,
                        const std::function<bool()>& stopped) const {
  Lines lines(on_line);
  const auto take = [&lines](std::string_view data) { return lines.Take(data); };
  Call call(access_, take, Patience(limits_.watch, &stopped));
  const Status done = call.Run("GET", path, "", limits_.connect);
  return lines.too_long() ? Unavailable("the API server: a line of a watch is too long") : done;
}

}  // namespace sluice::deviceplugin
