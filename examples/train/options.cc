// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/options.h"

#include "common/cuda/client_options.h"

namespace train {
namespace {

using sluice::cuda::Integer;
using sluice::cuda::Option;
using sluice::cuda::ParseNumber;
using sluice::cuda::Real;

/// The kernels compute a channel's number with a mask.
Option PowerOfTwo(std::string name, std::string text, int least, int most, int* number) {
  return {std::move(name), "N", std::move(text),
          "a power of two from " + std::to_string(least) + " to " + std::to_string(most),
          [=](const std::string& value) {
            int parsed = 0;
            if (!ParseNumber(value, least, most, &parsed) || (parsed & (parsed - 1)) != 0) {
              return false;
            }
            *number = parsed;
            return true;
          }};
}

std::vector<Option> Table(Options* o) {
  return {
      {"--model", "NAME",
       "sizes of a preset: small-a (batch 1024, channels 4, depth 3, stages 3) or "
       "small-b (512, 8, 4, 2); options after it change it",
       "small-a or small-b",
       [=](const std::string& value) {
         if (value == "small-a") o->shape = Shape{};
         if (value == "small-b") o->shape = Shape{512, 8, 4, 2, 64};
         return value == "small-a" || value == "small-b";
       }},
      Integer("--iterations", "iterations to train", 1, 1000000, &o->iterations),
      Integer("--batch", "images per iteration", 1, 16384, &o->shape.batch),
      PowerOfTwo("--channels", "channels of the convolutions", 4, 32, &o->shape.channels),
      Integer("--depth", "residual blocks", 1, 64, &o->shape.depth),
      Integer("--stages", "elementwise stages per block", 1, 16, &o->shape.stages),
      PowerOfTwo("--hidden", "width of the hidden dense layer", 8, 512, &o->shape.hidden),
      {"--optimizer", "NAME", "sgd (with momentum) or adam", "sgd or adam",
       [=](const std::string& value) {
         o->optimizer = value == "adam" ? Optimizer::kAdam : Optimizer::kSgd;
         return value == "sgd" || value == "adam";
       }},
      Real("--learning-rate", "step size", 0.0, 10.0, &o->learning_rate),
      Real("--momentum", "momentum of sgd", 0.0, 0.999, &o->momentum),
      {"--seed", "N", "of the weights and of the order of the images",
       "a whole number from 0 to 2^63-1",
       [=](const std::string& value) {
         return ParseNumber<uint64_t>(value, 0, INT64_MAX, &o->seed);
       }},
      Integer("--device", "ordinal of the GPU", 0, 63, &o->device),
      Integer("--print-lag",
              "before iteration n starts, wait for iteration n-N and print its loss; the "
              "only place where the program waits for the GPU",
              1, 64, &o->print_lag),
      {"--data", "FILE", "images to train on, instead of the built-in digits", "a file name",
       [=](const std::string& value) {
         o->data = value;
         return !value.empty();
       }},
  };
}

}  // namespace

bool ParseOptions(const std::vector<std::string>& arguments, Options* options, std::string* error) {
  return sluice::cuda::ParseOptions(Table(options), arguments, nullptr, &options->help, error);
}

std::string HelpText() {
  Options defaults;
  const std::string text =
      "usage: train [options]\n"
      "Trains a small convolutional network on handwritten digits, on a GPU, and prints each loss "
      "as\n"
      "`loss ITERATION HEX-FLOAT`, at the end `done iterations=N peak_bytes=B base_bytes=B`.\n"
      "Ends with 2 after a bad option and with 3 when the GPU is out of memory.\n\n";
  return text + sluice::cuda::DescribeOptions(Table(&defaults));
}

}  // namespace train
