// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/session.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/noderuntime/support/scripted_client.h"

namespace sluice::session {
namespace {

using protocol::FrameType;

class SessionTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kNow = 1'000'000'000;

  void SetUp() override {
    for (int i = 0; i < 130; ++i) {
      handles_.emplace_back(::memfd_create("handle", MFD_CLOEXEC));
      pool_.handles.push_back(handles_.back().get());
    }
    pool_.unit_bytes = 1 << 18;
    pool_.handle_bytes = 1 << 21;
    pool_.device_uuid = {1, 2, 3};
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    Result<Peer> peer = PeerOf(ends[0]);
    ASSERT_TRUE(peer.ok()) << peer.status().message();
    EXPECT_EQ(peer->pid, ::getpid());
    session_.emplace(7, UniqueFd(ends[0]), std::move(*peer), pool_, &share_, &logged_, kNow);
    client_.emplace(UniqueFd(ends[1]));
    session_->StartWakeup();
  }

  template <typename Event>
  ::testing::AssertionResult Next(Event* event = nullptr) {
    std::optional<SessionEvent> next = session_->Next(kNow);
    if (!next.has_value()) return ::testing::AssertionFailure() << "nothing";
    if (const auto* closed = std::get_if<Closed>(&*next);
        closed != nullptr && !std::is_same_v<Event, Closed>) {
      return ::testing::AssertionFailure() << "closed: " << closed->reason;
    }
    if (!std::holds_alternative<Event>(*next)) {
      return ::testing::AssertionFailure() << "event " << next->index();
    }
    if (event != nullptr) *event = std::get<Event>(std::move(*next));
    return ::testing::AssertionSuccess();
  }

  void Handshake() {
    client_->Hello(pool_.device_uuid);
    ASSERT_TRUE(Next<Opened>());
    ASSERT_TRUE(session_->Accept(0, 0).ok());
    while (client_->Receive().has_value()) {
    }
    client_->Ready();
    ASSERT_TRUE(Next<protocol::Ready>());
  }

  static protocol::Notice MakeNotice() {
    protocol::Notice notice = {};
    notice.header = MakeHeader(FrameType::kNotice, sizeof notice);
    return notice;
  }

  /// The session is over and the client can read why.
  void ExpectClosed(const std::string& reason) {
    Closed closed;
    ASSERT_TRUE(Next(&closed));
    EXPECT_FALSE(closed.by_peer);
    EXPECT_NE(closed.reason.find(reason), std::string::npos) << closed.reason;
    EXPECT_TRUE(session_->closed());
    const auto frame = client_->Receive();
    ASSERT_TRUE(frame.has_value());
    ASSERT_EQ(frame->type(), FrameType::kClose);
    EXPECT_EQ(std::string(frame->As<protocol::Close>().text), closed.reason);
  }

  std::vector<UniqueFd> handles_;
  PoolAccess pool_;
  Share share_{kNow};                                                           // of the job
  TokenBucket logged_{Session::kLoggedBurst, Session::kLoggedPerSecond, kNow};  // of the job
  std::optional<Session> session_;
  std::optional<testing::ScriptedClient> client_;
};

TEST_F(SessionTest, HandshakeHandsOutPagesAndHandles) {
  client_->Hello(pool_.device_uuid);
  ASSERT_TRUE(Next<Opened>());
  ASSERT_TRUE(session_->Accept(1 << 20, 1 << 19).ok());
  const auto welcome = client_->Receive();
  ASSERT_TRUE(welcome.has_value());
  ASSERT_EQ(welcome->type(), FrameType::kWelcome);
  EXPECT_EQ(welcome->fds.size(), 4u);
  EXPECT_EQ(welcome->As<protocol::Welcome>().handle_count, 130u);
  EXPECT_EQ(welcome->As<protocol::Welcome>().limit_bytes, 1u << 20);
  // At most 128 descriptors travel beside one frame.
  const auto first = client_->Receive();
  const auto second = client_->Receive();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->fds.size(), 128u);
  EXPECT_EQ(first->As<protocol::Handles>().header.flags, 0);
  EXPECT_EQ(second->fds.size(), 2u);
  EXPECT_EQ(second->As<protocol::Handles>().first, 128u);
  EXPECT_EQ(second->As<protocol::Handles>().header.flags, protocol::kLastFrame);
  client_->Ready();
  EXPECT_TRUE(Next<protocol::Ready>());
  EXPECT_TRUE(session_->ready());
}

TEST_F(SessionTest, AConnectionInOtherHandsIsClosed) {
  Handshake();
  const pid_t other = ::fork();
  if (other == 0) {
    client_->Hello(pool_.device_uuid);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(other, nullptr, 0), other);
  ExpectClosed("process " + std::to_string(other) + " speaks on the connection of process " +
               std::to_string(::getpid()));
}

TEST_F(SessionTest, LivenessPipeHangsUpWithTheClientsLastCopy) {
  client_->Hello(pool_.device_uuid);
  ASSERT_TRUE(Next<Opened>());
  ASSERT_TRUE(session_->Accept(0, 0).ok());
  std::optional welcome = client_->Receive();
  const UniqueFd liveness = session_->TakeLiveness();
  pollfd watched = {liveness.get(), 0, 0};
  EXPECT_EQ(::poll(&watched, 1, 0), 0);
  welcome->fds.clear();
  EXPECT_EQ(::poll(&watched, 1, 0), 1);
  EXPECT_NE(watched.revents & POLLHUP, 0);
}

TEST_F(SessionTest, RefusesAnotherProtocolLayoutOrGpu) {
  const auto refused = [this](auto change, const char* why) {
    SetUp();
    protocol::Hello hello = client_->MakeHello(pool_.device_uuid);
    change(hello);
    client_->Send(hello, FrameType::kHello);
    ExpectClosed(why);
  };
  refused([](protocol::Hello& h) { h.major = 2; }, "protocol 2");
  refused([](protocol::Hello& h) { h.client_page_bytes -= 8; }, "shared pages");
  refused([](protocol::Hello& h) { h.mark_page_bytes += 8; }, "shared pages");
  refused([](protocol::Hello& h) { h.device_uuid[15] = 1; }, "another GPU");
}

TEST_F(SessionTest, AnUnchargeMayComeByItself) {
  protocol::Uncharge wanted{};
  wanted.family = 3;
  wanted.bytes = 4096;
  client_->Send(wanted, FrameType::kUncharge);
  protocol::Uncharge uncharge{};
  ASSERT_TRUE(Next(&uncharge));
  EXPECT_EQ(uncharge.bytes, 4096u);
  EXPECT_FALSE(session_->ready());
  client_->Send(wanted, FrameType::kUncharge);
  ExpectClosed("Uncharge comes before the handshake");
  SetUp();
  client_->Hello(pool_.device_uuid);
  ASSERT_TRUE(Next<Opened>());
  client_->Send(wanted, FrameType::kUncharge);
  ExpectClosed("Uncharge comes before the handshake");
}

TEST_F(SessionTest, NobodyIsQuietBeforeTheHandshake) {
  client_->Send(protocol::Quiet{}, FrameType::kQuiet);
  ExpectClosed("Quiet comes before the handshake");
  SetUp();
  Handshake();
  client_->Send(protocol::Quiet{}, FrameType::kQuiet);
  EXPECT_TRUE(Next<protocol::Quiet>()) << "whether it was asked, its owner knows";
}

TEST_F(SessionTest, OnlyAGoodbyeParts) {
  Handshake();
  client_->Send(protocol::Bye{}, FrameType::kBye);
  Closed closed;
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.parted);
  SetUp();
  Handshake();
  client_.reset();
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.by_peer);
  EXPECT_FALSE(closed.parted);
}

// A client ends without having read what it was sent last. The kernel tells of that first.
TEST_F(SessionTest, TheGoodbyeOfOneWhoLeftFramesUnreadIsHeard) {
  Handshake();
  ASSERT_TRUE(session_->connection().SendFrame(MakeNotice()).ok());
  client_->Release({{0, 1}});
  client_->Send(protocol::Bye{}, FrameType::kBye);
  client_->HangUp();
  EXPECT_TRUE(Next<ReleaseFrame>());
  Closed closed;
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.parted);
}

// Its end is found where its last frames are read, and not before them.
TEST_F(SessionTest, AFrameForOneWhoHasHungUpGoesNowhere) {
  Handshake();
  Connection& connection = session_->connection();
  while (!connection.has_queued()) ASSERT_TRUE(connection.SendFrame(MakeNotice()).ok());
  client_->Send(protocol::Bye{}, FrameType::kBye);
  EXPECT_FALSE(connection.peer_gone());
  client_->HangUp();
  EXPECT_TRUE(connection.Flush().ok());
  EXPECT_FALSE(connection.has_queued());
  EXPECT_TRUE(connection.SendFrame(MakeNotice()).ok());
  EXPECT_FALSE(connection.has_queued());
  EXPECT_TRUE(connection.peer_gone());
  Closed closed;
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.parted);
}

// Whatever it declared, it may come again and say more.
TEST_F(SessionTest, WhoHungUpBeforeItWasAnsweredHasNotGoneOn) {
  client_->HangUp();
  Result<SharedPages> pages = SharedPages::Create();
  ASSERT_TRUE(pages.ok());
  EXPECT_FALSE(session_->Resume(3, std::move(*pages), UniqueFd()).ok());
  EXPECT_FALSE(session_->ready());
}

TEST_F(SessionTest, NothingComesBeforeTheHandshakeOrTwice) {
  client_->Lease(1, 1);
  ExpectClosed("Lease comes before the handshake");
  SetUp();
  client_->Ready();
  ExpectClosed("Ready comes before the handshake");
  SetUp();
  Handshake();
  client_->Hello(pool_.device_uuid);
  ExpectClosed("Hello comes a second time");
  SetUp();
  Handshake();
  client_->Ready();
  ExpectClosed("Ready comes a second time");
  SetUp();
  client_->Send(protocol::Status{}, FrameType::kStatus);
  ExpectClosed("launcher's frame");
}

TEST_F(SessionTest, AProcessWithoutASessionMayAsk) {
  protocol::Ask ask = {};
  ask.major = protocol::kMajor;
  client_->Send(ask, FrameType::kAsk);
  ASSERT_TRUE(Next<protocol::Ask>());
  protocol::Told told = {};
  told.total_bytes = 77;
  ASSERT_TRUE(session_->Tell(told).ok());
  const auto frame = client_->Receive();
  ASSERT_TRUE(frame.has_value());
  ASSERT_EQ(frame->type(), FrameType::kTold);
  EXPECT_EQ(frame->As<protocol::Told>().total_bytes, 77u);
  client_->Send(ask, FrameType::kAsk);
  ExpectClosed("Ask comes in the middle");
  SetUp();
  Handshake();
  client_->Send(ask, FrameType::kAsk);
  ExpectClosed("Ask comes in the middle");
  SetUp();
  ask.major = protocol::kMajor + 1;
  client_->Send(ask, FrameType::kAsk);
  ExpectClosed("the library speaks protocol 2");
}

/// What it says is kept until its last frame, so that an endless one would take memory without end.
TEST_F(SessionTest, ADeclarationHasAnEnd) {
  protocol::Resume resume = {};
  resume.major = protocol::kMajor;
  const auto send = [&](protocol::ResumePart part, size_t count, size_t entry) {
    resume.part = part;
    resume.count = static_cast<uint32_t>(count);
    for (size_t i = 0; part != protocol::ResumePart::kFence && i < count; ++i) {
      resume.extent[i] = {static_cast<uint32_t>(i), 1};
    }
    client_->Send(resume, FrameType::kResume, 0,
                  offsetof(protocol::Resume, extent) + count * entry);
    session_->StartWakeup();
  };
  constexpr size_t kUnits = 1u << 17;  // of the largest pool, each by itself
  constexpr size_t kMost = protocol::kMaxExtentsPerFrame;
  for (size_t sent = 0; sent + kMost <= kUnits; sent += kMost) {
    const bool held = sent % (2 * kMost) == 0;
    send(held ? protocol::ResumePart::kHeld : protocol::ResumePart::kReleased, kMost,
         sizeof(protocol::Extent));
    ASSERT_FALSE(session_->Next(kNow).has_value());
    ASSERT_FALSE(session_->closed());
  }
  send(protocol::ResumePart::kReleased, kMost, sizeof(protocol::Extent));
  ExpectClosed("Resume lists more than a pool can hold");
  SetUp();
  std::memset(&resume, 0, sizeof resume);  // slot 0 in each term
  resume.major = protocol::kMajor;
  send(protocol::ResumePart::kFence, protocol::kMaxResumeTerms, sizeof(protocol::FenceTerm));
  ASSERT_FALSE(session_->Next(kNow).has_value());
  ASSERT_FALSE(session_->closed());
  send(protocol::ResumePart::kFence, 1, sizeof(protocol::FenceTerm));
  ExpectClosed("Resume lists more than a pool can hold");
}

TEST_F(SessionTest, OneRequestAtATime) {
  Handshake();
  client_->Lease(1, 1);
  protocol::Lease lease;
  ASSERT_TRUE(Next(&lease));
  EXPECT_TRUE(session_->request_outstanding());
  session_->Answered();
  client_->Lease(2, 2);
  ASSERT_TRUE(Next(&lease));
  EXPECT_EQ(lease.units, 2u);
  client_->Send(protocol::Gate{}, FrameType::kGate, 3);
  ExpectClosed("Gate comes while another request waits");
}

TEST_F(SessionTest, GarbageClosesWithAReason) {
  Handshake();
  client_->SendBytes("not a frame at all", 18);
  ExpectClosed("not of this protocol");
  EXPECT_FALSE(session_->Next(kNow).has_value());
}

// What the client sent after its fault must not turn the reason into "connection reset".
TEST_F(SessionTest, TheReasonSurvivesUnreadFrames) {
  client_->SendBytes("not a frame at all", 18);
  for (int i = 0; i < 20; ++i) client_->Ready();
  ASSERT_TRUE(Next<Closed>());
  session_.reset();
  const auto frame = client_->Receive();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->type(), FrameType::kClose);
}

TEST_F(SessionTest, AWakeupIsBounded) {
  Handshake();
  for (size_t i = 0; i < Session::kMaxFramesPerWakeup + 5; ++i) {
    client_->Send(protocol::Mismatch{}, FrameType::kMismatch);
  }
  session_->StartWakeup();
  size_t seen = 0;
  while (session_->Next(kNow).has_value()) ++seen;
  EXPECT_EQ(seen, Session::kMaxFramesPerWakeup);
  session_->StartWakeup();
  EXPECT_TRUE(Next<protocol::Mismatch>());
}

TEST_F(SessionTest, WhoeverIsOverTheShareOfItsJobIsReadLater) {
  Handshake();
  client_->Send(protocol::Mismatch{}, FrameType::kMismatch);
  // Twice what may be had at once: half of it is owed. No frame costs more than that, whatever it
  // made others wait for. It may be another connection of its job that spent it.
  share_.Spend(5 * Share::kBurst, kNow);
  share_.Spend(Share::kBurst, kNow);
  EXPECT_TRUE(session_->paused(kNow));
  EXPECT_FALSE(session_->Next(kNow).has_value());
  EXPECT_FALSE(session_->closed()) << "it only waits";
  constexpr uint64_t kEnds = Share::kBurst * 1'000'000'000 / Share::kPerSecond;
  EXPECT_FALSE(session_->Next(kNow + kEnds).has_value()) << "what is owed comes in first";
  EXPECT_TRUE(session_->Next(kNow + kEnds + 1000).has_value()) << "what was sent is not lost";
}

TEST_F(SessionTest, WhatLiesUnreadIsNotLate) {
  constexpr uint64_t kLate = kNow + Session::kHelloTimeoutNs + 1;
  EXPECT_TRUE(session_->Overdue(kLate).has_value());
  share_.Spend(Share::kBurst, kLate);
  EXPECT_FALSE(session_->Overdue(kLate).has_value());
}

// Its memory is free the sooner.
TEST_F(SessionTest, WhoeverHungUpIsReadToItsEnd) {
  pool_.logs_requests = true;
  Handshake();
  client_->Send(protocol::Mismatch{}, FrameType::kMismatch);
  client_->Send(protocol::Uncharge{}, FrameType::kUncharge);
  client_->Send(protocol::Bye{}, FrameType::kBye);
  client_.reset();
  share_.Spend(Share::kBurst, kNow);
  while (logged_.Take(kNow)) {
  }
  EXPECT_FALSE(session_->Next(kNow).has_value()) << "nobody knows yet that it hung up";
  session_->PeerHungUp();
  EXPECT_FALSE(session_->paused(kNow));
  EXPECT_TRUE(Next<protocol::Mismatch>());
  EXPECT_TRUE(Next<protocol::Uncharge>());
  Closed closed;
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.parted);
  constexpr uint64_t kApart = 1'000'000'000 / Session::kLoggedPerSecond;
  EXPECT_EQ(logged_.Left(kNow + kApart), 0u) << "what was logged for it is owed";
}

// The event log leaves nothing out, so whoever makes it grow fast is read slowly.
TEST_F(SessionTest, WhatIsLoggedIsReadNoFasterThanTheLogMayGrow) {
  pool_.logs_requests = true;
  Handshake();
  protocol::Uncharge frame = {};
  frame.family = static_cast<uint32_t>(protocol::Family::kArray);
  uint64_t read = 1;  // Ready
  for (; read <= Session::kLoggedBurst; ++read) {
    client_->Send(frame, FrameType::kUncharge);
    session_->StartWakeup();
    if (!session_->Next(kNow).has_value()) break;
  }
  EXPECT_EQ(read, Session::kLoggedBurst - Session::kLoggedReserve);
  EXPECT_FALSE(session_->closed()) << "it only waits";
  EXPECT_TRUE(session_->paused(kNow));
  constexpr uint64_t kApart = 1'000'000'000 / Session::kLoggedPerSecond;
  EXPECT_FALSE(session_->Next(kNow + kApart - 1).has_value());
  EXPECT_TRUE(session_->Next(kNow + kApart).has_value()) << "what was sent is not lost";
}

TEST_F(SessionTest, TheNextOfAJobHasWhatTheLastLeft) {
  pool_.logs_requests = true;
  for (const uint64_t left : {2u, 1u, 0u}) {
    while (logged_.Left(kNow) > left) logged_.Take(kNow);
    SetUp();
    // Of a process between two sessions: one to a connection.
    client_->Send(protocol::Uncharge{}, FrameType::kUncharge);
    EXPECT_EQ(session_->Next(kNow).has_value(), left > 0);
    EXPECT_EQ(logged_.Left(kNow), left > 0 ? left - 1 : 0);
  }
  EXPECT_FALSE(session_->closed());
  EXPECT_TRUE(session_->Next(kNow + 1'000'000'000 / Session::kLoggedPerSecond).has_value());
}

TEST_F(SessionTest, ASessionLeavesTheNextOnesRoomToBegin) {
  pool_.logs_requests = true;
  Handshake();
  while (logged_.Left(kNow) > Session::kLoggedReserve) logged_.Take(kNow);
  EXPECT_TRUE(session_->paused(kNow));
  SetUp();
  EXPECT_FALSE(session_->paused(kNow));
  Handshake();
  EXPECT_TRUE(session_->paused(kNow));
}

TEST_F(SessionTest, WhereNothingIsLoggedNothingIsPaused) {
  while (logged_.Take(kNow)) {
  }
  Handshake();
  for (uint64_t i = 0; i <= Session::kLoggedBurst; ++i) {
    client_->Send(protocol::Uncharge{}, FrameType::kUncharge);
    session_->StartWakeup();
    ASSERT_TRUE(session_->Next(kNow).has_value());
  }
}

TEST_F(SessionTest, HangUpAndByeAreNobodysFault) {
  Handshake();
  client_->Send(protocol::Bye{}, FrameType::kBye);
  Closed closed;
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.by_peer);
  SetUp();
  client_->HangUp();
  ASSERT_TRUE(Next(&closed));
  EXPECT_TRUE(closed.by_peer);
}

TEST_F(SessionTest, HandshakesHaveATimeLimit) {
  EXPECT_FALSE(session_->Overdue(kNow + Session::kHelloTimeoutNs).has_value());
  EXPECT_EQ(session_->Overdue(kNow + Session::kHelloTimeoutNs + 1), "no Hello in time");
  client_->Hello(pool_.device_uuid);
  ASSERT_TRUE(Next<Opened>());
  ASSERT_TRUE(session_->Accept(0, 0).ok());
  EXPECT_EQ(session_->Overdue(kNow + Session::kMappingTimeoutNs + 1), "no Ready in time");
  client_->Ready();
  ASSERT_TRUE(Next<protocol::Ready>());
  EXPECT_FALSE(session_->Overdue(~uint64_t{0}).has_value());
}

TEST_F(SessionTest, AClientThatDoesNotReadRunsOutOfQueue) {
  Handshake();
  const protocol::Notice notice = MakeNotice();
  Status status;
  size_t sent = 0;
  while (status.ok() && sent < 10'000) {
    status = session_->connection().SendFrame(notice);
    ++sent;
  }
  EXPECT_EQ(status.message(), "the client does not read its frames");
  EXPECT_TRUE(session_->connection().wants_write());
  // Everything taken before arrives in order once it reads.
  size_t received = 0;
  while (client_->Receive().has_value()) {
    ++received;
    ASSERT_TRUE(session_->connection().Flush().ok());
  }
  EXPECT_EQ(received, sent - 1);
}

}  // namespace
}  // namespace sluice::session
