// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/keeper/table.h"

#include <poll.h>
#include <unistd.h>

namespace sluice::keeper {
namespace {

/// Both kinds are "ready" once nobody is left: a pipe hangs up, a pidfd becomes readable. Whatever
/// cannot be asked counts as living.
bool Lives(Kind kind, int fd) {
  pollfd watched = {fd, static_cast<short>(kind == Kind::kPidfd ? POLLIN : 0),
                    0};  // NOLINT: pollfd
  return ::poll(&watched, 1, 0) <= 0 || (watched.revents & (POLLIN | POLLHUP)) == 0;
}

}  // namespace

bool Table::Store(const Key& first, const int* fds, size_t count) {
  // One walk, however many: a pool has thousands of handles.
  if (count > kMaxFds) {
    for (size_t i = 0; i < count; ++i) ::close(fds[i]);
    return false;
  }
  std::array<int, kMaxFds> place;
  place.fill(-1);
  size_t known = 0;
  for (size_t at = 0; at < used_; ++at) {
    const Key& key = items_[at].key;
    const size_t i = key.index - first.index;
    if (key.kind != first.kind || key.id != first.id || key.index < first.index || i >= count) {
      continue;
    }
    place[i] = static_cast<int>(at);
    ++known;
  }
  if (count - known > items_.size() - used_) {
    for (size_t i = 0; i < count; ++i) ::close(fds[i]);
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    size_t at = used_;
    if (place[i] >= 0) {
      at = static_cast<size_t>(place[i]);
      ::close(items_[at].fd);
    } else {
      ++used_;
    }
    items_[at] = {{first.kind, first.id, first.index + static_cast<uint32_t>(i)}, fds[i]};
  }
  return true;
}

void Table::Drop(Kind kind, uint32_t id) {
  for (size_t at = 0; at < used_;) {
    if (items_[at].key.kind != kind || items_[at].key.id != id) {
      ++at;
      continue;
    }
    ::close(items_[at].fd);
    items_[at] = items_[--used_];
  }
}

void Table::Clear() {
  for (size_t at = 0; at < used_; ++at) ::close(items_[at].fd);
  used_ = 0;
}

int Table::Find(const Key& key) const {
  for (size_t at = 0; at < used_; ++at) {
    if (items_[at].key == key) return items_[at].fd;
  }
  return -1;
}

bool Table::SomebodyLives() const {
  for (size_t at = 0; at < used_; ++at) {
    const Kind kind = items_[at].key.kind;
    if ((kind == Kind::kLiveness || kind == Kind::kPidfd) && Lives(kind, items_[at].fd))
      return true;
  }
  return false;
}

}  // namespace sluice::keeper
