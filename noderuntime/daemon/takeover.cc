// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/takeover.h"

#include <algorithm>
#include <utility>

namespace sluice::noded {
namespace {

using keeper::Kind;

UniqueFd* FieldOf(Kind kind, KeptFds* fds) {
  switch (kind) {
    case Kind::kListener:
      return &fds->listener;
    case Kind::kLauncher:
      return &fds->launcher;
    case Kind::kMarkPage:
      return &fds->mark_page;
    case Kind::kClientPage:
      return &fds->client_page;
    case Kind::kDaemonPage:
      return &fds->daemon_page;
    case Kind::kLiveness:
      return &fds->liveness;
    case Kind::kPidfd:
      return &fds->pidfd;
    case Kind::kState:
    case Kind::kPoolHandle:
      break;
  }
  return nullptr;
}

}  // namespace

Result<std::optional<Takeover>> LoadTakeover(keeper::KeeperClient* keeper) {
  const Result<std::vector<keeper::Key>> keys = keeper->List();
  if (!keys.ok()) return keys.status();
  const bool any = std::any_of(keys->begin(), keys->end(),
                               [](const keeper::Key& key) { return key.kind == Kind::kState; });
  if (!any && keys->empty()) return std::optional<Takeover>();
  if (!any) {
    return Status(StatusCode::kInvalidArgument,
                  "the keeper has descriptors, and no state that says what they are: the daemon "
                  "died before it had handed over everything");
  }
  Result<UniqueFd> file = keeper->TakeOne(Kind::kState, 0);
  if (!file.ok()) return file.status();
  Result<keeper::Notebook> notebook = keeper::Notebook::Open(std::move(*file));
  if (!notebook.ok()) return notebook.status();
  const std::optional<std::vector<std::byte>> bytes = notebook->Read();
  if (!bytes.has_value()) {
    return Status(StatusCode::kInvalidArgument,
                  "the kept state is torn, or was given up as too large");
  }
  Result<KeptState> state = ReadKeptState(*bytes);
  if (!state.ok()) return state.status();
  Result<std::vector<UniqueFd>> pool = keeper->Take(Kind::kPoolHandle, 0, state->handles);
  if (!pool.ok()) return pool.status().Annotate("pool");
  Takeover found = {std::move(*state), std::move(*notebook), std::move(*pool), {}};
  // Of a job that was just being registered, or is over: nobody will ask for it. A launcher that
  // was not answered learns so.
  for (const keeper::Key& key : *keys) {
    const bool known = std::any_of(found.state.jobs.begin(), found.state.jobs.end(),
                                   [&key](const KeptJob& job) { return job.id == key.id; });
    if (key.kind == Kind::kState || key.kind == Kind::kPoolHandle || known) continue;
    if (Status s = keeper->Drop(key.kind, key.id); !s.ok()) return s;
  }
  for (const KeptJob& job : found.state.jobs) {
    KeptFds& fds = found.jobs[job.id];
    for (const keeper::Key& key : *keys) {
      UniqueFd* field = key.id == job.id ? FieldOf(key.kind, &fds) : nullptr;
      if (field == nullptr) continue;
      Result<UniqueFd> fd = keeper->TakeOne(key.kind, key.id);
      if (!fd.ok()) return fd.status();
      *field = std::move(*fd);
    }
  }
  return std::optional<Takeover>(std::move(found));
}

}  // namespace sluice::noded
