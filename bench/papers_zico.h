// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <optional>
#include <string>

#include "bench/papers_card.h"

namespace sluice::bench {

/// A model of Zico's evaluation on the card that it has it on (Lim et al., USENIX ATC 2021,
/// section 7).
struct ZicoModel {
  const char* name;
  const char* card;
};
inline constexpr ZicoModel kZicoModels[] = {
    {"resnet50", "v100-32"},    {"bert-base", "v100-32"}, {"nasnetalarge", "2080ti-11"},
    {"resnet110", "2080ti-11"}, {"gnmt", "2080ti-11"},    {"rhn", "2080ti-11"}};

/// The cards of its two machines, by name. An error names the file.
Result<std::map<std::string, Card>> ZicoCards(const Traces& traces);

/// The largest batch of a job whose peak is at most this part of the pool that two jobs have.
/// None: one sample is more.
std::optional<uint64_t> ZicoBatch(const Card& card, const std::string& model, double part);

}  // namespace sluice::bench
