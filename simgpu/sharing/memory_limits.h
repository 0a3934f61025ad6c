// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "simgpu/sharing/state_page.h"

/// Limits on the memory of control groups, as drivers from 615 on have them: what the programs of a
/// group have made counts, and what they have only mapped does not. How the real one counts that is
/// not documented. All functions with a page are called with its guard held.
namespace sluice::simgpu {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

/// What stands for a group in the page: a hash of its path, below /sys/fs/cgroup or from there on.
/// Never 0.
uint64_t MemoryGroup(std::string_view path);

/// The calling process's: SLUICE_SIMGPU_CGROUP if that is set, else by the kernel.
uint64_t MemoryGroupOfSelf();

/// `soft` 0 and `hard` kNoLimit end it. False: there are limits of too many groups.
bool SetMemoryLimit(StatePage* page, uint64_t group, uint64_t soft, uint64_t hard);

/// The group's, or one that limits nothing.
MemoryLimit FindMemoryLimit(const StatePage& page, uint64_t group);

/// Bytes that the group's running programs have made.
uint64_t MemoryOfGroup(const StatePage& page, uint64_t group);

}  // namespace sluice::simgpu
