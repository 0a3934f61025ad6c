// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::deviceplugin {

/// Cuts what comes in pieces of any size into lines. Pure.
class Lines {
 public:
  static constexpr size_t kMost = size_t{16} << 20;  // of one

  /// Gets each line, without what ends it, and says whether it wants more.
  using OnLine = std::function<bool(std::string_view)>;
  explicit Lines(OnLine on_line) : on_line_(std::move(on_line)) {}

  /// False: that is the end. `on_line` wants no more, or too_long(). What comes after that is not
  /// looked at.
  bool Take(std::string_view data);
  bool too_long() const { return too_long_; }

 private:
  const OnLine on_line_;
  std::string rest_;  // of the line that has not ended
  bool ended_ = false;
  bool too_long_ = false;
};

}  // namespace sluice::deviceplugin
