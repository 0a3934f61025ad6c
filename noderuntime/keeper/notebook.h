// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::keeper {

/// Bytes that outlive their writer, in shared memory of its own: two pages by turns, so that a
/// writer that is killed in the middle leaves the previous contents. Writing is a copy and no
/// system call. One writer at a time; it is read when that one is dead.
class Notebook {
 public:
  static constexpr size_t kMaxBytes = size_t{8} << 20;

  static Result<Notebook> Create();
  /// Of a writer that is dead; writing goes on behind it.
  static Result<Notebook> Open(UniqueFd file);
  Notebook(Notebook&& other) noexcept;
  Notebook& operator=(Notebook&&) = delete;
  ~Notebook();

  int fd() const { return file_.get(); }

  /// False: too large; what was there stays.
  bool Write(std::span<const std::byte> bytes);
  /// The latest whole contents; nullopt: there are none.
  std::optional<std::vector<std::byte>> Read() const;

 private:
  struct Page;
  struct Header;
  Notebook(UniqueFd file, std::byte* memory) : file_(std::move(file)), memory_(memory) {}
  Header* header() const;
  std::byte* contents(size_t page) const;
  bool Valid(size_t page) const;

  UniqueFd file_;
  std::byte* memory_;
};

}  // namespace sluice::keeper
