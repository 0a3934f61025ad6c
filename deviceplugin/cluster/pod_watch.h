// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "deviceplugin/cluster/api_server.h"
#include "deviceplugin/cluster/pod_json.h"
#include "deviceplugin/pods/pod.h"

namespace sluice::deviceplugin {

/// The pods of this node, followed in a thread of its own. `changed` is called there after every
/// change. What it knows stays while the API server is away. The server outlives it.
class PodWatch {
 public:
  PodWatch(const ApiServer* api, std::string node, std::string resource,
           std::function<void()> changed);
  ~PodWatch();

  /// None before the first list has come.
  std::optional<pods::NodePods> Pods() const;

  /// Lists the pods anew, within about a second: for whoever misses one. From any thread.
  void Renew();

 private:
  void Run();
  Status Follow();
  Result<PodList> List(const std::string& path) const;
  void Say(const Status& status);
  void Take(std::vector<pods::Pod> listed, uint64_t asked_ns);

  const ApiServer* api_;
  const std::string node_;
  const std::string resource_;
  const std::function<void()> changed_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> renew_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  uint64_t listed_ns_ = 0;                 // when they were asked for last; 0: never with success
  std::map<std::string, pods::Pod> pods_;  // by the object's UID
  std::string said_;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
