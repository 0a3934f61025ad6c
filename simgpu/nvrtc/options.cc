// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/options.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

namespace sluice::simgpu::nvrtc {
namespace {

enum class Meaning {
  kArch,
  kStandard,
  kInclude,
  kDefine,
  kUndefine,
  kPreInclude,
  kBoolean,
  kValue,
  kFlag
};

struct Known {
  std::string_view name;
  Meaning meaning;
};

// kBoolean, kValue and kFlag change speed, precision or messages on a GPU and nothing here:
// arithmetic on the simulated GPU is always exact and never contracted.
constexpr Known kKnown[] = {
    {"--gpu-architecture", Meaning::kArch},
    {"-arch", Meaning::kArch},
    {"--std", Meaning::kStandard},
    {"-std", Meaning::kStandard},
    {"--include-path", Meaning::kInclude},
    {"-I", Meaning::kInclude},
    {"--define-macro", Meaning::kDefine},
    {"-D", Meaning::kDefine},
    {"--undefine-macro", Meaning::kUndefine},
    {"-U", Meaning::kUndefine},
    {"--pre-include", Meaning::kPreInclude},
    {"-include", Meaning::kPreInclude},
    {"--fmad", Meaning::kBoolean},
    {"-fmad", Meaning::kBoolean},
    {"--ftz", Meaning::kBoolean},
    {"-ftz", Meaning::kBoolean},
    {"--prec-div", Meaning::kBoolean},
    {"-prec-div", Meaning::kBoolean},
    {"--prec-sqrt", Meaning::kBoolean},
    {"-prec-sqrt", Meaning::kBoolean},
    {"--relocatable-device-code", Meaning::kBoolean},
    {"-rdc", Meaning::kBoolean},
    {"--maxrregcount", Meaning::kValue},
    {"-maxrregcount", Meaning::kValue},
    {"--ptxas-options", Meaning::kValue},
    {"-Xptxas", Meaning::kValue},
    {"--diag-suppress", Meaning::kValue},
    {"-diag-suppress", Meaning::kValue},
    {"--device-as-default-execution-space", Meaning::kFlag},
    {"-default-device", Meaning::kFlag},
    {"--use_fast_math", Meaning::kFlag},
    {"-use_fast_math", Meaning::kFlag},
    {"--extra-device-vectorization", Meaning::kFlag},
    {"-extra-device-vectorization", Meaning::kFlag},
    {"--generate-line-info", Meaning::kFlag},
    {"-lineinfo", Meaning::kFlag},
    {"--device-debug", Meaning::kFlag},
    {"-G", Meaning::kFlag},
    {"--dopt", Meaning::kValue},
    {"-dopt", Meaning::kValue},
    {"--restrict", Meaning::kFlag},
    {"-restrict", Meaning::kFlag},
    {"--minimal", Meaning::kFlag},
    {"-minimal", Meaning::kFlag},
    {"--disable-warnings", Meaning::kFlag},
    {"-w", Meaning::kFlag},
    {"--display-error-number", Meaning::kFlag},
    {"-err-no", Meaning::kFlag},
    {"--no-display-error-number", Meaning::kFlag},
    {"-no-err-no", Meaning::kFlag},
};

/// -I, -D and -U take their value without a separator.
bool Joined(std::string_view name) { return name == "-I" || name == "-D" || name == "-U"; }

bool SetArch(std::string_view value, Options* options, std::string* error) {
  std::string_view digits = value;
  const bool real = digits.starts_with("sm_");
  if (real) {
    digits.remove_prefix(3);
  } else if (digits.starts_with("compute_")) {
    digits.remove_prefix(8);
  }
  if (digits.ends_with('a')) digits.remove_suffix(1);
  for (int arch : kSupportedArchs) {
    if (digits == std::to_string(arch) && digits.size() != value.size()) {
      options->arch = arch;
      options->real_arch = real;
      return true;
    }
  }
  *error = "invalid value '" + std::string(value) +
           "' for --gpu-architecture; allowed are compute_NN and sm_NN with NN one of";
  for (int arch : kSupportedArchs) *error += " " + std::to_string(arch);
  return false;
}

bool SetStandard(std::string_view value, Options* options, std::string* error) {
  // The code around the kernels needs C++17, so older standards are compiled as that.
  if (value == "c++20") {
    options->standard = "gnu++20";
  } else if (value == "c++03" || value == "c++11" || value == "c++14" || value == "c++17") {
    options->standard = "gnu++17";
  } else {
    *error = "invalid value '" + std::string(value) +
             "' for --std; allowed are c++03, c++11, c++14, c++17 and c++20";
    return false;
  }
  return true;
}

/// The compiler runs in a folder of its own.
std::string Absolute(std::string_view path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? std::string(path) : absolute;
}

bool Apply(const Known& known, std::string_view value, Options* options, std::string* error) {
  auto& flags = options->compiler_flags;
  switch (known.meaning) {
    case Meaning::kArch:
      return SetArch(value, options, error);
    case Meaning::kStandard:
      return SetStandard(value, options, error);
    case Meaning::kInclude:
      flags.push_back("-I" + Absolute(value));
      return true;
    case Meaning::kDefine:
      flags.push_back("-D" + std::string(value));
      return true;
    case Meaning::kUndefine:
      flags.push_back("-U" + std::string(value));
      return true;
    case Meaning::kPreInclude:
      flags.insert(flags.end(), {"-include", std::filesystem::exists(value) ? Absolute(value)
                                                                            : std::string(value)});
      return true;
    case Meaning::kBoolean:
      if (value == "true" || value == "false") return true;
      *error = "invalid value '" + std::string(value) + "' for " + std::string(known.name) +
               "; allowed are true and false";
      return false;
    case Meaning::kValue:
    case Meaning::kFlag:
      return true;
  }
  return true;
}

}  // namespace

bool ParseOptions(const std::vector<std::string>& arguments, Options* options, std::string* error) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    std::string_view name = argument.substr(0, equals);
    std::string_view value;
    bool has_value = false;
    if (name.size() >= 2 && Joined(name.substr(0, 2)) && argument.size() > 2) {
      name = argument.substr(0, 2);
      value = argument.substr(2);
      has_value = true;
    } else if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
      has_value = true;
    }
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                     [&](const Known& k) { return k.name == name; });
    if (known == std::end(kKnown) || (known->meaning == Meaning::kFlag && has_value)) {
      *error = "unrecognized option '" + std::string(argument) + "'";
      return false;
    }
    if (known->meaning != Meaning::kFlag && !has_value) {
      if (i + 1 == arguments.size()) {
        *error = "option '" + std::string(argument) + "' needs a value";
        return false;
      }
      value = arguments[++i];
    }
    if (!Apply(*known, value, options, error)) return false;
  }
  return true;
}

}  // namespace sluice::simgpu::nvrtc
