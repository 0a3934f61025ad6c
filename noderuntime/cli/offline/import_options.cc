// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/import_options.h"

#include <CLI/CLI.hpp>

#include "noderuntime/cli/validators.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kMaxTimeUs = uint64_t{1} << 53;
constexpr uint64_t kMaxDevice = 1023;

}  // namespace

ImportFlags::ImportFlags(CLI::App& app)
    : app_(app.add_subcommand("import", "A memory snapshot of PyTorch as a memory trace")) {
  app_->add_option("FILE", options_.file, "What torch.cuda.memory._dump_snapshot wrote")
      ->required();
  app_->add_option("-o,--output", options_.output, "Write the trace into this file")
      ->required()
      ->check(FileToWrite());
  app_->add_option("--device", options_.device, "Whose allocations (0)")
      ->check(Integer(0, kMaxDevice));
  app_->add_option("--from", options_.from_us,
                   "Only what happened from then on, in microseconds on the snapshot's clock: an "
                   "iteration that frees what it allocates is the one to choose")
      ->check(Integer(0, kMaxTimeUs));
  app_->add_option("--to", options_.to_us, "Only what happened before that")
      ->check(Integer(0, kMaxTimeUs));
  app_->add_flag("--json", options_.json, "Results as JSON");
}

bool ImportFlags::chosen() const { return app_->parsed(); }

Result<ImportOptions> ImportFlags::Options() const {
  if (options_.from_us && options_.to_us && *options_.from_us >= *options_.to_us) {
    return Status(StatusCode::kInvalidArgument, "--to: " + std::to_string(*options_.to_us) +
                                                    "; allowed: above --from, which is " +
                                                    std::to_string(*options_.from_us));
  }
  return options_;
}

}  // namespace sluice::cli
