# SPDX-License-Identifier: Apache-2.0
# The version script of libcuda.so.1: exactly the names in common/cuda/functions.def and exports.def.
BEGIN { print "{\n  global:" }
/^CU_(FUNCTION|UNTYPED)\(/ { sub(/^CU_[A-Z]+\(/, ""); sub(/,.*/, ""); print "    " $0 ";" }
END { print "  local: *;\n};" }
