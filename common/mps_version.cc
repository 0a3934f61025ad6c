// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/mps_version.h"

#include "common/driver_version.h"
#include "common/mps_folder.h"

namespace sluice {

Result<MpsChoice> ParseMpsChoice(std::string_view text) {
  if (text == "auto") return MpsChoice::kAuto;
  if (text == "legacy") return MpsChoice::kLegacy;
  if (text == "3") return MpsChoice::kV3;
  return Status(StatusCode::kInvalidArgument,
                "--mps-version '" + std::string(text) + "': allowed: auto, legacy, 3");
}

Result<bool> MpsV3Wanted(MpsChoice choice, std::string_view driver, const std::string& dir) {
  if (choice == MpsChoice::kLegacy) return false;
  const bool able = MajorOfDriver(driver) >= kDriverWithMpsV3;
  const bool fits = dir.size() <= kMaxMpsV3Dir;
  if (choice == MpsChoice::kAuto || (able && fits)) return able && fits;
  const std::string has =
      able ? "--mps-dir has " + std::to_string(dir.size()) + " characters"
           : "the driver is " + (driver.empty() ? "of no version" : std::string(driver));
  return Status(StatusCode::kInvalidArgument,
                "--mps-version 3: " + has + "; allowed: 3 with a driver from " +
                    std::to_string(kDriverWithMpsV3) + " and an --mps-dir of at most " +
                    std::to_string(kMaxMpsV3Dir) + " characters, or auto, legacy");
}

}  // namespace sluice
