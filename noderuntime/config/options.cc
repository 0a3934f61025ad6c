// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/config/options.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

#include "common/grant/store.h"
#include "common/reserve.h"
#include "scheduler/policy/claims.h"
#include "scheduler/policy/policies.h"
#include "scheduler/record/record.h"

namespace sluice::config {
namespace {

constexpr uint64_t kMinUnit = 4 * kKiB;
constexpr uint64_t kMaxUnits = 1u << 24;
constexpr uint64_t kMaxHandles = 1u << 16;
// The longest path below it is "/jobs/4294967295/sluice.sock"; a socket's address has 108 bytes.
constexpr size_t kMaxRuntimeDir =
    107 - std::char_traits<char>::length("/jobs/4294967295/sluice.sock");

bool IsPowerOfTwo(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

std::string Number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

class Faults {
 public:
  void Check(bool good, const std::string& field, const std::string& value,
             const std::string& allowed) {
    if (good) return;
    if (!text_.empty()) text_ += "; ";
    text_ += "--" + field + " " + value + ": allowed: " + allowed;
  }
  Status Result() const {
    return text_.empty() ? Status() : Status(StatusCode::kInvalidArgument, text_);
  }

 private:
  std::string text_;
};

}  // namespace

Status Validate(const Options& options) {
  Faults faults;
  faults.Check(!options.runtime_dir.empty() && options.runtime_dir.front() == '/' &&
                   options.runtime_dir.size() <= kMaxRuntimeDir,
               "runtime-dir", "'" + options.runtime_dir + "'",
               "an absolute path of at most " + std::to_string(kMaxRuntimeDir) + " characters");
  faults.Check(options.unit_bytes >= kMinUnit && IsPowerOfTwo(options.unit_bytes), "lease-unit",
               FormatBytes(options.unit_bytes), "a power of two from 4 KiB");
  faults.Check(options.unit_bytes > 0 && options.handle_bytes >= options.unit_bytes &&
                   options.handle_bytes % options.unit_bytes == 0,
               "handle", FormatBytes(options.handle_bytes),
               "a multiple of the lease unit (" + FormatBytes(options.unit_bytes) + ")");
  faults.Check(!options.pool_bytes || *options.pool_bytes >= options.handle_bytes, "pool",
               FormatBytes(options.pool_bytes.value_or(0)),
               "at least one handle (" + FormatBytes(options.handle_bytes) + ")");
  const uint64_t host_memory = options.host_memory_bytes.value_or(0);
  faults.Check(host_memory == 0 || host_memory >= options.unit_bytes, "host-memory",
               FormatBytes(host_memory),
               "0 (none), or at least one lease unit (" + FormatBytes(options.unit_bytes) + ")");
  faults.Check(options.grants.empty() ||
                   (options.grants.front() == '/' && options.grants.size() <= kMaxGrantRoot),
               "grants", "'" + options.grants + "'",
               "an absolute path of at most " + std::to_string(kMaxGrantRoot) + " characters");
  std::string policies;
  bool known_policy = false;
  for (const std::string& name : scheduler::NodePolicyNames()) {
    policies += (policies.empty() ? "" : ", ") + name;
    known_policy = known_policy || name == options.policy;
  }
  faults.Check(known_policy, "policy", "'" + options.policy + "'", policies);
  faults.Check(scheduler::FindClaims(options.claims).has_value(), "claims",
               "'" + options.claims + "'", "contract, steps, curve");
  faults.Check(options.lanes >= 1 && options.lanes <= 64, "lanes", std::to_string(options.lanes),
               "1 to 64");
  const bool named = options.residents == kAllResidents || options.residents == kAutoResidents;
  faults.Check(named || ResidentsOf(options) != 0, "residents", "'" + options.residents + "'",
               "all, auto, or 1 to 64");
  faults.Check(named || options.policy != scheduler::kAutoPolicy, "residents",
               "'" + options.residents + "'", "all or auto, with the policy auto");
  faults.Check(options.residents == kAllResidents || host_memory != 0 ||
                   !options.host_memory_bytes.has_value(),
               "residents", "'" + options.residents + "'", "all, without host memory");
  faults.Check(options.slice_s >= 0.001 && options.slice_s <= 3600, "slice",
               Number(options.slice_s), "0.001 to 3600 seconds");
  faults.Check(options.lend == "demand" || options.lend == "eager", "lend",
               "'" + options.lend + "'", "demand, eager");
  faults.Check(options.terms == "wait" || options.terms == "off", "terms",
               "'" + options.terms + "'", "wait, off");
  faults.Check(options.credit == "on" || options.credit == "off", "credit",
               "'" + options.credit + "'", "on, off");
  faults.Check(!options.credit_us || (*options.credit_us >= 100 && *options.credit_us <= 1'000'000),
               "credit-us", std::to_string(options.credit_us.value_or(0)), "100 to 1000000");
  faults.Check(!options.idle_exit_s || (*options.idle_exit_s >= 0 && *options.idle_exit_s <= 1e6),
               "idle-exit", Number(options.idle_exit_s.value_or(0)), "0 to 1000000 seconds");
  faults.Check(options.lease_wait_s >= 0 && options.lease_wait_s <= 1e6, "lease-wait",
               Number(options.lease_wait_s), "0 to 1000000 seconds");
  faults.Check(options.patience_s >= 0 && options.patience_s <= 1e6, "patience",
               Number(options.patience_s), "0 to 1000000 seconds");
  faults.Check(options.keeper_linger_s >= 0 && options.keeper_linger_s <= 86'400, "keeper-linger",
               Number(options.keeper_linger_s), "0 to 86400 seconds");
  return faults.Result();
}

void SizeUnits(uint64_t device_bytes, Options* options) {
  // Importing and mapping one takes some 115 us (docs/results/2026-11-26-gpu.md).
  constexpr uint64_t kMostHandles = 6144;
  if (!options->unit_by_pool) return;
  const uint64_t pool = std::min(options->pool_bytes.value_or(device_bytes), device_bytes);
  while (pool / options->unit_bytes > kMostHandles) options->unit_bytes *= 2;
  options->handle_bytes = options->unit_bytes;
}

Result<PoolPlan> PlanPool(const Options& options, uint64_t device_bytes, uint64_t granularity) {
  Faults faults;
  faults.Check(granularity == 0 || options.handle_bytes % granularity == 0, "handle",
               FormatBytes(options.handle_bytes),
               "a multiple of the GPU's granularity (" + FormatBytes(granularity) + ")");
  const uint64_t reserve = options.reserve_bytes.value_or(DefaultReserve(device_bytes));
  faults.Check(reserve < device_bytes, "reserve", FormatBytes(reserve),
               "less than the GPU's memory (" + FormatBytes(device_bytes) + ")");
  if (Status s = faults.Result(); !s.ok()) return s;

  const uint64_t wanted = options.pool_bytes.value_or(device_bytes - reserve);
  faults.Check(wanted <= device_bytes, "pool", FormatBytes(wanted),
               "at most the GPU's memory (" + FormatBytes(device_bytes) + ")");
  PoolPlan plan;
  const uint64_t handles = wanted / options.handle_bytes;
  const uint64_t units = handles * (options.handle_bytes / options.unit_bytes);
  faults.Check(handles >= 1, "pool", FormatBytes(wanted),
               "at least one handle (" + FormatBytes(options.handle_bytes) + ")");
  faults.Check(
      handles <= kMaxHandles, "handle", FormatBytes(options.handle_bytes),
      "large enough that the pool has at most " + std::to_string(kMaxHandles) + " handles");
  faults.Check(units <= kMaxUnits, "lease-unit", FormatBytes(options.unit_bytes),
               "large enough that the pool has at most " + std::to_string(kMaxUnits) + " units");
  if (Status s = faults.Result(); !s.ok()) return s;
  plan.handles = static_cast<uint32_t>(handles);
  plan.units = static_cast<uint32_t>(units);
  plan.bytes = handles * options.handle_bytes;
  return plan;
}

uint32_t ResidentsOf(const Options& options) {
  constexpr uint32_t kMost = 64;
  uint32_t residents = 0;
  const char* end = options.residents.data() + options.residents.size();
  const auto [at, error] = std::from_chars(options.residents.data(), end, residents);
  return error == std::errc() && at == end && residents <= kMost ? residents : 0;
}

Result<uint64_t> PlanHostMemory(const Options& options, uint64_t pool_bytes,
                                uint64_t machine_bytes) {
  const uint64_t wanted =
      options.host_memory_bytes.value_or(std::min(pool_bytes, machine_bytes / 4));
  Faults faults;
  faults.Check(wanted <= machine_bytes, "host-memory", FormatBytes(wanted),
               "at most the machine's memory (" + FormatBytes(machine_bytes) + ")");
  if (Status s = faults.Result(); !s.ok()) return s;
  return wanted;
}

}  // namespace sluice::config
