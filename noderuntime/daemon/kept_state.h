// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/byte_codec.h"
#include "common/status.h"

namespace sluice::noded {

/// A job as it was registered, and its session.
struct KeptJob {
  uint32_t id = 0;
  std::string name;
  uint64_t limit_bytes = 0;
  uint64_t request_bytes = 0;
  uint32_t limit_units = 0;
  uint32_t request_units = 0;
  pid_t pid = 0;         // of the latest session
  uint32_t session = 0;  // its number; 0: there was none
  uint16_t minor = 0;    // of its library's protocol
  std::string grant;     // of a container; empty: none
  std::string pod;       // that the grant is; empty: not known yet
};

/// What a daemon has to know to take over from one that died, beside the descriptors and what the
/// clients say: a plain value. Bytes of another version are an error, never half a state.
struct KeptState {
  static constexpr uint32_t kVersion = 8;

  uint64_t unit_bytes = 0;
  uint64_t handle_bytes = 0;
  uint32_t handles = 0;
  uint32_t gpu = 0;
  std::array<uint8_t, 16> device_uuid = {};
  pid_t daemon_pid = 0;
  bool own_context = false;  // that daemon had one, and its last work may touch the pool
  uint32_t next_job = 1;
  std::string policy;  // that a running daemon was told to go by; empty: that of its command line
  uint32_t lanes = 0;
  bool draining = false;
  std::vector<KeptJob> jobs;
  std::vector<std::byte> flow;  // Flow::Save
};

/// Everything but the flow, which follows with PutBytes: it changes with every grant, the rest
/// hardly ever.
void WriteRegistry(const KeptState& state, ByteWriter* out);
Result<KeptState> ReadKeptState(std::span<const std::byte> bytes);

}  // namespace sluice::noded
