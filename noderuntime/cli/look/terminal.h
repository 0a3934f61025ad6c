// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>

#include "noderuntime/cli/look/top_screen.h"

namespace sluice::cli {

/// The terminal as ncurses has it: one of them at a time, restored when it ends.
class Terminal {
 public:
  /// Takes the terminal over. kUnavailable: standard output is none.
  static Result<Terminal> Open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  size_t columns() const;
  size_t rows() const;
  void Show(const TopScreen& screen);
  enum class Key { kQuit, kPause, kUp, kDown, kNumber, kHeld, kWaits, kNextGpu, kOther };
  /// Nothing: none was pressed for so long.
  std::optional<Key> Wait(int milliseconds);

 private:
  Terminal() = default;
  bool mine_ = true;
};

}  // namespace sluice::cli
