// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/namespaces.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "common/log/log.h"
#include "common/mps_folder.h"
#include "noderuntime/mps/socket_links.h"

namespace sluice::mps {
namespace {

bool Readable(int fd) {
  pollfd look = {fd, POLLIN, 0};
  return ::poll(&look, 1, 0) > 0;
}

std::string Words(const Arguments& arguments) {
  std::string words;
  for (const std::string& argument : arguments) words += (words.empty() ? "" : " ") + argument;
  return words;
}

}  // namespace

std::optional<uint64_t> Namespaces::Turn(uint64_t now_ns, bool daemon_runs) {
  if (first_look_ || Readable(watch_.fd())) TakeGrants();
  if (command_.has_value()) {
    const auto outcome = command_->Look(now_ns);
    if (!outcome.has_value()) return command_->LeftNs(now_ns);
    command_.reset();
    TakeOutcome(*outcome, now_ns);
  }
  if (!daemon_runs) {
    // The next one begins with nothing.
    listed_ = {};
    rounds_ = 0;
    Rest(now_ns);
    return std::nullopt;
  }
  if (phase_ == Phase::kRest && changed_) next_ns_ = std::min(next_ns_, now_ns);
  if (phase_ == Phase::kRest && now_ns < next_ns_) return next_ns_ - now_ns;
  Next(now_ns);
  if (command_.has_value()) return command_->LeftNs(now_ns);
  return now_ns < next_ns_ ? next_ns_ - now_ns : 0;
}

void Namespaces::TakeGrants() {
  first_look_ = false;
  const grants::GrantWatch::Changes changes = watch_.Read();
  for (const std::string& error : changes.errors) SayOnce(error);
  for (const GrantRecord& grant : changes.added) {
    groups_[grant.id] = wait_for_terms_ ? std::nullopt : std::optional<std::string>("");
  }
  for (const auto& [id, terms] : changes.terms) {
    groups_[id] = terms.refusal.empty() ? std::optional(terms.group) : std::nullopt;
  }
  for (const std::string& id : changes.removed) {
    groups_.erase(id);
    names_.Forget(id);
  }
  RemoveOldFolders();
  // A grant that may not be used any more loses its socket at once.
  LinkAll();
  changed_ = true;
}

/// Of the grants of all GPUs: one whose record is gone is over, whoever's it was.
void Namespaces::RemoveOldFolders() {
  std::error_code failed;
  std::vector<std::filesystem::path> old;
  const auto folders = std::filesystem::directory_iterator(MpsJobsFolder(control_.dir), failed);
  if (failed) return;
  for (const auto& folder : folders) {
    const std::string id = folder.path().filename();
    // The record is made before the folder.
    const bool over = ::access((store_.record_folder() + "/" + id).c_str(), F_OK) != 0;
    if (IsGrantId(id) && over) old.push_back(folder.path());
  }
  for (const auto& folder : old) std::filesystem::remove_all(folder, failed);
}

Places Namespaces::WantedPlaces() {
  Places wanted;
  for (const auto& [grant, group] : groups_) {
    if (!group.has_value()) continue;
    wanted.insert(names_.PlaceOf(grant, *group));
  }
  return wanted;
}

/// A namespace that is not listed has no socket that anybody listens at.
void Namespaces::LinkAll() {
  const std::string pipes = MpsPipeFolder(control_.dir, control_.gpu);
  for (const auto& [grant, group] : groups_) {
    std::string from;  // nowhere
    if (group.has_value()) {
      const Place& place = names_.PlaceOf(grant, *group);
      // What it has may be of the daemon before, and is replaced when there is something new.
      if (!listed_.namespaces.contains(place)) continue;
      from = pipes + "/" + place.server + "/" + place.name;
    }
    const Status linked = LinkSockets(from, MpsJobFolder(control_.dir, grant));
    if (!linked.ok()) SayOnce("grant " + grant + ": " + linked.message());
  }
}

void Namespaces::TakeOutcome(const CommandRun::Outcome& outcome, uint64_t now_ns) {
  if (!outcome.ok) {
    SayOnce("MPS: " + Words(running_) + ": " + outcome.text);
    failed_ = true;
    // What cannot be listed cannot be put right.
    if (phase_ != Phase::kSteps) Rest(now_ns + again_.Ended(0));
    return;
  }
  switch (phase_) {
    case Phase::kServers:
      listed_.servers = ServersIn(outcome.text);
      phase_ = Phase::kNamespaces;
      break;
    case Phase::kNamespaces:
      listed_.namespaces = NamespacesIn(outcome.text);
      TakeLists(now_ns);
      break;
    case Phase::kSteps:
      logging::Info("{}: MPS: {}", control_.gpu, Words(running_));
      break;
    case Phase::kRest:
      break;
  }
}

void Namespaces::TakeLists(uint64_t now_ns) {
  LinkAll();
  const std::vector<Arguments> steps = Steps(WantedPlaces(), listed_);
  if (steps.empty()) {
    again_ = supervisor::Restarts();
    rounds_ = 0;
    said_.clear();
    Rest(now_ns + kLookAgainNs);
    return;
  }
  steps_.assign(steps.begin(), steps.end());
  phase_ = Phase::kSteps;
  failed_ = false;
}

void Namespaces::Next(uint64_t now_ns) {
  switch (phase_) {
    case Phase::kRest:
      changed_ = false;
      phase_ = Phase::kServers;
      Run(ListServers(), now_ns);
      break;
    case Phase::kServers:
      Run(ListServers(), now_ns);
      break;
    case Phase::kNamespaces:
      Run(ListNamespaces(), now_ns);
      break;
    case Phase::kSteps:
      if (steps_.empty()) {
        // Once at once, to see what came of them; then later and later.
        const bool soon = rounds_++ == 0 && !failed_;
        Rest(soon ? now_ns : now_ns + again_.Ended(0));
        break;
      }
      const Arguments step = std::move(steps_.front());
      steps_.pop_front();
      Run(step, now_ns);
      break;
  }
}

void Namespaces::Run(const Arguments& arguments, uint64_t now_ns) {
  running_ = arguments;
  Result<CommandRun> run =
      CommandRun::Start(ControlCommand(control_, arguments, cli::Environment::Current()), now_ns);
  if (run.ok()) {
    command_.emplace(std::move(*run));
    return;
  }
  SayOnce("MPS: " + Words(arguments) + ": " + run.status().message());
  Rest(now_ns + again_.Ended(0));
}

void Namespaces::Rest(uint64_t until_ns) {
  phase_ = Phase::kRest;
  steps_.clear();
  next_ns_ = until_ns;
}

void Namespaces::SayOnce(const std::string& text) {
  if (said_.insert(text).second) logging::Warn("{}: {}", control_.gpu, text);
}

}  // namespace sluice::mps
