// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// GPUs of one machine: the first one in DIR itself, the others in DIR/1, DIR/2 ..., laid out
/// alike.
inline constexpr uint32_t kMaxGpus = 8;

/// Where GPU `index` of the machine in `dir` is.
std::string GpuFolder(const std::string& dir, uint32_t index);

/// How many there are; 0 if there is no machine.
uint32_t CountGpus(const std::string& dir);

/// All of them, by index.
Result<std::vector<std::unique_ptr<GpuState>>> OpenGpus(const std::string& dir);

/// The PCI bus of a GPU, by its index: one each.
inline uint32_t PciBus(uint32_t index) { return index + 1; }

/// Which of the GPUs with these UUIDs ("GPU-...") a program sees, in its order, when
/// CUDA_VISIBLE_DEVICES is `text` (null: not set). As the driver reads it: numbers or UUIDs, also
/// shortened ones, up to the first that is none; who is named twice makes the list empty. Pure.
std::vector<uint32_t> VisibleGpus(const char* text, const std::vector<std::string>& uuids);

}  // namespace sluice::simgpu
