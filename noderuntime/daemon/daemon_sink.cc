// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What the flow decides becomes frames, log lines and oracle entries.

#include <algorithm>
#include <cstring>

#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

using session::MakeHeader;

Client* Daemon::SessionOf(flow::JobId job) {
  const auto entry = jobs_.find(job);
  if (entry == jobs_.end() || entry->second.session == 0) return nullptr;
  const auto client = clients_.find(entry->second.session);
  return client == clients_.end() ? nullptr : &client->second;
}

template <typename Frame>
bool Daemon::SendTo(flow::JobId job, const Frame& frame) {
  Client* client = SessionOf(job);
  if (client == nullptr || client->session->closed()) return false;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(&frame),
                                         frame.header.bytes);
  if (Status s = client->session->connection().Send(bytes); !s.ok()) {
    doomed_.emplace_back(client->session->id(), s.message());
    return false;
  }
  UpdateInterest(client);
  return true;
}

void Daemon::Grant(flow::JobId job, const flow::GrantAnswer& answer) {
  Client* client = SessionOf(job);
  if (client == nullptr) return;
  client->session->Answered();
  // First: a daemon that follows this one must know what the client was given.
  SaveState();
  protocol::Grant frame;
  std::memset(&frame, 0, offsetof(protocol::Grant, extent));
  size_t sent = 0;
  do {
    const size_t count = std::min(answer.extents.size() - sent, protocol::kMaxExtentsPerFrame);
    for (size_t i = 0; i < count; ++i) {
      frame.extent[i] = {answer.extents[sent + i].offset, answer.extents[sent + i].length};
    }
    sent += count;
    uint16_t flags = answer.high_end ? protocol::kHighEnd : 0;
    if (sent == answer.extents.size()) flags = static_cast<uint16_t>(flags | protocol::kLastFrame);
    frame.header = MakeHeader(protocol::FrameType::kGrant,
                              offsetof(protocol::Grant, extent) + count * sizeof(protocol::Extent),
                              answer.seq, flags);
    frame.gate = answer.gate;
    frame.profile = answer.profile;
    frame.epoch = answer.epoch;
    frame.claim_units = answer.claim;
    frame.extents = static_cast<uint32_t>(count);
    if (!SendTo(job, frame)) return;
  } while (sent < answer.extents.size());
}

void Daemon::Charged(flow::JobId job, uint32_t seq, uint64_t outside_bytes) {
  Client* client = SessionOf(job);
  if (client == nullptr) return;
  client->session->Answered();
  SaveState();
  protocol::Charged frame = {};
  frame.header = MakeHeader(protocol::FrameType::kCharged, sizeof frame, seq);
  frame.outside_bytes = outside_bytes;
  SendTo(job, frame);
}

void Daemon::Deny(flow::JobId job, uint32_t seq, protocol::DenyCode code, const std::string& text) {
  Client* client = SessionOf(job);
  if (client == nullptr) return;
  client->session->Answered();
  // Without a run it asks again, for less: nothing to tell anybody.
  if (code != protocol::DenyCode::kNoRun) {
    SayOfJob(job, logging::Level::kInfo, "denied: " + text);
  }
  protocol::Deny frame = {};
  frame.header = MakeHeader(protocol::FrameType::kDeny, sizeof frame, seq);
  frame.code = static_cast<uint32_t>(code);
  session::CopyText(text, frame.text);
  SendTo(job, frame);
}

void Daemon::Quiesce(flow::JobId job, uint32_t seq) {
  protocol::Quiesce frame = {};
  frame.header = MakeHeader(protocol::FrameType::kQuiesce, sizeof frame, seq);
  SendTo(job, frame);
}

void Daemon::Notice(flow::JobId job, uint32_t seq, const flow::Line& line) {
  SayOfJob(job, logging::Level::kInfo, line.text);
  if (line.about == flow::About::kWait) TellPod(job, "waited", line.text);
  if (line.about != flow::About::kRecord) figures_.Told(job, NowNs(), line.reason, line.text);
  protocol::Notice frame = {};
  frame.header = MakeHeader(protocol::FrameType::kNotice, sizeof frame, seq);
  session::CopyText(line.text, frame.text);
  SendTo(job, frame);
}

void Daemon::Say(const std::string& text) { logging::Info("{}", text); }

void Daemon::Log(const scheduler::Record& record) {
  Count(record);
  if (record.event == scheduler::EventKind::kDeny) {
    const bool goes_on = record.reason == ReasonName(scheduler::RefusalReason::kGate);
    if (!goes_on) TellPod(record.job, "refused", record.text);
  } else if (record.event == scheduler::EventKind::kMismatch) {
    TellPod(record.job, "deviated", record.text);
  } else if (record.event == scheduler::EventKind::kEvict &&
             record.reason != ReasonName(scheduler::WaitReason::kTurn)) {
    TellPod(record.job, "evicted", record.text);
  }
}

void Daemon::HolderChanged(const flow::Extents& extents, flow::JobId holder) {
  const auto entry = jobs_.find(holder);
  const pid_t pid = entry == jobs_.end() ? 0 : entry->second.pid;
  if (oracle_.has_value()) {
    for (const scheduler::Extent& extent : extents) {
      oracle_->SetHolder(extent.offset, extent.length, pid);
    }
    oracle_->Publish();
  }
  if (options_.poison && holder == scheduler::kNoJob) Poison(extents);
}

}  // namespace sluice::noded
