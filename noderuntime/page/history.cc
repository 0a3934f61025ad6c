// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/history.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace sluice::page {

void History::Forget() {
  frames_.clear();
  bytes_ = 0;
  first_frame_ = 0;
  view_.reset();
  lost_ = false;
}

void History::Add(LiveView view) {
  ++change_;
  if (lost_ || !view_.has_value() || view.seq < view_->seq) {
    Forget();
    ++beginning_;
  }
  for (Frame& frame : view.frames) {
    bytes_ += frame.json.size();
    frames_.push_back(std::move(frame));
  }
  view.frames.clear();
  view_ = std::move(view);
  while (!frames_.empty() &&
         (bytes_ > kKeptBytes || frames_.front().t_ms + kKeptMs < view_->now_ms)) {
    bytes_ -= frames_.front().json.size();
    frames_.pop_front();
    ++first_frame_;
  }
}

void History::Lose(const std::string& why) {
  if (lost_ && why == why_) return;
  ++change_;
  lost_ = true;
  why_ = why;
}

std::optional<History::Message> History::Next(Place* place) const {
  if (place->change == change_) return std::nullopt;
  place->change = change_;
  if (lost_) {
    const nlohmann::json gone = {{"text", why_}};
    return Message{"gone", gone.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
  }
  if (!view_.has_value()) return std::nullopt;
  const bool begins = place->beginning != beginning_;
  const uint64_t from = begins ? first_frame_ : std::max(place->next_frame, first_frame_);
  place->beginning = beginning_;
  place->next_frame = first_frame_ + frames_.size();
  const std::vector<Frame> news(frames_.begin() + static_cast<ptrdiff_t>(from - first_frame_),
                                frames_.end());
  return Message{begins ? "start" : "live", WithFrames(view_->json, news)};
}

}  // namespace sluice::page
