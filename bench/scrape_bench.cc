// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a scrape costs on a GPU with 64 jobs, on a clock: Prometheus's request (HTTP, gzip) to what
// sluice-gateway runs, which asks a daemon over its socket, to the last byte of the answer. The
// daemon writes its status anew each time; it is made up, of the size that a daemon's can have.
// Ends with 1 when a goal is missed.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/busy_status.h"
#include "bench/status_daemon.h"
#include "common/metrics/exposer.h"
#include "noderuntime/gateway/metrics.h"
#include "noderuntime/gateway/node.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostMs = 10;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr int kScrapes = 40;

/// The answer with its head; empty: none came.
std::string Get(int port, const std::string& header) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n" + header + "\r\n";
  if (::write(fd.get(), request.data(), request.size()) < 0) return "";
  std::string text;
  char part[1 << 16];
  for (ssize_t got = 0; (got = ::read(fd.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

size_t BodyBytes(const std::string& answer) {
  const size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? 0 : answer.size() - head - 4;
}

int Measure(const std::string& folder) {
  const nlohmann::json status = BusyStatus();
  const nlohmann::json without_events = BusyStatus(false);
  const StatusDaemon daemon(
      folder, [&](bool events) { return events ? status.dump() : without_events.dump(); });
  const gateway::Node node(folder);
  const auto exposer = metrics::Exposer::Start(
      "127.0.0.1:0", [&] { return gateway::MetricsOf("gpu-node-017.example.com", node.Look()); });
  if (!exposer.ok()) return 1;
  const int port = (*exposer)->port();
  std::vector<double> took_ms;
  std::string zipped;
  for (int i = 0; i < kScrapes; ++i) {
    const Clock::time_point began = Clock::now();
    zipped = Get(port, "Accept-Encoding: gzip\r\n");
    took_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  const std::string plain = Get(port, "");
  if (zipped.find("Content-Encoding: gzip") == std::string::npos ||
      plain.find("\nsluice_loans_total{") == std::string::npos) {
    std::fprintf(stderr, "sluice_scrape_bench: the answer is none:\n%.400s\n", zipped.c_str());
    return 1;
  }
  std::sort(took_ms.begin(), took_ms.end());
  // The least of many: what it takes, and not what else the machine does.
  const double least = took_ms.front();
  const size_t bytes = BodyBytes(plain);
  const bool met = least <= kMostMs && bytes <= kMostBytes;
  std::printf(
      "scrape of %u jobs, %u that ended and %u pairs: %zu kB (goal: %zu), %zu zipped; %.1f ms on a "
      "clock (goal: %.0f ms), median %.1f%s\n",
      kBusyJobs, kBusyEnded, kBusyPairs, bytes / 1000, kMostBytes / 1000, BodyBytes(zipped) / 1000,
      least, kMostMs, took_ms[took_ms.size() / 2], met ? "" : ": missed");
  return met ? 0 : 1;
}

int Run() {
  std::string folder = "/tmp/sluice-scrape-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const int code = Measure(folder);
  std::filesystem::remove_all(folder);
  return code;
}

}  // namespace
}  // namespace sluice::bench

int main() { return sluice::bench::Run(); }
