// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice {

/// The first driver whose MPS has named servers and namespaces ("MPS v3": NVIDIA's manual for
/// release 615, mpsv3-interface).
inline constexpr uint32_t kDriverWithMpsV3 = 615;

/// What an administrator says of it (--mps-version).
enum class MpsChoice : uint8_t {
  kAuto,    // v3 where the driver has it
  kLegacy,  // the form that every driver has
  kV3,      // v3; a node that cannot is an error
};

/// kInvalidArgument: names --mps-version and what is allowed.
Result<MpsChoice> ParseMpsChoice(std::string_view text);

/// Whether a node's control daemons are of v3. sluice-node and sluice-device-plugin ask alike, and
/// so they agree. `driver` as NVML has it, empty if that does not say; `dir`: --mps-dir.
/// kInvalidArgument: it has to be v3, and this node cannot; the text says what is allowed.
Result<bool> MpsV3Wanted(MpsChoice choice, std::string_view driver, const std::string& dir);

}  // namespace sluice
