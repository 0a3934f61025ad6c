// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/readers.h"

#include <algorithm>
#include <charconv>

#include "scheduler/place/offline/fit.h"
#include "scheduler/text/lines.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/measured.h"
#include "scheduler/trace/parse.h"
#include "scheduler/trace/write.h"

namespace sluice::fuzz {

namespace trace = scheduler::trace;

namespace {

/// The number in "<word> 12: ..."; nullopt where there is none.
std::optional<size_t> NumberAfter(std::string_view word, std::string_view fault) {
  if (fault.substr(0, word.size()) != word) return std::nullopt;
  fault.remove_prefix(word.size());
  size_t number = 0;
  const auto [end, error] = std::from_chars(fault.data(), fault.data() + fault.size(), number);
  const bool closed = error == std::errc() && end != fault.data() + fault.size() && *end == ':';
  return closed ? std::optional(number) : std::nullopt;
}

bool IsOneLine(std::string_view fault) {
  return !fault.empty() &&
         std::all_of(fault.begin(), fault.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

size_t LinesOf(std::string_view text) {
  const auto ends = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  return std::max<size_t>(1, ends + (text.empty() || text.back() == '\n' ? 0 : 1));
}

}  // namespace

namespace {

/// What every fault of a text has to be.
std::optional<std::string> JudgeFault(std::string_view text, const std::string& fault) {
  if (!IsOneLine(fault)) return "the fault is not one line: " + fault;
  const std::optional<size_t> line = NumberAfter("line ", fault);
  if (!line.has_value() || *line < 1 || *line > LinesOf(text)) {
    return "the fault names no line of the text: " + fault;
  }
  return std::nullopt;
}

}  // namespace

/// What is measured is right, or refused in one line.
std::optional<std::string> JudgeMeasured(const trace::Trace& read) {
  const Result<trace::BatchTrace> at = trace::AtBatch(read, 1);
  if (!at.ok()) {
    const std::string message = at.status().message();
    const bool line = message.find('\n') == std::string::npos;
    if (line && message.find(": ") != std::string::npos) return std::nullopt;
    return "a fault that is not one line with a field: " + message;
  }
  const uint64_t kept = at->persistent_bytes + at->input_bytes;
  if (at->trough_bytes < kept || at->trough_bytes - kept > at->peak_bytes) {
    return "at the trough lives what cannot";
  }
  for (const trace::OperatorCost& cost : at->costs) {
    if ((cost.ns != 0) != trace::IsMeasured(read)) return "an operator's time is made up or lost";
  }
  return std::nullopt;
}

std::optional<std::string> JudgeParse(std::string_view text, const Result<trace::Trace>& parsed) {
  if (parsed.ok()) {
    if (trace::WriteTrace(*parsed) != text) return "what was read is written differently";
    return JudgeMeasured(*parsed);
  }
  return JudgeFault(text, parsed.status().message());
}

std::optional<std::string> JudgeTable(std::string_view text,
                                      const Result<scheduler::Instance>& read) {
  if (!read.ok()) return JudgeFault(text, read.status().message());
  if (read->ids.size() != read->buffers.size()) return "not as many names as buffers";
  if (const Status status = scheduler::CheckBuffers(read->buffers); !status.ok()) {
    return "what was read is wrong: " + status.message();
  }
  const scheduler::Offsets offsets =
      scheduler::PlaceByFit(read->buffers, scheduler::FitOrder::kSize, scheduler::FitHole::kBest);
  const uint64_t height = scheduler::Footprint(read->buffers, offsets);
  const Status placed = scheduler::ValidatePlacement(read->buffers, offsets, height);
  if (!placed.ok()) return "it is placed wrongly: " + placed.message();
  const std::string written = scheduler::WriteInstance(*read, offsets);
  const Result<scheduler::Instance> again = scheduler::ParseInstance(written);
  // An offset above the largest number cannot be read again.
  if (height > scheduler::text::kMaxNumber) return std::nullopt;
  if (!again.ok()) return "what is written cannot be read: " + again.status().message();
  if (scheduler::WriteInstance(*again, offsets) != written) return "the table comes back different";
  return std::nullopt;
}

std::optional<std::string> JudgeImport(std::string_view bytes,
                                       const Result<trace::SnapshotImport>& imported) {
  if (imported.ok()) {
    const trace::Trace& made = (*imported).trace;
    const Result<trace::Trace> again = trace::ParseTrace(trace::WriteTrace(made));
    if (!again.ok()) return "the trace is not valid: " + again.status().message();
    if (*again != made) return "the trace comes back different";
    return std::nullopt;
  }
  const std::string fault = imported.status().message();
  if (!IsOneLine(fault)) return "the fault is not one line: " + fault;
  if (fault.rfind("byte ", 0) != 0) return std::nullopt;
  const std::optional<size_t> byte = NumberAfter("byte ", fault);
  if (!byte.has_value() || *byte > bytes.size()) {
    return "the fault names no byte of the dump: " + fault;
  }
  return std::nullopt;
}

std::optional<std::string> PlayTrace(std::string_view text) {
  const Result<trace::Trace> parsed = trace::ParseTrace(text);
  if (parsed.ok()) {
    for (const uint64_t batch : {uint64_t{1}, uint64_t{32}, trace::kMaxBatch}) {
      const Result<trace::BatchTrace> sized = trace::AtBatch(*parsed, batch);
      if (sized.ok() && !(*sized).load.empty() && (*sized).load.back() != 0) {
        return "memory is left at the end";
      }
    }
  }
  return JudgeParse(text, parsed);
}

std::optional<std::string> PlayTable(std::string_view text) {
  return JudgeTable(text, scheduler::ParseInstance(text));
}

std::optional<std::string> PlaySnapshot(std::string_view bytes) {
  // Once the whole record, once a part of it.
  trace::SnapshotOptions window;
  window.from_us = 20;
  window.to_us = 50;
  for (const trace::SnapshotOptions& options : {trace::SnapshotOptions(), window}) {
    auto violation = JudgeImport(bytes, trace::ImportSnapshot(bytes, options));
    if (violation.has_value()) return violation;
  }
  return std::nullopt;
}

}  // namespace sluice::fuzz
