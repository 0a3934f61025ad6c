// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The daemon's own socket: launchers register jobs, the command line asks for the state.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/bytes.h"
#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/daemon/text_file.h"

namespace sluice::noded {
namespace {

constexpr size_t kMaxControlClients = 4096;
constexpr int kFramesPerWakeup = 16;

Status Invalid(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

}  // namespace

void Daemon::AcceptControl() {
  UniqueFd socket = acceptor_.Accept(control_listener_.get());
  if (!socket.valid()) return;
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  // The folder's mode keeps others out; this is the second lock on the same door.
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 ||
      (credentials.uid != ::geteuid() && credentials.uid != 0)) {
    return;
  }
  // Whoever connects and says nothing makes room for others, the oldest first.
  if (controls_.size() >= kMaxControlClients) {
    const auto idle = std::find_if(controls_.begin(), controls_.end(),
                                   [](const auto& entry) { return entry.second.job == 0; });
    if (idle == controls_.end()) return;
    CloseControl(idle->first);
  }
  (void)AddControl(std::move(socket), 0).ok();
}

Result<uint32_t> Daemon::AddControl(UniqueFd socket, flow::JobId job) {
  const uint32_t id = next_connection_++;
  ControlClient client = {session::Connection(std::move(socket)), 0, job};
  const auto token = loop_.Add(client.connection.fd(), EPOLLIN | EPOLLRDHUP,
                               [this, id](uint32_t events) { OnControl(id, events); });
  if (!token.ok()) return token.status();
  client.token = *token;
  controls_.emplace(id, std::move(client));
  return id;
}

void Daemon::CloseControl(uint32_t id) {
  const auto found = controls_.find(id);
  if (found == controls_.end()) return;
  const flow::JobId job = found->second.job;
  loop_.Remove(found->second.token);
  controls_.erase(found);
  const auto entry = jobs_.find(job);
  if (entry == jobs_.end()) return;
  entry->second.launcher = 0;
  if (keeper_.has_value()) {
    if (Status s = keeper_->Drop(keeper::Kind::kLauncher, job); !s.ok()) LoseKeeper(s);
  }
  RemoveJobIfOver(job);
}

/// Whoever asks without end is heard less often, as a job's client is.
void Daemon::OnControl(uint32_t id, uint32_t events) {
  if (!controls_.contains(id)) return;
  const uint64_t begin = ThreadCpuNs();
  ServeControl(id, events);
  const auto found = controls_.find(id);
  if (found == controls_.end()) return;
  found->second.share.Spend(ThreadCpuNs() - begin, NowNs());
  UpdateInterest(&found->second);
}

void Daemon::UpdateInterest(ControlClient* client) {
  client->reads = !client->share.Spent(NowNs());
  loop_.Modify(client->token, EPOLLRDHUP | (client->reads ? EPOLLIN : 0u) |
                                  (client->connection.wants_write() ? EPOLLOUT : 0u));
}

void Daemon::ServeControl(uint32_t id, uint32_t events) {
  ControlClient& client = controls_.at(id);
  if ((events & EPOLLOUT) != 0 && !client.connection.Flush().ok()) return CloseControl(id);
  // What it said before it hung up is heard to its end.
  const bool hung_up = (events & kHangUp) != 0;
  for (int i = 0; i < kFramesPerWakeup; ++i) {
    if (!hung_up && client.share.Spent(NowNs())) return;
    std::span<const std::byte> datagram;
    const auto read = client.connection.Receive(&datagram);
    if (read == session::Connection::Read::kEnd) return CloseControl(id);
    if (read == session::Connection::Read::kNothing) return;
    const Result<session::Frame> frame = session::ParseFrame(datagram);
    const Status status = frame.ok() ? HandleControl(id, *frame) : frame.status();
    if (status.ok()) continue;
    SayOfLaunchers(logging::Level::kWarn, "launcher: " + status.message());
    protocol::Close close = {};
    close.header = session::MakeHeader(protocol::FrameType::kClose, sizeof close);
    session::CopyText(status.message(), close.text);
    (void)client.connection.SendFrame(close).ok();
    return CloseControl(id);
  }
}

Status Daemon::HandleControl(uint32_t id, const session::Frame& frame) {
  ControlClient& client = controls_.at(id);
  if (const auto* wanted = std::get_if<session::RegisterFrame>(&frame)) {
    return Register(id, *wanted);
  }
  if (const auto* policy = std::get_if<session::SetPolicyFrame>(&frame)) {
    return SetPolicy(&client, *policy);
  }
  if (const auto* budget = std::get_if<protocol::SetBudget>(&frame)) {
    return SetBudget(&client, *budget);
  }
  if (const auto* limit = std::get_if<protocol::SetLimit>(&frame)) return SetLimit(&client, *limit);
  if (const auto* drain = std::get_if<protocol::Drain>(&frame)) return Drain(&client, *drain);
  if (const auto* all = std::get_if<protocol::Status>(&frame)) return SendStatus(&client, *all);
  if (const auto* live = std::get_if<protocol::Live>(&frame)) return SendLive(&client, *live);
  if (std::holds_alternative<protocol::Recording>(frame)) return SendRecording(&client);
  return Invalid("a job's frame on noded.sock; it belongs on the job's own socket");
}

/// Whether it could be served by this node at all, whoever else is there.
Result<flow::JobSpec> Daemon::CheckAmounts(const session::RegisterFrame& wanted) const {
  const uint64_t unit = options_.unit_bytes;
  if (wanted.gpu != options_.gpu) {
    return Invalid("gpu " + std::to_string(wanted.gpu) + ": allowed: " +
                   std::to_string(options_.gpu) + ", the one that this daemon manages");
  }
  if (wanted.limit_bytes != 0 &&
      (wanted.limit_bytes > pool_.bytes() || wanted.limit_bytes < unit)) {
    return Invalid("limit " + FormatBytes(wanted.limit_bytes) + ": allowed: " + FormatBytes(unit) +
                   " (a lease unit) to " + FormatBytes(pool_.bytes()) + " (the pool)");
  }
  if (wanted.request_bytes > pool_.bytes()) {
    return Invalid("request " + FormatBytes(wanted.request_bytes) + ": allowed: up to " +
                   FormatBytes(pool_.bytes()) + " (the pool)");
  }
  if (wanted.limit_bytes != 0 && wanted.request_bytes > wanted.limit_bytes) {
    return Invalid("request " + FormatBytes(wanted.request_bytes) + ": allowed: up to its limit, " +
                   FormatBytes(wanted.limit_bytes));
  }
  flow::JobSpec spec;
  spec.name = wanted.name;
  spec.observed = wanted.observe;
  // A limit is never exceeded, so it is rounded down; a request is rounded up as far as that
  // allows.
  spec.limit = static_cast<scheduler::Units>(wanted.limit_bytes / unit);
  const uint64_t request = (wanted.request_bytes + unit - 1) / unit;
  spec.request = static_cast<scheduler::Units>(
      spec.limit == 0 ? request : std::min<uint64_t>(request, spec.limit));
  return spec;
}

Result<flow::JobSpec> Daemon::CheckTerms(const session::RegisterFrame& wanted) const {
  Result<flow::JobSpec> spec = CheckAmounts(wanted);
  if (!spec.ok()) return spec;
  if (Status s = flow_->CheckRegistration(*spec); !s.ok()) return s;
  return spec;
}

Status Daemon::Register(uint32_t control, const session::RegisterFrame& wanted) {
  ControlClient& client = controls_.at(control);
  if (client.job != 0) return Invalid("Register comes a second time");
  const Status takes = TakesNewJobs();
  const Result<flow::JobSpec> spec = takes.ok() ? CheckTerms(wanted) : Result<flow::JobSpec>(takes);
  Result<flow::JobId> job = spec.ok() ? AddJob(*spec, wanted) : Result<flow::JobId>(spec.status());
  if (job.ok()) {
    client.job = *job;
    jobs_.at(*job).launcher = control;
    SayOfLaunchers(logging::Level::kInfo,
                   "job " + std::to_string(*job) + " '" + wanted.name + "': registered");
    // Before the answer: whoever has it relies on the job.
    Keep(keeper::Kind::kListener, *job, jobs_.at(*job).listener.get());
    Keep(keeper::Kind::kLauncher, *job, client.connection.fd());
    registry_changed_ = true;
    SaveState();
    return AnswerRegistration(control, *job, wanted.seq);
  }
  protocol::Registered answer = {};
  answer.header = session::MakeHeader(protocol::FrameType::kRegistered, sizeof answer, wanted.seq);
  answer.status = static_cast<uint32_t>(job.status().code());
  session::CopyText(job.status().message(), answer.path);
  SayOfLaunchers(logging::Level::kInfo, "'" + wanted.name + "' refused: " + job.status().message());
  return client.connection.SendFrame(answer);
}

Status Daemon::AnswerRegistration(uint32_t control, flow::JobId job, uint32_t seq) {
  protocol::Registered answer = {};
  answer.header = session::MakeHeader(protocol::FrameType::kRegistered, sizeof answer, seq);
  answer.job = job;
  session::CopyText(dir_.job_socket(job), answer.path);
  return controls_.at(control).connection.SendFrame(answer);
}

Status Daemon::SendRecording(ControlClient* client) {
  const auto found = jobs_.find(client->job);
  if (found == jobs_.end()) return Invalid("Recording of a job that was not registered here");
  const JobEntry& job = found->second;
  // An earlier program's may be better than none; a running one is asked first.
  Result<std::string> recorded = job.recording;
  if (job.started) {
    Result<std::string> now = flow_->RecordingOf(client->job, NowNs());
    if (now.ok() || !recorded.ok()) recorded = std::move(now);
  }
  // A recording is not among what outlives a daemon.
  if (!job.spec.observed) {
    recorded = Status(StatusCode::kFailedPrecondition,
                      "the job was not to be observed, or its daemon was restarted since");
  }
  protocol::RecordingReply reply = {};
  reply.header = session::MakeHeader(protocol::FrameType::kRecordingReply, sizeof reply);
  if (!recorded.ok()) {
    reply.status = 1;
    session::CopyText(recorded.status().message(), reply.text);
    return client->connection.SendFrame(reply);
  }
  const Result<UniqueFd> file = TextFile(*recorded);
  if (!file.ok()) return file.status().Annotate("recording");
  reply.trace_bytes = recorded->size();
  const int fds[] = {file->get()};
  return client->connection.SendNow(std::as_bytes(std::span(&reply, 1)), fds);
}

}  // namespace sluice::noded
