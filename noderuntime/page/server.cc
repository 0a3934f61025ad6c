// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/server.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/http/bounded_server.h"
#include "noderuntime/page/answer.h"
#include "noderuntime/page/live_view.h"
#include "noderuntime/page/static_files.h"
#include "scheduler/policy/policies.h"

namespace sluice::page {
namespace {

using Clock = std::chrono::steady_clock;
using http::BoundedServer;
using httplib::Request;
using httplib::Response;

constexpr char kTokenHeader[] = "X-Sluice-Token";
constexpr char kJson[] = "application/json";
// So that a viewer who has gone is noticed, and no proxy takes the stream for dead.
constexpr std::chrono::seconds kSilence{2};

/// Nothing from elsewhere is loaded, nothing is written into the page as a script or a style, and
/// no other page may frame this one.
const httplib::Headers& SecurityHeaders() {
  static const httplib::Headers kHeaders = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
       "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
  };
  return kHeaders;
}

BoundedServer::Bounds BoundsFor(const ServerOptions& options) {
  BoundedServer::Bounds bounds;
  bounds.write_time = options.write_time;
  return bounds;
}

void Refuse(Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(ErrorJson(text), kJson);
}

void Refuse(Response& response, const sluice::Status& status) {
  Refuse(response, HttpStatus(status), status.message());
}

}  // namespace

struct Server::Parts {
  Parts(const ServerOptions& given, const Source* from)
      : options(given), source(from), http(BoundsFor(given)) {}

  /// The GPU that is asked for; none said: the first.
  Result<uint32_t> GpuOf(const Request& request) const;
  Feed* FeedOf(uint32_t gpu);
  bool MayChange(const Request& request) const {
    return SameToken(options.token, request.get_header_value(kTokenHeader));
  }
  void Touch() { touched = Clock::now().time_since_epoch().count(); }

  void AddRoutes();
  void ServeStatic(const Request& request, Response& response) const;
  void ServeGpus(const Request& request, Response& response) const;
  void ServeLive(const Request& request, Response& response);
  void ServeJob(const Request& request, Response& response) const;
  void ServePolicy(const Request& request, Response& response) const;

  ServerOptions options;
  const Source* source;
  std::atomic<int> viewers{0};
  std::atomic<Clock::rep> touched{0};
  std::mutex mutex;
  std::map<uint32_t, std::unique_ptr<Feed>> feeds;
  BoundedServer http;
};

Result<uint32_t> Server::Parts::GpuOf(const Request& request) const {
  const std::vector<uint32_t> gpus = source->Gpus();
  if (!request.has_param("gpu")) return gpus.empty() ? 0 : gpus.front();
  const auto gpu = ParseNumber(request.get_param_value("gpu"));
  if (!gpu.has_value()) {
    return sluice::Status(StatusCode::kInvalidArgument, "gpu: allowed: a GPU's number");
  }
  if (std::find(gpus.begin(), gpus.end(), *gpu) == gpus.end()) {
    return sluice::Status(StatusCode::kNotFound, "gpu " + std::to_string(*gpu) +
                                                     ": there is none; allowed: one that "
                                                     "/api/gpus names");
  }
  return *gpu;
}

/// As many as there are GPUs at most.
Feed* Server::Parts::FeedOf(uint32_t gpu) {
  const std::lock_guard lock(mutex);
  std::unique_ptr<Feed>& feed = feeds[gpu];
  if (feed == nullptr) feed = std::make_unique<Feed>(source, gpu, options.pace);
  return feed.get();
}

void Server::Parts::ServeStatic(const Request& request, Response& response) const {
  for (const StaticFile& file : StaticFiles()) {
    if (file.path != request.path) continue;
    response.set_header("ETag", std::string(file.etag));
    response.set_header("Cache-Control", "no-cache");
    if (request.get_header_value("If-None-Match") == file.etag) {
      response.status = 304;
      return;
    }
    response.set_content(file.text.data(), file.text.size(), std::string(file.type));
    return;
  }
  Refuse(response, 404, request.path.substr(0, 200) + ": there is no such file");
}

void Server::Parts::ServeGpus(const Request& request, Response& response) const {
  nlohmann::ordered_json json;
  json["version"] = SLUICE_VERSION;
  json["policies"] = scheduler::NodePolicyNames();
  json["max_lanes"] = kMaxLanes;
  json["may_change"] = MayChange(request);
  json["gpus"] = nlohmann::ordered_json::array();
  // All at once: a daemon that hangs keeps the page from the others' for as long as one is waited
  // for.
  const std::vector<uint32_t> gpus = source->Gpus();
  std::vector<std::future<Result<std::string>>> asked;
  for (const uint32_t gpu : gpus) {
    asked.push_back(std::async(std::launch::async, [&, gpu] { return source->Status(gpu); }));
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    json["gpus"].push_back(nlohmann::ordered_json::parse(ReadGpu(asked[i].get(), gpus[i])));
  }
  response.set_content(json.dump(), kJson);
}

void Server::Parts::ServeLive(const Request& request, Response& response) {
  const Result<uint32_t> gpu = GpuOf(request);
  if (!gpu.ok()) return Refuse(response, gpu.status());
  // Counted for as long as the answer lives.
  const std::shared_ptr<void> place(nullptr, [this](void*) {
    --viewers;
    Touch();
  });
  if (++viewers > options.max_viewers) {
    return Refuse(response, 429,
                  std::to_string(options.max_viewers) +
                      " look at this page already, which is as many as may; close one of them");
  }
  Feed* const feed = FeedOf(*gpu);
  const auto viewer = std::make_shared<Feed::Viewer>(feed);
  response.set_header("Cache-Control", "no-store");
  response.set_chunked_content_provider(
      "text/event-stream", [place, viewer, feed](size_t, httplib::DataSink& sink) {
        const auto message = viewer->Next(kSilence);
        if (feed->stopped()) {
          sink.done();
          return true;
        }
        const std::string text = message.has_value() ? ServerSentEvent(*message) : ":\n\n";
        return sink.write(text.data(), text.size());
      });
}

void Server::Parts::ServeJob(const Request& request, Response& response) const {
  const Result<uint32_t> gpu = GpuOf(request);
  if (!gpu.ok()) return Refuse(response, gpu.status());
  const auto job = ParseNumber(request.matches[1].str());
  if (!job.has_value()) return Refuse(response, 400, "job: allowed: its number");
  const Result<std::string> status = source->Status(*gpu);
  if (!status.ok()) return Refuse(response, status.status());
  const Result<std::string> json = ReadJob(*status, *job);
  if (!json.ok()) return Refuse(response, json.status());
  response.set_header("Cache-Control", "no-store");
  response.set_content(*json, kJson);
}

void Server::Parts::ServePolicy(const Request& request, Response& response) const {
  if (!MayChange(request)) {
    return Refuse(response, 403, "changes need the token of the address that 'sluice page' prints");
  }
  const Result<PolicyOrder> order = ReadPolicyOrder(request.body);
  if (!order.ok()) return Refuse(response, order.status());
  const Result<uint32_t> lanes = source->SetPolicy(order->gpu, order->policy, order->lanes);
  if (!lanes.ok()) return Refuse(response, lanes.status());
  const nlohmann::ordered_json json = {{"policy", order->policy}, {"lanes", *lanes}};
  response.set_content(json.dump(), kJson);
}

void Server::Parts::AddRoutes() {
  http.set_default_headers(SecurityHeaders());
  http.set_pre_routing_handler([this](const Request& request, Response& response) {
    Touch();
    if (IsLocalHost(request.get_header_value("Host"))) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    Refuse(response, 421, "Host: allowed: localhost, 127.0.0.1 or [::1], with any port");
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Get("/api/gpus", [this](const Request& q, Response& r) { ServeGpus(q, r); });
  http.Get("/api/live", [this](const Request& q, Response& r) { ServeLive(q, r); });
  http.Get("/api/jobs/([^/]*)", [this](const Request& q, Response& r) { ServeJob(q, r); });
  http.Post("/api/policy", [this](const Request& q, Response& r) { ServePolicy(q, r); });
  http.Get("/.*", [this](const Request& q, Response& r) { ServeStatic(q, r); });
  http.set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty() || response.status == 304) return;
    Refuse(response, response.status, "the request is not understood");
  });
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options, const Source* source) {
  auto parts = std::make_unique<Parts>(options, source);
  parts->Touch();
  parts->AddRoutes();
  Listen& listen = parts->options.listen;
  const int port = parts->http.Start(listen.host, listen.port);
  if (port < 0) {
    return sluice::Status(StatusCode::kUnavailable, Authority(listen) + ": cannot listen there");
  }
  listen.port = static_cast<uint16_t>(port);
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::~Server() {
  {
    const std::lock_guard lock(parts_->mutex);
    for (auto& [gpu, feed] : parts_->feeds) feed->Stop();
  }
  parts_->http.Stop();
}

Listen Server::listen() const { return parts_->options.listen; }

int Server::viewers() const { return parts_->viewers; }

std::chrono::seconds Server::quiet_for() const {
  if (parts_->viewers > 0) return std::chrono::seconds(0);
  const Clock::time_point touched{Clock::duration(parts_->touched)};
  return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - touched);
}

}  // namespace sluice::page
