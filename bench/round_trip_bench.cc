// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/echo_process.h"
#include "bench/lease_client.h"
#include "bench/report.h"

/// A lease of one unit against the least that a question to another process can cost: the same two
/// datagrams with nobody thinking in between. Each question is followed by a one-way datagram (a
/// release) and a pause in which the other side can deal with it, so that both sides sleep alike.
namespace sluice::bench {
namespace {

constexpr int64_t kPauseNs = 30'000;

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

template <typename Peer>
void RoundTrips(benchmark::State& state, Peer* peer, const std::string& error) {
  if (peer == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  std::vector<int64_t> samples;
  for (auto _ : state) {
    const int64_t start = NowNs();
    const bool answered = peer->Ask();
    const int64_t end = NowNs();
    if (!answered || !peer->GiveBack()) {
      state.SkipWithError(peer->error().c_str());
      return;
    }
    state.SetIterationTime(static_cast<double>(end - start) * 1e-9);
    samples.push_back(end - start);
    while (NowNs() < end + kPauseNs) {
    }
  }
  if (samples.empty()) return;
  std::sort(samples.begin(), samples.end());
  state.counters[kMedianCounter] = static_cast<double>(samples[samples.size() / 2]);
  state.counters["p99_ns"] = static_cast<double>(samples[samples.size() * 99 / 100]);
  if (const std::optional<double> own = peer->OwnNs()) state.counters["daemon_ns"] = *own;
}

void PingPong(benchmark::State& state) {
  static std::string error;
  static const std::unique_ptr<EchoProcess> echo = EchoProcess::Start(&error);
  RoundTrips(state, echo.get(), error);
}

void Lease(benchmark::State& state) {
  static std::string error;
  static const std::unique_ptr<LeaseClient> client = LeaseClient::Start(&error);
  RoundTrips(state, client.get(), error);
}

BENCHMARK(PingPong)->Name("round_trip/ping_pong")->UseManualTime();
BENCHMARK(Lease)->Name("round_trip/lease")->UseManualTime();

}  // namespace
}  // namespace sluice::bench
