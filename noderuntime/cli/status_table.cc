// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/status_table.h"

#include <nlohmann/json.hpp>

namespace sluice::cli {

Result<std::string> RenderStatus(const std::string& json_text) {
  const auto json = nlohmann::json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Status(StatusCode::kInternal, "the daemon sent no JSON");
  return json.dump(2) + "\n";
}

}  // namespace sluice::cli
