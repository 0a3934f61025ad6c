// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/pod_watch.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "common/log/log.h"
#include "deviceplugin/cluster/pod_json.h"
#include "deviceplugin/daemon/clock.h"

namespace sluice::deviceplugin {
namespace {

constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{5'000};

}  // namespace

PodWatch::PodWatch(const ApiServer* api, std::string node, std::string resource,
                   std::function<void()> changed)
    : api_(api),
      node_(std::move(node)),
      resource_(std::move(resource)),
      changed_(std::move(changed)),
      thread_([this] { Run(); }) {}

PodWatch::~PodWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::optional<pods::NodePods> PodWatch::Pods() const {
  const std::lock_guard lock(mutex_);
  if (listed_ns_ == 0) return std::nullopt;
  pods::NodePods now;
  now.as_of_ns = listed_ns_;
  for (const auto& [uid, pod] : pods_) now.pods.push_back(pod);
  return now;
}

void PodWatch::Renew() { renew_ = true; }

void PodWatch::Run() {
  auto pause = kFirstPause;
  while (!stop_) {
    const Status followed = Follow();
    if (stop_) return;
    Say(followed);
    pause = followed.ok() ? kFirstPause : std::min(kLongestPause, 2 * pause);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, pause, [this] { return stop_.load(); });
  }
}

/// The text of the answer ends with it.
Result<PodList> PodWatch::List(const std::string& path) const {
  const Result<std::string> answer = api_->Get(path, [this] { return stop_.load(); });
  return answer.ok() ? ParsePodList(*answer, resource_) : answer.status();
}

/// Lists, then watches until that ends.
Status PodWatch::Follow() {
  const std::string of_node = "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node_;
  renew_ = false;
  const uint64_t asked_ns = Since1970Ns();
  Result<PodList> list = List(of_node);
  // Its text, and what it was taken apart into, are MiBs in small pieces, and gone by now. The
  // allocator would keep their pages until the next list, minutes from here.
  ::malloc_trim(0);
  if (!list.ok()) return list.status();
  Take(std::move(list->pods), asked_ns);
  changed_();
  Status failed;
  const auto on_line = [this, &failed](std::string_view line) {
    Result<PodEvent> event = ParsePodEvent(line, resource_);
    if (!event.ok() || event->kind == PodEvent::Kind::kError) {
      // Mostly that the version is too old: the list comes anew.
      failed = event.ok() ? Status(StatusCode::kUnavailable, event->error) : event.status();
      return false;
    }
    if (event->kind == PodEvent::Kind::kVersion) return true;
    {
      const std::lock_guard lock(mutex_);
      if (event->kind == PodEvent::Kind::kGone) {
        pods_.erase(event->pod.object);
      } else {
        pods_[event->pod.object] = std::move(event->pod);
      }
    }
    changed_();
    return true;
  };
  const Status watched = api_->Watch(
      of_node +
          "&watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" + list->version,
      on_line, [this] { return stop_ || renew_; });
  return watched.ok() ? failed : watched;
}

/// Instead of what was known.
void PodWatch::Take(std::vector<pods::Pod> listed, uint64_t asked_ns) {
  std::map<std::string, pods::Pod> pods;
  for (pods::Pod& pod : listed) pods[pod.object] = std::move(pod);
  const std::lock_guard lock(mutex_);
  pods_ = std::move(pods);
  listed_ns_ = asked_ns;
}

/// Each state once.
void PodWatch::Say(const Status& status) {
  if (status.message() == said_) return;
  said_ = status.message();
  if (status.ok()) {
    logging::Info("the node's pods are followed again");
  } else {
    logging::Warn("the node's pods: {}", status.message());
  }
}

}  // namespace sluice::deviceplugin
