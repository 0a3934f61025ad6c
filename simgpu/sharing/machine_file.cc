// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/machine_file.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "common/bytes.h"

namespace sluice::simgpu {
namespace {

constexpr uint64_t kMaxNs = 3'600'000'000'000;  // an hour: more is a slip of the pen
constexpr std::string_view kKeys =
    "name, compute_capability, time_scale, launch_queue, launch_ns, quantum_ns, granularity, "
    "context_bytes, "
    "copy_bytes_per_s, memset_bytes_per_s, create_ns, map_ns, set_access_ns, unmap_ns, "
    "cost.default, cost.KERNEL, delay.KERNEL";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct IntegerKey {
  std::string_view key;
  uint64_t Machine::*field;
  uint64_t low;
  uint64_t high;
};

constexpr IntegerKey kIntegerKeys[] = {
    {"launch_queue", &Machine::launch_queue, 1, 65536},
    {"launch_ns", &Machine::launch_ns, 0, kMaxNs},
    {"quantum_ns", &Machine::quantum_ns, 1000, kMaxNs},
    {"copy_bytes_per_s", &Machine::copy_bytes_per_s, 1, std::numeric_limits<uint64_t>::max()},
    {"memset_bytes_per_s", &Machine::memset_bytes_per_s, 1, std::numeric_limits<uint64_t>::max()},
    {"create_ns", &Machine::create_ns, 0, kMaxNs},
    {"map_ns", &Machine::map_ns, 0, kMaxNs},
    {"set_access_ns", &Machine::set_access_ns, 0, kMaxNs},
    {"unmap_ns", &Machine::unmap_ns, 0, kMaxNs},
};

std::optional<KernelCost> ParseCost(std::string_view text) {
  const size_t plus = text.find('+');
  const std::optional<double> base = Number<double>(Trim(text.substr(0, plus)));
  std::optional<double> per_thread = 0.0;
  if (plus != std::string_view::npos) per_thread = Number<double>(Trim(text.substr(plus + 1)));
  const auto usable = [](const std::optional<double>& v) {
    return v && std::isfinite(*v) && *v >= 0 && *v <= static_cast<double>(kMaxNs);
  };
  if (!usable(base) || !usable(per_thread)) return std::nullopt;
  return KernelCost{*base, *per_thread};
}

/// Empty on success, else what is allowed.
std::string Set(Machine& machine, std::string_view key, std::string_view value) {
  for (const IntegerKey& row : kIntegerKeys) {
    if (row.key != key) continue;
    const std::optional<uint64_t> number = Number<uint64_t>(value);
    if (!number || *number < row.low || *number > row.high) {
      return "an integer from " + std::to_string(row.low) + " to " + std::to_string(row.high);
    }
    machine.*row.field = *number;
    return {};
  }
  if (key == "name") {
    if (value.empty() || value.size() > 64) return "1 to 64 characters";
    machine.name = value;
    return {};
  }
  if (key == "compute_capability") {
    // Those that this NVRTC compiles for.
    const std::optional<double> number = Number<double>(value);
    const double tenths = number.value_or(0) * 10;
    if (!(tenths >= 50 && tenths <= 90) || std::abs(tenths - std::round(tenths)) > 1e-9) {
      return "a number from 5.0 to 9.0 with one digit after the point";
    }
    machine.compute_capability = static_cast<int>(std::round(tenths));
    return {};
  }
  if (key == "time_scale") {
    const std::optional<double> number = Number<double>(value);
    if (!number || !(*number >= 1e-6) || *number > 1e6) return "a number from 1e-6 to 1e6";
    machine.time_scale = *number;
    return {};
  }
  if (key == "granularity") {
    const Result<uint64_t> bytes = ParseBytes(value, key);
    if (!bytes.ok() || (*bytes & (*bytes - 1)) != 0 || *bytes < 4 * kKiB || *bytes > kGiB) {
      return "a power of two from 4KiB to 1GiB";
    }
    machine.granularity = *bytes;
    return {};
  }
  if (key == "context_bytes") {
    if (value == "0") {
      machine.context_bytes = 0;
      return {};
    }
    const Result<uint64_t> bytes = ParseBytes(value, key);
    if (!bytes.ok()) return "0 or a size such as 4MiB";
    machine.context_bytes = *bytes;
    return {};
  }
  if (key.starts_with("cost.") && key.size() > 5) {
    const std::optional<KernelCost> cost = ParseCost(value);
    if (!cost) return "BASE_NS or BASE_NS + NS_PER_THREAD, both at least 0";
    if (key == "cost.default") {
      machine.default_cost = *cost;
    } else {
      machine.cost[std::string(key.substr(5))] = *cost;
    }
    return {};
  }
  if (key.starts_with("delay.") && key.size() > 6) {
    const std::optional<uint64_t> number = Number<uint64_t>(value);
    if (!number || *number > kMaxNs) return "nanoseconds, at most an hour";
    machine.delay[std::string(key.substr(6))] = *number;
    return {};
  }
  return "one of the keys " + std::string(kKeys);
}

uint64_t TimeFor(uint64_t bytes, uint64_t per_second) {
  return static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(per_second));
}

}  // namespace

uint64_t Machine::KernelNs(std::string_view kernel, double threads) const {
  const auto row = cost.find(kernel);
  const KernelCost& c = row == cost.end() ? default_cost : row->second;
  const auto extra = delay.find(kernel);
  const double ns = c.base_ns + c.per_thread_ns * threads;
  return static_cast<uint64_t>(std::min(ns, 1e15)) + (extra == delay.end() ? 0 : extra->second);
}

uint64_t Machine::CopyNs(uint64_t bytes) const { return TimeFor(bytes, copy_bytes_per_s); }
uint64_t Machine::MemsetNs(uint64_t bytes) const { return TimeFor(bytes, memset_bytes_per_s); }

Result<Machine> ParseMachine(std::string_view text, std::string_view origin) {
  Machine machine;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    const std::string_view key = Trim(line.substr(0, equals));
    const std::string allowed = equals == std::string_view::npos
                                    ? "lines of the form key = value"
                                    : Set(machine, key, Trim(line.substr(equals + 1)));
    if (!allowed.empty()) {
      return Status(StatusCode::kInvalidArgument, std::string(origin) + ":" +
                                                      std::to_string(line_number) + ": '" +
                                                      std::string(line) + "': allowed: " + allowed);
    }
  }
  return machine;
}

Result<Machine> ReadMachineFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, "cannot read machine file " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return ParseMachine(text.str(), path);
}

}  // namespace sluice::simgpu
