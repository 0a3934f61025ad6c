// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/lease_client.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/peer/connect.h"
#include "intercept/protocol/pages.h"

namespace sluice::bench {

std::unique_ptr<LeaseClient> LeaseClient::Start(const Bed& bed, const std::string& name,
                                                uint64_t limit_bytes, std::string* error) {
  std::unique_ptr<LeaseClient> client(new LeaseClient(&bed));
  if (!client->Connect(name, limit_bytes)) {
    *error = client->error();
    return nullptr;
  }
  return client;
}

std::optional<double> LeaseClient::OwnNs() const {
  const Result<nlohmann::json> status = bed_->FetchStatus();
  // The mean would contain what else the machine ran in between.
  const nlohmann::json::json_pointer median("/daemon/lease_service_ns_p50");
  if (!status.ok() || !status->contains(median)) return std::nullopt;
  return (*status)[median].get<double>();
}

bool LeaseClient::Connect(const std::string& name, uint64_t limit_bytes) {
  const Result<std::array<uint8_t, 16>> uuid = bed_->GpuUuid();
  if (!uuid.ok()) return Fail(uuid.status().message());
  uuid_ = *uuid;
  Result<Job> job = bed_->Register(name, limit_bytes);
  if (!job.ok()) return Fail(job.status().message());
  job_ = std::move(*job);
  return Handshake();
}

bool LeaseClient::Handshake() {
  socket_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const peer::Outcome outcome =
      peer::Connect(socket_.get(), job_.socket.c_str(), peer::Reach::kAnybody);
  if (!outcome.ok()) {
    return Fail(std::string("connect: ") +
                (outcome.error != 0 ? ::strerror(outcome.error) : peer::Why(outcome.verdict)));
  }
  protocol::Hello hello{};
  hello.major = protocol::kMajor;
  hello.minor = protocol::kMinor;
  hello.client_page_bytes = sizeof(protocol::ClientPage);
  hello.daemon_page_bytes = sizeof(protocol::DaemonPage);
  std::copy(uuid_.begin(), uuid_.end(), hello.device_uuid);
  hello.mark_page_bytes = sizeof(protocol::MarkPage);
  if (!Send(hello, protocol::FrameType::kHello, sizeof(hello))) return false;
  // Welcome, then the handles, of which this client wants none.
  for (;;) {
    if (!Receive()) return false;
    const auto type = static_cast<protocol::FrameType>(header().type);
    if (type == protocol::FrameType::kHandles && (header().flags & protocol::kLastFrame)) break;
    if (type != protocol::FrameType::kWelcome && type != protocol::FrameType::kHandles) {
      return Fail("the daemon refused the session");
    }
  }
  protocol::Ready ready{};
  return Send(ready, protocol::FrameType::kReady, sizeof(ready));
}

bool LeaseClient::Ask() {
  protocol::Lease lease{};
  lease.units = 1;
  lease.contiguous = 1;
  lease.header.seq = ++seq_;
  if (!Send(lease, protocol::FrameType::kLease, sizeof(lease)) || !Receive()) return false;
  if (static_cast<protocol::FrameType>(header().type) != protocol::FrameType::kGrant) {
    return Fail("the daemon did not grant the lease");
  }
  const auto& grant = *reinterpret_cast<const protocol::Grant*>(frame_);
  if (grant.extents != 1) return Fail("the grant has not one extent");
  granted_ = grant.extent[0];
  return true;
}

bool LeaseClient::GiveBack() {
  protocol::Release release{};
  release.extents = 1;
  release.extent[0] = granted_;
  return Send(release, protocol::FrameType::kRelease,
              offsetof(protocol::Release, extent) + sizeof(protocol::Extent));
}

template <typename T>
bool LeaseClient::Send(T& frame, protocol::FrameType type, size_t bytes) {
  frame.header.magic = protocol::kMagic;
  frame.header.type = static_cast<uint16_t>(type);
  frame.header.bytes = static_cast<uint32_t>(bytes);
  if (::send(socket_.get(), &frame, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes)) {
    return true;
  }
  return Fail(std::string("send: ") + ::strerror(errno));
}

bool LeaseClient::Receive() {
  for (;;) {
    // No room for control data: the kernel closes the descriptors that came along.
    const ssize_t bytes = ::recv(socket_.get(), frame_, sizeof(frame_), 0);
    if (bytes < static_cast<ssize_t>(sizeof(protocol::Header))) {
      return Fail("the daemon closed the session");
    }
    if (static_cast<protocol::FrameType>(header().type) == protocol::FrameType::kClose) {
      return Fail(std::string("the daemon closed the session: ") +
                  reinterpret_cast<const protocol::Close*>(frame_)->text);
    }
    if (static_cast<protocol::FrameType>(header().type) != protocol::FrameType::kNotice)
      return true;
  }
}

bool LeaseClient::Fail(const std::string& reason) {
  if (error_.empty()) error_ = reason;
  return false;
}

}  // namespace sluice::bench
