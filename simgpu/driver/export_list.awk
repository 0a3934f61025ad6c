# SPDX-License-Identifier: Apache-2.0
# The version script of libcuda.so.1: exactly the names in common/cuda/functions.def.
BEGIN { print "{\n  global:" }
/^CU_FUNCTION\(/ { sub(/^CU_FUNCTION\(/, ""); sub(/,.*/, ""); print "    " $0 ";" }
END { print "  local: *;\n};" }
