// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/kept_state.h"

namespace sluice::noded {
namespace {

constexpr uint32_t kMagic = 0x4b434c53;  // "SLCK"

}  // namespace

void WriteRegistry(const KeptState& state, ByteWriter* out) {
  out->Put(kMagic);
  out->Put(KeptState::kVersion);
  out->Put(state.unit_bytes);
  out->Put(state.handle_bytes);
  out->Put(state.handles);
  out->Put(state.gpu);
  out->PutBytes(std::as_bytes(std::span(state.device_uuid)));
  out->Put(state.daemon_pid);
  out->Put(state.own_context);
  out->Put(state.next_job);
  out->PutText(state.policy);
  out->Put(state.lanes);
  out->Put(state.draining);
  out->PutList(state.jobs, [out](const KeptJob& job) {
    out->Put(job.id);
    out->PutText(job.name);
    out->Put(job.limit_bytes);
    out->Put(job.request_bytes);
    out->Put(job.limit_units);
    out->Put(job.request_units);
    out->Put(job.pid);
    out->Put(job.session);
    out->Put(job.minor);
    out->PutText(job.grant);
    out->PutText(job.pod);
  });
}

Result<KeptState> ReadKeptState(std::span<const std::byte> bytes) {
  const auto bad = [](const std::string& text) {
    return Status(StatusCode::kInvalidArgument, "the kept state " + text);
  };
  ByteReader in(bytes);
  if (in.Get<uint32_t>() != kMagic) return bad("is none of sluice-noded");
  if (const auto version = in.Get<uint32_t>(); version != KeptState::kVersion) {
    return bad("has version " + std::to_string(version) + "; this daemon reads version " +
               std::to_string(KeptState::kVersion));
  }
  KeptState state;
  state.unit_bytes = in.Get<uint64_t>();
  state.handle_bytes = in.Get<uint64_t>();
  state.handles = in.Get<uint32_t>();
  state.gpu = in.Get<uint32_t>();
  const std::span<const std::byte> uuid = in.GetBytes();
  if (uuid.size() == state.device_uuid.size()) {
    std::memcpy(state.device_uuid.data(), uuid.data(), uuid.size());
  }
  state.daemon_pid = in.Get<pid_t>();
  state.own_context = in.Get<uint8_t>() != 0;
  state.next_job = in.Get<uint32_t>();
  state.policy = in.GetText();
  state.lanes = in.Get<uint32_t>();
  state.draining = in.Get<uint8_t>() != 0;
  uint32_t last = 0;
  bool ordered = true;
  in.GetList([&] {
    KeptJob job;
    job.id = in.Get<uint32_t>();
    job.name = in.GetText();
    job.limit_bytes = in.Get<uint64_t>();
    job.request_bytes = in.Get<uint64_t>();
    job.limit_units = in.Get<uint32_t>();
    job.request_units = in.Get<uint32_t>();
    job.pid = in.Get<pid_t>();
    job.session = in.Get<uint32_t>();
    job.minor = in.Get<uint16_t>();
    job.grant = in.GetText();
    job.pod = in.GetText();
    ordered = ordered && job.id > last && job.id < state.next_job;
    last = job.id;
    state.jobs.push_back(std::move(job));
  });
  const std::span<const std::byte> flow = in.GetBytes();
  state.flow.assign(flow.begin(), flow.end());
  if (!in.ok() || !in.at_end() || uuid.size() != state.device_uuid.size()) {
    return bad("does not end where it should");
  }
  const bool sound = state.unit_bytes > 0 && state.handle_bytes >= state.unit_bytes &&
                     state.handle_bytes % state.unit_bytes == 0 && state.handles > 0 &&
                     state.handles <= (1u << 16);
  if (!sound || !ordered) return bad("describes a pool or jobs that cannot be");
  return state;
}

}  // namespace sluice::noded
