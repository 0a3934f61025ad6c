// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Everything else that the project reads and did not write a moment before: single frames, what a
// dead daemon left, what a client declares to the next one, requests to the keeper, event logs. The
// first byte says which. The frames of whole sessions are frames_fuzz.cc's.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "common/log/log.h"
#include "noderuntime/daemon/kept_state.h"
#include "noderuntime/eventlog/record_json.h"
#include "noderuntime/flow/flow.h"
#include "noderuntime/keeper/server.h"
#include "noderuntime/session/frames.h"
#include "noderuntime/session/socket.h"
#include "scheduler/audit/audit.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/frames.h"

namespace sluice::fuzz {
namespace {

constexpr flow::JobId kHonest = 1;
constexpr flow::JobId kHostile = 2;

void Require(bool holds, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "violation: %s\n", text.c_str());
  std::abort();
}

class SilentSink : public flow::FlowSink {
 public:
  void Grant(flow::JobId, const flow::GrantAnswer&) override {}
  void Charged(flow::JobId, uint32_t, uint64_t) override {}
  void Deny(flow::JobId, uint32_t, protocol::DenyCode, const std::string&) override {}
  void Notice(flow::JobId, uint32_t, const flow::Line&) override {}
  void Log(const scheduler::Record& record) override { records.push_back(record); }
  void HolderChanged(const flow::Extents&, flow::JobId) override {}
  std::vector<scheduler::Record> records;
};

struct Pages {
  std::unique_ptr<protocol::MarkPage> mark = std::make_unique<protocol::MarkPage>();
  std::unique_ptr<protocol::ClientPage> client = std::make_unique<protocol::ClientPage>();
  std::unique_ptr<protocol::DaemonPage> daemon = std::make_unique<protocol::DaemonPage>();
  flow::JobPages shared() const { return {mark.get(), client.get(), daemon.get()}; }
};

flow::FlowOptions Options() {
  flow::FlowOptions options;
  options.pool_units = 32;
  options.unit_bytes = 4096;
  options.outside_bytes = 32 * 4096;
  options.context_bytes = 4096;
  options.patience.silent_ns = 5'000'000'000;
  return options;
}

/// What a daemon knew when it died: a job that holds some units, and another with an open fence.
std::vector<std::byte> KnownState(const std::map<flow::JobId, Pages>& pages) {
  SilentSink sink;
  flow::Flow flow(Options(), &sink);
  uint64_t now = 1'000'000'000'000;
  const auto lease = [&](flow::JobId job, uint32_t units) {
    protocol::Lease frame = {};
    frame.units = units;
    frame.contiguous = 1;
    (void)flow.OnLease(job, frame, now).ok();
  };
  flow.Start({kHonest, "honest", 8, 4}, pages.at(kHonest).shared(), now);
  lease(kHonest, 4);
  flow.Start({kHostile, "hostile", 0, 0}, pages.at(kHostile).shared(), now);
  for (int i = 0; i < 2; ++i) flow.Tick(now += 6'000'000'000);
  lease(kHostile, 6);
  protocol::Charge charge = {};
  charge.family = 1;
  charge.bytes = 8192;
  (void)flow.OnCharge(kHostile, charge, now).ok();
  const flow::Extents held = flow.ledger().map().Held(kHostile);
  Require(scheduler::TotalUnits(held) == 6, "the state to begin with is another");
  (void)flow.OnRelease(kHostile, {{{3, 0, 1}}, {{held[0].offset, 2}}}, now).ok();
  ByteWriter out;
  flow.Save(&out);
  return {out.bytes().begin(), out.bytes().end()};
}

struct Restored {
  std::map<flow::JobId, Pages> pages;
  SilentSink sink;
  std::unique_ptr<flow::Flow> flow;
};

void RestoreFrom(std::span<const std::byte> bytes, Restored* out) {
  std::map<flow::JobId, flow::JobPages> shared;
  for (const auto& [id, pages] : out->pages) shared[id] = pages.shared();
  ByteReader in(bytes);
  auto flow = flow::Flow::Restore(Options(), &out->sink, &in, shared, 2'000'000'000'000);
  if (flow.ok()) out->flow = std::move(*flow);
}

std::vector<protocol::Extent> SomeExtents(ByteSource* source) {
  std::vector<protocol::Extent> extents(source->Below(4));
  for (protocol::Extent& extent : extents) {
    extent = {source->Amount(), std::max(1u, source->Amount())};
    if (extent.offset > UINT32_MAX - extent.length) extent.length = 1;
  }
  return extents;
}

void Parse(ByteSource* source) {
  const auto bytes = source->rest();
  (void)session::ParseFrame(std::as_bytes(bytes)).ok();
}

void ReadWholeState(ByteSource* source) {
  const Result<noded::KeptState> state = noded::ReadKeptState(std::as_bytes(source->rest()));
  if (!state.ok()) return;
  Restored restored;
  for (const noded::KeptJob& job : state->jobs) {
    if (restored.pages.size() < 4) restored.pages[job.id];
  }
  RestoreFrom(state->flow, &restored);
}

/// A state of which some bytes are others. It may be refused; if it is not, it is a sound one.
void ReadBrokenState(ByteSource* source) {
  Restored restored;
  restored.pages[kHonest];
  restored.pages[kHostile];
  std::vector<std::byte> bytes = KnownState(restored.pages);
  for (int i = 0; i < 4 && !source->empty(); ++i) {
    bytes[source->Take<uint16_t>() % bytes.size()] = static_cast<std::byte>(source->Byte());
  }
  RestoreFrom(bytes, &restored);
  if (restored.flow == nullptr) return;
  const Status sound = restored.flow->ledger().CheckInvariants();
  Require(sound.ok(), sound.message());
}

/// Whatever a client says that it holds, it gets no unit and its neighbour loses none.
void Declare(ByteSource* source) {
  Restored restored;
  restored.pages[kHonest];
  restored.pages[kHostile];
  RestoreFrom(KnownState(restored.pages), &restored);
  Require(restored.flow != nullptr, "a sound state is refused");
  flow::Flow& flow = *restored.flow;
  const flow::Extents honest = flow.ledger().map().Held(kHonest);
  const flow::Extents hostile = flow.ledger().map().Held(kHostile);
  session::Declaration declared;
  declared.session = 1;
  declared.epoch = source->Take<uint64_t>();
  declared.rejected = source->Byte();
  // Mostly what is true, so that the rest of it is looked at.
  if (source->Below(4) != 0) {
    for (const auto& extent : flow.ledger().map().Held(kHostile, scheduler::UnitState::kLeased)) {
      declared.held.push_back({extent.offset, extent.length});
    }
  } else {
    declared.held = SomeExtents(source);
  }
  declared.released = SomeExtents(source);
  declared.fence.resize(source->Below(5));
  for (protocol::FenceTerm& term : declared.fence) {
    term = {source->Byte(), 0, source->Take<uint64_t>()};
  }
  for (int i = source->Byte() % 4; i > 0; --i) {
    declared.outside_bytes[source->Below(protocol::kMaxOutsideFamilies)] =
        uint64_t{source->Amount()} << source->Below(40);
  }
  const bool taken = flow.Resume(kHostile, declared, 2'000'000'001'000).ok();
  if (!taken) flow.Die(kHostile, 2'000'000'001'000);
  for (auto& mark : restored.pages[kHostile].mark->mark) mark.store(source->Take<uint64_t>());
  flow.Thaw(2'000'000'002'000);
  for (int i = 1; i < 4; ++i) flow.Tick(2'000'000'002'000 + uint64_t(i) * 6'000'000'000);
  const Status sound = flow.ledger().CheckInvariants();
  Require(sound.ok(), sound.message());
  Require(flow.ledger().map().Held(kHonest) == honest, "the neighbour's units are others");
  Require(scheduler::Subtract(flow.ledger().map().Held(kHostile), hostile).empty(),
          "the declaration brought units");
  const scheduler::AuditReport report = scheduler::Audit(restored.sink.records);
  Require(report.ok(), report.violations.empty() ? "over the budget or a limit"
                                                 : report.violations.front().text);
}

void AskKeeper(ByteSource* source) {
  static const std::string path = ScratchFolder() + ".keeper";
  std::filesystem::remove(path);
  Result<UniqueFd> listener = session::ListenAt(path);
  Require(listener.ok(), "the keeper's socket");
  const auto server = std::make_unique<keeper::Server>(std::move(*listener), 1000);
  const UniqueFd daemon(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Require(::connect(daemon.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
          "the keeper takes no connection");
  server->RunOnce(0, 0);
  for (int i = 0; i < 24 && !source->empty(); ++i) {
    keeper::Request request = {keeper::kMagic, keeper::kVersion, {}, {}, 0};
    request.op = static_cast<keeper::Op>(source->Below(7));
    request.key = {static_cast<keeper::Kind>(source->Below(20)), source->Below(4),
                   source->Amount()};
    request.count = source->Amount();
    const uint32_t fds = source->Below(4) == 0 ? source->Below(5) : std::min(request.count, 4u);
    if (source->Below(16) == 0) request.magic ^= 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    iovec data = {&request, sizeof request - (source->Below(16) == 0 ? 4 : 0)};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (fds > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(fds * sizeof(int));
      for (uint32_t fd = 0; fd < fds; ++fd) {
        const int number = daemon.get();
        std::memcpy(CMSG_DATA(part) + fd * sizeof number, &number, sizeof number);
      }
    }
    (void)::sendmsg(daemon.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    server->RunOnce(i, 0);
    Require(server->table().size() <= keeper::kMaxItems, "the keeper's table is too full");
  }
  std::filesystem::remove(path);
}

void ReadLog(ByteSource* source) {
  const auto bytes = source->rest();
  std::istringstream text(std::string(bytes.begin(), bytes.end()));
  const auto records = eventlog::ReadLog(text);
  if (!records.ok()) return;
  for (const scheduler::Record& record : *records) {
    // The audit keeps a cell for each unit; a log that speaks of 2^32 is refused by nobody but
    // time.
    if (record.units > 4096) return;
  }
  (void)scheduler::Audit(*records).ok();
}

}  // namespace
}  // namespace sluice::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::fuzz;  // NOLINT
  sluice::logging::Silence();
  ByteSource source({data, size});
  void (*const kTargets[])(ByteSource*) = {Parse,   ReadWholeState, ReadBrokenState,
                                           Declare, AskKeeper,      ReadLog};
  kTargets[source.Below(std::size(kTargets))](&source);
  return 0;
}
