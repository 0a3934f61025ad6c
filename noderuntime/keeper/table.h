// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "noderuntime/keeper/protocol.h"

namespace sluice::keeper {

/// Descriptors by key, in a table of fixed size: nothing is allocated. What is dropped is closed.
class Table {
 public:
  Table() = default;
  ~Table() { Clear(); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  size_t size() const { return used_; }

  /// Takes the descriptors over, at most kMaxFds. False (and they are closed): there is no room for
  /// all.
  bool Store(const Key& first, const int* fds, size_t count);
  void Drop(Kind kind, uint32_t id);
  void Clear();
  /// -1: there is none.
  int Find(const Key& key) const;
  const Key& key(size_t at) const { return items_[at].key; }

  /// Whether some session's process, or a child that it forked, lives.
  bool SomebodyLives() const;

 private:
  struct Item {
    Key key;
    int fd;
  };

  size_t used_ = 0;
  std::array<Item, kMaxItems> items_;
};

}  // namespace sluice::keeper
