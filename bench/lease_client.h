// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/bed.h"
#include "common/unique_fd.h"
#include "intercept/protocol/wire.h"

namespace sluice::bench {

/// One session that speaks the protocol but maps nothing: what it measures is the daemon.
class LeaseClient {
 public:
  /// A job of the bed's daemon, which outlives it. `limit_bytes` 0: none is given. nullptr and
  /// `error`: it gets no session.
  static std::unique_ptr<LeaseClient> Start(const Bed& bed, const std::string& name,
                                            uint64_t limit_bytes, std::string* error);

  /// Asks for one unit and waits for the grant.
  bool Ask();
  /// Releases what was granted; nothing used it, so no fence.
  bool GiveBack();
  /// The daemon's own figure: the median of the nanoseconds from reading a lease to having answered
  /// it.
  std::optional<double> OwnNs() const;
  const std::string& error() const { return error_; }

 private:
  explicit LeaseClient(const Bed* bed) : bed_(bed) {}
  bool Connect(const std::string& name, uint64_t limit_bytes);
  bool Handshake();
  template <typename T>
  bool Send(T& frame, protocol::FrameType type, size_t bytes);
  /// The next frame but notices, in `frame_`; descriptors beside it are closed.
  bool Receive();
  bool Fail(const std::string& reason);
  const protocol::Header& header() const {
    return *reinterpret_cast<const protocol::Header*>(frame_);
  }

  const Bed* const bed_;
  std::array<uint8_t, 16> uuid_{};
  Job job_;
  UniqueFd socket_;
  uint32_t seq_ = 0;
  protocol::Extent granted_{};
  alignas(8) char frame_[protocol::kMaxFrameBytes];
  std::string error_;
};

}  // namespace sluice::bench
