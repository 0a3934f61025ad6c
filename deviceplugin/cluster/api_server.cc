// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/api_server.h"

#include <curl/curl.h>

#include <cstdlib>
#include <memory>

#include "common/read_whole.h"

namespace sluice::deviceplugin {
namespace {

constexpr char kAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr long kConnectS = 5;
constexpr long kCallS = 30;
constexpr long kWatchS = 330;          // longer than what a watch asks the server for
constexpr size_t kMaxLine = 16 << 20;  // of one object
constexpr size_t kMaxShown = 300;

struct Headers {
  curl_slist* list = nullptr;
  ~Headers() { curl_slist_free_all(list); }
  void Add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

/// One call. What comes goes to `take`, which ends it by returning false.
class Call {
 public:
  using Take = std::function<bool(std::string_view)>;

  Call(const ApiAccess& access, const std::string& path, Take take,
       const std::function<bool()>* stopped)
      : handle_(curl_easy_init(), &curl_easy_cleanup), take_(std::move(take)), stopped_(stopped) {
    Set(CURLOPT_URL, (access.url + path).c_str());
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_CONNECTTIMEOUT, kConnectS);
    Set(CURLOPT_TIMEOUT, kCallS);
    Set(CURLOPT_TCP_KEEPALIVE, 1L);
    // With HTTP/2 libcurl 7.88 may leave what it has read of a watch in its buffers until something
    // else comes: events that were half a minute late.
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    // The cluster's own network, whatever the environment says of others.
    Set(CURLOPT_PROXY, "");
    if (!access.ca_file.empty()) Set(CURLOPT_CAINFO, access.ca_file.c_str());
    headers_.Add("Accept: application/json");
    if (!access.token_file.empty()) {
      headers_.Add("Authorization: Bearer " + ReadWhole(access.token_file));
    }
    Set(CURLOPT_WRITEFUNCTION, &Call::OnData);
    Set(CURLOPT_WRITEDATA, this);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &Call::OnTurn);
    Set(CURLOPT_XFERINFODATA, this);
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(handle_.get(), option, value);
  }
  void Send(const std::string& body) {
    headers_.Add("Content-Type: application/json");
    Set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    Set(CURLOPT_COPYPOSTFIELDS, body.c_str());
  }

  Status Run() {
    Set(CURLOPT_HTTPHEADER, headers_.list);
    const CURLcode code = curl_easy_perform(handle_.get());
    long answer = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &answer);
    if (answer >= 300) {
      const auto kind = answer == 404                    ? StatusCode::kNotFound
                        : answer == 401 || answer == 403 ? StatusCode::kPermissionDenied
                        : answer == 409 || answer == 410 ? StatusCode::kFailedPrecondition
                        : answer == 400 || answer == 413 || answer == 422
                            ? StatusCode::kInvalidArgument
                            : StatusCode::kUnavailable;
      return Status(kind, "the API server answers " + std::to_string(answer) + ": " +
                              refusal_.substr(0, kMaxShown));
    }
    const bool wanted = code == CURLE_OK || ended_;
    return wanted ? Status()
                  : Status(StatusCode::kUnavailable,
                           std::string("the API server: ") + curl_easy_strerror(code));
  }

 private:
  static size_t OnData(char* data, size_t, size_t count, void* self) {
    auto* call = static_cast<Call*>(self);
    long answer = 0;
    curl_easy_getinfo(call->handle_.get(), CURLINFO_RESPONSE_CODE, &answer);
    if (answer >= 300) {
      call->refusal_.append(data, std::min(count, kMaxLine - call->refusal_.size()));
      return count;
    }
    if (call->take_({data, count})) return count;
    call->ended_ = true;
    return CURL_WRITEFUNC_ERROR;
  }
  static int OnTurn(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto* call = static_cast<Call*>(self);
    if (call->stopped_ == nullptr || !(*call->stopped_)()) return 0;
    call->ended_ = true;
    return 1;
  }

  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle_;
  Headers headers_;
  Take take_;
  const std::function<bool()>* stopped_;
  std::string refusal_;
  bool ended_ = false;  // by us
};

}  // namespace

Result<ApiAccess> ApiAccess::OfThisPod() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  ApiAccess access;
  access.token_file = std::string(kAccount) + "/token";
  access.ca_file = std::string(kAccount) + "/ca.crt";
  if (host == nullptr || port == nullptr) {
    return Status(StatusCode::kNotFound, "KUBERNETES_SERVICE_HOST is not set: this is no pod");
  }
  if (ReadWhole(access.token_file).empty()) {
    return Status(StatusCode::kNotFound,
                  access.token_file + ": this pod's service account has no token");
  }
  const std::string name = host;
  const bool is_v6 = name.find(':') != std::string::npos;
  access.url = "https://" + (is_v6 ? "[" + name + "]" : name) + ":" + port;
  return access;
}

ApiServer::ApiServer(ApiAccess access) : access_(std::move(access)) {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
}

Result<std::string> ApiServer::Get(const std::string& path) const {
  std::string body;
  Call call(
      access_, path,
      [&body](std::string_view data) {
        body.append(data);
        return true;
      },
      nullptr);
  if (Status s = call.Run(); !s.ok()) return s;
  return body;
}

Status ApiServer::Post(const std::string& path, const std::string& body,
                       const std::function<bool()>& stopped) const {
  Call call(
      access_, path, [](std::string_view) { return true; }, &stopped);
  call.Send(body);
  return call.Run();
}

Status ApiServer::Watch(const std::string& path,
                        const std::function<bool(std::string_view)>& on_line,
                        const std::function<bool()>& stopped) const {
  std::string rest;
  const auto take = [&](std::string_view data) {
    rest.append(data);
    size_t begin = 0;
    for (size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (!on_line(std::string_view(rest).substr(begin, end - begin))) return false;
    }
    rest.erase(0, begin);
    return rest.size() <= kMaxLine;
  };
  Call call(access_, path, take, &stopped);
  call.Set(CURLOPT_TIMEOUT, kWatchS);
  return call.Run();
}

}  // namespace sluice::deviceplugin
