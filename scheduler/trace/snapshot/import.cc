// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/import.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/text/fault.h"
#include "scheduler/trace/snapshot/entry.h"
#include "scheduler/trace/snapshot/pickle.h"
#include "scheduler/trace/snapshot/window.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;

constexpr std::string_view kTraces = "device_traces";

Status WrongKind(const std::string& field, const Values& values, ValueId id,
                 std::string_view wanted) {
  return Fault(field, "is of type " + std::string(ValueKindName(values.kind(id))) + ", must be " +
                          std::string(wanted));
}

/// The entries of one device.
Result<std::span<const ValueId>> FindEntries(const Pickle& pickle, uint64_t device) {
  const Values& values = pickle.values;
  if (values.kind(pickle.root) != ValueKind::kDict) {
    return WrongKind("snapshot", values, pickle.root, "dict");
  }
  const std::optional<ValueId> traces = values.Get(pickle.root, kTraces);
  if (!traces.has_value()) return Fault(kTraces, "missing");
  if (values.kind(*traces) != ValueKind::kList) {
    return WrongKind(std::string(kTraces), values, *traces, "list");
  }
  const std::span<const ValueId> devices = values.Items(*traces);
  if (device >= devices.size()) {
    return Fault(kTraces, "there is no device " + std::to_string(device) + " among its " +
                              std::to_string(devices.size()));
  }
  const ValueId entries = devices[device];
  if (values.kind(entries) != ValueKind::kList) {
    return WrongKind(std::string(kTraces) + "[" + std::to_string(device) + "]", values, entries,
                     "list");
  }
  return values.Items(entries);
}

std::vector<HeaderEntry> Header(const SnapshotOptions& options, const SnapshotImport& found) {
  const auto end = [](const std::optional<uint64_t>& time) {
    return time.has_value() ? std::to_string(*time) : "";
  };
  return {{"source", "PyTorch memory snapshot"},
          {"device", std::to_string(options.device)},
          {"window_us", end(options.from_us) + ".." + end(options.to_us)},
          {"entries", std::to_string(found.entries)},
          {"unknown_actions", std::to_string(found.unknown_actions)},
          {"operators", "none, a snapshot has none"},
          {"batch", "that of the recorded run, no number depends on it"}};
}

}  // namespace

Result<SnapshotImport> ImportSnapshot(std::string_view pickle, const SnapshotOptions& options) {
  if (options.from_us.has_value() && options.to_us.has_value() &&
      *options.from_us > *options.to_us) {
    return Fault("window", "begins at " + std::to_string(*options.from_us) + " us, after its end " +
                               std::to_string(*options.to_us));
  }
  const Result<Pickle> read = ReadPickle(pickle);
  if (!read.ok()) return read.status();
  const Result<std::span<const ValueId>> entries = FindEntries(*read, options.device);
  if (!entries.ok()) return entries.status();

  const bool timed = options.from_us.has_value() || options.to_us.has_value();
  SnapshotImport result;
  SnapshotWindow window;
  for (size_t i = 0; i < (*entries).size(); ++i) {
    const auto fault = [&](const Status& status) {
      const std::string where = std::string(kTraces) + "[" + std::to_string(options.device) + "][" +
                                std::to_string(i) + "].";
      return Status(status.code(), where + status.message());
    };
    const Result<SnapshotEntry> entry = ReadSnapshotEntry((*read).values, (*entries)[i], timed);
    if (!entry.ok()) return fault(entry.status());
    // In the order of the record: clocks of several threads may differ by a little.
    if (!window.open() && (*entry).time_us >= options.from_us.value_or(0)) window.Open();
    if (window.open() && options.to_us.has_value() && (*entry).time_us >= *options.to_us) break;
    if (window.open()) {
      ++result.entries;
      if ((*entry).action == SnapshotAction::kUnknown) ++result.unknown_actions;
    }
    if (const Status status = window.Take(*entry); !status.ok()) return fault(status);
  }
  Result<Trace> trace = window.Finish(Header(options, result));
  if (!trace.ok()) return trace.status().Annotate(std::string(kTraces));
  result.trace = std::move(trace).value();
  return result;
}

}  // namespace sluice::scheduler::trace
