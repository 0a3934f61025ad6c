// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string_view>

/// The opcodes of Python's pickle protocols 0 to 5, under the names of Python's pickletools.
namespace sluice::scheduler::trace {

/// kData builds numbers, text and containers of them, as a dump of plain data does. kCode looks
/// names up or calls what they stand for. kUnused is harmless, but in no such dump (sets, byte
/// strings of Python 2, stack juggling).
enum class OpcodeUse : uint8_t { kData, kCode, kUnused, kUnknown };

struct Opcode {
  uint8_t byte = 0;
  OpcodeUse use = OpcodeUse::kUnknown;
  std::string_view name;
};

/// The entry of any byte; kUnknown where it is no opcode.
Opcode FindOpcode(uint8_t byte);

}  // namespace sluice::scheduler::trace
