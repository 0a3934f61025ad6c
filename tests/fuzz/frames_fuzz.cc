// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The daemon under a fuzzer: every input is a script of what hostile clients do (frames.cc), played
// against the whole daemon in this process, beside a job that must not notice (daemon_world.h).
//
//   scripts/check fuzz          10^5 frames, and proof that a seeded defect is found
//   scripts/soak fuzz           10^6 frames
//   build/fuzz/tests/frames_fuzz FILE    plays one input again
//
// SLUICE_FUZZ_FRAMES=N ends the run with success after N frames; SLUICE_FUZZ_FAULT=ignore_fences or
// skip_quarantine plays against a daemon that is broken on purpose.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/frames.h"

namespace {

uint64_t Wanted() {
  const char* text = std::getenv("SLUICE_FUZZ_FRAMES");
  return text == nullptr ? UINT64_MAX : std::strtoull(text, nullptr, 10);
}

sluice::flow::FaultPlan Faults() {
  const char* text = std::getenv("SLUICE_FUZZ_FAULT");
  const std::string fault = text == nullptr ? "" : text;
  sluice::flow::FaultPlan plan;
  plan.ignore_fences = fault == "ignore_fences";
  plan.skip_quarantine = fault == "skip_quarantine";
  return plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string folder = sluice::fuzz::ScratchFolder();
  static const uint64_t wanted = Wanted();
  static uint64_t frames = 0;
  static uint64_t inputs = 0;
  const sluice::fuzz::Played played = sluice::fuzz::PlayFrames({data, size}, folder, Faults());
  if (played.violation.has_value()) {
    // What happened, for whoever has to understand it.
    std::ifstream log(folder + "/events");
    for (std::string line; std::getline(log, line);) std::fprintf(stderr, "%s\n", line.c_str());
    std::fprintf(stderr, "violation: %s\n", played.violation->c_str());
    std::filesystem::remove_all(folder);
    std::abort();
  }
  frames += played.frames;
  ++inputs;
  if (frames < wanted) return 0;
  std::fprintf(stderr, "%llu frames in %llu inputs\n", static_cast<unsigned long long>(frames),
               static_cast<unsigned long long>(inputs));
  std::filesystem::remove_all(folder);
  // exit() inside an input would be taken for a crash.
  ::_exit(0);
}
