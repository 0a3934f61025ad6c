// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// What kernel_abi.h needs of <stdint.h>; there are no system headers when a module is compiled. No
// more than that: the user's source may have its own idea of the other names.

typedef __UINT32_TYPE__ uint32_t;
