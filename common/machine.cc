// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "common/bytes.h"

namespace sluice {
namespace {

constexpr uint64_t kMaxNs = 3'600'000'000'000;  // an hour: more is a slip of the pen
constexpr double kLongestKernelNs = 1e15;
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kLargestMemory = uint64_t{1} << 44;

/// Where a number may be from.
constexpr std::string_view kKinds[] = {"datasheet", "measured", "cited", "header", "assumed"};

struct IntegerKey {
  std::string_view key;
  uint64_t Machine::*field;
  uint64_t low;
  uint64_t high;
};
constexpr IntegerKey kIntegerKeys[] = {
    {"sm_count", &Machine::sm_count, 1, 1024},
    {"threads_per_sm", &Machine::threads_per_sm, 0, 4096},
    {"clock_khz", &Machine::clock_khz, 1, 10'000'000},
    {"memory_clock_khz", &Machine::memory_clock_khz, 1, 100'000'000},
    {"bus_bits", &Machine::bus_bits, 0, 65536},
    {"memory_bytes_per_s", &Machine::memory_bytes_per_s, 0, kAny},
    {"launch_queue", &Machine::launch_queue, 1, 65536},
    {"launch_ns", &Machine::launch_ns, 0, kMaxNs},
    {"alloc_ns", &Machine::alloc_ns, 0, kMaxNs},
    {"query_ns", &Machine::query_ns, 1, kMaxNs},
    {"participants", &Machine::participants, 1, 16},
    {"concurrent_kernels", &Machine::concurrent_kernels, 1, 6},
    {"copy_engines", &Machine::copy_engines, 0, 8},
    {"quantum_ns", &Machine::quantum_ns, 1000, kMaxNs},
    {"switch_ns", &Machine::switch_ns, 0, kMaxNs},
    {"fill_ns", &Machine::fill_ns, 1, kMaxNs},
    {"copy_bytes_per_s", &Machine::copy_bytes_per_s, 1, kAny},
    {"peer_bytes_per_s", &Machine::peer_bytes_per_s, 0, kAny},
    {"memset_bytes_per_s", &Machine::memset_bytes_per_s, 1, kAny},
    {"create_ns", &Machine::create_ns, 0, kMaxNs},
    {"map_ns", &Machine::map_ns, 0, kMaxNs},
    {"set_access_ns", &Machine::set_access_ns, 0, kMaxNs},
    {"unmap_ns", &Machine::unmap_ns, 0, kMaxNs},
    {"register_ns", &Machine::register_ns, 0, kMaxNs},
    {"register_ns_per_mib", &Machine::register_ns_per_mib, 0, kMaxNs},
};

struct RealKey {
  std::string_view key;
  double Machine::*field;
  double low;
  double high;
  std::string_view allowed;
};
constexpr RealKey kRealKeys[] = {
    {"time_scale", &Machine::time_scale, 1e-6, 1e6, "a number from 1e-6 to 1e6"},
    {"flops_per_s", &Machine::flops_per_s, 0, 1e18, "a number from 0 to 1e18"},
    {"least_share", &Machine::least_share, 1e-3, 1, "a number from 0.001 to 1"},
};

struct BytesKey {
  std::string_view key;
  uint64_t Machine::*field;
  bool power_of_two;
  uint64_t low;
  uint64_t high;
  std::string_view allowed;
};
constexpr BytesKey kBytesKeys[] = {
    {"memory", &Machine::memory, false, kMiB, kLargestMemory, "a size from 1MiB to 16TiB"},
    {"l2", &Machine::l2_bytes, false, 0, kGiB, "0 or a size up to 1GiB"},
    {"granularity", &Machine::granularity, true, 4 * kKiB, kGiB,
     "a power of two from 4KiB to 1GiB"},
    {"context_bytes", &Machine::context_bytes, false, 0, kLargestMemory,
     "0 or a size such as 4MiB"},
};

std::string AllKeys() {
  std::string keys =
      "name, driver, compute_capability, time, sharing, sharing_variant, serialised, sources";
  const auto add = [&keys](std::string_view key) { (keys += ", ") += key; };
  for (const auto& row : kIntegerKeys) add(row.key);
  for (const auto& row : kRealKeys) add(row.key);
  for (const auto& row : kBytesKeys) add(row.key);
  return keys + ", cost.default, cost.KERNEL, bound.KERNEL, delay.KERNEL";
}

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

/// `A` or `A + B`, both from 0 to `highest`.
std::optional<std::pair<double, double>> Pair(std::string_view text, double highest) {
  const size_t plus = text.find('+');
  const std::optional<double> first = Number<double>(Trim(text.substr(0, plus)));
  std::optional<double> second = 0.0;
  if (plus != std::string_view::npos) second = Number<double>(Trim(text.substr(plus + 1)));
  const auto usable = [highest](const std::optional<double>& v) {
    return v && std::isfinite(*v) && *v >= 0 && *v <= highest;
  };
  if (!usable(first) || !usable(second)) return std::nullopt;
  return std::pair{*first, *second};
}

std::string Choose(std::string_view value, std::string_view zero, std::string_view one,
                   bool* second) {
  if (value != zero && value != one) return std::string(zero) + " or " + std::string(one);
  *second = value == one;
  return {};
}

/// Keys of one kernel. Nothing if `key` is none of them.
std::optional<std::string> SetKernel(Machine& machine, std::string_view key,
                                     std::string_view value) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos || dot + 1 == key.size()) return std::nullopt;
  const std::string_view what = key.substr(0, dot);
  const std::string kernel(key.substr(dot + 1));
  if (what == "cost") {
    const auto cost = Pair(value, static_cast<double>(kMaxNs));
    if (!cost) return "BASE_NS or BASE_NS + NS_PER_THREAD, both at least 0";
    (kernel == "default" ? machine.default_cost : machine.cost[kernel]) = {cost->first,
                                                                           cost->second};
    return "";
  }
  if (what == "bound") {
    const auto bound = Pair(value, 1);
    if (!bound) return "FLOPS or FLOPS + BANDWIDTH, parts of the peaks from 0 to 1";
    machine.bound[kernel] = {bound->first, bound->second};
    return "";
  }
  if (what != "delay") return std::nullopt;
  const std::optional<uint64_t> number = Number<uint64_t>(value);
  if (!number || *number > kMaxNs) return "nanoseconds, at most an hour";
  machine.delay[kernel] = *number;
  return "";
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
  for (const RealKey& row : kRealKeys) {
    if (row.key != key) continue;
    const std::optional<double> number = Number<double>(value);
    if (!number || !(*number >= row.low) || *number > row.high) return std::string(row.allowed);
    machine.*row.field = *number;
    return {};
  }
  for (const BytesKey& row : kBytesKeys) {
    if (row.key != key) continue;
    uint64_t bytes = 0;
    if (value != "0") {
      const Result<uint64_t> parsed = ParseBytes(value, key);
      if (!parsed.ok()) return std::string(row.allowed);
      bytes = *parsed;
    }
    if (bytes < row.low || bytes > row.high || (row.power_of_two && (bytes & (bytes - 1)) != 0)) {
      return std::string(row.allowed);
    }
    machine.*row.field = bytes;
    return {};
  }
  if (key == "name") {
    if (value.empty() || value.size() > 64) return "1 to 64 characters";
    machine.name = value;
    return {};
  }
  if (key == "driver") {
    const bool good = !value.empty() && value.size() <= 32 && value.front() != '.' &&
                      value.find_first_not_of("0123456789.") == std::string_view::npos;
    if (!good) return "a version such as 615.21.04";
    machine.driver = value;
    return {};
  }
  if (key == "compute_capability") {
    // Those that the simulated NVRTC compiles for.
    const std::optional<double> number = Number<double>(value);
    const double tenths = number.value_or(0) * 10;
    if (!(tenths >= 50 && tenths <= 90) || std::abs(tenths - std::round(tenths)) > 1e-9) {
      return "a number from 5.0 to 9.0 with one digit after the point";
    }
    machine.compute_capability = static_cast<int>(std::round(tenths));
    return {};
  }
  bool second = false;
  std::string wrong;
  if (key == "sharing") {
    wrong = Choose(value, "time-slice", "mps", &second);
    machine.sharing = second ? Sharing::kMps : Sharing::kTimeSlice;
    return wrong;
  }
  if (key == "sharing_variant") {
    wrong = Choose(value, "occupancy", "roofline", &second);
    machine.sharing_variant = second ? SharingVariant::kRoofline : SharingVariant::kOccupancy;
    return wrong;
  }
  if (key == "time") return Choose(value, "real", "virtual", &machine.virtual_time);
  if (key == "serialised") return Choose(value, "no", "yes", &machine.serialised);
  if (key == "sources") return Choose(value, "optional", "required", &machine.sources_required);
  return SetKernel(machine, key, value).value_or("one of the keys " + AllKeys());
}

/// Empty on success, else what is allowed.
std::string SetSource(Machine& machine, std::string_view key, std::string_view source) {
  const std::string_view kind = source.substr(0, source.find_first_of(" ,:;("));
  const bool known = std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
  if (!known && (machine.sources_required || !source.empty())) {
    std::string allowed = "after the value `| SOURCE`, which begins with one of";
    for (const std::string_view k : kKinds) (allowed += " ") += k;
    return allowed;
  }
  if (known) machine.sources.insert_or_assign(std::string(key), std::string(source));
  return {};
}

std::string SetLine(Machine& machine, std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return "lines of the form key = value | source";
  const std::string_view key = Trim(line.substr(0, equals));
  const std::string_view rest = line.substr(equals + 1);
  const size_t bar = rest.find('|');
  std::string wrong = Set(machine, key, Trim(rest.substr(0, bar)));
  if (!wrong.empty() || key == "sources" || key == "name") return wrong;
  const std::string_view source =
      bar == std::string_view::npos ? std::string_view() : Trim(rest.substr(bar + 1));
  return SetSource(machine, key, source);
}

uint64_t TimeFor(uint64_t bytes, uint64_t per_second) {
  return static_cast<uint64_t>(static_cast<double>(bytes) * 1e9 / static_cast<double>(per_second));
}

std::string Real(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

}  // namespace

uint64_t Machine::KernelNs(std::string_view kernel, double threads) const {
  const auto row = cost.find(kernel);
  const KernelCost& c = row == cost.end() ? default_cost : row->second;
  const double ns = c.base_ns + c.per_thread_ns * threads;
  return DeclaredNs(kernel, static_cast<uint64_t>(std::min(ns, kLongestKernelNs)));
}

uint64_t Machine::DeclaredNs(std::string_view kernel, uint64_t ns) const {
  const auto extra = delay.find(kernel);
  return std::min(ns, static_cast<uint64_t>(kLongestKernelNs)) +
         (extra == delay.end() ? 0 : extra->second);
}

uint64_t Machine::CopyNs(uint64_t bytes) const { return TimeFor(bytes, copy_bytes_per_s); }
uint64_t Machine::PeerCopyNs(uint64_t bytes) const {
  return peer_bytes_per_s == 0 ? CopyNs(bytes) : TimeFor(bytes, peer_bytes_per_s);
}
uint64_t Machine::MemsetNs(uint64_t bytes) const { return TimeFor(bytes, memset_bytes_per_s); }
uint64_t Machine::DeviceCopyNs(uint64_t bytes) const {
  return memory_bytes_per_s == 0 ? CopyNs(bytes) : TimeFor(2 * bytes, memory_bytes_per_s);
}

GpuDemand Machine::Demand(std::string_view kernel, uint64_t ns) const {
  const auto row = bound.find(kernel);
  return DemandOf(row == bound.end() ? KernelBound{} : row->second, static_cast<double>(ns));
}

GpuDemand Machine::DemandOf(const KernelBound& reached, double ns) const {
  double sm = std::min(ns / static_cast<double>(fill_ns), 1.0);
  if (sharing_variant == SharingVariant::kRoofline) sm = std::min(sm, reached.flops);
  return {std::max(sm, least_share), reached.bandwidth};
}

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
    const std::string allowed = SetLine(machine, line);
    if (allowed.empty()) continue;
    return Status(StatusCode::kInvalidArgument, std::string(origin) + ":" +
                                                    std::to_string(line_number) + ": '" +
                                                    std::string(line) + "': allowed: " + allowed);
  }
  if (machine.participants > 1 && !machine.virtual_time) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(origin) +
                      ": 'participants = " + std::to_string(machine.participants) +
                      "': allowed: 1, or an integer up to 16 with time = virtual");
  }
  return machine;
}

std::string DescribeMachine(const Machine& machine) {
  std::string text;
  const auto row = [&](std::string_view key, const std::string& value) {
    ((text += key) += " = ") += value;
    const auto source = machine.sources.find(key);
    text += source == machine.sources.end() ? "\n" : " | " + source->second + "\n";
  };
  row("name", machine.name);
  row("driver", machine.driver);
  row("compute_capability", std::to_string(machine.compute_capability / 10) + "." +
                                std::to_string(machine.compute_capability % 10));
  for (const BytesKey& key : kBytesKeys) {
    if (machine.*key.field >= key.low) row(key.key, std::to_string(machine.*key.field));
  }
  for (const IntegerKey& key : kIntegerKeys) row(key.key, std::to_string(machine.*key.field));
  for (const RealKey& key : kRealKeys) row(key.key, Real(machine.*key.field));
  row("time", machine.virtual_time ? "virtual" : "real");
  row("sharing", machine.sharing == Sharing::kMps ? "mps" : "time-slice");
  row("sharing_variant",
      machine.sharing_variant == SharingVariant::kRoofline ? "roofline" : "occupancy");
  row("serialised", machine.serialised ? "yes" : "no");
  const auto pair = [](double a, double b) { return Real(a) + " + " + Real(b); };
  row("cost.default", pair(machine.default_cost.base_ns, machine.default_cost.per_thread_ns));
  for (const auto& [k, c] : machine.cost) row("cost." + k, pair(c.base_ns, c.per_thread_ns));
  for (const auto& [k, b] : machine.bound) row("bound." + k, pair(b.flops, b.bandwidth));
  for (const auto& [k, ns] : machine.delay) row("delay." + k, std::to_string(ns));
  return text;
}

}  // namespace sluice
