// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Reads traces as the scheduling library does, for the tests of tools/record.
// Usage: trace-reader FILE...
// Ends with 1 at the first file that is no trace, and says why, by file and line.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/parse.h"

int main(int argc, char** argv) {
  using namespace sluice::scheduler::trace;
  constexpr uint64_t kBatch = 32;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::cerr << path << ": cannot be read\n";
      return 1;
    }
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const sluice::Result<Trace> trace = ParseTrace(text);
    if (!trace.ok()) {
      std::cerr << path << ": " << trace.status().message() << '\n';
      return 1;
    }
    const sluice::Result<BatchTrace> sized = AtBatch(*trace, kBatch);
    if (!sized.ok()) {
      std::cerr << path << ": " << sized.status().message() << '\n';
      return 1;
    }
    std::cout << (*trace).operators.size() << " operators, " << (*trace).blocks.size()
              << " blocks, peak " << (*sized).peak_bytes << " bytes at batch " << kBatch << '\n';
  }
  return 0;
}
