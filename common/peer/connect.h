// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/peer/rule.h"

/// The only way to a daemon's socket: looks, connects, looks again. As the rule it needs nothing of
/// the C++ run time; no function is a cancellation point. errno is left anyhow.
namespace sluice::peer {

struct Outcome {
  Verdict verdict = Verdict::kTrusted;  // when it is another one, that is the reason
  int error = 0;                        // an errno; of a call that failed with kTrusted

  bool ok() const { return verdict == Verdict::kTrusted && error == 0; }
};

/// Connects `socket`, which the caller made and closes, to the one at `path`. Where the folder of
/// `path` or the listener is not one to speak with, it is refused: in the second case the socket is
/// connected, and nothing has been sent. EINTR is tried again. ENAMETOOLONG: more than 107 bytes.
Outcome Connect(int socket, const char* path, Reach reach);

/// What is looked for in a folder. Of a file nothing tells who wrote it, so others than the
/// folder's owner must not be able to.
enum class Use { kSockets, kFiles };

/// Looks at a folder as Connect does at a socket's.
Outcome LookAt(const char* folder, Reach reach, Use use);

/// What a folder is, without an opinion of it. An errno, 0: none.
int Look(const char* folder, Folder* seen);

}  // namespace sluice::peer
