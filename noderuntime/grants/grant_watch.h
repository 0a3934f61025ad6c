// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/folder_watch.h"
#include "common/grant/store.h"
#include "common/status.h"

namespace sluice::grants {

/// Follows the grants of one GPU, as the device plugin makes them and takes them back. For one
/// thread.
class GrantWatch {
 public:
  /// Of the GPU with this UUID, below `root`; makes what is missing of the folders, because the
  /// plugin may begin later. Errors are the system's.
  static Result<GrantWatch> Open(const std::string& root, std::string gpu);

  /// Readable when something may have changed.
  int fd() const { return folder_.fd(); }

  struct Changes {
    std::vector<GrantRecord> added;
    std::vector<std::string> removed;                       // ids
    std::vector<std::pair<std::string, GrantTerms>> terms;  // new ones, of grants that are there
    std::vector<std::string> errors;  // of records that cannot be read: each said once
  };
  /// Since the last call; all of them the first time.
  Changes Read();

  /// For the plugin: of which pod the process is that came to the grant's socket first.
  Status ReportFirstPod(const std::string& id, const std::string& uid) const {
    return store_.SetFirstPod(id, uid);
  }

  /// For the plugin, and by it for people: why somebody or something was refused. Empty: nothing.
  Status Report(const std::string& id, const std::string& text) const {
    return store_.SetReport(id, text);
  }

  /// For the plugin, which keeps room: the limit that holds since these terms were read.
  Status Answer(const std::string& id, const GrantTerms& terms, uint64_t limit_bytes) const {
    return store_.SetAnswer(id, {limit_bytes, TermsText(terms)});
  }

  /// As Report: that the grant's container uses the GPU past the daemon.
  Status ReportBypass(const std::string& id, const std::string& text) const {
    return store_.SetBypass(id, text);
  }

  /// As Report: what happened to the grant's job.
  Status ReportHappening(const std::string& id, const Happening& happening) const {
    return store_.SetHappening(id, happening);
  }

  /// Nobody new is to be given memory of this GPU, or somebody may be again.
  Status SetDrained(bool drained) const { return store_.SetDrained(gpu_, drained); }
  bool drained() const { return store_.DrainedGpus().contains(gpu_); }

  /// Most that the grant's container may hold, whose pod asks for so much: an operator may have
  /// said something else since.
  uint64_t LimitOf(const std::string& id, uint64_t asked_bytes) const {
    return LimitUnder(store_.LimitOrderOf(id), asked_bytes);
  }
  /// An operator's, also one that the pod has overruled since; nothing: there is none.
  std::optional<LimitOrder> OrderOf(const std::string& id) const { return store_.LimitOrderOf(id); }
  /// Nothing: what the pod asks for.
  Status OrderLimit(const std::string& id, const std::optional<LimitOrder>& order) const {
    return store_.SetLimitOrder(id, order);
  }
  /// An order that the pod has overruled since does not come back when it asks for less again.
  void DropOverruled(const std::string& id, uint64_t asked_bytes) const {
    const std::optional<LimitOrder> order = store_.LimitOrderOf(id);
    if (order.has_value() && order->instead_of != asked_bytes) {
      (void)store_.SetLimitOrder(id, std::nullopt).ok();
    }
  }

  /// The socket that the container finds in its folder.
  std::string SocketOf(const std::string& id) const {
    return store_.FolderOf(id) + "/" + std::string(kGrantSocket);
  }

 private:
  GrantWatch(GrantStore store, FolderWatch folder, std::string gpu)
      : store_(std::move(store)), folder_(std::move(folder)), gpu_(std::move(gpu)) {}

  void ReadTerms(const std::string& id, Changes* changes);

  GrantStore store_;
  FolderWatch folder_;
  std::string gpu_;
  std::set<std::string> known_;
  std::map<std::string, GrantTerms> terms_;  // as they were told
  std::set<std::string> said_;
};

}  // namespace sluice::grants
