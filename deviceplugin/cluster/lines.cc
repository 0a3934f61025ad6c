// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/lines.h"

namespace sluice::deviceplugin {

bool Lines::Take(std::string_view data) {
  size_t begin = 0;
  size_t seen = rest_.size();
  rest_.append(data);
  while (!ended_) {
    const size_t end = rest_.find('\n', seen);
    too_long_ = (end == std::string::npos ? rest_.size() : end) - begin > kMost;
    if (end == std::string::npos || too_long_) break;
    ended_ = !on_line_(std::string_view(rest_).substr(begin, end - begin));
    seen = begin = end + 1;
  }
  ended_ = ended_ || too_long_;
  rest_.erase(0, ended_ ? std::string::npos : begin);
  return !ended_;
}

}  // namespace sluice::deviceplugin
