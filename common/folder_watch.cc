// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/folder_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sluice {

Result<FolderWatch> FolderWatch::Open(const std::string& folder) {
  UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify.valid()) return Status::FromErrno(errno, "inotify");
  FolderWatch watch(std::move(inotify));
  if (Status s = watch.Add(folder); !s.ok()) return s;
  return watch;
}

Status FolderWatch::Add(const std::string& folder) {
  constexpr uint32_t kWhat = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF |
                             IN_MOVE_SELF | IN_ONLYDIR;
  return ::inotify_add_watch(inotify_.get(), folder.c_str(), kWhat) < 0
             ? Status::FromErrno(errno, folder)
             : Status();
}

FolderWatch::Events FolderWatch::Read() {
  Events events;
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  for (ssize_t size = 0; (size = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      at += static_cast<ssize_t>(sizeof event + event.len);
      events.missed = events.missed || (event.mask & IN_Q_OVERFLOW) != 0;
      events.folder_gone =
          events.folder_gone || (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0;
      if (event.len == 0) continue;
      events.list.push_back({name, (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0});
    }
  }
  return events;
}

}  // namespace sluice
