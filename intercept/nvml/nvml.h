// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

namespace sluice {

/// Our function in the place of one of NVIDIA's management library. Null: `name` is none that we
/// stand in front of, or `found` is not that library's own.
void* NvmlHookFor(const char* name, void* found);

}  // namespace sluice
