// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/injection.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "simgpu/sharing/cuda_errors.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kLongestDelay = 60'000'000'000;
constexpr uint32_t kLargestError = 999;

constexpr std::string_view kFunctions[] = {
#define CU_EXPORT(symbol, base, version, per_thread) #symbol,
#include "common/cuda/exports.def"
#undef CU_EXPORT
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<uint64_t> Whole(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> Delay(std::string_view text) {
  const struct {
    std::string_view unit;
    uint64_t ns;
  } units[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  for (const auto& [unit, ns] : units) {
    if (!text.ends_with(unit)) continue;
    const std::optional<uint64_t> value = Whole(text.substr(0, text.size() - unit.size()));
    if (value && *value <= kLongestDelay / ns) return *value * ns;
  }
  return std::nullopt;
}

/// Empty on success, else what is allowed.
std::string SetAction(std::string_view text, Injection* rule) {
  if (const std::optional<uint64_t> delay = Delay(text)) {
    rule->delay_ns = *delay;
    return {};
  }
  const std::optional<uint64_t> number = Whole(text);
  if (number && *number >= 1 && *number <= kLargestError) {
    rule->result = static_cast<uint32_t>(*number);
    return {};
  }
  const CudaError* error = FindCudaError(text);
  if (error != nullptr && error->code != CUDA_SUCCESS) {
    rule->result = error->code;
    return {};
  }
  return "an action is an error such as CUDA_ERROR_OUT_OF_MEMORY or 2, or a delay such as 200us, "
         "5ms or 1s (at most 60s)";
}

std::string SetTarget(std::string_view text, Injection* rule) {
  const size_t at = text.find('@');
  const std::string_view name = Trim(text.substr(0, at));
  rule->first = 1;
  rule->count = UINT64_MAX;
  if (at != std::string_view::npos) {
    const std::string_view which = text.substr(at + 1);
    const size_t plus = which.find('+');
    const std::optional<uint64_t> first = Whole(Trim(which.substr(0, plus)));
    std::optional<uint64_t> count = 1;
    if (plus != std::string_view::npos) {
      const std::string_view many = Trim(which.substr(plus + 1));
      count = many == "*" ? UINT64_MAX : Whole(many);
    }
    if (!first || *first == 0 || !count || *count == 0) {
      return "@FIRST or @FIRST+COUNT, numbers from 1, COUNT may be *";
    }
    rule->first = *first;
    rule->count = *count;
  }
  if (name.empty() || name.size() >= kInjectionName) return "the name of a driver function";
  snprintf(rule->name, sizeof rule->name, "%.*s", static_cast<int>(name.size()), name.data());
  if (std::none_of(std::begin(kFunctions), std::end(kFunctions),
                   [rule](std::string_view function) { return rule->Names(function); })) {
    return "the name of a function that the driver exports, such as cuMemCreate or cuMemAlloc*";
  }
  return {};
}

std::string ParseOne(std::string_view text, Injection* rule) {
  *rule = {};
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return "NAME[@FIRST[+COUNT]]=ACTION[,ACTION]";
  std::string wrong = SetTarget(text.substr(0, equals), rule);
  std::string_view actions = text.substr(equals + 1);
  for (bool more = true; more && wrong.empty();) {
    const size_t comma = actions.find(',');
    wrong = SetAction(Trim(actions.substr(0, comma)), rule);
    more = comma != std::string_view::npos;
    if (more) actions.remove_prefix(comma + 1);
  }
  return wrong;
}

}  // namespace

bool Injection::Names(std::string_view function) const {
  std::string_view pattern = name;
  if (!pattern.ends_with('*')) return pattern == function;
  pattern.remove_suffix(1);
  return function.starts_with(pattern);
}

Result<std::vector<Injection>> ParseInjections(std::string_view text) {
  std::vector<Injection> rules;
  while (!text.empty()) {
    const size_t end = text.find(';');
    const std::string_view piece = Trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (piece.empty()) continue;
    std::string wrong = ParseOne(piece, &rules.emplace_back());
    if (wrong.empty() && rules.size() > kMaxInjections) {
      wrong = "at most " + std::to_string(kMaxInjections) + " injections";
    }
    if (wrong.empty()) continue;
    return Status(StatusCode::kInvalidArgument,
                  "injection '" + std::string(piece) + "': allowed: " + wrong);
  }
  return rules;
}

Suffering Suffer(InjectionSlot* slots, uint32_t count, std::string_view function) {
  Suffering all;
  for (uint32_t i = 0; i < count; ++i) {
    InjectionSlot& slot = slots[i];
    if (!slot.rule.Names(function)) continue;
    const uint64_t number = slot.calls.fetch_add(1) + 1;
    if (number < slot.rule.first || number - slot.rule.first >= slot.rule.count) continue;
    slot.hits.fetch_add(1);
    all.delay_ns += slot.rule.delay_ns;
    if (all.result == 0) all.result = slot.rule.result;
  }
  return all;
}

}  // namespace sluice::simgpu
