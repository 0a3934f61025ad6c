// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/write.h"

#include <charconv>

namespace sluice::scheduler::trace {

namespace {

void AppendNumber(uint64_t number, std::string* text) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  text->append(digits, end);
}

void AppendLinear(const Linear& linear, std::string* text) {
  *text += ' ';
  AppendNumber(linear.fixed, text);
  *text += ' ';
  AppendNumber(linear.per_sample, text);
}

void AppendUses(std::string_view field, const std::vector<BlockId>& blocks, std::string* text) {
  *text += field;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i > 0) *text += ',';
    AppendNumber(blocks[i], text);
  }
}

void AppendBlock(size_t id, const Block& block, std::string* text) {
  *text += "block ";
  AppendNumber(id, text);
  *text += ' ';
  *text += BlockKindName(block.kind);
  AppendLinear(block.bytes, text);
}

void AppendOperator(size_t index, const Operator& op, std::string* text) {
  *text += "op ";
  AppendNumber(index, text);
  *text += ' ';
  *text += op.name;
  *text += ' ';
  *text += PhaseName(op.phase);
  AppendLinear(op.flops, text);
  AppendLinear(op.bytes, text);
  AppendUses(" r=", op.reads, text);
  AppendUses(" w=", op.writes, text);
}

void AppendEvent(const Trace& trace, const Event& event, std::string* text) {
  switch (event.kind) {
    case EventKind::kAlloc:
      *text += "alloc ";
      AppendNumber(event.index, text);
      return;
    case EventKind::kFree:
      *text += "free ";
      AppendNumber(event.index, text);
      return;
    case EventKind::kOperator:
      AppendOperator(event.index, trace.operators[event.index], text);
      return;
  }
}

}  // namespace

std::string WriteTrace(const Trace& trace) {
  std::string text = "# sluice-trace 1\n";
  for (const HeaderEntry& entry : trace.header) {
    text += "# " + entry.key + "=" + entry.value + "\n";
  }
  for (size_t id = 0; id < trace.blocks.size(); ++id) {
    AppendBlock(id, trace.blocks[id], &text);
    text += '\n';
  }
  for (const Event& event : trace.events) {
    AppendEvent(trace, event, &text);
    text += '\n';
  }
  return text;
}

}  // namespace sluice::scheduler::trace
