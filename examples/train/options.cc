// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "examples/train/options.h"

#include <charconv>
#include <cstdio>
#include <functional>
#include <system_error>

namespace train {
namespace {

struct Option {
  std::string name;
  std::string value;  // how the help shows it
  std::string text;
  std::string allowed;
  std::function<bool(const std::string&)> set;
};

template <class T>
bool ParseNumber(const std::string& text, T least, T most, T* number) {
  T parsed{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || stop != end || !(parsed >= least && parsed <= most)) return false;
  *number = parsed;
  return true;
}

Option Integer(std::string name, std::string text, int least, int most, int* number) {
  return {std::move(name), "N", std::move(text),
          "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
          [=](const std::string& value) { return ParseNumber(value, least, most, number); }};
}

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

Option Real(std::string name, std::string text, double least, double most, double* number) {
  char range[64];
  std::snprintf(range, sizeof range, "a number from %g to %g", least, most);
  return {std::move(name), "X", std::move(text), range,
          [=](const std::string& value) { return ParseNumber(value, least, most, number); }};
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
  const std::vector<Option> table = Table(options);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      options->help = true;
      continue;
    }
    const size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    std::string value = joined ? name.substr(equals + 1) : "";
    name = name.substr(0, equals);
    const Option* found = nullptr;
    for (const Option& option : table) {
      if (option.name == name) found = &option;
    }
    if (found == nullptr) {
      *error = "unknown option '" + name + "'; allowed are --help";
      for (const Option& option : table) *error += " " + option.name;
      return false;
    }
    if (!joined) {
      if (i + 1 == arguments.size()) {
        *error = name + " needs a value: " + found->allowed;
        return false;
      }
      value = arguments[++i];
    }
    if (!found->set(value)) {
      *error = name + " must be " + found->allowed + ", not '" + value + "'";
      return false;
    }
  }
  return true;
}

std::string HelpText() {
  Options defaults;
  std::string text =
      "usage: train [options]\n"
      "Trains a small convolutional network on handwritten digits, on a GPU, and prints each loss "
      "as\n"
      "`loss ITERATION HEX-FLOAT`, at the end `done iterations=N peak_bytes=B base_bytes=B`.\n"
      "Ends with 2 after a bad option and with 3 when the GPU is out of memory.\n\n";
  for (const Option& option : Table(&defaults)) {
    std::string left = "  " + option.name + " " + option.value;
    left.resize(left.size() < 22 ? 22 : left.size() + 1, ' ');
    text += left + option.text + " (" + option.allowed + ")\n";
  }
  return text;
}

}  // namespace train
