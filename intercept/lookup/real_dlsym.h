// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

namespace sluice {

/// The C library's dlsym, which the library's own exported dlsym hides. Not for RTLD_NEXT: that
/// means "after the caller", and the caller would be us.
void* RealDlsym(void* library, const char* name);

}  // namespace sluice
