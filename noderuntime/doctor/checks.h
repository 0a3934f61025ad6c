// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "noderuntime/doctor/facts.h"

namespace sluice::doctor {

enum class Verdict { kOk, kWarn, kFail };

struct Finding {
  std::string check;  // a name that does not change, for programs
  Verdict verdict = Verdict::kOk;
  std::string text;    // what is so
  std::string advice;  // what to do about it; empty when it is fine
};

/// What the facts mean for Sluice, in a fixed order. kFail: a job cannot run here.
std::vector<Finding> Judge(const Facts& facts);

bool Healthy(const std::vector<Finding>& findings);

/// One line each, and what to do below it.
std::string RenderText(const std::vector<Finding>& findings);
std::string RenderJson(const std::vector<Finding>& findings);

}  // namespace sluice::doctor
