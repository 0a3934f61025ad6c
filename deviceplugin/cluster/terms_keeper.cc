// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/terms_keeper.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace sluice::deviceplugin {
namespace {

/// Kubelet lists a pod a little later than it allocates for it, and does not say when.
constexpr int kSoonMs = 200;
constexpr int kSeldomMs = 10'000;
constexpr unsigned kManyRounds = 15;

const pods::Pod* Find(const std::vector<pods::Pod>& pods, const std::string& uid) {
  const auto found =
      std::find_if(pods.begin(), pods.end(), [&](const auto& pod) { return pod.uid == uid; });
  return found == pods.end() ? nullptr : &*found;
}

/// The word of an event. Of a daemon of another version there may be more.
const char* ReasonFor(const std::string& word) {
  if (word == "refused") return TermsKeeper::kOutOfMemory;
  if (word == "deviated") return TermsKeeper::kDeviated;
  if (word == "evicted") return TermsKeeper::kEvicted;
  return TermsKeeper::kWaits;
}

/// Nothing of it runs or will.
bool IsOver(const pods::Pod* pod) { return pod == nullptr || pod->over; }

/// For whoever looks for the reason.
std::string WhatIsThere(const std::vector<pods::Owned>& owners,
                        const std::vector<pods::Pod>& pods) {
  constexpr size_t kMost = 20;
  std::string text =
      "kubelet lists " + std::to_string(owners.size()) + " containers with the resource";
  for (size_t i = 0; i < std::min(owners.size(), kMost); ++i) {
    const pods::Owned& owned = owners[i];
    text += (i == 0 ? ": " : ", ") + owned.container + " (" + std::to_string(owned.ids.size()) +
            " ids" + (owned.ids.empty() ? "" : " from " + owned.ids.front()) + ")";
  }
  text += "; the API server " + std::to_string(pods.size()) + " pods of this node";
  for (size_t i = 0; i < std::min(pods.size(), kMost); ++i) {
    text += (i == 0 ? ": " : ", ") + pods[i].space + "/" + pods[i].name +
            (pods[i].over ? " (over)" : "");
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<TermsKeeper>> TermsKeeper::Start(const GrantStore* store, World world) {
  Result<FolderWatch> folder = FolderWatch::Open(store->record_folder());
  if (!folder.ok()) return folder.status();
  for (const std::string& other : {store->report_folder(), store->limit_folder(),
                                   store->bypass_folder(), store->happening_folder()}) {
    if (Status s = folder->Add(other); !s.ok()) return s;
  }
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Status::FromErrno(errno, "eventfd");
  std::unique_ptr<TermsKeeper> keeper(
      new TermsKeeper(store, std::move(world), std::move(*folder), std::move(wake)));
  keeper->thread_ = std::thread([self = keeper.get()] { self->Run(); });
  return keeper;
}

TermsKeeper::TermsKeeper(const GrantStore* store, World world, FolderWatch folder, UniqueFd wake)
    : store_(store), world_(std::move(world)), folder_(std::move(folder)), wake_(std::move(wake)) {}

TermsKeeper::~TermsKeeper() {
  stop_ = true;
  Wake();
  thread_.join();
}

void TermsKeeper::Wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void TermsKeeper::Run() {
  for (;;) {
    const bool open = Round();
    pollfd polled[] = {{folder_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    ::poll(polled, 2, open ? kSoonMs : kSeldomMs);
    if (stop_) return;
    (void)folder_.Read();
    uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
  }
}

bool TermsKeeper::Round() {
  const Result<GrantStore::Listed> listed = store_->List();
  if (!listed.ok()) return false;
  const std::optional<std::vector<pods::Pod>> known = world_.pods();
  const std::vector<pods::Pod> pods = known.value_or(std::vector<pods::Pod>());
  FindOwners(listed->grants, pods);
  bool open = false;
  std::vector<Holding> holdings;
  for (const GrantRecord& grant : listed->grants) {
    Holding holding = {grant.gpu, grant.bytes, grant.bytes, grant.devices};
    const auto match = matches_.find(grant.id);
    if (match == matches_.end()) {
      // What a plugin before this one found out holds until it is found anew. The pod may have come
      // to its end when there was no plugin.
      const Result<GrantTerms> last = store_->TermsOf(grant.id);
      if (known.has_value() && last.ok() && IsOver(Find(pods, last->pod))) {
        End(grant.id);
        continue;
      }
      open = true;
      if (last.ok()) holding.limit_bytes = LimitFor(grant, *last);
      holdings.push_back(std::move(holding));
      continue;
    }
    const pods::Pod* pod = Find(pods, match->second.pod);
    if (IsOver(pod)) {
      End(grant.id);
      continue;
    }
    const GrantTerms terms =
        pods::TermsFor(*pod, match->second.part, grant.bytes, world_.trust, world_.ceilings);
    if (Status s = store_->SetTerms(grant.id, terms); !s.ok()) {
      spdlog::error("terms of {}: {}", terms.job, s.message());
    }
    const std::string report = store_->ReportOf(grant.id);
    holding.limit_bytes = InForce(grant, terms, report);
    holdings.push_back(std::move(holding));
    Tell(*pod, kRefused, terms.refusal.empty() ? report : terms.refusal, &told_[grant.id]);
    Tell(*pod, kBypassed, store_->BypassOf(grant.id), &bypassed_[grant.id]);
    if (const auto happened = store_->HappeningOf(grant.id); happened.has_value()) {
      Tell(*pod, ReasonFor(happened->word), happened->text, &happened_[grant.id]);
    }
  }
  world_.hold(holdings);
  return open;
}

/// Who comes next need not wait for the collector.
void TermsKeeper::End(const std::string& grant) const {
  if (Status s = store_->Remove(grant); !s.ok()) spdlog::warn("{}", s.message());
}

uint64_t TermsKeeper::LimitFor(const GrantRecord& grant, const GrantTerms& terms) const {
  return std::max(grant.bytes, LimitUnder(store_->LimitOrderOf(grant.id), terms.limit_bytes));
}

/// Most that the container may hold now. What was refused is not, and then the limit before it is,
/// where a program runs.
uint64_t TermsKeeper::InForce(const GrantRecord& grant, const GrantTerms& terms,
                              const std::string& report) {
  uint64_t& limit = in_force_.try_emplace(grant.id, grant.bytes).first->second;
  if (!terms.refusal.empty()) return limit;
  const uint64_t wanted = LimitFor(grant, terms);
  limit = report.empty() ? wanted : std::max(limit, wanted);
  return limit;
}

/// Only while there is somebody to find: kubelet's answer is as long as the node has pods.
void TermsKeeper::FindOwners(const std::vector<GrantRecord>& grants,
                             const std::vector<pods::Pod>& pods) {
  std::set<std::string> there;
  for (const GrantRecord& grant : grants) there.insert(grant.id);
  const auto gone = [&there](const auto& entry) { return !there.contains(entry.first); };
  std::erase_if(matches_, gone);
  std::erase_if(told_, gone);
  std::erase_if(bypassed_, gone);
  std::erase_if(in_force_, gone);
  const bool all = std::all_of(grants.begin(), grants.end(), [this](const GrantRecord& grant) {
    return matches_.contains(grant.id);
  });
  if (all) return;
  std::erase_if(misses_, gone);
  const Result<std::vector<pods::Owned>> owners = world_.owners();
  if (!owners.ok()) return CountMisses(grants, owners.status().message());
  for (auto& [id, match] : pods::MatchGrants(grants, *owners, pods, matches_)) {
    if (!matches_.try_emplace(id, match).second) continue;
    spdlog::info("grant {}: container {} of pod {}", id, match.part, match.pod);
  }
  CountMisses(grants, WhatIsThere(*owners, pods));
}

/// When it has taken long a program may be waiting for it. It is said once; and pods are listed
/// anew, ever more seldom, because a watch on which nothing comes looks like a quiet cluster.
void TermsKeeper::CountMisses(const std::vector<GrantRecord>& grants, const std::string& where) {
  for (const GrantRecord& grant : grants) {
    if (matches_.contains(grant.id)) continue;
    const unsigned rounds = ++misses_[grant.id];
    if (rounds % kManyRounds != 0 || !std::has_single_bit(rounds / kManyRounds)) continue;
    world_.renew();
    if (rounds != kManyRounds) continue;
    spdlog::warn("grant {} of {} ids from {}: nobody is found who has it; {}", grant.id,
                 grant.devices.size(), grant.devices.front(), where);
  }
}

/// Each text once.
void TermsKeeper::Tell(const pods::Pod& pod, const char* reason, const std::string& text,
                       std::string* told) {
  if (*told == text) return;
  *told = text;
  if (text.empty()) return;
  spdlog::warn("{}/{}: {}", pod.space, pod.name, text);
  world_.warn(pod, reason, text);
}

}  // namespace sluice::deviceplugin
