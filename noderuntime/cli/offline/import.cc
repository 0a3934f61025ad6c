// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/import.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/format.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/snapshot/import.h"
#include "scheduler/trace/write.h"

namespace sluice::cli {
namespace {

using scheduler::trace::BatchTrace;
using scheduler::trace::BlockKind;
using scheduler::trace::SnapshotImport;

std::string Text(const ImportOptions& options, const SnapshotImport& import, const BatchTrace& at,
                 size_t transient, uint64_t peak) {
  std::string text = Format("%s: %llu entries of device %llu\n", options.file.c_str(),
                            static_cast<unsigned long long>(import.entries),
                            static_cast<unsigned long long>(options.device));
  text += Format("  persistent  %zu blocks, %s\n", import.trace.blocks.size() - transient,
                 FormatBytes(at.persistent_bytes).c_str());
  text += Format("  transient   %zu blocks, at most %s at once\n", transient,
                 FormatBytes(peak).c_str());
  if (import.unknown_actions != 0) {
    text += Format("  passed over %llu entries of an unknown kind\n",
                   static_cast<unsigned long long>(import.unknown_actions));
  }
  text += Format(
      "  written     %s: sluice place %s --batch 1; a snapshot has no times to simulate "
      "with\n",
      options.output.c_str(), options.output.c_str());
  return text;
}

}  // namespace

Output RunImport(const ImportOptions& options) {
  const Result<std::string> pickle = ReadWholeFile(options.file);
  if (!pickle.ok()) return Refused(pickle.status());
  const Result<SnapshotImport> import =
      scheduler::trace::ImportSnapshot(*pickle, {options.device, options.from_us, options.to_us});
  if (!import.ok()) return Refused(import.status().Annotate(options.file));
  // No number depends on the batch.
  const Result<BatchTrace> at = scheduler::trace::AtBatch(import->trace, 1);
  if (!at.ok()) return Refused(at.status().Annotate(options.file));
  const Status written = WriteWholeFile(options.output, WriteTrace(import->trace));
  if (!written.ok()) return Refused(written.Annotate("--output"));
  const auto& blocks = import->trace.blocks;
  const auto transient =
      static_cast<size_t>(std::count_if(blocks.begin(), blocks.end(), [](const auto& block) {
        return block.kind == BlockKind::kTransient;
      }));
  const uint64_t peak = at->load.empty() ? 0 : *std::max_element(at->load.begin(), at->load.end());
  if (!options.json) return {0, Text(options, *import, *at, transient, peak), ""};
  nlohmann::ordered_json json;
  json["file"] = options.file;
  json["output"] = options.output;
  json["device"] = options.device;
  json["entries"] = import->entries;
  json["unknown_actions"] = import->unknown_actions;
  json["persistent_blocks"] = blocks.size() - transient;
  json["persistent_bytes"] = at->persistent_bytes;
  json["transient_blocks"] = transient;
  json["peak_transient_bytes"] = peak;
  return {0, json.dump(2) + "\n", ""};
}

}  // namespace sluice::cli
