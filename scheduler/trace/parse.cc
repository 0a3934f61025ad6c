// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/parse.h"

#include <array>
#include <utility>

#include "scheduler/text/fault.h"
#include "scheduler/text/lines.h"
#include "scheduler/trace/builder.h"

namespace sluice::scheduler::trace {

namespace {

using text::Fault;
using text::LineReader;
using text::Quoted;
using text::ReadNumber;
using text::SplitFields;

constexpr std::string_view kVersionPrefix = "# sluice-trace ";
constexpr std::string_view kVersion = "1";

/// The record with the most fields is `op`.
using Fields = std::array<std::string_view, 10>;

Status ReadNumberInto(std::string_view field, std::string_view text, uint64_t* number) {
  Result<uint64_t> read = ReadNumber(field, text);
  if (!read.ok()) return read.status();
  *number = *read;
  return Status();
}

struct LinearFields {
  std::string_view fixed;
  std::string_view per_sample;
};
constexpr LinearFields kBlockBytes = {"fixed_bytes", "bytes_per_sample"};
constexpr LinearFields kFlops = {"flops", "flops_per_sample"};
constexpr LinearFields kBytes = {"bytes", "bytes_per_sample"};

/// Two fields side by side.
Status ReadLinear(const LinearFields& names, const std::string_view* texts, Linear* linear) {
  Status status = ReadNumberInto(names.fixed, texts[0], &linear->fixed);
  if (status.ok()) status = ReadNumberInto(names.per_sample, texts[1], &linear->per_sample);
  return status;
}

/// An id or index that must count on from what was read so far.
Status ReadPlace(std::string_view field, std::string_view text, size_t wanted) {
  Result<uint64_t> read = ReadNumber(field, text);
  if (!read.ok()) return read.status();
  if (*read == wanted) return Status();
  return Fault(field, std::string(text) + " is out of order, must be " + std::to_string(wanted));
}

/// `r=1,2,3`, where `field` is "r".
Status ReadUses(std::string_view field, std::string_view text, std::vector<BlockId>* blocks) {
  if (text.size() < 2 || text.substr(0, 1) != field || text[1] != '=') {
    return Fault(field, Quoted(text) + " must begin with " + std::string(field) + "=");
  }
  text.remove_prefix(2);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    Result<uint64_t> id = ReadNumber(field, text.substr(0, comma));
    if (!id.ok()) return id.status();
    if (*id >= kMaxBlocks) {
      return Fault(field, "block " + std::to_string(*id) + " does not exist, ids are below " +
                              std::to_string(kMaxBlocks));
    }
    blocks->push_back(static_cast<BlockId>(*id));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return Fault(field, "ends in a comma, must end in an id");
  }
  return Status();
}

Status ReadVersion(std::string_view line) {
  if (line.substr(0, kVersionPrefix.size()) != kVersionPrefix) {
    return Fault("version", "the first line is " + Quoted(line) + ", must be \"# sluice-trace 1\"");
  }
  line.remove_prefix(kVersionPrefix.size());
  if (line == kVersion) return Status();
  return Fault("version", Quoted(line) + " is unknown, must be 1");
}

Status ReadHeader(std::string_view line, TraceBuilder* builder) {
  const size_t equals = line.find('=');
  if (line.substr(0, 2) != "# " || equals == std::string_view::npos) {
    return Fault("header", Quoted(line) + " must be \"# key=value\"");
  }
  return builder->AddHeader(line.substr(2, equals - 2), line.substr(equals + 1));
}

Status ReadBlock(const Fields& fields, TraceBuilder* builder) {
  if (Status status = ReadPlace("id", fields[1], builder->blocks()); !status.ok()) return status;
  const std::optional<BlockKind> kind = ParseBlockKind(fields[2]);
  if (!kind.has_value()) {
    return Fault("kind", Quoted(fields[2]) + " is unknown, must be persistent, input or transient");
  }
  Block block;
  block.kind = *kind;
  if (Status status = ReadLinear(kBlockBytes, &fields[3], &block.bytes); !status.ok())
    return status;
  return builder->AddBlock(block);
}

Status ReadOperator(const Fields& fields, TraceBuilder* builder) {
  if (Status status = ReadPlace("index", fields[1], builder->operators()); !status.ok()) {
    return status;
  }
  const std::optional<Phase> phase = ParsePhase(fields[3]);
  if (!phase.has_value()) {
    return Fault("phase",
                 Quoted(fields[3]) + " is unknown, must be forward, backward or optimizer");
  }
  Operator op;
  op.name = fields[2];
  op.phase = *phase;
  if (Status status = ReadLinear(kFlops, &fields[4], &op.flops); !status.ok()) return status;
  if (Status status = ReadLinear(kBytes, &fields[6], &op.bytes); !status.ok()) return status;
  if (Status status = ReadUses("r", fields[8], &op.reads); !status.ok()) return status;
  if (Status status = ReadUses("w", fields[9], &op.writes); !status.ok()) return status;
  return builder->AddOperator(std::move(op));
}

Status ReadAlloc(const Fields& fields, TraceBuilder* builder) {
  Result<uint64_t> id = ReadNumber("id", fields[1]);
  return id.ok() ? builder->Alloc(*id) : id.status();
}

Status ReadFree(const Fields& fields, TraceBuilder* builder) {
  Result<uint64_t> id = ReadNumber("id", fields[1]);
  return id.ok() ? builder->Free(*id) : id.status();
}

struct RecordKind {
  std::string_view name;
  size_t fields;
  Status (*read)(const Fields& fields, TraceBuilder* builder);
};

constexpr RecordKind kRecords[] = {
    {"block", 5, ReadBlock},
    {"alloc", 2, ReadAlloc},
    {"free", 2, ReadFree},
    {"op", 10, ReadOperator},
};

Status ReadRecord(std::string_view line, TraceBuilder* builder) {
  if (line.substr(0, 1) == "#") return ReadHeader(line, builder);
  Fields fields;
  const size_t count = SplitFields(line, fields);
  for (const RecordKind& kind : kRecords) {
    if (fields[0] != kind.name) continue;
    if (count == kind.fields) return kind.read(fields, builder);
    return Fault(kind.name, std::string(count < kind.fields ? "too few" : "too many") +
                                " fields, must be " + std::to_string(kind.fields) +
                                " with one blank between them");
  }
  return Fault("record", Quoted(fields[0]) + " is unknown, must be block, alloc, free or op");
}

}  // namespace

Result<Trace> ParseTrace(std::string_view text) {
  LineReader lines(text);
  TraceBuilder builder;
  const auto fault = [&lines](const Status& status) {
    return status.Annotate("line " + std::to_string(lines.number()));
  };
  if (lines.done()) return fault(ReadVersion(text));
  for (bool first = true; !lines.done(); first = false) {
    const Result<std::string_view> line = lines.Next();
    if (!line.ok()) return fault(line.status());
    const Status status = first ? ReadVersion(*line) : ReadRecord(*line, &builder);
    if (!status.ok()) return fault(status);
  }
  Result<Trace> trace = builder.Finish();
  if (!trace.ok()) return fault(trace.status());
  return trace;
}

}  // namespace sluice::scheduler::trace
