// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/predecessor.h"

#include <poll.h>

#include <string>
#include <utility>

#include "common/log/log.h"
#include "noderuntime/daemon/event_loop.h"

namespace sluice::noded {
namespace {

constexpr int kPauseMs = 20;

/// What is wrong with the kept state itself stays wrong; anything else may be better in a moment.
bool Lasts(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kFailedPrecondition;
}

/// Without a keeper afterwards: there is none.
Status Try(const std::string& runtime_dir, std::optional<keeper::KeeperClient>* keeper,
           std::optional<Takeover>* found) {
  keeper->reset();
  Result<keeper::KeeperClient> running = keeper::KeeperClient::Connect(runtime_dir);
  if (!running.ok()) {
    return running.status().code() == StatusCode::kNotFound ? Status() : running.status();
  }
  keeper->emplace(std::move(*running));
  Result<std::optional<Takeover>> loaded = LoadTakeover(&**keeper);
  if (!loaded.ok()) return loaded.status();
  if (loaded->has_value()) found->emplace(std::move(**loaded));
  return {};
}

}  // namespace

Result<std::optional<Predecessor>> FindPredecessor(config::Options* options,
                                                   const gpu::DeviceInfo& device,
                                                   uint64_t patience_ns) {
  using None = std::optional<Predecessor>;
  if (options->keeper.empty()) return None();
  const uint64_t start = NowNs();
  std::optional<keeper::KeeperClient> keeper;
  std::optional<Takeover> found;
  Status status = Try(options->runtime_dir, &keeper, &found);
  // The keeper may not have seen its last daemon's end yet, or be short of something.
  while (!status.ok() && !Lasts(status) && NowNs() - start < patience_ns) {
    ::poll(nullptr, 0, kPauseMs);
    status = Try(options->runtime_dir, &keeper, &found);
  }
  if (!status.ok() && !Lasts(status)) {
    return Status(StatusCode::kUnavailable,
                  "what the last daemon left cannot be had (" + status.message() +
                      "); it stays with its keeper, sluice-keeper of " + options->runtime_dir +
                      ", for a later start. Ending that gives it up");
  }
  if (!keeper.has_value()) return None();

  std::string useless = status.message();
  if (found.has_value() &&
      (found->state.gpu != options->gpu || found->state.device_uuid != device.uuid)) {
    useless = "it is of another GPU";
  }
  if (!useless.empty() || !found.has_value()) {
    if (!useless.empty()) {
      logging::Error(
          "what the last daemon left cannot be used: {}; its jobs keep what they hold "
          "and get no more",
          useless);
    }
    if (Status s = keeper->Bye(); !s.ok()) logging::Warn("the keeper: {}", s.message());
    return None();
  }
  const KeptState& state = found->state;
  if (state.unit_bytes != options->unit_bytes || state.handle_bytes != options->handle_bytes ||
      options->pool_bytes.value_or(state.handles * state.handle_bytes) !=
          state.handles * state.handle_bytes) {
    logging::Warn("the pool stays as the last daemon made it: its jobs have it mapped");
  }
  options->unit_bytes = state.unit_bytes;
  options->handle_bytes = state.handle_bytes;
  return None(Predecessor{std::move(*keeper), std::move(*found)});
}

}  // namespace sluice::noded
