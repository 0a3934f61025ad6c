// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/options.h"

#include <cmath>

#include "common/cuda/client_options.h"
#include "scheduler/trace/trace.h"

namespace sluice::replay {
namespace {

using cuda::Flag;
using cuda::Integer;
using cuda::Option;
using cuda::Real;

Status Bad(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

Option File(std::string name, std::string text, std::string* file) {
  return {std::move(name), "FILE", std::move(text), "a file name", [=](const std::string& value) {
            *file = value;
            return !value.empty();
          }};
}

std::vector<Option> Table(Options* o) {
  RunOptions* run = &o->run;
  constexpr uint64_t kNone = 0;
  constexpr uint64_t kOne = 1;
  constexpr uint64_t kMost = 1'000'000;
  return {
      Integer("--batch", "samples per iteration", kOne, scheduler::trace::kMaxBatch, &o->batch),
      Integer("--iterations", "to run", kOne, kMost, &run->iterations),
      File("--machine",
           "machine file that gives --flops, --bandwidth and --floor-us, or the name of one that "
           "came with this program, as v100-32; without it the driver says the first two",
           &o->machine),
      Real("--flops", "FLOP/s of the GPU", 1, 1e18, &o->flops_per_s),
      Real("--bandwidth", "bytes/s of its memory", 1, 1e18, &o->bytes_per_s),
      Real("--floor-us", "least duration of an operator", 0, 1e9, &o->floor_us),
      Real("--time-scale", "factor on every duration", 0, 1e6, &o->time_scale),
      Real("--size-scale", "factor on every block", 0, 16, &o->size_scale),
      {"--pattern", "WHAT", "of each block: every word, one per MiB and the last, or nothing",
       "full, sparse or off",
       [=](const std::string& value) {
         if (value == "full") run->pattern = Pattern::kFull;
         if (value == "sparse") run->pattern = Pattern::kSparse;
         if (value == "off") run->pattern = Pattern::kOff;
         return value == "full" || value == "sparse" || value == "off";
       }},
      Integer("--sync-every", "wait for the GPU behind each so many iterations, 0 for never", kNone,
              kMost, &run->sync_every),
      Integer("--ahead", "iterations that the CPU may be ahead of the GPU", kOne, uint64_t{64},
              &run->ahead),
      Real("--gap-ms", "time that the program computes before each iteration", 0, 3'600'000,
           &o->gap_ms),
      {"--corrupt", "BLOCK",
       "spoil this block behind each operator that writes it: the replay must fail",
       "the id of a block",
       [=](const std::string& value) {
         return cuda::ParseNumber<BlockId>(value, 0, scheduler::trace::kMaxBlocks - 1,
                                           &run->corrupt.emplace());
       }},
      Integer("--device", "ordinal of the GPU", 0, 63, &o->device),
      Flag("--json", "report as JSON", &o->json),
  };
}

}  // namespace

Result<Options> ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> files;
  std::string error;
  if (!cuda::ParseOptions(Table(&options), arguments, &files, &options.help, &error)) {
    return Bad(error);
  }
  if (options.help) return options;
  if (files.size() != 1) {
    return Bad("TRACE must be one file, not " + std::to_string(files.size()));
  }
  options.trace = files.front();
  if (options.batch == 0) return Bad("--batch is missing: samples per iteration");
  if (options.run.corrupt && options.run.pattern == Pattern::kOff) {
    return Bad("--corrupt needs --pattern full or sparse");
  }
  options.run.gap_ns =
      static_cast<uint64_t>(std::min(options.gap_ms * options.time_scale, 3.6e6) * 1e6);
  return options;
}

bool AsksDriver(const Options& options) {
  return options.machine.empty() && (options.flops_per_s == 0 || options.bytes_per_s == 0);
}

Result<Scaling> ScalingOf(const Options& options, const Machine* machine,
                          const DevicePeaks& device) {
  Scaling scaling{options.flops_per_s, options.bytes_per_s, options.floor_us * 1e3,
                  options.time_scale, options.size_scale};
  if (machine != nullptr) {
    if (scaling.flops_per_s == 0) scaling.flops_per_s = machine->flops_per_s;
    if (scaling.bytes_per_s == 0) {
      scaling.bytes_per_s = static_cast<double>(machine->memory_bytes_per_s);
    }
    if (options.floor_us < 0) scaling.floor_ns = machine->default_cost.base_ns;
  }
  if (machine == nullptr) {
    if (scaling.flops_per_s == 0) scaling.flops_per_s = device.flops_per_s;
    if (scaling.bytes_per_s == 0) scaling.bytes_per_s = device.bytes_per_s;
    if (options.floor_us < 0) scaling.floor_ns = 0;
  }
  const std::string from = machine == nullptr
                               ? ", which its driver does not tell; or name a --machine"
                               : "; " + options.machine + " does not say it";
  if (scaling.flops_per_s == 0) return Bad("--flops is missing: FLOP/s of the GPU" + from);
  if (scaling.bytes_per_s == 0) {
    return Bad("--bandwidth is missing: bytes/s of the GPU's memory" + from);
  }
  return scaling;
}

std::string HelpText() {
  Options defaults;
  return "usage: sluice-replay TRACE --batch N [options]\n"
         "Runs the iteration that a trace (sluice-trace 1) records as a client of the CUDA driver: "
         "each\n"
         "allocation, each free, one kernel for each operator, which lasts as long as FLOPs and "
         "bytes\n"
         "say, checks the blocks that it reads and fills those that it writes.\n"
         "Ends with 2 after a bad option or trace, with 3 when the GPU is out of memory, with 4 "
         "when a\n"
         "block did not hold what its last writer left.\n\n" +
         cuda::DescribeOptions(Table(&defaults));
}

}  // namespace sluice::replay
