// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>

namespace sluice::simgpu {

/// Sends one packet with at most one descriptor (fd -1: none). False when the peer is gone.
bool SendPacket(int socket, const void* data, size_t bytes, int fd = -1);

/// Receives one packet of exactly `bytes`; `*fd` becomes the descriptor that came along or -1.
bool ReceivePacket(int socket, void* data, size_t bytes, int* fd);

}  // namespace sluice::simgpu
