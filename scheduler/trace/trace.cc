// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/trace.h"

#include <array>

namespace sluice::scheduler::trace {

namespace {

// By the value of the enumerator.
constexpr std::array<std::string_view, 3> kBlockKinds = {"persistent", "input", "transient"};
constexpr std::array<std::string_view, 3> kPhases = {"forward", "backward", "optimizer"};

template <typename Enum>
std::optional<Enum> ByName(const std::array<std::string_view, 3>& names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const std::string* Trace::Find(std::string_view key) const {
  for (const HeaderEntry& entry : header) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string_view BlockKindName(BlockKind kind) { return kBlockKinds[static_cast<size_t>(kind)]; }

std::string_view PhaseName(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

std::optional<BlockKind> ParseBlockKind(std::string_view name) {
  return ByName<BlockKind>(kBlockKinds, name);
}

std::optional<Phase> ParsePhase(std::string_view name) { return ByName<Phase>(kPhases, name); }

}  // namespace sluice::scheduler::trace
