// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/grant/terms.h"
#include "deviceplugin/pods/ceilings.h"
#include "deviceplugin/pods/pod.h"

namespace sluice::pods {

/// Whose jobs may have memory of each other's: what a job gave back, another one writes to, and
/// whoever had it once can go on reading it.
enum class Trust : uint8_t {
  kNamespace,  // those of one namespace, or of one share-group in it
  kNode,       // all
};

/// What a container's grant is worth: its annotations, or the words that refuse them. Pure.
GrantTerms TermsFor(const Pod& pod, const std::string& part, uint64_t granted_bytes, Trust trust,
                    const Ceilings& ceilings = {});

}  // namespace sluice::pods
