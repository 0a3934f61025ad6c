// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a client that keeps the daemon busy costs an innocent pair of jobs: their speed beside it,
// over their speed on a daemon without it, beside a process that burns as much of a processor and
// has no session. In windows that follow each other, so that a machine that does other things slows
// both. Arguments: names of attacks, or beginnings of them; none are all. Ends with 1 when a goal
// is missed.
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

enum class Does : int { kWaits, kWorks };

/// What the processes share.
struct Board {
  std::atomic<int> ready{0};
  std::atomic<bool> failed{false};
  std::atomic<Does> hostile{Does::kWaits};
  std::atomic<uint64_t> iterations{0};
  std::atomic<int64_t> hostile_cpu_ns{0};
  std::atomic<double> most_busy{1};  // of a processor, the hostile one's
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
    while (board->hostile == Does::kWaits) ::usleep(1000);
    Burn(kWork);
  }
}

struct Attack {
  const char* name;
  uint32_t pieces;
  void (HostileClient::*step)();
};

/// Repeats `step` while the board says so, and takes no more of a processor than it says.
void BeBusy(Board* board, const std::function<void()>& step) {
  ++board->ready;
  bool worked = false;
  int64_t since_ns = 0;
  int64_t cpu_before_ns = 0;
  for (;;) {
    const int64_t cpu_ns = NsOf(CLOCK_PROCESS_CPUTIME_ID);
    const int64_t now_ns = NsOf(CLOCK_MONOTONIC);
    board->hostile_cpu_ns = cpu_ns;
    const bool works = board->hostile == Does::kWorks;
    if (works && !worked) {
      since_ns = now_ns;
      cpu_before_ns = cpu_ns;
    }
    worked = works;
    const auto most = board->most_busy * static_cast<double>(now_ns - since_ns);
    if (!works || static_cast<double>(cpu_ns - cpu_before_ns) > most) {
      ::usleep(works ? 100 : 1000);
      continue;
    }
    for (int i = 0; i < 64; ++i) step();
  }
}

void BeHostile(const Job& job, const std::array<uint8_t, 16>& gpu, const Attack& attack,
               Board* board) {
  std::string error;
  const auto client = HostileClient::Start(job, gpu, &error);
  if (client == nullptr || (attack.pieces > 0 && !client->Scatter(attack.pieces))) return;
  BeBusy(board, [&] { (*client.*attack.step)(); });
}

struct Window {
  double per_second = 0;  // iterations of the innocents
  double cpu = 0;         // of a processor, the hostile client's
};

void Sleep(int64_t ns) {
  const timespec wait = {ns / 1'000'000'000, ns % 1'000'000'000};
  ::nanosleep(&wait, nullptr);
}

/// A daemon with two innocent jobs and one that is hostile, or does the same without a session.
class Stage {
 public:
  /// nullptr: it could not be set up.
  static std::unique_ptr<Stage> SetUp(const Attack& attack, bool hostile) {
    // Whoever shows no cycle is waited for no longer than this.
    Result<std::unique_ptr<Bed>> bed = Bed::Start(
        {.pool_bytes = (4 * kPieces) * kUnit, .unit_bytes = kUnit, .flags = {"--patience", "1"}});
    if (!bed.ok()) {
      std::fprintf(stderr, "%s\n", bed.status().message().c_str());
      return nullptr;
    }
    std::unique_ptr<Stage> stage(new Stage(std::move(*bed)));
    const Bed& daemon = *stage->bed_;
    const Result<std::array<uint8_t, 16>> gpu = daemon.GpuUuid();
    const Result<Job> job = daemon.Register("hostile", 3 * kPieces * kUnit);
    if (!gpu.ok() || !job.ok()) return nullptr;
    Board* board = stage->board_;
    for (int i = 0; i < kInnocents; ++i) {
      stage->children_.push_back(
          Fork(board, [&, i] { BeInnocent(daemon, "innocent-" + std::to_string(i), board); }));
    }
    stage->children_.push_back(Fork(board, [&] {
      if (hostile) {
        BeHostile(*job, *gpu, attack, board);
      } else {
        BeBusy(board, [] { Burn(1000); });
      }
    }));
    for (int i = 0; i < 600 && board->ready < kInnocents + 1 && !board->failed; ++i) {
      Sleep(100'000'000);
    }
    if (board->ready < kInnocents + 1) return nullptr;
    return stage;
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    ::munmap(board_, sizeof *board_);
  }

  /// For a second; before and after it all wait.
  Window Run(double busy) {
    board_->most_busy = busy;
    board_->hostile = Does::kWorks;
    Sleep(kSettleNs);
    const int64_t began = NsOf(CLOCK_MONOTONIC);
    const uint64_t before = board_->iterations;
    const int64_t cpu = board_->hostile_cpu_ns;
    Sleep(kWindowNs);
    const auto ns = static_cast<double>(NsOf(CLOCK_MONOTONIC) - began);
    const Window window = {static_cast<double>(board_->iterations - before) * 1e9 / ns,
                           static_cast<double>(board_->hostile_cpu_ns - cpu) / ns};
    board_->hostile = Does::kWaits;
    Sleep(kSettleNs);
    return window;
  }
  bool failed() const { return board_->failed; }

 private:
  explicit Stage(std::unique_ptr<Bed> bed) : bed_(std::move(bed)) {
    void* shared =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board_ = new (shared) Board;
  }

  std::unique_ptr<Bed> bed_;
  Board* board_;
  std::vector<pid_t> children_;
};

/// False: a goal is missed, or it could not be measured.
bool Beside(const Attack& attack) {
  const std::unique_ptr<Stage> attacked = Stage::SetUp(attack, true);
  const std::unique_ptr<Stage> calm = Stage::SetUp(attack, false);
  std::vector<double> ratios;
  std::vector<double> speeds;  // in the calm
  std::vector<double> cpu_attacks;
  std::vector<double> cpu_burns;
  if (attacked != nullptr && calm != nullptr) {
    double busy = attacked->Run(1).cpu;
    for (int i = 0; i < kPairs; ++i) {
      // Each goes first as often as the other one.
      Window attacks;
      const auto attack_now = [&] {
        attacks = attacked->Run(1);
        busy = attacks.cpu;
      };
      if (i % 2 == 0) attack_now();
      const Window burns = calm->Run(busy);
      if (i % 2 == 1) attack_now();
      if (burns.per_second > 0) ratios.push_back(attacks.per_second / burns.per_second);
      speeds.push_back(burns.per_second);
      cpu_attacks.push_back(attacks.cpu);
      cpu_burns.push_back(burns.cpu);
    }
  }
  if (ratios.size() < kPairs / 2 || attacked->failed() || calm->failed()) {
    std::printf("%-28s a client lost its session\n", attack.name);
    return false;
  }
  const double ratio = Median(ratios);
  std::printf(
      "%-28s %6.3f of %.0f iterations in a second (goal %.1f: %s; processor of the client "
      "%.2f, burning %.2f)\n",
      attack.name, ratio, Median(speeds), kGoal, ratio >= kGoal ? "reached" : "missed",
      Median(cpu_attacks), Median(cpu_burns));
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
  std::printf("speed of two jobs beside a hostile client / on a daemon without it\n");
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
