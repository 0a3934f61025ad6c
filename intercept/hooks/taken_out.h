// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#ifdef SLUICE_TEST_SWITCHES
#include <stdlib.h>
#include <string.h>
#endif

namespace sluice {

#ifdef SLUICE_TEST_SWITCHES
/// Test builds only: the hook named by SLUICE_TEST_WITHOUT passes its calls through, as if its line
/// were not in the table.
inline bool TakenOut(const char* symbol) {
  static const char* const without = getenv("SLUICE_TEST_WITHOUT");
  return without != nullptr && strcmp(without, symbol) == 0;
}
#else
constexpr bool TakenOut(const char*) { return false; }
#endif

}  // namespace sluice
