// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/frameworks.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "common/bytes.h"

namespace sluice::cli {
namespace {

struct Variable {
  const char* name;
  const char* async;  // null: not set
  const char* expandable;
  /// Another name of the same setting: whoever has set one of them has decided.
  const char* synonym = nullptr;
};

// PyTorch renamed its variable; older releases read the first name only, newer ones prefer the
// second. TensorFlow and JAX take all memory at once unless they are told not to.
constexpr Variable kVariables[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync", "expandable_segments:True",
     "PYTORCH_ALLOC_CONF"},
    {"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync", "expandable_segments:True",
     "PYTORCH_CUDA_ALLOC_CONF"},
    // PyTorch asks for segments that could be exported; leased, they cannot be.
    {"SLUICE_PHYSICAL", nullptr, "lease"},
    {"TF_GPU_ALLOCATOR", "cuda_malloc_async", "cuda_malloc_async"},
    {"TF_FORCE_GPU_ALLOW_GROWTH", "true", "true"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async", "cuda_async"},
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "false", "false"},
};

// PyTorch's expandable segments grow by 2 MiB (small blocks) and by 20 MiB, and what is leased is
// whole units of the pool, each a handle of its own.
constexpr uint64_t kSegmentBytes = 2 * kMiB;

}  // namespace

std::optional<Frameworks> FrameworksNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(kFrameworksNames); ++i) {
    if (name == kFrameworksNames[i]) return static_cast<Frameworks>(i);
  }
  return std::nullopt;
}

std::vector<std::string> SteerFrameworks(Frameworks how, Environment* environment) {
  if (how == Frameworks::kNone) return {};
  std::vector<std::string> said;
  const Environment before = *environment;
  for (const Variable& variable : kVariables) {
    const std::string name = variable.name;
    const char* const value = how == Frameworks::kAsync ? variable.async : variable.expandable;
    if (value == nullptr) continue;
    if (const auto own = before.Get(name)) {
      said.push_back("kept " + name + "=" + *own + ", which was set already");
    } else if (variable.synonym != nullptr && before.Get(variable.synonym).has_value()) {
      said.push_back("left " + name + " alone, because " + variable.synonym + " was set already");
    } else {
      environment->Set(name, value);
      said.push_back("set " + name + "=" + value);
    }
  }
  return said;
}

std::vector<std::string> FrameworksDaemonFlags(Frameworks how) {
  if (how != Frameworks::kExpandable) return {};
  const std::string bytes = std::to_string(kSegmentBytes);
  return {"--lease-unit", bytes, "--handle", bytes};
}

std::string WhyNotLent(Frameworks how, const std::string& status_json) {
  using nlohmann::json;
  const json status = json::parse(status_json, nullptr, /*allow_exceptions=*/false);
  if (how != Frameworks::kExpandable || !status.is_object()) return "";
  const uint64_t unit = status.value("unit_bytes", json(0)).get<uint64_t>();
  const uint64_t handle = status.value("handle_bytes", json(0)).get<uint64_t>();
  if (unit == 0 || handle == 0 || (unit == handle && kSegmentBytes % unit == 0)) return "";
  return "--frameworks expandable: the daemon that runs has a lease unit of " + FormatBytes(unit) +
         " and handles of " + FormatBytes(handle) +
         ", so expandable segments are charged outside its pool and not lent; for that end it and "
         "let sluice run start one, or give it --lease-unit 2MiB --handle 2MiB";
}

}  // namespace sluice::cli
