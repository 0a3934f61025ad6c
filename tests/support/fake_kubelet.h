// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::testing {

/// As much of kubelet as a device plugin sees: it empties its folder of sockets, takes
/// registrations, watches the list of who registered, and asks for allocations. No gRPC in this
/// header. Errors of the plugin come with their text; nothing here waits longer than a minute.
class FakeKubelet {
 public:
  explicit FakeKubelet(const std::string& folder);
  ~FakeKubelet();

  struct Registration {
    std::string version;
    std::string endpoint;
    std::string resource;
    bool preferred = false;
  };
  /// The latest one, as soon as there is one.
  std::optional<Registration> AwaitRegistration();
  /// Until so many have come, refused ones among them; false: they did not.
  bool AwaitCalls(size_t count);
  /// What is said to the next ones; empty: welcome.
  void Refuse(const std::string& text);

  /// What the list of pod resources says, on `pod_resources()`: the id is that container's of
  /// default/pod.
  void Own(const std::string& resource, const std::string& id, const std::string& container);
  /// What it says of all that may be given out: these ids of another plugin's resource and no
  /// others; none: that plugin is gone.
  void OfferOf(const std::string& resource, const std::vector<std::string>& ids);
  std::string pod_resources() const;

  struct Devices {
    std::map<std::string, bool> healthy;  // by id
    size_t message_bytes = 0;
  };
  /// The latest list for which this holds, as soon as there is one.
  std::optional<Devices> AwaitDevices(const std::function<bool(const Devices&)>& good);

  struct Container {
    std::map<std::string, std::string> environment;
    std::vector<std::pair<std::string, std::string>> mounts;  // of the host, in the container
  };
  Result<std::vector<Container>> Allocate(const std::vector<std::vector<std::string>>& containers);
  Result<std::vector<std::string>> Prefer(const std::vector<std::string>& available,
                                          const std::vector<std::string>& must, int size);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::testing
