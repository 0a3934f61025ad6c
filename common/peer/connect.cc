// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/peer/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace sluice::peer {
namespace {

constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path);
constexpr int64_t kAllIds = 4294967295;  // the last number is nobody's
// Of statx, Linux 5.8.
constexpr uint64_t kMountRoot = 0x2000;
constexpr long kReadOnly = 1;  // NOLINT: of fstatfs

int64_t Open(int at, const char* path, int flags) {
  return syscall(SYS_openat, at, path, flags | O_CLOEXEC, 0);
}

/// A descriptor of this function alone.
class Fd {
 public:
  explicit Fd(int64_t fd) : fd_(static_cast<int>(fd)) {}
  ~Fd() {
    if (fd_ >= 0) syscall(SYS_close, fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// The text of a small file of /proc; "" when there is none.
template <size_t N>
void Read(const char* path, char (&text)[N]) {
  const Fd file(Open(AT_FDCWD, path, O_RDONLY));
  size_t length = 0;
  while (file.valid() && length < N - 1) {
    const int64_t got = syscall(SYS_read, file.get(), text + length, N - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  text[length] = 0;
}

/// The next number behind blanks; false at the end.
bool TakeNumber(const char** at, int64_t* number) {
  while (**at == ' ' || **at == '\n') ++*at;
  if (**at < '0' || **at > '9') return false;
  for (*number = 0; **at >= '0' && **at <= '9'; ++*at) *number = *number * 10 + (**at - '0');
  return true;
}

/// Whether the map of this user namespace leaves users out. True also where nobody says.
bool LeavesIdsOut() {
  char map[4096];  // the kernel's own bound is 340 lines; as many as that are no whole map
  Read("/proc/thread-self/uid_map", map);
  const char* at = map;
  int64_t all = 0;
  int64_t first = 0;
  int64_t there = 0;
  int64_t count = 0;
  while (TakeNumber(&at, &first) && TakeNumber(&at, &there) && TakeNumber(&at, &count)) {
    all += count;
  }
  return all < kAllIds;
}

uint32_t NobodysNumber() {
  char text[32];
  Read("/proc/sys/kernel/overflowuid", text);
  const char* at = text;
  int64_t number = 0;
  return TakeNumber(&at, &number) ? static_cast<uint32_t>(number) : kNobody;
}

/// In its own user namespace: it has the right, or a program that it executes may get it.
bool MayMount() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return true;
  constexpr uint32_t kAdmin = 1u << CAP_SYS_ADMIN;
  if (((sets[0].permitted | sets[0].effective | sets[0].inheritable) & kAdmin) != 0) return true;
  return syscall(SYS_prctl, PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0;
}

void LookAtNamespaces(World* world) {
  const Fd users(Open(AT_FDCWD, "/proc/thread-self/ns/user", O_RDONLY));
  const Fd mounts(Open(AT_FDCWD, "/proc/thread-self/ns/mnt", O_RDONLY));
  if (!users.valid() || !mounts.valid()) return;
  uint32_t maker = 0;
  world->made_outside = syscall(SYS_ioctl, users.get(), NS_GET_OWNER_UID, &maker) == 0 &&
                        world->ids_outside && maker == world->nobody;
  // It is given out to who is in it or above; EPERM: it is above this one.
  const Fd owner(syscall(SYS_ioctl, mounts.get(), NS_GET_USERNS));
  world->own_mounts = owner.valid() || errno != EPERM;
}

World LookAround(int folder) {
  World world;
  world.ids_outside = LeavesIdsOut();
  if (!world.ids_outside) return world;
  world.nobody = NobodysNumber();
  struct statx info = {};
  // Zero in both is also what an older kernel says, and proves nothing.
  world.mount_root = syscall(SYS_statx, folder, "", AT_EMPTY_PATH, 0, &info) == 0 &&
                     (info.stx_attributes & info.stx_attributes_mask & kMountRoot) != 0;
  struct statfs files = {};
  world.mount_read_only =
      syscall(SYS_fstatfs, folder, &files) == 0 && (files.f_flags & kReadOnly) != 0;
  world.may_mount = MayMount();
  LookAtNamespaces(&world);
  return world;
}

/// A folder that is held open: what is in it is found there, whatever its path leads to meanwhile.
struct Held {
  Fd fd;
  int error = 0;
  Folder seen = {};

  explicit Held(const char* path)
      : fd(Open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW)), error(fd.valid() ? 0 : errno) {
    struct stat info = {};
    // A link is none, and the kernel calls it so.
    if (error == ENOTDIR || error == ELOOP) {
      error = 0;
    } else if (error == 0) {
      error = syscall(SYS_fstat, fd.get(), &info) == 0 ? 0 : errno;
      seen = {S_ISDIR(info.st_mode), info.st_mode & 07777, info.st_uid};
    }
  }
};

int ConnectAt(int socket, const sockaddr_un& address) {
  int64_t failed = 0;
  do {
    failed = syscall(SYS_connect, socket, &address, sizeof address);
  } while (failed != 0 && errno == EINTR);
  return failed == 0 ? 0 : errno;
}

/// By the folder's descriptor, through which no other folder can come into its place. Where /proc
/// is not there, by the path, unless the folder alone is what is trusted.
int ConnectIn(int socket, int folder, const char* name, const char* path, bool path_will_do) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  constexpr char kFolders[] = "/proc/thread-self/fd/";
  char digits[12];
  size_t count = 0;
  for (int rest = folder; rest > 0 || count == 0; rest /= 10) {
    digits[count++] = static_cast<char>('0' + rest % 10);
  }
  memcpy(address.sun_path, kFolders, sizeof kFolders - 1);
  size_t length = sizeof kFolders - 1;
  while (count > 0) address.sun_path[length++] = digits[--count];
  address.sun_path[length++] = '/';
  const size_t name_length = strlen(name);
  int error = ENOENT;
  if (length + name_length < kMaxPath) {
    memcpy(address.sun_path + length, name, name_length + 1);
    error = ConnectAt(socket, address);
  }
  if (error != ENOENT || !path_will_do) return error;
  memcpy(address.sun_path, path, strlen(path) + 1);
  return ConnectAt(socket, address);
}

}  // namespace

Outcome Connect(int socket, const char* path, Reach reach) {
  if (strlen(path) >= kMaxPath) return {Verdict::kTrusted, ENAMETOOLONG};
  // "/a/b" lies in "/a", "/b" in "/", "b" in ".".
  char parent[kMaxPath] = ".";
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  if (slash != nullptr) {
    // A path that ends in a slash would be followed if it is a link.
    while (slash > path && slash[-1] == '/') --slash;
    const size_t length = slash == path ? 1 : static_cast<size_t>(slash - path);
    memcpy(parent, path, length);
    parent[length] = 0;
  }
  const Held folder(parent);
  if (folder.error != 0) return {Verdict::kTrusted, folder.error};
  const uint32_t self = geteuid();
  World world;
  const bool looked = NeedsWorld(folder.seen, self);
  if (looked && folder.seen.is_folder) world = LookAround(folder.fd.get());
  const Verdict verdict = JudgeFolder(folder.seen, self, world, reach);
  if (verdict != Verdict::kTrusted) return {verdict, 0};

  const int error =
      ConnectIn(socket, folder.fd.get(), name, path, HasNumber(folder.seen.owner, world));
  if (error != 0) return {Verdict::kTrusted, error};
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return {Verdict::kTrusted, errno};
  }
  if (!looked && NeedsWorld(folder.seen, self, peer.uid)) world = LookAround(folder.fd.get());
  return {JudgePeer(folder.seen, peer.uid, world), 0};
}

Outcome LookAt(const char* folder, Reach reach, Use use) {
  const Held held(folder);
  if (held.error != 0) return {Verdict::kTrusted, held.error};
  const uint32_t self = geteuid();
  World world;
  if (held.seen.is_folder && NeedsWorld(held.seen, self)) world = LookAround(held.fd.get());
  const Verdict verdict = JudgeFolder(held.seen, self, world, reach);
  const bool open = use == Use::kFiles && OthersMayWrite(held.seen);
  return {verdict == Verdict::kTrusted && open ? Verdict::kOpenFolder : verdict, 0};
}

int Look(const char* folder, Folder* seen) {
  const Held held(folder);
  *seen = held.seen;
  return held.error;
}

}  // namespace sluice::peer
