// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a scrape costs on a GPU with 64 jobs, on a clock: Prometheus's request (HTTP, gzip) to what
// sluice-gateway runs, which asks a daemon over its socket, to the last byte of the answer; of a
// made-up daemon with as much text as there can be, and of a real one. And what the live page asks.
// Ends with 1 when a goal is missed.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bed.h"
#include "bench/busy_status.h"
#include "bench/lease_client.h"
#include "bench/median.h"
#include "bench/status_daemon.h"
#include "common/metrics/exposer.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/gateway/metrics.h"
#include "noderuntime/gateway/node.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMostMs = 10;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr double kMostLiveMs = 1;
constexpr int kTimes = 40;

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

/// What something takes: the least of many times is its cost, the rest what else the machine does.
struct Times {
  double least_ms = 0;
  double median_ms = 0;
};

template <typename Act>
Times Timed(Act act) {
  std::vector<double> took_ms;
  for (int i = 0; i < kTimes; ++i) {
    const Clock::time_point began = Clock::now();
    act();
    took_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  return {*std::min_element(took_ms.begin(), took_ms.end()), Median(took_ms)};
}

/// Prints the line, and says whether the goals were met. `bytes` 0: they do not matter.
bool Met(const std::string& what, const Times& times, double goal_ms, size_t bytes = 0) {
  const bool met = times.least_ms <= goal_ms && bytes <= kMostBytes;
  std::printf("%s: ", what.c_str());
  if (bytes != 0) std::printf("%zu kB (goal: %zu), ", bytes / 1000, kMostBytes / 1000);
  std::printf("%.2f ms on a clock (goal: %.0f), median %.2f%s\n", times.least_ms, goal_ms,
              times.median_ms, met ? "" : ": missed");
  return met;
}

bool Failed(const std::string& why) {
  std::fprintf(stderr, "sluice_scrape_bench: %s\n", why.c_str());
  return false;
}

/// Prometheus's request to the gateway before the daemon in `folder`.
bool Scrape(const std::string& what, const std::string& folder, const std::string& must_have) {
  const gateway::Node node(folder);
  const auto exposer = metrics::Exposer::Start(
      "127.0.0.1:0", [&] { return gateway::MetricsOf("gpu-node-017.example.com", node.Look()); });
  if (!exposer.ok()) return Failed(exposer.status().message());
  const int port = (*exposer)->port();
  std::string zipped;
  const Times times = Timed([&] { zipped = Get(port, "Accept-Encoding: gzip\r\n"); });
  const std::string plain = Get(port, "");
  if (zipped.find("Content-Encoding: gzip") == std::string::npos ||
      plain.find(must_have) == std::string::npos) {
    return Failed("the answer is none:\n" + zipped.substr(0, 400));
  }
  return Met(what, times, kMostMs, BodyBytes(plain));
}

/// As much text as a daemon can have to tell, made up: each job has been refused, evicted and lent
/// to in every way.
bool MadeUp(const std::string& folder) {
  const nlohmann::json status = BusyStatus();
  const nlohmann::json without_events = BusyStatus(false);
  const StatusDaemon daemon(
      folder, [&](bool events) { return events ? status.dump() : without_events.dump(); });
  return Scrape("scrape of " + std::to_string(kBusyJobs) + " jobs, " + std::to_string(kBusyEnded) +
                    " that ended and " + std::to_string(kBusyPairs) + " pairs, made up",
                folder, "\nsluice_loans_total{");
}

/// Jobs that hold memory of the bed's daemon, and asked for some a hundred times. Empty: `error`.
std::vector<std::unique_ptr<LeaseClient>> Jobs(const Bed& bed, std::string* error) {
  constexpr int kAsks = 100;
  std::vector<std::unique_ptr<LeaseClient>> jobs;
  for (uint32_t i = 0; i < kBusyJobs; ++i) {
    jobs.push_back(LeaseClient::Start(bed, "team/training-" + std::to_string(i),
                                      2 * BedOptions().unit_bytes, error));
    if (jobs.back() == nullptr) return {};
    for (int asked = 1; asked <= kAsks; ++asked) {
      if (jobs.back()->Ask() && (asked == kAsks || jobs.back()->GiveBack())) continue;
      *error = jobs.back()->error();
      return {};
    }
  }
  return jobs;
}

bool Real() {
  const auto bed = Bed::Start({.flags = {"--policy", "spatial"}});
  if (!bed.ok()) return Failed(bed.status().message());
  std::string error;
  const auto jobs = Jobs(**bed, &error);
  if (jobs.empty()) return Failed(error);
  const std::string of_jobs = " of a real daemon with " + std::to_string(jobs.size()) + " jobs";
  const std::string folder = (*bed)->runtime_dir();
  const bool scraped = Scrape("scrape" + of_jobs, folder, "\nsluice_job_lease_wait_seconds_count{");
  Result<cli::DaemonClient> daemon = cli::DaemonClient::Connect(cli::DaemonSocket(folder));
  if (!daemon.ok()) return Failed(daemon.status().message());
  bool told = true;
  const Times live = Timed([&] { told = told && daemon->FetchLive(0).ok(); });
  if (!told) return Failed("the daemon does not say what moves");
  // Ten times a second: a millisecond is a hundredth of a core.
  return Met("the live page's question" + of_jobs, live, kMostLiveMs) && scraped;
}

int Run() {
  std::string folder = "/tmp/sluice-scrape-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const bool made_up = MadeUp(folder);
  std::filesystem::remove_all(folder);
  const bool real = Real();
  return made_up && real ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main() { return sluice::bench::Run(); }
