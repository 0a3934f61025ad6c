// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/grant/limit_order.h"
#include "common/grant/record.h"
#include "common/grant/terms.h"
#include "common/status.h"

namespace sluice {

/// The name of the socket in a grant's folder.
inline constexpr std::string_view kGrantSocket = "sluice.sock";
/// Characters of the folder of all grants: a socket's path, "/a/ID/sluice.sock" below it, has 107.
inline constexpr size_t kMaxGrantRoot = 107 - 3 - 32 - 1 - kGrantSocket.size();

/// All that there are.
inline constexpr std::array<std::string_view, 4> kHappeningWords = {"waited", "refused", "deviated",
                                                                    "evicted"};

/// Something that happened to a grant's job and that its people should know of.
struct Happening {
  std::string word;  // one of kHappeningWords
  std::string text;  // one line
  friend bool operator==(const Happening&, const Happening&) = default;
};

/// What the daemon made of a grant's terms.
struct TermsAnswer {
  uint64_t limit_bytes = 0;  // that holds since then
  std::string terms;         // TermsText of those that it answers
};

/// The grants of a node on its disk (or tmpfs), which survive every restart of everybody:
///
///   ROOT/g/ID   the record, mode 0600: only the node's daemon reads it
///   ROOT/a/ID/  the folder that the container sees, in which the daemon listens (kGrantSocket)
///   ROOT/u/ID   the UID of the pod whose process came to its socket first, by the daemon
///   ROOT/t/ID   on what terms, as soon as that is known; written again when they change
///   ROOT/f/ID   the limit that the plugin keeps room for, which may be one before the terms'
///   ROOT/n/ID   the limit that holds now, by the daemon, and the terms that it says so of
///   ROOT/l/ID   an operator's limit, where there is one
///   ROOT/b/ID   that its container uses the GPU past the daemon, and how that was seen
///   ROOT/d/UUID this GPU is being drained: nobody new is to be given memory of it
///   ROOT/x/UUID an error after which this GPU needs a reset: its XID, and the boot that it came in
///   ROOT/e/ID.WORD what happened to its job last under this word, for people: how many things
///               happened to it until then, and a sentence below it
///   ROOT/r/ID   what the daemon has to say about it: why it refused somebody or something
///
/// What somebody who was killed left of a grant without a record is swept (leftovers.h).
/// What is there is whole, and a record's folder was there before it. For several threads: each
/// call stands on its own, and no two make the same id.
class GrantStore {
 public:
  /// Makes what is missing of the folders. Errors are the system's.
  static Result<GrantStore> Open(const std::string& root);

  /// A new grant; `wanted` without its id. An error leaves nothing behind.
  Result<GrantRecord> Make(GrantRecord wanted) const;
  /// The record first: who finds it finds the folder. No error if it is not there.
  Status Remove(const std::string& id) const;

  /// The first one's word stays: a grant is one pod's.
  Status SetFirstPod(const std::string& id, const std::string& uid) const;
  /// Empty: nobody came who was seen to be in a pod.
  std::string FirstPodOf(const std::string& id) const;

  /// Of a grant that is there. Writes nothing where that says the same already.
  Status SetTerms(const std::string& id, const GrantTerms& terms) const;
  /// kNotFound: they are not known yet; kInvalidArgument: ParseTerms.
  Result<GrantTerms> TermsOf(const std::string& id) const;
  /// The daemon's word; empty: it has nothing to say any more.
  Status SetReport(const std::string& id, const std::string& text) const;
  /// Empty: there is none.
  std::string ReportOf(const std::string& id) const;

  /// The daemon's, whether it takes the terms or not: the limit says which.
  Status SetAnswer(const std::string& id, const TermsAnswer& answer) const;
  /// Nothing: it has not said anything yet, or is one that never does.
  std::optional<TermsAnswer> AnswerOf(const std::string& id) const;

  /// Bytes that the plugin keeps room for.
  Status SetInForce(const std::string& id, uint64_t bytes) const;
  /// Nothing: nobody has said so yet.
  std::optional<uint64_t> InForceOf(const std::string& id) const;

  /// An operator's limit from now on; nothing: that of the terms.
  Status SetLimitOrder(const std::string& id, const std::optional<LimitOrder>& order) const;
  /// Nothing also where it cannot be read: what the pod asks for holds then.
  std::optional<LimitOrder> LimitOrderOf(const std::string& id) const;

  /// Says so once and for all; it ends with the grant.
  Status SetBypass(const std::string& id, const std::string& text) const;
  /// Empty: it was not seen to.
  std::string BypassOf(const std::string& id) const;

  /// The latest takes the place of the one before with its word and of no other, so that a wait
  /// hides no refusal from who looks seldom. They end with the grant. kInvalidArgument: no such
  /// word.
  Status SetHappening(const std::string& id, const Happening& happening) const;
  /// At most one of each word, in the order in which they happened.
  std::vector<Happening> HappeningsOf(const std::string& id) const;

  /// `gpu`: a UUID as NVML writes it.
  Status SetDrained(const std::string& gpu, bool drained) const;
  std::set<std::string> DrainedGpus() const;

  /// `boot`: this one's id; what was kept in another one is over, like the errors themselves.
  Status SetBroken(const std::string& gpu, uint64_t xid, const std::string& boot) const;
  /// XIDs by the GPU's UUID.
  std::map<std::string, uint64_t> BrokenGpus(const std::string& boot) const;

  struct Listed {
    std::vector<GrantRecord> grants;  // by id
    std::vector<std::string> errors;  // of records that cannot be read, with their paths
  };
  Result<Listed> List() const;

  /// Mounted into the container.
  std::string FolderOf(const std::string& id) const { return root_ + "/a/" + id; }
  /// In which records come and go.
  std::string record_folder() const { return root_ + "/g"; }
  std::string first_pod_folder() const { return root_ + "/u"; }
  std::string terms_folder() const { return root_ + "/t"; }
  std::string in_force_folder() const { return root_ + "/f"; }
  std::string answer_folder() const { return root_ + "/n"; }
  std::string limit_folder() const { return root_ + "/l"; }
  std::string bypass_folder() const { return root_ + "/b"; }
  std::string drain_folder() const { return root_ + "/d"; }
  std::string broken_folder() const { return root_ + "/x"; }
  std::string happening_folder() const { return root_ + "/e"; }
  std::string report_folder() const { return root_ + "/r"; }

 private:
  explicit GrantStore(std::string root) : root_(std::move(root)) {}
  std::string RecordOf(const std::string& id) const { return record_folder() + "/" + id; }
  std::string FirstPodFileOf(const std::string& id) const { return first_pod_folder() + "/" + id; }
  std::string TermsFileOf(const std::string& id) const { return terms_folder() + "/" + id; }
  std::string InForceFileOf(const std::string& id) const { return in_force_folder() + "/" + id; }
  std::string AnswerFileOf(const std::string& id) const { return answer_folder() + "/" + id; }
  std::string LimitFileOf(const std::string& id) const { return limit_folder() + "/" + id; }
  std::string BypassFileOf(const std::string& id) const { return bypass_folder() + "/" + id; }
  std::string HappeningFileOf(const std::string& id, std::string_view word) const {
    return happening_folder() + "/" + id + "." + std::string(word);
  }
  /// By what they are counted as.
  std::multimap<uint64_t, Happening> CountedHappeningsOf(const std::string& id) const;
  std::string ReportFileOf(const std::string& id) const { return report_folder() + "/" + id; }

  std::string root_;
};

}  // namespace sluice
