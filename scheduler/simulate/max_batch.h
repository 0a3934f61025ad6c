// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

/// Searches for batches, in samples.
namespace sluice::scheduler::simulate {

using BatchTest = std::function<bool(uint64_t samples)>;

/// The largest from 1 to `most` that holds; nullopt: not even 1. `holds` is true up to some number
/// and false beyond. Asks about log2(most) times.
std::optional<uint64_t> LargestBatch(uint64_t most, const BatchTest& holds);

/// From `most` down in 48 equal steps, the first that holds: for tests that may be true below a
/// batch and false above, as with throughput. Where less memory is in use there may be less of it,
/// because jobs that never wait never fall into a phase in which they suit each other.
std::optional<uint64_t> LargestBatchFromAbove(uint64_t most, const BatchTest& holds);

/// Each job at the same part of its largest batch alone: that of the first one is `first`. At least
/// 1 each.
std::vector<uint64_t> BatchesAt(const std::vector<uint64_t>& alone, uint64_t first);

}  // namespace sluice::scheduler::simulate
