# SPDX-License-Identifier: Apache-2.0
# The version script of libcuda.so.1: exactly the names in common/cuda/functions.def and exports.def, and
# two for programs that replay recorded jobs (driver/virtual_time_api.cc).
BEGIN { print "{\n  global:\n    simgpuHostWork;\n    simgpuHostClock;" }
/^CU_(FUNCTION|UNTYPED)\(/ { sub(/^CU_[A-Z]+\(/, ""); sub(/,.*/, ""); print "    " $0 ";" }
END { print "  local: *;\n};" }
