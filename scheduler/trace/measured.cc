// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/measured.h"

#include <string>
#include <string_view>

#include "scheduler/text/fault.h"
#include "scheduler/text/lines.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;

constexpr std::string_view kOpNs = "op_ns";
constexpr std::string_view kTroughBytes = "trough_bytes";
constexpr std::string_view kRecordedBatch = "recorded_batch";

/// A number of the header, from 1 to `most`; unchanged where there is none.
Status ReadKey(const Trace& trace, std::string_view key, uint64_t most, uint64_t* number) {
  const std::string* text = trace.Find(key);
  if (text == nullptr) return Status();
  const Result<uint64_t> read = text::ReadNumber(key, *text);
  if (!read.ok()) return read.status();
  if (*read == 0 || *read > most) {
    return Fault(key, *text + " must be between 1 and " + std::to_string(most));
  }
  *number = *read;
  return Status();
}

/// One for each operator, between commas.
Status ReadTimes(std::string_view text, size_t operators, std::vector<uint32_t>* times) {
  times->reserve(operators);
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string field = std::string(kOpNs) + ": of operator " + std::to_string(times->size());
    if (times->size() == operators) {
      return Fault(kOpNs, "more than " + std::to_string(operators) + ", one for each operator");
    }
    const Result<uint64_t> ns = text::ReadNumber(field, text.substr(0, comma));
    if (!ns.ok()) return ns.status();
    if (*ns == 0 || *ns > UINT32_MAX) {
      return Fault(field,
                   std::to_string(*ns) + " must be between 1 and " + std::to_string(UINT32_MAX));
    }
    times->push_back(static_cast<uint32_t>(*ns));
    if (more) text.remove_prefix(comma + 1);
  }
  if (times->size() == operators) return Status();
  return Fault(kOpNs, std::to_string(times->size()) + " for " + std::to_string(operators) +
                          " operators, must be one for each");
}

}  // namespace

bool IsMeasured(const Trace& trace) { return trace.Find(kOpNs) != nullptr; }

Result<Measured> MeasuredOf(const Trace& trace) {
  Measured measured;
  if (!IsMeasured(trace)) return measured;
  Status status = ReadTimes(*trace.Find(kOpNs), trace.operators.size(), &measured.op_ns);
  if (status.ok()) status = ReadKey(trace, kTroughBytes, kMaxNumber, &measured.trough_bytes);
  if (status.ok()) status = ReadKey(trace, kRecordedBatch, kMaxBatch, &measured.batch);
  if (!status.ok()) return status;
  return measured;
}

Status AddMeasured(const Measured& measured, TraceBuilder* builder) {
  std::string times;
  for (const uint32_t ns : measured.op_ns) {
    times += (times.empty() ? "" : ",") + std::to_string(ns);
  }
  // "# op_ns=" and the rest of the line.
  if (times.size() + kOpNs.size() + 3 > text::kMaxLineBytes) {
    return Fault(kOpNs, "the times of " + std::to_string(measured.op_ns.size()) +
                            " operators are longer than a line may be, " +
                            std::to_string(text::kMaxLineBytes) + " bytes");
  }
  Status status = builder->AddHeader(kOpNs, times);
  if (status.ok() && measured.trough_bytes != 0) {
    status = builder->AddHeader(kTroughBytes, std::to_string(measured.trough_bytes));
  }
  if (status.ok() && measured.batch != 1) {
    status = builder->AddHeader(kRecordedBatch, std::to_string(measured.batch));
  }
  return status;
}

}  // namespace sluice::scheduler::trace
