// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice {

/// Names that come to a folder, or to several, and go from it. For one thread.
class FolderWatch {
 public:
  static Result<FolderWatch> Open(const std::string& folder);
  /// One more; which of them an event is of is not told.
  Status Add(const std::string& folder);

  /// Readable when something happened.
  int fd() const { return inotify_.get(); }

  struct Event {
    std::string name;
    bool there = false;  // came, or went
  };
  struct Events {
    std::vector<Event> list;
    bool missed = false;       // too many at once: look at the folder
    bool folder_gone = false;  // nothing more will come
  };
  /// What happened since the last call; does not wait.
  Events Read();

 private:
  explicit FolderWatch(UniqueFd inotify) : inotify_(std::move(inotify)) {}
  UniqueFd inotify_;
};

}  // namespace sluice
