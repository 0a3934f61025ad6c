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
    words >> kind >> step.number;
    step.kind = kind == 'a'   ? BlockStep::kAlloc
                : kind == 'f' ? BlockStep::kFree
                              : BlockStep::kLaunch;
    if (step.kind == BlockStep::kAlloc) words >> step.bytes;
    if (!words || (step.kind == BlockStep::kLaunch && kind != 'l')) Fail(path, line);
    if (step.kind == BlockStep::kAlloc) ++sequence.blocks;
    if (step.kind == BlockStep::kLaunch) ++sequence.launches;
    sequence.steps.push_back(step);
  }
  if (sequence.steps.empty()) Fail(path, "");
  return sequence;
}

}  // namespace sluice::bench
