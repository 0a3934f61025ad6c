// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/terms_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "common/log/log.h"
#include "deviceplugin/pods/unasked.h"

namespace sluice::deviceplugin {
namespace {

/// Kubelet lists a pod a little later than it allocates for it, and does not say when.
constexpr int kSoonMs = 200;
constexpr int kSeldomMs = 10'000;

/// The word of an event.
const char* ReasonFor(const std::string& word) {
  if (word == "refused") return TermsKeeper::kOutOfMemory;
  if (word == "deviated") return TermsKeeper::kDeviated;
  if (word == "evicted") return TermsKeeper::kEvicted;
  return TermsKeeper::kWaits;
}

}  // namespace

Result<std::unique_ptr<TermsKeeper>> TermsKeeper::Start(const GrantStore* store, World world) {
  Result<FolderWatch> folder = FolderWatch::Open(store->record_folder());
  if (!folder.ok()) return folder.status();
  for (const std::string& other :
       {store->report_folder(), store->answer_folder(), store->limit_folder(),
        store->bypass_folder(), store->happening_folder(), store->first_pod_folder()}) {
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
    : store_(store),
      world_(std::move(world)),
      owners_(store, world_.owners, world_.unseen_ns),
      folder_(std::move(folder)),
      wake_(std::move(wake)) {}

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
  const GrantOwners::Found found = owners_.Look();
  Forget(found);
  const std::set<std::string> over(found.over.begin(), found.over.end());
  std::vector<Holding> holdings;
  for (const GrantRecord& grant : found.grants) {
    if (over.contains(grant.id)) {
      End(grant.id);
      continue;
    }
    Holding holding = {grant.gpu, grant.bytes, grant.bytes, grant.devices};
    const auto match = found.matches.find(grant.id);
    const pods::Pod* pod = match == found.matches.end() || !found.pods.has_value()
                               ? nullptr
                               : pods::Find(found.pods->pods, match->second.pod);
    if (pod != nullptr && !pod->over) {
      holding.limit_bytes = Serve(grant, *pod, match->second.part);
    } else if (const Result<GrantTerms> last = store_->TermsOf(grant.id); last.ok()) {
      // What was said last holds, also while a plugin that has just begun knows of no pods.
      holding.limit_bytes =
          AnsweredLimit(grant, *last)
              .value_or(std::max(LimitFor(grant, *last), store_->InForceOf(grant.id).value_or(0)));
    } else if (match == found.matches.end() && found.pods.has_value()) {
      // Kubelet may admit the next pod before this one's is known.
      for (const auto& [uid, part] : pods::CandidatesFor(grant, found.pods->pods, found.matches)) {
        const GrantTerms terms = pods::TermsFor(*pods::Find(found.pods->pods, uid), part,
                                                grant.bytes, world_.trust, world_.ceilings);
        holding.limit_bytes = std::max(holding.limit_bytes, terms.limit_bytes);
      }
    }
    holdings.push_back(std::move(holding));
  }
  if (found.pods.has_value()) TellUnasked(found.pods->pods);
  world_.hold(holdings);
  return found.soon;
}

/// Most that the container may hold now.
uint64_t TermsKeeper::Serve(const GrantRecord& grant, const pods::Pod& pod,
                            const std::string& part) {
  const GrantTerms terms = pods::TermsFor(pod, part, grant.bytes, world_.trust, world_.ceilings);
  if (Status s = store_->SetTerms(grant.id, terms); !s.ok()) {
    logging::Error("terms of {}: {}", terms.job, s.message());
  }
  const std::string report = store_->ReportOf(grant.id);
  Tell(pod, kRefused, terms.refusal.empty() ? report : terms.refusal, &told_[grant.id]);
  Tell(pod, kBypassed, store_->BypassOf(grant.id), &bypassed_[grant.id]);
  for (const Happening& happened : store_->HappeningsOf(grant.id)) {
    Tell(pod, ReasonFor(happened.word), happened.text, &happened_[grant.id][happened.word]);
  }
  const uint64_t limit = InForce(grant, terms, report);
  if (Status s = store_->SetInForce(grant.id, limit); !s.ok()) logging::Error("{}", s.message());
  return limit;
}

/// Who comes next need not wait.
void TermsKeeper::End(const std::string& grant) const {
  if (Status s = store_->Remove(grant); !s.ok()) logging::Warn("{}", s.message());
}

uint64_t TermsKeeper::LimitFor(const GrantRecord& grant, const GrantTerms& terms) const {
  return std::max(grant.bytes, LimitUnder(store_->LimitOrderOf(grant.id), terms.limit_bytes));
}

/// Most that the container may hold, where the daemon has said so of any terms. Until it has of
/// these ones it may do either: leave it as it is, or take them. Whatever it refuses then keeps no
/// granules from others.
std::optional<uint64_t> TermsKeeper::AnsweredLimit(const GrantRecord& grant,
                                                   const GrantTerms& terms) const {
  const std::optional<TermsAnswer> answer = store_->AnswerOf(grant.id);
  if (!answer.has_value()) return std::nullopt;
  const uint64_t holds = std::max(grant.bytes, answer->limit_bytes);
  return answer->terms == TermsText(terms) ? holds : std::max(holds, LimitFor(grant, terms));
}

/// Most that the container may hold now. What was refused is not, and then the limit before it is,
/// where a program runs: also for the plugin after this one. A daemon that gives no answers, of an
/// earlier version, only reports what it refuses.
uint64_t TermsKeeper::InForce(const GrantRecord& grant, const GrantTerms& terms,
                              const std::string& report) {
  uint64_t& limit =
      in_force_.try_emplace(grant.id, store_->InForceOf(grant.id).value_or(grant.bytes))
          .first->second;
  if (const auto answered = AnsweredLimit(grant, terms)) return limit = *answered;
  if (!terms.refusal.empty()) return limit;
  const uint64_t wanted = LimitFor(grant, terms);
  limit = report.empty() ? wanted : std::max(limit, wanted);
  return limit;
}

void TermsKeeper::Forget(const GrantOwners::Found& found) {
  std::set<std::string> there;
  for (const GrantRecord& grant : found.grants) there.insert(grant.id);
  const auto gone = [&there](const auto& entry) { return !there.contains(entry.first); };
  std::erase_if(told_, gone);
  std::erase_if(bypassed_, gone);
  std::erase_if(happened_, gone);
  std::erase_if(in_force_, gone);
}

/// No grant says it of them.
void TermsKeeper::TellUnasked(const std::vector<pods::Pod>& pods) {
  std::map<std::string, std::string> now;
  for (const pods::Pod& pod : pods) {
    if (pod.over) continue;
    std::string& told = now[pod.object];
    if (const auto before = unasked_.find(pod.object); before != unasked_.end()) {
      told = before->second;
    }
    Tell(pod, kRefused, pods::Unasked(pod, world_.resource), &told);
  }
  unasked_ = std::move(now);
}

/// Each text once.
void TermsKeeper::Tell(const pods::Pod& pod, const char* reason, const std::string& text,
                       std::string* told) {
  if (*told == text) return;
  *told = text;
  if (text.empty()) return;
  logging::Warn("{}/{}: {}", pod.space, pod.name, text);
  world_.warn(pod, reason, text);
}

}  // namespace sluice::deviceplugin
