# SPDX-License-Identifier: Apache-2.0
# The arrows between folders, checked when CMake configures (docs/ARCHITECTURE.md).
include_guard(GLOBAL)
function(sluice_check_layering root)
endfunction()
