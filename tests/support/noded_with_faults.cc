// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "noderuntime/daemon/noded.h"

/// sluice-noded with one more option, `--fault NAME` (repeatable): a defect that a check must
/// notice.
int main(int argc, char** argv) {
  sluice::flow::FaultPlan faults;
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--fault") != 0) {
      arguments.emplace_back(argv[i]);
      continue;
    }
    const std::string name = i + 1 < argc ? argv[++i] : "";
    if (name == "ignore_fences") {
      faults.ignore_fences = true;
    } else if (name == "skip_quarantine") {
      faults.skip_quarantine = true;
    } else if (name == "skip_quiet") {
      faults.skip_quiet = true;
      // It gives back what it frees meanwhile, as nobody has told it.
      faults.release_moved = faults.skip_comparison = true;
    } else if (name == "skip_copy_back") {
      faults.skip_copy_back = true;
    } else if (name == "misnumber_fences") {
      faults.misnumber_fences = true;
    } else if (name == "release_moved") {
      faults.release_moved = true;
    } else if (name == "skip_comparison") {
      faults.skip_comparison = true;
    } else {
      std::fprintf(stderr,
                   "--fault '%s': allowed: ignore_fences, skip_quarantine, skip_quiet, "
                   "skip_copy_back, misnumber_fences, release_moved, skip_comparison\n",
                   name.c_str());
      return 2;
    }
  }
  return sluice::noded::RunNoded(arguments, faults);
}
