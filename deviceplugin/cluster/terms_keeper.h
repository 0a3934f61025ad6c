// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/folder_watch.h"
#include "common/grant/store.h"
#include "common/unique_fd.h"
#include "deviceplugin/granule/headroom.h"
#include "deviceplugin/pods/match.h"
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
    std::function<Result<std::vector<pods::Owned>>()> owners;  // as kubelet lists them
    /// None: they are not known yet.
    std::function<std::optional<std::vector<pods::Pod>>()> pods;
    /// Has the pods listed anew: one that should be among them is not. Returns at once.
    std::function<void()> renew;
    /// Puts a warning on a pod, where people look for it. `reason`: one of the words below.
    std::function<void(const pods::Pod& pod, const std::string& reason, const std::string& text)>
        warn;
    /// All grants that are in use, after each round.
    std::function<void(const std::vector<Holding>&)> hold;
    pods::Trust trust = pods::Trust::kNamespace;
    pods::Ceilings ceilings;
  };

  /// Errors: the grants' folder cannot be watched.
  static Result<std::unique_ptr<TermsKeeper>> Start(const GrantStore* store, World world);
  ~TermsKeeper();

  /// Something may have changed; from any thread.
  void Wake() const;

  /// One round, for tests and for the thread. True: some grants are nobody's yet.
  bool Round();

 private:
  TermsKeeper(const GrantStore* store, World world, FolderWatch folder, UniqueFd wake);
  void Run();
  void FindOwners(const std::vector<GrantRecord>& grants, const std::vector<pods::Pod>& pods);
  void End(const std::string& grant) const;
  uint64_t LimitFor(const GrantRecord& grant, const GrantTerms& terms) const;
  uint64_t InForce(const GrantRecord& grant, const GrantTerms& terms, const std::string& report);
  void CountMisses(const std::vector<GrantRecord>& grants, const std::string& where);
  void Tell(const pods::Pod& pod, const char* reason, const std::string& text, std::string* told);

  const GrantStore* store_;
  const World world_;
  FolderWatch folder_;
  const UniqueFd wake_;
  std::map<std::string, pods::Match> matches_;   // by grant; never changes for one
  std::map<std::string, std::string> told_;      // of refusals, by grant
  std::map<std::string, std::string> bypassed_;  // of who passes the daemon by, by grant
  std::map<std::string, std::string> happened_;  // to its job, by grant
  std::map<std::string, uint64_t> in_force_;     // limit, by grant
  std::map<std::string, unsigned> misses_;       // rounds without a match, by grant
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace sluice::deviceplugin
