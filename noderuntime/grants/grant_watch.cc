// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/grants/grant_watch.h"

#include <utility>

namespace sluice::grants {

Result<GrantWatch> GrantWatch::Open(const std::string& root, std::string gpu) {
  Result<GrantStore> store = GrantStore::Open(root);
  if (!store.ok()) return store.status();
  Result<FolderWatch> folder = FolderWatch::Open(store->record_folder());
  if (!folder.ok()) return folder.status();
  if (Status s = folder->Add(store->terms_folder()); !s.ok()) return s;
  return GrantWatch(std::move(*store), std::move(*folder), std::move(gpu));
}

GrantWatch::Changes GrantWatch::Read() {
  Changes changes;
  // What happened is looked up, not followed: an event may be lost, the folder is there.
  (void)folder_.Read();
  Result<GrantStore::Listed> listed = store_.List();
  if (!listed.ok()) {
    // Nothing is taken back because a folder could not be read for once.
    changes.errors.push_back(listed.status().message());
    return changes;
  }
  std::set<std::string> there;
  for (GrantRecord& grant : listed->grants) {
    if (grant.gpu != gpu_) continue;
    there.insert(grant.id);
    if (!known_.contains(grant.id)) changes.added.push_back(std::move(grant));
  }
  for (const std::string& id : known_) {
    if (!there.contains(id)) changes.removed.push_back(id);
  }
  for (const std::string& error : listed->errors) {
    if (said_.insert(error).second) changes.errors.push_back(error);
  }
  known_ = std::move(there);
  std::erase_if(terms_, [this](const auto& entry) { return !known_.contains(entry.first); });
  for (const std::string& id : known_) ReadTerms(id, &changes);
  return changes;
}

void GrantWatch::ReadTerms(const std::string& id, Changes* changes) {
  Result<GrantTerms> terms = store_.TermsOf(id);
  if (terms.status().code() == StatusCode::kNotFound) return;
  if (!terms.ok()) {
    const std::string error = "grant " + id + ": " + terms.status().message();
    if (said_.insert(error).second) changes->errors.push_back(error);
    return;
  }
  const auto [entry, is_new] = terms_.try_emplace(id, *terms);
  if (!is_new && entry->second == *terms) return;
  entry->second = *terms;
  changes->terms.emplace_back(id, std::move(*terms));
}

}  // namespace sluice::grants
