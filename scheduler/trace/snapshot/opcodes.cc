// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/opcodes.h"

#include <array>

namespace sluice::scheduler::trace {

namespace {

constexpr OpcodeUse kData = OpcodeUse::kData;
constexpr OpcodeUse kCode = OpcodeUse::kCode;
constexpr OpcodeUse kUnused = OpcodeUse::kUnused;

constexpr Opcode kOpcodes[] = {
    {'(', kData, "MARK"},
    {'.', kData, "STOP"},
    {'0', kUnused, "POP"},
    {'1', kUnused, "POP_MARK"},
    {'2', kUnused, "DUP"},
    {'F', kData, "FLOAT"},
    {'I', kData, "INT"},
    {'J', kData, "BININT"},
    {'K', kData, "BININT1"},
    {'L', kData, "LONG"},
    {'M', kData, "BININT2"},
    {'N', kData, "NONE"},
    {'P', kCode, "PERSID"},
    {'Q', kCode, "BINPERSID"},
    {'R', kCode, "REDUCE"},
    {'S', kUnused, "STRING"},
    {'T', kUnused, "BINSTRING"},
    {'U', kUnused, "SHORT_BINSTRING"},
    {'V', kData, "UNICODE"},
    {'X', kData, "BINUNICODE"},
    {'a', kData, "APPEND"},
    {'b', kCode, "BUILD"},
    {'c', kCode, "GLOBAL"},
    {'d', kData, "DICT"},
    {'}', kData, "EMPTY_DICT"},
    {'e', kData, "APPENDS"},
    {'g', kData, "GET"},
    {'h', kData, "BINGET"},
    {'i', kCode, "INST"},
    {'j', kData, "LONG_BINGET"},
    {'l', kData, "LIST"},
    {']', kData, "EMPTY_LIST"},
    {'o', kCode, "OBJ"},
    {'p', kData, "PUT"},
    {'q', kData, "BINPUT"},
    {'r', kData, "LONG_BINPUT"},
    {'s', kData, "SETITEM"},
    {'t', kData, "TUPLE"},
    {')', kData, "EMPTY_TUPLE"},
    {'u', kData, "SETITEMS"},
    {'G', kData, "BINFLOAT"},
    {'B', kData, "BINBYTES"},
    {'C', kData, "SHORT_BINBYTES"},
    {0x80, kData, "PROTO"},
    {0x81, kCode, "NEWOBJ"},
    {0x82, kCode, "EXT1"},
    {0x83, kCode, "EXT2"},
    {0x84, kCode, "EXT4"},
    {0x85, kData, "TUPLE1"},
    {0x86, kData, "TUPLE2"},
    {0x87, kData, "TUPLE3"},
    {0x88, kData, "NEWTRUE"},
    {0x89, kData, "NEWFALSE"},
    {0x8a, kData, "LONG1"},
    {0x8b, kData, "LONG4"},
    {0x8c, kData, "SHORT_BINUNICODE"},
    {0x8d, kData, "BINUNICODE8"},
    {0x8e, kData, "BINBYTES8"},
    {0x8f, kUnused, "EMPTY_SET"},
    {0x90, kUnused, "ADDITEMS"},
    {0x91, kUnused, "FROZENSET"},
    {0x92, kCode, "NEWOBJ_EX"},
    {0x93, kCode, "STACK_GLOBAL"},
    {0x94, kData, "MEMOIZE"},
    {0x95, kData, "FRAME"},
    {0x96, kUnused, "BYTEARRAY8"},
    {0x97, kCode, "NEXT_BUFFER"},
    {0x98, kCode, "READONLY_BUFFER"},
};

constexpr std::array<Opcode, 256> ByByte() {
  std::array<Opcode, 256> table{};
  for (const Opcode& opcode : kOpcodes) table[opcode.byte] = opcode;
  return table;
}

constexpr std::array<Opcode, 256> kByByte = ByByte();

}  // namespace

Opcode FindOpcode(uint8_t byte) { return kByByte[byte]; }

}  // namespace sluice::scheduler::trace
