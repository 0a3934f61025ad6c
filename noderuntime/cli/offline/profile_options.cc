// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/profile_options.h"

#include <CLI/CLI.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/validators.h"
#include "scheduler/trace/trace.h"

namespace sluice::cli {

ProfileFlags::ProfileFlags(CLI::App& app)
    : app_(app.add_subcommand("profile",
                              "What one iteration of a memory trace holds, when and for what")) {
  app_->add_option("FILE", options_.file, "A memory trace")->required();
  app_->add_option("--batch", options_.batch,
                   "Samples of its batch (the first that the trace was fitted to)")
      ->check(Integer(1, scheduler::trace::kMaxBatch));
  app_->add_option("--gpu", options_.gpu,
                   "Machine file, or the name of one that came with this program (v100-32)");
  app_->add_option("--unit", unit_, "Unit of leases (8MiB)");
  app_->add_option("--gates", options_.max_gates,
                   "Most gates in an iteration: where a job asks for memory (48, as on a node)")
      ->check(Integer(1, 1000));
  app_->add_option("--svg", options_.svg, "Draw the curve into this file")->check(FileToWrite());
  app_->add_flag("--json", options_.json, "Results as JSON, with every point of the curve");
}

bool ProfileFlags::chosen() const { return app_->parsed(); }

Result<ProfileOptions> ProfileFlags::Options() const {
  ProfileOptions options = options_;
  if (app_->count("--unit") != 0) {
    const Result<uint64_t> bytes = ParseBytes(unit_, "--unit");
    if (!bytes.ok()) return bytes.status();
    if (*bytes == 0) return Status(StatusCode::kInvalidArgument, "--unit: 0; allowed: above 0");
    options.unit_bytes = *bytes;
  }
  return options;
}

}  // namespace sluice::cli
