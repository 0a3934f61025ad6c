// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::deviceplugin {

/// What a plugin has to do next so that kubelet knows it. Kubelet removes all sockets of its folder
/// when it starts, makes its own, and forgets who was registered; it notices by itself when a
/// plugin goes away. Pure: what happened in, what to do out; times in nanoseconds of any steady
/// clock.
class Registrar {
 public:
  enum class Do : uint8_t { kServe, kRegister, kWait };
  /// kServe: make the socket and listen; kRegister: tell kubelet; kWait: nothing before something
  /// happens.
  struct Next {
    Do what = Do::kWait;
    uint64_t at_ns = 0;  // not earlier; nothing at kWait
  };
  Next next() const {
    if (!serves_) return {Do::kServe, not_before_ns_};
    if (kubelet_ && !registered_) return {Do::kRegister, not_before_ns_};
    return {};
  }
  bool registered() const { return registered_; }

  /// Its socket is there, or gone. A new one is a new kubelet.
  void OnKubelet(bool there) {
    kubelet_ = there;
    registered_ = false;
    Hurry();
  }
  /// Our own was removed.
  void OnSocketLost() {
    serves_ = registered_ = false;
    Hurry();
  }
  void OnServed(bool well, uint64_t now_ns) {
    serves_ = well;
    registered_ = false;
    well ? Hurry() : WaitALittle(now_ns);
  }
  void OnRegistered(bool well, uint64_t now_ns) {
    registered_ = well;
    well ? Hurry() : WaitALittle(now_ns);
  }

 private:
  static constexpr uint64_t kFirstWaitNs = 20'000'000;
  static constexpr uint64_t kLongestWaitNs = 500'000'000;

  void Hurry() {
    wait_ns_ = kFirstWaitNs;
    not_before_ns_ = 0;
  }
  void WaitALittle(uint64_t now_ns) {
    not_before_ns_ = now_ns + wait_ns_;
    wait_ns_ = std::min(2 * wait_ns_, kLongestWaitNs);
  }

  bool serves_ = false;
  bool kubelet_ = false;
  bool registered_ = false;
  uint64_t wait_ns_ = kFirstWaitNs;
  uint64_t not_before_ns_ = 0;
};

}  // namespace sluice::deviceplugin
