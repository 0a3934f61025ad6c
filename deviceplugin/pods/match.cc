// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/match.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace sluice::pods {
namespace {

using Ids = std::set<std::string>;

Ids IdsOf(const std::vector<std::string>& ids) { return {ids.begin(), ids.end()}; }

std::vector<const Pod::Part*> AskingParts(const Pod& pod) {
  std::vector<const Pod::Part*> parts;
  for (const Pod::Part& part : pod.parts) {
    if (part.granules > 0) parts.push_back(&part);
  }
  return parts;
}

bool HasGrant(const Matches& matches, const Match& part) {
  return std::any_of(matches.begin(), matches.end(),
                     [&part](const auto& entry) { return entry.second == part; });
}

/// What kubelet keeps for the containers behind those of a pod's beginning (its device manager's
/// `devicesToReuse`).
class Reuse {
 public:
  /// False: kubelet would not have given these ids to this container now.
  bool Take(const Pod::Part& part, const Ids& ids) {
    const auto old = static_cast<size_t>(std::count_if(
        ids.begin(), ids.end(), [this](const std::string& id) { return kept_.contains(id); }));
    if (old != std::min(ids.size(), kept_.size())) return false;
    for (const std::string& id : ids) {
      if (part.init) {
        kept_.insert(id);
      } else {
        kept_.erase(id);
      }
    }
    return true;
  }

 private:
  Ids kept_;
};

class Matching {
 public:
  Matching(const std::vector<GrantRecord>& grants, const Signs& signs, Matches known)
      : signs_(signs), known_(known), matches_(std::move(known)) {
    for (const GrantRecord& grant : grants) in_order_.push_back(&grant);
    std::stable_sort(in_order_.begin(), in_order_.end(),
                     [](const auto* a, const auto* b) { return a->created_ns < b->created_ns; });
    DropContradicted();
  }

  void FindRow(const Pod& pod) {
    const std::vector<const Pod::Part*> parts = AskingParts(pod);
    if (parts.empty() || parts.size() > in_order_.size()) return;
    for (size_t from = in_order_.size() - parts.size() + 1; from > 0; --from) {
      if (!IsRowOf(pod, parts, from - 1)) continue;
      for (size_t i = 0; i < parts.size(); ++i) {
        matches_[in_order_[from - 1 + i]->id] = {pod.uid, parts[i]->name};
      }
      return;
    }
  }

  void FindSingle(const GrantRecord& grant, const std::vector<Pod>& youngest_first) {
    if (matches_.contains(grant.id)) return;
    const std::string first = FirstPod(grant);
    for (const Pod& pod : youngest_first) {
      if (pod.over || (!first.empty() && first != pod.uid)) continue;
      std::vector<const Pod::Part*> fit;
      for (const Pod::Part* part : AskingParts(pod)) {
        if (part->granules != grant.devices.size() || HasGrant(matches_, {pod.uid, part->name})) {
          continue;
        }
        const std::optional<bool> lists = Lists(pod, *part, IdsOf(grant.devices));
        if (lists == true) {
          matches_[grant.id] = {pod.uid, part->name};
          return;
        }
        if (!lists.has_value()) fit.push_back(part);
      }
      if (first.empty() || fit.size() != 1) continue;
      matches_[grant.id] = {pod.uid, fit.front()->name};
      return;
    }
  }

  const std::vector<const GrantRecord*>& in_order() const { return in_order_; }
  /// With what was dropped and not replaced: kubelet may list nobody at this moment.
  Matches Take() {
    for (const auto& [id, match] : known_) {
      const auto first = signs_.first_pods.find(id);
      const bool contradicted = first != signs_.first_pods.end() && first->second != match.pod;
      if (!contradicted && !HasGrant(matches_, match)) matches_.try_emplace(id, match);
    }
    return std::move(matches_);
  }

 private:
  std::string FirstPod(const GrantRecord& grant) const {
    const auto found = signs_.first_pods.find(grant.id);
    return found == signs_.first_pods.end() ? "" : found->second;
  }

  /// Whoever came says more than a name: what was found without it, for that pod or another one,
  /// is found anew.
  void DropContradicted() {
    Ids missed;  // pods
    for (const GrantRecord* grant : in_order_) {
      const std::string first = FirstPod(*grant);
      const auto match = matches_.find(grant->id);
      if (match != matches_.end() && !first.empty() && match->second.pod != first) {
        matches_.erase(match);
        missed.insert(first);
      } else if (match == matches_.end() && !first.empty()) {
        missed.insert(first);
      }
    }
    std::erase_if(matches_, [&](const auto& entry) {
      return missed.contains(entry.second.pod) && !signs_.first_pods.contains(entry.first);
    });
  }

  /// Whether kubelet lists the container with these ids; nothing: it does not list it.
  std::optional<bool> Lists(const Pod& pod, const Pod::Part& part, const Ids& ids) const {
    std::optional<bool> lists;
    if (part.init) return lists;
    const std::string name = pod.space + "/" + pod.name + "/" + part.name;
    for (const Owned& owned : signs_.listed) {
      if (owned.container != name || owned.ids.empty()) continue;
      lists = lists.value_or(false) || IdsOf(owned.ids) == ids;
    }
    return lists;
  }

  bool IsRowOf(const Pod& pod, const std::vector<const Pod::Part*>& parts, size_t from) const {
    bool shown = false;
    bool all_known = true;
    Reuse reuse;
    for (size_t i = 0; i < parts.size(); ++i) {
      const GrantRecord& grant = *in_order_[from + i];
      const Match here = {pod.uid, parts[i]->name};
      const Ids ids = IdsOf(grant.devices);
      if (ids.size() != parts[i]->granules || !reuse.Take(*parts[i], ids)) return false;
      const auto match = matches_.find(grant.id);
      const bool known = match != matches_.end() && match->second == here;
      if (!known && (match != matches_.end() || HasGrant(matches_, here))) return false;
      const std::string first = FirstPod(grant);
      if (!first.empty() && first != pod.uid) return false;
      const std::optional<bool> lists = Lists(pod, *parts[i], ids);
      if (lists == false) return false;
      shown = shown || known || !first.empty() || lists == true;
      all_known = all_known && known;
    }
    return shown && !all_known;
  }

  const Signs& signs_;
  const Matches known_;
  std::vector<const GrantRecord*> in_order_;
  Matches matches_;
};

}  // namespace

Matches MatchGrants(const std::vector<GrantRecord>& grants, const Signs& signs,
                    const std::vector<Pod>& pods, Matches known) {
  Matching matching(grants, signs, std::move(known));
  // Kubelet gives names, and a pod may have that of one before it.
  std::vector<Pod> youngest_first = pods;
  std::stable_sort(youngest_first.begin(), youngest_first.end(),
                   [](const Pod& a, const Pod& b) { return a.created_s > b.created_s; });
  for (const Pod& pod : youngest_first) {
    if (!pod.over) matching.FindRow(pod);
  }
  for (auto grant = matching.in_order().rbegin(); grant != matching.in_order().rend(); ++grant) {
    matching.FindSingle(**grant, youngest_first);
  }
  return matching.Take();
}

Candidates CandidatesFor(const GrantRecord& grant, const std::vector<Pod>& pods,
                         const Matches& matches) {
  Candidates candidates;
  for (const Pod& pod : pods) {
    if (pod.over) continue;
    for (const Pod::Part* part : AskingParts(pod)) {
      const Match match = {pod.uid, part->name};
      if (part->granules != grant.devices.size() || HasGrant(matches, match)) continue;
      candidates.push_back(match);
    }
  }
  return candidates;
}

}  // namespace sluice::pods
