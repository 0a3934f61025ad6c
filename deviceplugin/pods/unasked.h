// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "deviceplugin/pods/pod.h"

namespace sluice::pods {

/// What annotations of ours say of containers that ask for no granules, so that they change
/// nothing: one per line, in words. Empty: there are none such. Only keys that there are: other
/// things of a cluster may be named in our domain, too. Pure.
///
/// A container that is not there is said of the pod's grants (TermsOf), where it has any.
std::string Unasked(const Pod& pod, const std::string& resource);

}  // namespace sluice::pods
