// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::scheduler {

/// How long others wait for the profile of a job that has none. Whoever is given up is taken to
/// need what it holds, so who is given up too early runs out of memory later, and that is worse
/// than waiting: the first step of a program that compiles (torch.compile, tinygrad) launches
/// nothing for half a minute and more, with next to nothing held. Hence `silent_ns`: no compiler is
/// that long between two launches unless it was told to search, and then its user can give a limit.
struct Patience {
  /// Without a sign of life: a launch, a copy, or more memory than it ever held. To ask is none.
  uint64_t silent_ns = 120'000'000'000;
  /// Without a launch or a copy: those who have a profile go on beside it. Short, for a job that is
  /// quiet loses nothing but a wait of one iteration when it computes again.
  uint64_t quiet_ns = 5'000'000'000;
  /// At least so long since somebody waits: it may have been about to go on.
  uint64_t arrival_ns = 5'000'000'000;
  /// In all, however busy it is: three iterations of five minutes.
  uint64_t measure_ns = 900'000'000'000;
  uint64_t launches = uint64_t{3} * 16384;  // three times the longest cycle that is looked for
};

/// What is known of a job without a profile while somebody waits for it.
struct Measured {
  bool blocked = false;    // it waits for memory itself, so nothing can be heard of it
  uint64_t waited_ns = 0;  // since somebody waits for it
  uint64_t launches = 0;   // since then
  uint64_t silent_ns = 0;  // since its last sign of life
  struct Published {
    uint64_t launches = 0;  // since it was told its cycle
    uint32_t period = 0;
  };
  std::optional<Published> published = std::nullopt;
};

enum class GiveUp : uint8_t {
  kNot,
  kSilent,   // nothing was heard of it
  kSlow,     // it works, and has not repeated itself in all the time
  kAimless,  // it launches, and no cycle is found
  kLost,     // it does not find again the cycle that it was told
};

/// Whether its profile is still waited for. Bounded by measure_ns, whatever the job does.
GiveUp Judge(const Measured& job, const Patience& patience);

/// For people: what the job did, as in "nothing was heard of it for 120 s". Empty for kNot.
std::string Why(GiveUp reason, const Patience& patience);

/// For whoever waits: what ends it.
std::string HowLong(const Patience& patience);

}  // namespace sluice::scheduler
