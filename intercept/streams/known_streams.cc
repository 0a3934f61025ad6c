// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/streams/known_streams.h"

namespace sluice {

constinit thread_local KnownStream t_known_streams[kKnownStreams] = {};

}  // namespace sluice
