// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

/// Whose daemon a client may speak with (docs/adr/0038): facts in, verdict out. No system call, no
/// allocation and nothing of the C++ run time, so that libsluice.so decides by the same code. All
/// functions may be called by any thread.
namespace sluice::peer {

/// The number that the kernel shows for each user that has none in this user namespace, unless the
/// machine is set up otherwise.
inline constexpr uint32_t kNobody = 65534;

/// The folder in which the daemon's socket lies.
struct Folder {
  bool is_folder = false;  // and no link to one
  uint32_t mode = 0;       // permission bits
  uint32_t owner = 0;
};

/// What user ids are worth here, and who can have made the mount in which the folder is. Looked for
/// only where NeedsWorld says so.
struct World {
  bool ids_outside = false;     // there are users that have no number in this user namespace
  uint32_t nobody = kNobody;    // and all of those are seen under this one
  bool mount_root = false;      // a mount begins at the folder
  bool mount_read_only = true;  // or what is mounted
  bool own_mounts = true;       // the mount namespace belongs to this user namespace
  bool may_mount = true;        // this process may mount in it, or may come to
  bool made_outside = false;    // the user namespace was made by a user that has no number in it
};

/// How far a client that is root may go.
enum class Reach {
  kOwn,      // one's own daemon, or root's
  kAnybody,  // for root also any other user's, which it was told to look at
};

enum class Verdict {
  kTrusted,
  kNoFolder,
  kOthersFolder,
  kOpenFolder,      // others may write to it, where its owner alone is no proof
  kNoMount,         // of an owner without a number, and none but its path says that it is a grant
  kWritableMount,   // the same
  kOwnMount,        // the same: this user can have mounted it
  kOthersListener,  // another user than the folder's owner answers in it
};

/// Others than its owner may make and remove files there.
bool OthersMayWrite(const Folder& folder);

/// A folder to keep a daemon's own files in: nobody but this user may even enter it.
bool IsPrivate(const Folder& folder, uint32_t self);

/// Whether this user has a number here that is no other's.
bool HasNumber(uint32_t id, const World& world);

/// Whether a verdict on this folder takes a look at the world.
bool NeedsWorld(const Folder& folder, uint32_t self);

/// Before a connection is made. `self` is the effective user id of this process.
Verdict JudgeFolder(const Folder& folder, uint32_t self, const World& world, Reach reach);

/// Whether a verdict on the peer takes a look at the world. False: it is the folder's owner.
bool NeedsWorld(const Folder& folder, uint32_t self, uint32_t peer);

/// Before anything is sent over a connection, in a folder that is trusted. `peer` is the effective
/// user id that the listener had when it began to listen.
Verdict JudgePeer(const Folder& folder, uint32_t peer, const World& world);

/// What is wrong, and what is allowed, behind the name of the folder or of the socket: one line,
/// for ever. "" of kTrusted.
const char* Why(Verdict verdict);

}  // namespace sluice::peer
