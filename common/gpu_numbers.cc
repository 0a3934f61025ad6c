// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/gpu_numbers.h"

#include <algorithm>
#include <set>

namespace sluice {

Result<GpuNumbers> ParseGpuNumbers(const std::string& text, const std::string& field) {
  if (text == "all") return GpuNumbers();
  std::set<uint32_t> gpus;
  std::string rest = text + ",";
  while (!rest.empty()) {
    const std::string one = rest.substr(0, rest.find(','));
    rest.erase(0, one.size() + 1);
    const bool number =
        !one.empty() && one.size() <= 3 &&
        std::all_of(one.begin(), one.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number || !gpus.insert(static_cast<uint32_t>(std::stoul(one))).second) {
      return Status(StatusCode::kInvalidArgument,
                    field + " '" + text + "': allowed: all, or numbers such as 0,1");
    }
  }
  return GpuNumbers(std::vector<uint32_t>(gpus.begin(), gpus.end()));
}

}  // namespace sluice
