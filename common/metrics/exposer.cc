// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/exposer.h"

#include <zlib.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/http/bounded_server.h"
#include "common/metrics/address.h"
#include "common/metrics/text.h"

namespace sluice::metrics {
namespace {

/// By the fastest way. Label texts repeat so much that the best one makes of 40 kB 28, in three
/// times the time. Empty: it could not.
std::string Zipped(std::string& text) {
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's head
  z_stream stream = {};
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string zipped(::deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(zipped.data());
  stream.avail_out = static_cast<uInt>(zipped.size());
  const bool done = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  zipped.resize(done ? stream.total_out : 0);
  ::deflateEnd(&stream);
  return zipped;
}

/// Port 0 where `address` (IsAddress) says so.
std::pair<std::string, int> HostAndPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  return {host, std::stoi(address.substr(colon + 1))};
}

http::BoundedServer::Bounds BoundsOfScrapes() {
  http::BoundedServer::Bounds bounds;
  // A whole request comes in one packet.
  bounds.requests.request_time = std::chrono::milliseconds(2000);
  // Several: one that is slow must not keep the others from their figures.
  bounds.threads = 3;
  return bounds;
}

}  // namespace

struct Exposer::Parts {
  explicit Parts(Collect from) : collect(std::move(from)) {}

  /// prometheus-cpp's own Exposer compresses by zlib's usual level, and so does httplib; that takes
  /// longer than all else of a scrape together, and neither can be told otherwise.
  void Serve(const httplib::Request& request, httplib::Response& response) const {
    std::string body = TextOf(collect());
    if (request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos) {
      if (std::string zipped = Zipped(body); !zipped.empty()) {
        body = std::move(zipped);
        response.set_header("Content-Encoding", "gzip");
      }
    }
    const size_t bytes = body.size();
    response.set_content_provider(
        bytes, "text/plain; version=0.0.4; charset=utf-8",
        [text = std::move(body)](size_t at, size_t count, httplib::DataSink& sink) {
          return sink.write(text.data() + at, count);
        });
  }

  const Collect collect;
  http::BoundedServer server{BoundsOfScrapes()};  // ends first: its threads use the other one
  int port = 0;
};

Exposer::Exposer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Exposer::~Exposer() = default;

Result<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address, Collect collect) {
  if (!IsAddress(address)) {
    return Status(StatusCode::kInvalidArgument,
                  "--metrics " + address + ": allowed: ADDRESS:PORT or [ADDRESS]:PORT");
  }
  auto parts = std::make_unique<Parts>(std::move(collect));
  parts->server.Get("/metrics", [from = parts.get()](const httplib::Request& q,
                                                     httplib::Response& r) { from->Serve(q, r); });
  const auto [host, port] = HostAndPort(address);
  errno = 0;
  parts->port = parts->server.Start(host, port);
  if (parts->port < 0) {
    const std::string why = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
    return Status(StatusCode::kUnavailable, "--metrics " + address + ": cannot listen there" + why);
  }
  return std::unique_ptr<Exposer>(new Exposer(std::move(parts)));
}

int Exposer::port() const { return parts_->port; }

}  // namespace sluice::metrics
