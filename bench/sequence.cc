// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/sequence.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sluice::bench {
namespace {

[[noreturn]] void Fail(const std::string& path, const std::string& line) {
  fprintf(stderr, "bench: cannot read %s%s%s\n", path.c_str(),
          line.empty() ? "" : " at: ", line.c_str());
  exit(1);
}

}  // namespace

BlockSequence ReadSequence(const std::string& name) {
  const std::string path = std::string(SLUICE_BENCH_DATA) + '/' + name + ".blocks";
  std::ifstream file(path);
  BlockSequence sequence;
  sequence.name = name;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    char kind = 0;
    BlockStep step{};
    words >> kind >> step.block;
    step.alloc = kind == 'a';
    if (step.alloc) words >> step.bytes;
    if (!words || (kind != 'a' && kind != 'f')) Fail(path, line);
    if (step.alloc) ++sequence.blocks;
    sequence.steps.push_back(step);
  }
  if (sequence.steps.empty()) Fail(path, "");
  return sequence;
}

}  // namespace sluice::bench
