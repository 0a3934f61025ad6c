// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/place_options.h"

#include <CLI/CLI.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/validators.h"
#include "scheduler/trace/trace.h"

namespace sluice::cli {
namespace {

/// A number of bytes that no sum of sizes exceeds.
Result<uint64_t> SomeBytes(const std::string& text, const char* field) {
  const Result<uint64_t> bytes = ParseBytes(text, field);
  if (!bytes.ok()) return bytes;
  if (*bytes <= scheduler::kMaxTotalBytes) return bytes;
  return Status(StatusCode::kInvalidArgument,
                std::string(field) + ": " + text + "; allowed: at most " +
                    std::to_string(scheduler::kMaxTotalBytes) + " bytes");
}

}  // namespace

PlaceFlags::PlaceFlags(CLI::App& app)
    : app_(app.add_subcommand("place",
                              "Give buffers of known lifetimes offsets: how many bytes "
                              "they need together")) {
  app_->add_option("FILE", options_.file,
                   "A table with the columns id, lower, upper and size, or a memory trace")
      ->required();
  app_->add_option("--capacity", capacity_,
                   "Find a placement below this, for example 28GiB, or end with 1");
  app_->add_option(
          "--objective", objective_,
          "What makes a placement better: footprint (how high it reaches) or leased (bytes "
          "leased over time, in whole units) (footprint)")
      ->check(OneOf({"footprint", "leased"}));
  app_->add_option("--unit", unit_, "Unit of leases (8MiB)");
  app_->add_option("--batch", options_.batch, "Samples of a memory trace's batch")
      ->check(Integer(1, scheduler::trace::kMaxBatch));
  app_->add_option("--granule", granule_,
                   "Round the sizes of a memory trace's blocks up to multiples of this (1)");
  app_->add_option("--effort", effort_,
                   "How much is tried: quick, usual or thorough (usual, with --capacity thorough)")
      ->check(OneOf({"quick", "usual", "thorough"}));
  app_->add_option("-o,--output", options_.output,
                   "Write the table with one more column, offset, to this file, if it fits")
      ->check(FileToWrite());
  app_->add_flag("--json", options_.json, "Results as JSON");
}

bool PlaceFlags::chosen() const { return app_->parsed(); }

Result<PlaceOptions> PlaceFlags::Options() const {
  PlaceOptions options = options_;
  // Given but empty is an error like any other size, as from an unset variable of a script.
  if (app_->count("--capacity") != 0) {
    const Result<uint64_t> bytes = SomeBytes(capacity_, "--capacity");
    if (!bytes.ok()) return bytes.status();
    options.capacity_bytes = *bytes;
  }
  if (app_->count("--unit") != 0) {
    const Result<uint64_t> bytes = SomeBytes(unit_, "--unit");
    if (!bytes.ok()) return bytes.status();
    options.unit_bytes = *bytes;
  }
  if (app_->count("--granule") != 0) {
    const Result<uint64_t> bytes = SomeBytes(granule_, "--granule");
    if (!bytes.ok()) return bytes.status();
    options.granule_bytes = *bytes;
  }
  if (objective_ == "leased") options.objective = scheduler::PlaceObjective::kLeased;
  // A question with a yes or a no is worth more than a few bytes.
  const bool asks = options.capacity_bytes.has_value();
  options.effort = effort_ == "quick"                                   ? scheduler::kQuickEffort
                   : effort_ == "thorough" || (effort_.empty() && asks) ? scheduler::kThoroughEffort
                                                                        : scheduler::kUsualEffort;
  return options;
}

}  // namespace sluice::cli
