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

/// A lease of one unit against the least that a question to another process can cost: the same two
/// datagrams with nobody thinking in between. Each question is followed by a one-way datagram (a
/// release) and a pause in which the other side can deal with it, so that both sides sleep alike.
/// The two take turns question by question: what it costs to wake a core varies fivefold with what
/// the machine did before, and would else be the whole ratio.
namespace sluice::bench {
namespace {

constexpr int64_t kPauseNs = 30'000;

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double Quantile(std::vector<int64_t>& samples, size_t percent) {
  std::sort(samples.begin(), samples.end());
  return static_cast<double>(samples[samples.size() * percent / 100]);
}

/// One question and its release; empty when the peer failed.
template <typename Peer>
std::optional<int64_t> AskOnce(Peer& peer) {
  const int64_t start = NowNs();
  const bool answered = peer.Ask();
  const int64_t end = NowNs();
  if (!answered || !peer.GiveBack()) return std::nullopt;
  while (NowNs() < end + kPauseNs) {
  }
  return end - start;
}

void RoundTrips(benchmark::State& state) {
  static std::string error;
  static const std::unique_ptr<EchoProcess> echo = EchoProcess::Start(&error);
  static const std::unique_ptr<LeaseClient> client = LeaseClient::Start(&error);
  if (echo == nullptr || client == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  std::vector<int64_t> bare;
  std::vector<int64_t> lease;
  for (auto _ : state) {
    const std::optional<int64_t> bare_ns = AskOnce(*echo);
    const std::optional<int64_t> lease_ns = AskOnce(*client);
    if (!bare_ns || !lease_ns) {
      state.SkipWithError((bare_ns ? client->error() : echo->error()).c_str());
      return;
    }
    state.SetIterationTime(static_cast<double>(*bare_ns + *lease_ns) * 1e-9);
    bare.push_back(*bare_ns);
    lease.push_back(*lease_ns);
  }
  if (lease.empty()) return;
  state.counters["ping_pong_ns"] = Quantile(bare, 50);
  state.counters["lease_ns"] = Quantile(lease, 50);
  state.counters["lease_p99_ns"] = Quantile(lease, 99);
  if (const std::optional<double> own = client->OwnNs()) state.counters["daemon_ns"] = *own;
}

BENCHMARK(RoundTrips)->Name("round_trip")->UseManualTime();

}  // namespace
}  // namespace sluice::bench
