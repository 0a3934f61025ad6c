// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/grant/store.h"
#include "noderuntime/grants/grant_watch.h"
#include "noderuntime/mps/command.h"
#include "noderuntime/mps/command_run.h"
#include "noderuntime/mps/name_book.h"
#include "noderuntime/mps/namespace_plan.h"
#include "noderuntime/supervisor/restarts.h"

namespace sluice::mps {

/// Keeps the control daemon of one GPU (MPS v3) at a server for each trust group and a namespace
/// for each grant there, and the folder of each grant's container (MpsJobFolder) at the socket of
/// its namespace. What the daemon has is asked of it and never assumed, so a daemon that was
/// started again, or a server that is gone, is put right in the same way. Nothing that goes wrong
/// here is an error of the caller's: the log says it, it is tried again, and programs that start
/// meanwhile run without MPS. Times are a steady clock's, in nanoseconds. For one thread.
class Namespaces {
 public:
  /// How often a daemon is asked when nothing has happened that we know of.
  static constexpr uint64_t kLookAgainNs = 30'000'000'000;

  /// `store`: where the grants are that `watch` follows. `wait_for_terms`: a grant has a namespace
  /// when the plugin has said whose it is, and so of which group; otherwise all are of one.
  Namespaces(Control control, GrantStore store, grants::GrantWatch watch, bool wait_for_terms)
      : control_(std::move(control)),
        store_(std::move(store)),
        watch_(std::move(watch)),
        wait_for_terms_(wait_for_terms) {}

  /// Readable when grants come, go or change.
  int fd() const { return watch_.fd(); }
  /// Of the command that runs; 0: none does. SIGCHLD tells its end.
  pid_t pid() const { return command_.has_value() ? command_->pid() : 0; }

  /// Does what is due, without waiting for anything. How long until there is more, unless fd or
  /// SIGCHLD come first; nothing: only those.
  std::optional<uint64_t> Turn(uint64_t now_ns, bool daemon_runs);

 private:
  enum class Phase { kRest, kServers, kNamespaces, kSteps };

  void TakeGrants();
  void TakeOutcome(const CommandRun::Outcome& outcome, uint64_t now_ns);
  void TakeLists(uint64_t now_ns);
  void Next(uint64_t now_ns);
  void Run(const Arguments& arguments, uint64_t now_ns);
  void Rest(uint64_t until_ns);
  Places WantedPlaces();
  void LinkAll();
  void RemoveOldFolders();
  void SayOnce(const std::string& text);

  const Control control_;
  const GrantStore store_;
  grants::GrantWatch watch_;
  const bool wait_for_terms_;
  /// Grants of this GPU; the group of one whose terms are not known, or refuse it, is none.
  std::map<std::string, std::optional<std::string>> groups_;
  NameBook names_;
  Listed listed_;
  Phase phase_ = Phase::kRest;
  std::deque<Arguments> steps_;
  Arguments running_;
  std::optional<CommandRun> command_;
  bool failed_ = false;   // a step of this round
  unsigned rounds_ = 0;   // of steps, since all was as it is to be
  uint64_t next_ns_ = 0;  // when the daemon is asked again
  bool changed_ = true;   // grants, since it was asked last
  bool first_look_ = true;
  supervisor::Restarts again_;
  std::set<std::string> said_;
};

}  // namespace sluice::mps
