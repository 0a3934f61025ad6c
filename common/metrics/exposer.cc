// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/exposer.h"

#include <CivetServer.h>
#include <zlib.h>

#include <cstring>
#include <exception>
#include <optional>

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

/// prometheus-cpp's own Exposer compresses by zlib's usual level, which takes longer than all else
/// of a scrape together, and cannot be told otherwise.
class Scrape final : public CivetHandler {
 public:
  explicit Scrape(Exposer::Collect collect) : collect_(std::move(collect)) {}
  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    std::string body = TextOf(collect_());
    const char* accepted = ::mg_get_header(connection, "Accept-Encoding");
    const char* encoding = "";
    if (accepted != nullptr && std::strstr(accepted, "gzip") != nullptr) {
      if (std::string zipped = Zipped(body); !zipped.empty()) {
        body = std::move(zipped);
        encoding = "Content-Encoding: gzip\r\n";
      }
    }
    ::mg_printf(connection,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                "%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
                encoding, body.size());
    ::mg_write(connection, body.data(), body.size());
    return true;
  }

 private:
  const Exposer::Collect collect_;
};

}  // namespace

struct Exposer::Parts {
  std::optional<Scrape> scrape;
  std::optional<CivetServer> server;  // ends first: its threads use the other one
};

Exposer::Exposer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Exposer::~Exposer() = default;

Result<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address, Collect collect) {
  auto parts = std::make_unique<Parts>();
  parts->scrape.emplace(std::move(collect));
  // Several: one that is slow must not keep the others from their figures.
  const std::vector<std::string> options = {"listening_ports",    address, "num_threads", "3",
                                            "request_timeout_ms", "2000"};
  try {
    parts->server.emplace(options);
  } catch (const std::exception& error) {
    return Status(StatusCode::kUnavailable,
                  "--metrics " + address + ": cannot listen there: " + error.what());
  }
  parts->server->addHandler("/metrics", *parts->scrape);
  return std::unique_ptr<Exposer>(new Exposer(std::move(parts)));
}

int Exposer::port() const { return parts_->server->getListeningPorts().front(); }

}  // namespace sluice::metrics
