// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>

namespace sluice::simgpu::nvrtc {

/// RFC 4648, with padding, one line.
std::string EncodeBase64(std::string_view bytes);

/// The text of simgpu/module/kernel_abi.h for the bytes of a shared object, without the final NUL.
std::string MakeImage(std::string_view shared_object);

}  // namespace sluice::simgpu::nvrtc
