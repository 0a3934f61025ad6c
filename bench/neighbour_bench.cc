// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a client that keeps the daemon busy costs an innocent pair of jobs: their speed beside it,
// over their speed beside the same process while it burns as much of a processor as it has just had
// and sends nothing. Both in windows that follow each other, so that a machine that does other
// things slows both. Arguments: names of attacks, or beginnings of them; none are all. Ends with 1
// when a goal is missed.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bed.h"
#include "bench/hostile_client.h"
#include "bench/lease_client.h"
#include "bench/machine.h"
#include "bench/median.h"

namespace sluice::bench {
namespace {

constexpr double kGoal = 0.9;
constexpr int kPairs = 24;
constexpr int64_t kWindowNs = 1'000'000'000;
constexpr int64_t kSettleNs = 30'000'000;  // of the window before, what the daemon still has to do
constexpr int kInnocents = 2;
constexpr uint32_t kPieces = 3000;
constexpr uint64_t kUnit = 64u << 10;
constexpr uint64_t kInnocentUnits = 64;
/// Rounds of what an iteration computes: one to two milliseconds between two requests, which is
/// more often than a training asks.
constexpr uint64_t kWork = 5'000'000;

int64_t NsOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Burn(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i) asm volatile("" : : "r"(i) : "memory");
}

enum class Does : int { kWaits, kAttacks, kBurns, kEnds };

/// What the processes share.
struct Board {
  std::atomic<int> ready{0};
  std::atomic<bool> failed{false};
  std::atomic<Does> hostile{Does::kWaits};
  std::atomic<uint64_t> iterations{0};
  std::atomic<int64_t> hostile_cpu_ns{0};
  std::atomic<double> burns{1};  // of a processor, at most
};

/// Ends when this process does.
pid_t Fork(Board* board, const std::function<void()>& run) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  run();
  board->failed = true;
  ::_exit(1);
}

/// An iteration: it computes, asks for a unit and gives it back.
void BeInnocent(const Bed& bed, const std::string& name, Board* board) {
  std::string error;
  const auto client = LeaseClient::Start(bed, name, kInnocentUnits * kUnit, &error);
  if (client == nullptr) return;
  bool first = true;
  while (client->Ask() && client->GiveBack()) {
    if (first) ++board->ready;
    first = false;
    ++board->iterations;
    Burn(kWork);
  }
}

struct Attack {
  const char* name;
  uint32_t pieces;
  void (HostileClient::*step)();
};

void BeHostile(const Job& job, const std::array<uint8_t, 16>& gpu, const Attack& attack,
               Board* board) {
  std::string error;
  const auto client = HostileClient::Start(job, gpu, &error);
  if (client == nullptr || (attack.pieces > 0 && !client->Scatter(attack.pieces))) return;
  ++board->ready;
  Does before = Does::kWaits;
  int64_t since_ns = 0;  // that it does what it does
  int64_t cpu_before_ns = 0;
  for (;;) {
    const int64_t cpu_ns = NsOf(CLOCK_PROCESS_CPUTIME_ID);
    board->hostile_cpu_ns = cpu_ns;
    const Does now = board->hostile.load(std::memory_order_relaxed);
    const int64_t now_ns = NsOf(CLOCK_MONOTONIC);
    if (now != before) {
      before = now;
      since_ns = now_ns;
      cpu_before_ns = cpu_ns;
    }
    const auto most = board->burns * static_cast<double>(now_ns - since_ns);
    if (now == Does::kBurns && static_cast<double>(cpu_ns - cpu_before_ns) > most) {
      ::usleep(100);
      continue;
    }
    for (int i = 0; i < 64; ++i) {
      switch (board->hostile.load(std::memory_order_relaxed)) {
        case Does::kWaits:
          ::usleep(1000);
          break;
        case Does::kAttacks:
          (*client.*attack.step)();
          break;
        case Does::kBurns:
          Burn(1000);
          break;
        case Does::kEnds:
          ::_exit(0);
      }
    }
  }
}

struct Window {
  double per_second = 0;  // iterations of the innocents
  double cpu = 0;         // of a processor, the hostile client's
};

void Sleep(int64_t ns) {
  const timespec wait = {ns / 1'000'000'000, ns % 1'000'000'000};
  ::nanosleep(&wait, nullptr);
}

Window Measure(Board* board, Does does) {
  board->hostile = does;
  Sleep(kSettleNs);
  const int64_t began = NsOf(CLOCK_MONOTONIC);
  const uint64_t before = board->iterations;
  const int64_t cpu = board->hostile_cpu_ns;
  Sleep(kWindowNs);
  const auto ns = static_cast<double>(NsOf(CLOCK_MONOTONIC) - began);
  return {static_cast<double>(board->iterations - before) * 1e9 / ns,
          static_cast<double>(board->hostile_cpu_ns - cpu) / ns};
}

/// False: a goal is missed, or it could not be measured.
bool Beside(const Attack& attack) {
  // Whoever shows no cycle is waited for no longer than this.
  const Result<std::unique_ptr<Bed>> bed = Bed::Start(
      {.pool_bytes = (4 * kPieces) * kUnit, .unit_bytes = kUnit, .flags = {"--patience", "1"}});
  if (!bed.ok()) {
    std::fprintf(stderr, "%s\n", bed.status().message().c_str());
    return false;
  }
  void* shared =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* board = new (shared) Board;
  const Result<std::array<uint8_t, 16>> gpu = (*bed)->GpuUuid();
  const Result<Job> job = (*bed)->Register("hostile", 3 * kPieces * kUnit);
  if (!gpu.ok() || !job.ok()) return false;
  std::vector<pid_t> children;
  for (int i = 0; i < kInnocents; ++i) {
    children.push_back(
        Fork(board, [&, i] { BeInnocent(**bed, "innocent-" + std::to_string(i), board); }));
  }
  children.push_back(Fork(board, [&] { BeHostile(*job, *gpu, attack, board); }));
  for (int i = 0; i < 600 && board->ready < kInnocents + 1 && !board->failed; ++i) {
    Sleep(100'000'000);
  }
  std::vector<double> ratios;
  std::vector<double> cpu_attacks;
  std::vector<double> cpu_burns;
  if (board->ready == kInnocents + 1) {
    board->burns = Measure(board, Does::kAttacks).cpu;
    for (int i = 0; i < kPairs; ++i) {
      // Each goes first as often as the other one.
      const bool attacks_first = i % 2 == 0;
      Window attacks;
      if (attacks_first) attacks = Measure(board, Does::kAttacks);
      if (attacks_first) board->burns = attacks.cpu;
      const Window burns = Measure(board, Does::kBurns);
      if (!attacks_first) attacks = Measure(board, Does::kAttacks);
      if (burns.per_second > 0) ratios.push_back(attacks.per_second / burns.per_second);
      cpu_attacks.push_back(attacks.cpu);
      cpu_burns.push_back(burns.cpu);
    }
  }
  const bool failed = board->failed || ratios.size() < kPairs / 2;
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::munmap(shared, sizeof(Board));
  if (failed) {
    std::printf("%-28s a client lost its session\n", attack.name);
    return false;
  }
  const double ratio = Median(ratios);
  std::printf("%-28s %6.3f  (goal %.1f: %s; processor of the client %.2f, burning %.2f)\n",
              attack.name, ratio, kGoal, ratio >= kGoal ? "reached" : "missed", Median(cpu_attacks),
              Median(cpu_burns));
  std::fflush(stdout);
  return ratio >= kGoal;
}

bool Asked(const std::vector<std::string>& names, const char* name) {
  return names.empty() || std::any_of(names.begin(), names.end(), [name](const std::string& begin) {
           return std::string_view(name).starts_with(begin);
         });
}

int Main(const std::vector<std::string>& names) {
  std::printf("%s\n", MachineLine().c_str());
  std::printf("speed of two jobs beside a hostile client / beside one that burns as much\n");
  std::fflush(stdout);
  bool reached = true;
  for (const Attack& attack : {Attack{"a ring that is never empty", 0, &HostileClient::FillRing},
                               Attack{"3,000 fragments", kPieces, &HostileClient::KeepAsking},
                               Attack{"frames without end", 0, &HostileClient::SendFrame}}) {
    if (Asked(names, attack.name)) reached = Beside(attack) && reached;
  }
  return reached ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main({argv + 1, argv + argc}); }
