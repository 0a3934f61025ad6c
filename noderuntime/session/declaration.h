// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "intercept/protocol/wire.h"

namespace sluice::session {

/// A whole declaration (protocol::Resume) of a client whose daemon died.
struct Declaration {
  uint32_t session = 0;
  uint64_t epoch = 0;
  uint32_t rejected = 0;
  /// By protocol::Family; contexts beside the session's are counted.
  std::array<uint64_t, protocol::kMaxOutsideFamilies> outside_bytes = {};
  std::vector<protocol::Extent> held;
  std::vector<protocol::Extent> released;
  std::vector<protocol::FenceTerm> fence;
};

}  // namespace sluice::session
