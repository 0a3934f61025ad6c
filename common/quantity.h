// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string_view>

#include "common/status.h"

namespace sluice {

/// An amount of memory in bytes as Kubernetes writes quantities: a number, which may have a
/// fraction, and Ki, Mi, Gi, Ti, Pi or Ei, or k, M, G, T, P or E, or a decimal exponent (`16Gi`,
/// `1.5G`, `12e6`). Syntax after k8s.io/apimachinery's `resource.Quantity`; what is no whole number
/// of bytes is an error here, where that rounds. kInvalidArgument: the text names `field`, the
/// value and what is allowed.
Result<uint64_t> ParseQuantity(std::string_view text, std::string_view field);

}  // namespace sluice
