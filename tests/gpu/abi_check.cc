// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>

#include "tests/gpu/abi_rows.h"

/// Compares common/cuda/abi.h with the vendor's cuda.h. Built only where that header exists;
/// whatever the header lacks fails the build, whatever differs is printed.
int main() {
  int differences = 0;
  const auto ours = OurRows();
  const auto vendor = VendorRows();
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].value == vendor[i].value) continue;
    ++differences;
    std::printf("%s: %llu here, %llu in cuda.h\n", ours[i].what,
                static_cast<unsigned long long>(ours[i].value),
                static_cast<unsigned long long>(vendor[i].value));
  }
  std::printf("%zu numbers compared, %d differ\n", ours.size(), differences);
  return differences == 0 ? 0 : 1;
}
