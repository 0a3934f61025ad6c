// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::session {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

/// Ready begins a session, and that and its end are lines, too.
bool IsLogged(const Frame& frame) {
  return std::holds_alternative<protocol::Ready>(frame) ||
         std::holds_alternative<protocol::Lease>(frame) ||
         std::holds_alternative<protocol::Gate>(frame) ||
         std::holds_alternative<ReleaseFrame>(frame) ||
         std::holds_alternative<protocol::Charge>(frame) ||
         std::holds_alternative<protocol::Uncharge>(frame);
}

}  // namespace

Session::Session(uint32_t id, UniqueFd socket, Peer peer, const PoolAccess& pool, Share* share,
                 TokenBucket* logged, uint64_t now_ns)
    : id_(id),
      number_(id),
      connection_(std::move(socket)),
      peer_(std::move(peer)),
      pool_(pool),
      since_ns_(now_ns),
      share_(share),
      logged_(logged) {
  // Where the kernel cannot, whoever was given the connection is the one who gave it.
  (void)connection_.AskForSenders().ok();
}

std::optional<SessionEvent> Session::Next(uint64_t now_ns) {
  while (state_ != State::kClosed && frames_left_ > 0 && !paused(now_ns)) {
    --frames_left_;
    std::span<const std::byte> datagram;
    switch (connection_.Receive(&datagram)) {
      case Connection::Read::kNothing:
        return std::nullopt;
      case Connection::Read::kEnd:
        state_ = State::kClosed;
        return Closed{"the client hung up", true, false};
      case Connection::Read::kFrame:
        break;
    }
    if (connection_.sender() != 0 && connection_.sender() != peer_.pid) {
      return Fail("process " + std::to_string(connection_.sender()) +
                  " speaks on the connection of process " + std::to_string(peer_.pid) +
                  "; allowed: one of its own");
    }
    Result<Frame> frame = ParseFrame(datagram);
    if (!frame.ok()) return Fail(frame.status().message());
    if (IsLogged(*frame)) logged_->Spend(1, now_ns);
    std::optional<SessionEvent> event = Handle(std::move(*frame), now_ns);
    if (event.has_value()) return event;
  }
  return std::nullopt;
}

std::optional<SessionEvent> Session::Handle(Frame frame, uint64_t now_ns) {
  const auto misplaced = [&](const char* name) {
    return Fail(std::string(name) + (state_ == State::kReady
                                         ? " comes a second time"
                                         : " comes before the handshake is over"));
  };
  const auto request = [&](const char* name, auto& wanted) -> SessionEvent {
    if (state_ != State::kReady) return misplaced(name);
    if (request_outstanding_) {
      return Fail(std::string(name) + " comes while another request waits for its answer");
    }
    request_outstanding_ = true;
    return wanted;
  };
  return std::visit(
      Overloaded{
          [&](protocol::Hello& hello) -> std::optional<SessionEvent> {
            if (state_ != State::kHello || declaration_.has_value())
              return Fail("Hello comes a second time");
            since_ns_ = now_ns;
            return HandleHello(hello);
          },
          [&](protocol::Ready& ready) -> std::optional<SessionEvent> {
            if (state_ != State::kMapping) return misplaced("Ready");
            state_ = State::kReady;
            return ready;
          },
          [&](protocol::Lease& lease) -> std::optional<SessionEvent> {
            return request("Lease", lease);
          },
          [&](protocol::Gate& gate) -> std::optional<SessionEvent> {
            return request("Gate", gate);
          },
          [&](ReleaseFrame& release) -> std::optional<SessionEvent> {
            if (state_ != State::kReady) return misplaced("Release");
            return SessionEvent(std::move(release));
          },
          [&](protocol::Mismatch& mismatch) -> std::optional<SessionEvent> {
            if (state_ != State::kReady) return misplaced("Mismatch");
            return mismatch;
          },
          [&](protocol::Charge& charge) -> std::optional<SessionEvent> {
            return request("Charge", charge);
          },
          [&](protocol::Uncharge& uncharge) -> std::optional<SessionEvent> {
            // Of a process between two sessions. The conversation is over then.
            if (state_ == State::kHello && !declaration_.has_value()) {
              state_ = State::kOpened;
              return uncharge;
            }
            if (state_ != State::kReady) return misplaced("Uncharge");
            return uncharge;
          },
          [&](protocol::Count& count) -> std::optional<SessionEvent> {
            if (state_ != State::kReady) return misplaced("Count");
            return count;
          },
          [&](protocol::Quiet& quiet) -> std::optional<SessionEvent> {
            // Whether it was asked is for the owner to say: it may have been told meanwhile.
            if (state_ != State::kReady) return misplaced("Quiet");
            return quiet;
          },
          [&](ResumeFrame& resume) -> std::optional<SessionEvent> {
            if (state_ != State::kHello) return Fail("Resume comes in the middle of a session");
            return HandleResume(std::move(resume));
          },
          [&](protocol::Ask& ask) -> std::optional<SessionEvent> {
            if (state_ != State::kHello) return Fail("Ask comes in the middle of a session");
            if (ask.major != protocol::kMajor) return OtherMajor(ask.major);
            state_ = State::kOpened;
            return ask;
          },
          [&](protocol::Bye&) -> std::optional<SessionEvent> {
            state_ = State::kClosed;
            return Closed{"the client said goodbye", true, true};
          },
          [&](auto&) -> std::optional<SessionEvent> {
            return Fail("a launcher's frame on a job's socket; it belongs on noded.sock");
          },
      },
      frame);
}

SessionEvent Session::OtherMajor(uint16_t major) {
  return Fail("the library speaks protocol " + std::to_string(major) + ", this daemon speaks " +
              std::to_string(protocol::kMajor));
}

SessionEvent Session::HandleHello(const protocol::Hello& hello) {
  if (hello.major != protocol::kMajor) return OtherMajor(hello.major);
  if (hello.client_page_bytes != sizeof(protocol::ClientPage) ||
      hello.daemon_page_bytes != sizeof(protocol::DaemonPage) ||
      hello.mark_page_bytes != sizeof(protocol::MarkPage)) {
    return Fail("the library lays out the shared pages otherwise than this daemon");
  }
  if (std::memcmp(hello.device_uuid, pool_.device_uuid.data(), pool_.device_uuid.size()) != 0) {
    return Fail("the program uses another GPU (its device " + std::to_string(hello.device_ordinal) +
                ") than the one this job was registered for");
  }
  client_minor_ = hello.minor;
  state_ = State::kOpened;
  return Opened{};
}

std::optional<SessionEvent> Session::HandleResume(ResumeFrame frame) {
  if (frame.major != protocol::kMajor) return OtherMajor(frame.major);
  if (!declaration_.has_value()) {
    declaration_.emplace();
    declaration_->session = frame.session;
    declaration_->epoch = frame.epoch;
    declaration_->rejected = frame.rejected;
    declaration_->outside_bytes = frame.outside_bytes;
    client_minor_ = frame.minor;
  }
  Declaration& whole = *declaration_;
  auto& extents = frame.part == protocol::ResumePart::kHeld ? whole.held : whole.released;
  extents.insert(extents.end(), frame.extents.begin(), frame.extents.end());
  whole.fence.insert(whole.fence.end(), frame.terms.begin(), frame.terms.end());
  if (whole.held.size() + whole.released.size() > kMaxDeclaredExtents ||
      whole.fence.size() > protocol::kMaxResumeTerms) {
    return Fail("Resume lists more than a pool can hold");
  }
  if (!frame.last) return std::nullopt;
  state_ = State::kOpened;
  SessionEvent event = std::move(whole);
  declaration_.reset();
  return event;
}

Status Session::Resume(uint32_t number, SharedPages pages, UniqueFd liveness) {
  pages_.emplace(std::move(pages));
  liveness_ = std::move(liveness);
  number_ = number;
  protocol::Resumed resumed = {};
  resumed.header = MakeHeader(protocol::FrameType::kResumed, sizeof resumed);
  resumed.major = protocol::kMajor;
  resumed.minor = protocol::kMinor;
  resumed.session = number;
  const int fds[] = {pages_->daemon_fd()};
  if (Status s = connection_.SendFrame(resumed, fds); !s.ok()) return s;
  if (connection_.peer_gone()) {
    return Status(StatusCode::kFailedPrecondition, "the client hung up before it was answered");
  }
  state_ = State::kReady;
  return {};
}

Status Session::Tell(const protocol::Told& figures) {
  protocol::Told told = figures;
  told.header = MakeHeader(protocol::FrameType::kTold, sizeof told);
  return connection_.SendFrame(told);
}

Status Session::Prepare() {
  Result<SharedPages> pages = SharedPages::Create();
  if (!pages.ok()) return pages.status();
  pages_.emplace(std::move(*pages));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return Status::FromErrno(errno, "liveness pipe");
  liveness_.reset(pipe[0]);
  liveness_write_.reset(pipe[1]);
  return {};
}

Status Session::Accept(uint64_t limit_bytes, uint64_t request_bytes) {
  if (!pages_.has_value()) {
    if (Status s = Prepare(); !s.ok()) return s;
  }
  // Ours has to go, or the pipe would never hang up.
  const UniqueFd write_end = std::move(liveness_write_);

  protocol::Welcome welcome = {};
  welcome.header = MakeHeader(protocol::FrameType::kWelcome, sizeof welcome);
  welcome.major = protocol::kMajor;
  welcome.minor = protocol::kMinor;
  welcome.session = id_;
  welcome.unit_bytes = pool_.unit_bytes;
  welcome.handle_bytes = pool_.handle_bytes;
  welcome.handle_count = static_cast<uint32_t>(pool_.handles.size());
  welcome.limit_bytes = limit_bytes;
  welcome.request_bytes = request_bytes;
  const int fds[] = {pages_->mark_fd(), pages_->client_fd(), pages_->daemon_fd(), write_end.get()};
  if (Status s = connection_.SendFrame(welcome, fds); !s.ok()) return s;
  // Nothing was sent before it, so the kernel has taken it: a queued Welcome would name descriptors
  // that are closed below.
  if (connection_.has_queued())
    return Status(StatusCode::kUnavailable, "the socket takes no frame");

  const std::span<const int> handles(pool_.handles);
  for (size_t first = 0; first < handles.size(); first += protocol::kMaxFdsPerFrame) {
    const size_t count = std::min(protocol::kMaxFdsPerFrame, handles.size() - first);
    const bool last = first + count == handles.size();
    protocol::Handles frame = {};
    frame.header = MakeHeader(protocol::FrameType::kHandles, sizeof frame, 0,
                              last ? static_cast<uint16_t>(protocol::kLastFrame) : uint16_t{0});
    frame.first = static_cast<uint32_t>(first);
    frame.count = static_cast<uint32_t>(count);
    if (Status s = connection_.SendFrame(frame, handles.subspan(first, count)); !s.ok()) return s;
  }
  state_ = State::kMapping;
  return {};
}

SessionEvent Session::Fail(const std::string& reason) {
  Close(reason);
  return Closed{reason, false, false};
}

void Session::Close(const std::string& reason) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  protocol::Close frame = {};
  frame.header = MakeHeader(protocol::FrameType::kClose, sizeof frame);
  CopyText(reason, frame.text);
  // A client that cannot take the reason does not get it.
  (void)connection_.SendFrame(frame).ok();
  // What is unread in our queue when the socket closes would make the kernel answer "connection
  // reset" before the reason is read.
  std::span<const std::byte> dropped;
  for (int i = 0; i < 64 && connection_.Receive(&dropped) == Connection::Read::kFrame; ++i) {
  }
}

std::optional<std::string> Session::Overdue(uint64_t now_ns) const {
  if (paused(now_ns)) return std::nullopt;  // what it sent may lie there unread
  const uint64_t waited = now_ns - since_ns_;
  if (state_ == State::kHello && waited > kHelloTimeoutNs) return "no Hello in time";
  if (state_ == State::kMapping && waited > kMappingTimeoutNs) return "no Ready in time";
  return std::nullopt;
}

}  // namespace sluice::session
