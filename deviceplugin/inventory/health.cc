// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/health.h"

#include <algorithm>
#include <array>

namespace sluice::deviceplugin {
namespace {

// Graphics engine exception, memory page fault, stopped processing, preemptive cleanup, video
// processor exception, compute engine exception, context switch timeout.
constexpr std::array<uint64_t, 7> kOfPrograms = {13, 31, 43, 45, 68, 69, 109};
// Double-bit ECC error, failed row remap, NVLink error, fallen off the bus, uncontained ECC error,
// GSP timeout and error, unrecovered ECC error.
constexpr std::array<uint64_t, 8> kNeedReset = {48, 64, 74, 79, 95, 119, 120, 140};

template <typename List>
bool Contains(const List& list, uint64_t xid) {
  return std::find(list.begin(), list.end(), xid) != list.end();
}

}  // namespace

XidClass ClassOf(uint64_t xid) {
  if (Contains(kOfPrograms, xid)) return XidClass::kProgram;
  return Contains(kNeedReset, xid) ? XidClass::kLasting : XidClass::kPassing;
}

bool HealthBook::OnXid(size_t device, uint64_t xid, uint64_t now_ns) {
  const XidClass what = ClassOf(xid);
  if (what == XidClass::kProgram || options_.overlooked.contains(xid)) return false;
  const std::string why = "XID " + std::to_string(xid);
  if (what == XidClass::kPassing) return Probation(device, why, now_ns);
  Device& entry = devices_[device];
  // Nothing that passes makes good what lasts.
  if (entry.lasting.has_value()) return false;
  const bool was_healthy = entry.why.empty();
  entry = {why + ": it needs a reset; back after the node's next start", std::nullopt, xid, 0};
  return was_healthy;
}

bool HealthBook::OnLost(size_t device, const std::string& why, uint64_t now_ns) {
  return ++devices_[device].lost >= kLostInARow && Probation(device, why, now_ns);
}

bool HealthBook::Probation(size_t device, const std::string& why, uint64_t now_ns) {
  Device& entry = devices_[device];
  if (entry.lasting.has_value()) return false;
  const bool was_healthy = entry.why.empty();
  entry.why = why + ": back when there was no other for " +
              std::to_string(options_.probation_ns / 1'000'000'000) + " s";
  entry.until_ns = now_ns + options_.probation_ns;
  return was_healthy;
}

bool HealthBook::OnTime(uint64_t now_ns) {
  bool changed = false;
  for (Device& device : devices_) {
    if (!device.until_ns.has_value() || now_ns < *device.until_ns) continue;
    device.why.clear();
    device.until_ns.reset();
    changed = true;
  }
  return changed;
}

std::optional<uint64_t> HealthBook::NextChangeNs() const {
  std::optional<uint64_t> next;
  for (const Device& device : devices_) {
    if (device.until_ns.has_value())
      next = std::min(next.value_or(*device.until_ns), *device.until_ns);
  }
  return next;
}

}  // namespace sluice::deviceplugin
