// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>
#include <sched.h>
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
/// The two take turns every few milliseconds, and all three processes stay on one core: what a
/// message to another core costs is the machine's (in a virtual one a sleeping core is woken
/// through the host, for five times the rest), and whether there is one is the scheduler's
/// choice for each side.
namespace sluice::bench {
namespace {

constexpr int64_t kPauseNs = 30'000;
// Questions; so many that what the daemon still does after its own is not in the others' median.
constexpr size_t kTurn = 64;

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

double Quantile(std::vector<int64_t>& samples, size_t percent) {
  std::sort(samples.begin(), samples.end());
  return static_cast<double>(samples[samples.size() * percent / 100]);
}

/// The calling thread, and every process started meanwhile for good, on the first allowed core.
class OneCore {
 public:
  OneCore() {
    if (::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    cpu_set_t first;
    CPU_ZERO(&first);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &first);
    }
    pinned_ = ::sched_setaffinity(0, sizeof(first), &first) == 0;
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() {
    if (pinned_) ::sched_setaffinity(0, sizeof(before_), &before_);
  }
  bool pinned() const { return pinned_; }

 private:
  cpu_set_t before_{};
  bool pinned_ = false;
};

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
  const OneCore core;
  if (!core.pinned()) {
    state.SkipWithError("sched_setaffinity is refused");
    return;
  }
  static std::string error;
  static const std::unique_ptr<EchoProcess> echo = EchoProcess::Start(&error);
  static const Result<std::unique_ptr<Bed>> bed = Bed::Start({});
  if (!bed.ok()) error = bed.status().message();
  static const std::unique_ptr<LeaseClient> client =
      bed.ok() ? LeaseClient::Start(**bed, "bench", 0, &error) : nullptr;
  if (echo == nullptr || client == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  std::vector<int64_t> bare;
  std::vector<int64_t> lease;
  size_t asked = 0;
  for (auto _ : state) {
    const bool of_daemon = asked++ / kTurn % 2 == 1;
    const std::optional<int64_t> ns = of_daemon ? AskOnce(*client) : AskOnce(*echo);
    if (!ns) {
      state.SkipWithError((of_daemon ? client->error() : echo->error()).c_str());
      return;
    }
    state.SetIterationTime(static_cast<double>(*ns) * 1e-9);
    (of_daemon ? lease : bare).push_back(*ns);
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
