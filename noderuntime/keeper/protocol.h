// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>

/// What sluice-noded and its fd keeper say to each other, on a SOCK_SEQPACKET socket in the
/// daemon's folder: one request, one reply, native byte order. The keeper holds descriptors under
/// keys and understands nothing else; it answers at once and waits for nobody.
namespace sluice::keeper {

inline constexpr uint32_t kMagic = 0x314b4c53;  // "SLK1"
inline constexpr uint16_t kVersion = 1;         // differs: the request is refused
inline constexpr size_t kMaxFds = 128;          // in one frame
inline constexpr size_t kMaxEntries = 256;      // in one frame
/// Of all descriptors kept: the handles of the largest pool and some for each of its jobs.
inline constexpr size_t kMaxItems = (1u << 16) + (1u << 13);

enum class Op : uint16_t {
  kStore =
      1,  // `count` descriptors beside it, under index, index + 1, ...; a key in use is replaced
  kDrop = 2,  // every descriptor of (kind, id); none is no error
  kList = 3,  // reply: the keys from the `index`-th on, in no order, at most kMaxEntries
  kTake = 4,  // reply: copies of `count` descriptors from `index` on, which must all be there
  kBye = 5,   // nothing is to be kept any more: the keeper ends
};

/// What a descriptor is. The keeper looks only at the last two: while one of them shows a living
/// process it stays.
enum class Kind : uint32_t {
  kState = 1,       // notebook with the daemon's state
  kPoolHandle = 2,  // index: its place in the pool
  kListener = 3,    // from here on `id` is a job: its listening socket
  kLauncher = 4,    // the connection of its launcher
  kMarkPage = 5,
  kClientPage = 6,
  kDaemonPage = 7,
  kLiveness = 16,  // read end: hangs up when all processes of the session are gone
  kPidfd = 17,     // readable when the session's process has ended
};

struct Key {
  Kind kind;
  uint32_t id;
  uint32_t index;
  friend bool operator==(const Key&, const Key&) = default;
};

struct Request {
  uint32_t magic;
  uint16_t version;
  Op op;
  Key key;
  uint32_t count;
};

enum class Outcome : uint32_t {
  kDone = 0,
  kBadRequest = 1,
  kFull = 2,
  kNotFound = 3,
};

struct Reply {
  uint32_t magic;
  uint16_t version;
  Op op;
  Outcome outcome;
  uint32_t count;          // of entries or descriptors
  Key entry[kMaxEntries];  // only the first `count` of a List's are sent
};

static_assert(sizeof(Key) == 12 && sizeof(Request) == 24);
static_assert(offsetof(Reply, entry) == 16);

}  // namespace sluice::keeper
