// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/folder_watch.h"
#include "common/grant/store.h"
#include "common/unique_fd.h"
#include "deviceplugin/cluster/grant_owners.h"
#include "deviceplugin/collect/stale.h"
#include "deviceplugin/granule/headroom.h"
#include "deviceplugin/pods/terms.h"

namespace sluice::deviceplugin {

/// Writes on what terms each grant is, as soon as it is known whose it is and whenever its pod's
/// annotations change, ends those of pods that are over, and tells people what was refused, by the
/// plugin or by the daemon. In a thread of its own, because it waits for kubelet and the API
/// server. The store outlives it.
class TermsKeeper {
 public:
  /// Something that the pod asks for is not to be had.
  static constexpr char kRefused[] = "SluiceRefused";
  /// One of its processes uses the GPU without Sluice's library.
  static constexpr char kBypassed[] = "SluiceBypassed";

  /// It waits for memory, was refused some, left its iteration, or was moved to host memory.
  static constexpr char kWaits[] = "SluiceWaits";
  static constexpr char kOutOfMemory[] = "SluiceOutOfMemory";
  static constexpr char kDeviated[] = "SluiceDeviated";
  static constexpr char kEvicted[] = "SluiceEvicted";

  struct World {
    GrantOwners::World owners;
    /// Puts a warning on a pod, where people look for it. `reason`: one of the words below.
    std::function<void(const pods::Pod& pod, const std::string& reason, const std::string& text)>
        warn;
    /// All grants that are in use, after each round.
    std::function<void(const std::vector<Holding>&)> hold;
    pods::Trust trust = pods::Trust::kNamespace;
    pods::Ceilings ceilings;
    std::string resource = "sluice.dev/gpu-memory";
    uint64_t unseen_ns = kUnseenNs;  // pods::OverGrants
  };

  /// Errors: the grants' folder cannot be watched.
  static Result<std::unique_ptr<TermsKeeper>> Start(const GrantStore* store, World world);
  ~TermsKeeper();

  /// Something may have changed; from any thread.
  void Wake() const;

  /// One round, for tests and for the thread. True: the next one will know more, soon.
  bool Round();

 private:
  TermsKeeper(const GrantStore* store, World world, FolderWatch folder, UniqueFd wake);
  void Run();
  void Forget(const GrantOwners::Found& found);
  void TellUnasked(const std::vector<pods::Pod>& pods);
  uint64_t Serve(const GrantRecord& grant, const pods::Pod& pod, const std::string& part);
  void End(const std::string& grant) const;
  uint64_t LimitFor(const GrantRecord& grant, const GrantTerms& terms) const;
  std::optional<uint64_t> AnsweredLimit(const GrantRecord& grant, const GrantTerms& terms) const;
  uint64_t InForce(const GrantRecord& grant, const GrantTerms& terms, const std::string& report);
  void Tell(const pods::Pod& pod, const char* reason, const std::string& text, std::string* told);

  const GrantStore* store_;
  const World world_;
  GrantOwners owners_;
  FolderWatch folder_;
  const UniqueFd wake_;
  std::map<std::string, std::string> told_;      // of refusals, by grant
  std::map<std::string, std::string> unasked_;   // of annotations for nothing, by the pod's object
  std::map<std::string, std::string> bypassed_;  // of who passes the daemon by, by grant
  /// To its job, by grant and word.
  std::map<std::string, std::map<std::string, std::string>> happened_;
  std::map<std::string, uint64_t> in_force_;  // limit, by grant
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
