// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>

#include "examples/train/digits.h"
#include "examples/train/driver_device.h"
#include "examples/train/embedded.h"
#include "examples/train/options.h"
#include "examples/train/trainer.h"

namespace {

constexpr int kFailed = 1, kBadUsage = 2, kOutOfMemory = 3;

bool ReadDigits(const train::Options& options, train::Digits* digits) {
  std::string text(train::kDigitsText);
  if (!options.data.empty()) {
    std::ifstream stream(options.data);
    if (!stream) {
      std::fprintf(stderr, "train: --data: cannot read '%s'\n", options.data.c_str());
      return false;
    }
    std::ostringstream content;
    content << stream.rdbuf();
    text = std::move(content).str();
  }
  std::string error;
  if (train::ParseDigits(text, digits, &error)) return true;
  std::fprintf(stderr, "train: --data: %s\n", error.c_str());
  return false;
}

void Run(const train::Options& options, const train::Digits& digits) {
  const auto driver = sluice::cuda::ClientDriver::Load();
  train::DriverDevice device(driver, options.device);
  device.LoadKernels(sluice::cuda::CompileKernels(train::kKernelSource, "train.cu", device.arch()));
  train::Train(device, options, digits, [](int iteration, float loss) {
    std::printf("loss %d %a\n", iteration, static_cast<double>(loss));
    std::fflush(stdout);
  });
  std::printf("done iterations=%d peak_bytes=%zu base_bytes=%zu\n", options.iterations,
              device.PeakBytes(), device.persistent_bytes());
}

}  // namespace

int main(int argc, char** argv) {
  train::Options options;
  std::string error;
  if (!train::ParseOptions(std::vector<std::string>(argv + 1, argv + argc), &options, &error)) {
    std::fprintf(stderr, "train: %s\n", error.c_str());
    return kBadUsage;
  }
  if (options.help) {
    std::fputs(train::HelpText().c_str(), stdout);
    return 0;
  }
  train::Digits digits;
  if (!ReadDigits(options, &digits)) return kBadUsage;
  try {
    Run(options, digits);
  } catch (const train::OutOfMemory& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return kOutOfMemory;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "train: %s\n", failure.what());
    return kFailed;
  }
  return 0;
}
