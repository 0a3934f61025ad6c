// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/socket_links.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>

#include "common/unique_fd.h"

namespace sluice::mps {
namespace {

using Inode = std::pair<dev_t, ino_t>;
/// No name of NVIDIA's.
constexpr char kNew[] = ".sluice-new";

UniqueFd OpenFolder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Names in a folder but those of folders.
Result<std::map<std::string, Inode>> Entries(int folder, bool only_sockets) {
  // The stream closes what it has; it reads from the beginning.
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> names(copy < 0 ? nullptr : ::fdopendir(copy),
                                                  ::closedir);
  if (names == nullptr) return Status::FromErrno(errno, "read a folder of MPS sockets");
  std::map<std::string, Inode> entries;
  while (const dirent* entry = ::readdir(names.get())) {
    struct stat info = {};
    if (::fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) continue;
    const bool connects = S_ISSOCK(info.st_mode) || S_ISFIFO(info.st_mode);
    if (connects || !only_sockets) entries[entry->d_name] = {info.st_dev, info.st_ino};
  }
  return entries;
}

}  // namespace

Status LinkSockets(const std::string& from, const std::string& to) {
  if (::mkdir(to.c_str(), 0755) == 0) {
    // Whoever runs this may have another umask.
    if (::chmod(to.c_str(), 0755) != 0) return Status::FromErrno(errno, to);
  } else if (errno != EEXIST) {
    return Status::FromErrno(errno, to);
  }
  const UniqueFd target = OpenFolder(to);
  if (!target.valid()) return Status::FromErrno(errno, to);
  std::map<std::string, Inode> wanted;
  const UniqueFd source = OpenFolder(from);
  if (source.valid()) {
    auto entries = Entries(source.get(), true);
    if (!entries.ok()) return entries.status();
    wanted = std::move(*entries);
  } else if (errno != ENOENT) {
    return Status::FromErrno(errno, from);
  }
  const auto there = Entries(target.get(), false);
  if (!there.ok()) return there.status();
  for (const auto& [name, inode] : *there) {
    if (!wanted.contains(name)) ::unlinkat(target.get(), name.c_str(), 0);
  }
  for (const auto& [name, inode] : wanted) {
    const auto old = there->find(name);
    if (old != there->end() && old->second == inode) continue;
    ::unlinkat(target.get(), kNew, 0);
    if (::linkat(source.get(), name.c_str(), target.get(), kNew, 0) != 0 ||
        ::renameat(target.get(), kNew, target.get(), name.c_str()) != 0) {
      return Status::FromErrno(errno, "link " + from + "/" + name + " to " + to);
    }
  }
  return {};
}

}  // namespace sluice::mps
