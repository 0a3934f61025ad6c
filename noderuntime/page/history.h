// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "noderuntime/page/live_view.h"

namespace sluice::page {

/// What a viewer of the page sees next, from what the daemon said: the latest view and the frames
/// of the last two minutes. A viewer has no queue: whoever is slow gets the same frames in fewer
/// messages. Pure, not for several threads.
class History {
 public:
  static constexpr uint64_t kKeptMs = 125'000;    // a little more than the longest window
  static constexpr size_t kKeptBytes = 8u << 20;  // whatever the frames hold

  /// How far a viewer is.
  struct Place {
    uint64_t change = 0;      // the last one that it was told
    uint64_t beginning = 0;   // 0: it has seen nothing
    uint64_t next_frame = 0;  // counted over all frames of this beginning
  };

  /// The daemon answered. A cursor that fell is another daemon's: its frames begin anew.
  void Add(LiveView view);
  /// It does not answer; what is kept stays, and the next answer begins anew.
  void Lose(const std::string& why);
  /// The frames that were kept are no longer next to those to come.
  void Forget();

  uint64_t cursor() const { return lost_ || !view_.has_value() ? 0 : view_->seq; }
  uint64_t change() const { return change_; }
  size_t frames() const { return frames_.size(); }

  struct Message {
    const char* event;  // start: from here on, with all frames; live: goes on; gone: no daemon
    std::string data;   // JSON
  };
  /// What is new since `place`, which moves on; empty: nothing.
  std::optional<Message> Next(Place* place) const;

 private:
  std::optional<LiveView> view_;
  std::deque<Frame> frames_;
  size_t bytes_ = 0;
  uint64_t first_frame_ = 0;  // number of frames_.front()
  uint64_t change_ = 0;
  uint64_t beginning_ = 0;
  bool lost_ = false;
  std::string why_;
};

}  // namespace sluice::page
