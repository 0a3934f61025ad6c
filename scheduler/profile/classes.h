// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler {

/// What a block of a training iteration is for, by who makes it and who uses it (Zico 6.2): a
/// feature map comes from the forward pass and is used in the backward pass, a gradient comes from
/// the backward pass and is used there or by the optimizer after the operator that made it,
/// anything else is a temporary. Zico takes the peak as the beginning of the backward pass; a trace
/// says what belongs to which.
enum class BlockClass : uint8_t { kPersistent, kInput, kFeatureMap, kGradient, kTemporary };
inline constexpr size_t kBlockClasses = 5;

/// "persistent", "feature map", ...
std::string_view BlockClassName(BlockClass kind);

/// The class of each block. `trace` must be valid (trace.h); without operators every transient
/// block is a temporary.
std::vector<BlockClass> Classify(const trace::Trace& trace);

/// Bytes that live from one launch to the next (the most of them), by class.
struct CurvePoint {
  double ns = 0;  // GPU time from the trough to the launch, when nothing runs beside it
  std::array<uint64_t, kBlockClasses> bytes{};
  uint64_t total() const;
};

/// One point per operator, in order. `launch_ns`: the GPU time of each.
std::vector<CurvePoint> DemandCurve(const trace::Trace& trace, const trace::BatchTrace& at,
                                    std::span<const double> launch_ns);

}  // namespace sluice::scheduler
