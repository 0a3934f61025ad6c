// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::deviceplugin {

/// What an XID error says of the device, after NVIDIA's catalogue of them (docs.nvidia.com/deploy/
/// xid-errors).
enum class XidClass : uint8_t {
  kProgram,  // a program did it (a fault of its own, say): the device is as good as before
  kPassing,  // the device may be used again when it has been quiet for a while
  kLasting,  // it needs a reset, a reboot or a repair
};
XidClass ClassOf(uint64_t xid);

/// Which devices of a node may be given to containers. A device with an error leaves for a while,
/// its probation, which begins anew with each further error; one that needs a reset stays away:
/// whoever keeps the book keeps that beyond its own end. Pure: errors and times in, health out.
/// Devices are indices; times in nanoseconds of any steady clock.
class HealthBook {
 public:
  struct Options {
    uint64_t probation_ns = 600'000'000'000;
    std::set<uint64_t> overlooked;  // further XIDs that say nothing about a device
  };
  HealthBook(size_t devices, Options options) : options_(std::move(options)), devices_(devices) {}

  /// True: the device's health has changed.
  bool OnXid(size_t device, uint64_t xid, uint64_t now_ns);
  /// The library does not find it, or does not answer for it: once is nothing, kLostInARow times in
  /// a row are an error that passes.
  bool OnLost(size_t device, const std::string& why, uint64_t now_ns);
  /// It does.
  void OnFound(size_t device) { devices_[device].lost = 0; }
  static constexpr unsigned kLostInARow = 3;
  /// Ends probations. True: a device has become healthy.
  bool OnTime(uint64_t now_ns);

  bool healthy(size_t device) const { return devices_[device].why.empty(); }
  /// Why it is not healthy, and until when; empty if it is.
  const std::string& Why(size_t device) const { return devices_[device].why; }
  /// The error after which it needs a reset; none: it does not.
  std::optional<uint64_t> Lasting(size_t device) const { return devices_[device].lasting; }
  /// When the next probation ends.
  std::optional<uint64_t> NextChangeNs() const;

 private:
  bool Probation(size_t device, const std::string& why, uint64_t now_ns);

  struct Device {
    std::string why;
    std::optional<uint64_t> until_ns;
    std::optional<uint64_t> lasting;  // XID
    unsigned lost = 0;                // times in a row
  };
  Options options_;
  std::vector<Device> devices_;
};

}  // namespace sluice::deviceplugin
