// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/workload_options.h"

#include <charconv>

#include "common/bytes.h"

namespace sluice::testing {
namespace {

struct NumberFlag {
  const char* name;
  uint64_t WorkloadOptions::*field;
  bool bytes;
  uint64_t low;
  uint64_t high;
  const char* help;
};

struct SwitchFlag {
  const char* name;
  bool WorkloadOptions::*field;
  const char* help;
};

using O = WorkloadOptions;
constexpr uint64_t kMany = uint64_t{1} << 32;

constexpr NumberFlag kNumbers[] = {
    {"--iterations", &O::iterations, false, 1, kMany, "cycles to run"},
    {"--blocks", &O::blocks, false, 1, 1 << 20, "blocks of the triangle"},
    {"--block-bytes", &O::block_bytes, true, 512, kMany * 64, "size of each"},
    {"--base-bytes", &O::base_bytes, true, 512, kMany * 64, "kept for the whole run"},
    {"--launches-per-block", &O::launches_per_block, false, 1, 1024, "on the way up and down"},
    {"--launches-down", &O::launches_down, false, 1, 1024, "on the way down, if another number"},
    {"--stream-count", &O::stream_count, false, 1, 64, "block b works on stream b modulo this"},
    {"--seed", &O::seed, false, 0, kMany, "of the pattern"},
    {"--rounds", &O::rounds, false, 0, 1 << 20, "extra work for each word"},
    {"--grow-every", &O::grow_every, false, 1, kMany,
     "what --grow-at says, also so many iterations after that, and then again and again: one "
     "iteration later each time, up to twice as many, and so on from the beginning"},
    {"--grow-when-told", &O::grow_when_told_bytes, true, 512, kMany * 64,
     "after a line on standard input stop at the next peak and say so; after another one allocate "
     "one more block of this size"},
    {"--over-limit", &O::over_limit_bytes, true, 512, kMany * 64,
     "first ask for this much, which must be refused"},
    {"--fork-at-launch", &O::fork_at_launch, false, 1, kMany,
     "fork a child that does nothing until standard input ends"},
    {"--use-in-child", &O::use_in_child, false, 1, kMany,
     "as above, but the child first calls the driver"},
    {"--kill-self-at-op", &O::kill_self_at_op, false, 1, kMany,
     "SIGKILL in place of this driver call"},
    {"--lives", &O::lives, false, 1, 1024,
     "do it all again in a new context, after the last one was released"},
};

constexpr SwitchFlag kSwitches[] = {
    {"--one-shot", &O::one_shot, "one allocation of --block-bytes: use, free, end"},
    {"--hold", &O::hold, "before freeing, print 'holding' and wait until standard input ends"},
    {"--compile", &O::compile,
     "with little allocated, print 'compiling' and do nothing until standard input ends"},
    {"--capture", &O::capture,
     "run each iteration beside an open capture on another stream, and then what was captured"},
    {"--until-eof", &O::until_eof, "after --iterations go on until standard input ends"},
    {"--progress", &O::progress, "print 'iteration I' at the start of each"},
    {"--sync-alloc", &O::sync_alloc, "cuMemAlloc and cuMemFree instead of stream-ordered calls"},
    {"--no-memory", &O::no_memory, "make a context, hold if asked, and end"},
    {"--exec-holding", &O::exec_holding,
     "with --one-shot: execute itself anew, without this flag, instead of freeing"},
    {"--read-beside", &O::read_beside,
     "while --grow-at allocates, another thread has the GPU check the first block all the time"},
    {"--use-after-free", &O::use_after_free, "check blocks after freeing them, which is an error"},
};

Status Bad(const std::string& flag, const std::string& value, const std::string& allowed) {
  return Status(StatusCode::kInvalidArgument, flag + ": '" + value + "'; allowed: " + allowed);
}

Result<uint64_t> Number(const NumberFlag& flag, const std::string& text) {
  uint64_t value = 0;
  if (flag.bytes) {
    Result<uint64_t> parsed = ParseBytes(text, flag.name);
    if (!parsed.ok()) return parsed;
    value = *parsed;
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return Bad(flag.name, text, "a whole number");
    }
  }
  if (value < flag.low || value > flag.high) {
    return Bad(flag.name, text, std::to_string(flag.low) + " to " + std::to_string(flag.high));
  }
  return value;
}

/// "I:BYTES".
Status ParseGrow(const std::string& text, WorkloadOptions& options) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return Bad("--grow-at", text, "ITERATION:BYTES");
  const NumberFlag iteration = {"--grow-at", nullptr, false, 0, kMany, ""};
  const NumberFlag bytes = {"--grow-at", nullptr, true, 512, kMany * 64, ""};
  const Result<uint64_t> first = Number(iteration, text.substr(0, colon));
  if (!first.ok()) return first.status();
  const Result<uint64_t> second = Number(bytes, text.substr(colon + 1));
  if (!second.ok()) return second.status();
  options.grow_iteration = *first;
  options.grow_bytes = *second;
  return {};
}

}  // namespace

Result<WorkloadOptions> ParseWorkloadOptions(const std::vector<std::string>& arguments) {
  WorkloadOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    bool known = false;
    for (const SwitchFlag& flag : kSwitches) {
      if (name != flag.name) continue;
      options.*flag.field = true;
      known = true;
    }
    if (known) continue;
    if (i + 1 == arguments.size()) return Bad("argument", name, "see --help");
    const std::string& value = arguments[++i];
    for (const NumberFlag& flag : kNumbers) {
      if (name != flag.name) continue;
      const Result<uint64_t> number = Number(flag, value);
      if (!number.ok()) return number.status();
      options.*flag.field = *number;
      known = true;
    }
    if (name == "--grow-at") {
      if (Status grow = ParseGrow(value, options); !grow.ok()) return grow;
      known = true;
    }
    if (name == "--meet") {
      const size_t colon = value.find(':');
      if (colon == 0 || colon == std::string::npos || colon + 1 == value.size()) {
        return Bad(name, value, "OWN_PIPE:OTHER_PIPE");
      }
      options.called_by = value.substr(0, colon);
      options.calls = value.substr(colon + 1);
      known = true;
    }
    if (name == "--sync") {
      if (value != "none" && value != "iteration") return Bad(name, value, "none, iteration");
      options.sync_iteration = value == "iteration";
      known = true;
    }
    if (!known) return Bad("argument", name, "see --help");
  }
  return options;
}

std::string WorkloadUsage() {
  std::string text =
      "workload: allocates, uses and frees GPU memory in a cycle; the GPU checks every byte.\n"
      "Exit codes: 0 well, 2 bad arguments, 3 a driver call failed, 4 out of memory, 5 wrong "
      "bytes,\n"
      "6 what --over-limit asks for was granted.\n\n"
      "  --sync none|iteration  synchronise after each iteration\n"
      "  --grow-at I:BYTES  one more block of BYTES at the peak of iteration I\n";
  for (const NumberFlag& flag : kNumbers) {
    text += std::string("  ") + flag.name + (flag.bytes ? " BYTES  " : " N  ") + flag.help + "\n";
  }
  text +=
      "  --meet OWN_PIPE:OTHER_PIPE  at its peak a kernel with a name as NCCL's, behind which it "
      "waits\n    for the other rank; named pipes that exist\n";
  for (const SwitchFlag& flag : kSwitches) {
    text += std::string("  ") + flag.name + "  " + flag.help + "\n";
  }
  return text;
}

}  // namespace sluice::testing
