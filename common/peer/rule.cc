// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/peer/rule.h"

namespace sluice::peer {
namespace {

constexpr uint32_t kRoot = 0;

/// Whether the mount says that the folder is a grant. Read-only: the socket was made where the same
/// files are mounted a second time, and only who may mount anything can mount them twice.
Verdict JudgeMount(const Folder& folder, const World& world) {
  if (OthersMayWrite(folder)) return Verdict::kOpenFolder;
  if (!world.mount_root) return Verdict::kNoMount;
  if (!world.mount_read_only) return Verdict::kWritableMount;
  const bool by_this_user = world.own_mounts && (world.may_mount || !world.made_outside);
  return by_this_user ? Verdict::kOwnMount : Verdict::kTrusted;
}

}  // namespace

bool OthersMayWrite(const Folder& folder) { return (folder.mode & 0022) != 0; }

bool IsPrivate(const Folder& folder, uint32_t self) {
  return folder.is_folder && folder.owner == self && (folder.mode & 0077) == 0;
}

// Nobody's may be that of any user outside, even if a user here has this number, too.
bool HasNumber(uint32_t id, const World& world) { return !world.ids_outside || id != world.nobody; }

bool NeedsWorld(const Folder& folder, uint32_t self) {
  return folder.owner == kNobody || (folder.owner != self && folder.owner != kRoot);
}

Verdict JudgeFolder(const Folder& folder, uint32_t self, const World& world, Reach reach) {
  if (!folder.is_folder) return Verdict::kNoFolder;
  if (!HasNumber(folder.owner, world)) return JudgeMount(folder, world);
  if (folder.owner == self || folder.owner == kRoot) return Verdict::kTrusted;
  return reach == Reach::kAnybody && self == kRoot ? Verdict::kTrusted : Verdict::kOthersFolder;
}

bool NeedsWorld(const Folder& folder, uint32_t self, uint32_t peer) {
  return peer != folder.owner || NeedsWorld(folder, self);
}

Verdict JudgePeer(const Folder& folder, uint32_t peer, const World& world) {
  // A grant may be mounted so that its owner has a number here; the daemon has none all the same.
  const bool trusted = HasNumber(peer, world) ? peer == folder.owner
                                              : JudgeMount(folder, world) == Verdict::kTrusted;
  return trusted ? Verdict::kTrusted : Verdict::kOthersListener;
}

const char* Why(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTrusted:
      return "";
    case Verdict::kNoFolder:
      return "the socket's folder is a link or no folder; allowed: a folder";
    case Verdict::kOthersFolder:
      return "the socket's folder belongs to another user; allowed: one of this user's or of "
             "root's";
    case Verdict::kOpenFolder:
      return "others than its owner may write to the socket's folder; allowed: one to which only "
             "its owner may";
    case Verdict::kNoMount:
      return "the socket's folder belongs to a user outside of this user namespace; allowed: one "
             "of "
             "this user's, or a grant that is mounted there";
    case Verdict::kWritableMount:
      return "the socket's folder belongs to a user outside of this user namespace, and is not "
             "mounted read-only; allowed: a grant's, which is";
    case Verdict::kOwnMount:
      return "the socket's folder belongs to a user outside of this user namespace, and this user "
             "can have mounted it (CAP_SYS_ADMIN, or a user namespace of its own); allowed: a "
             "grant in a container that may not mount anything";
    case Verdict::kOthersListener:
      return "another user than the owner of the socket's folder listens there; allowed: a daemon "
             "of that owner";
  }
  return "";
}

}  // namespace sluice::peer
