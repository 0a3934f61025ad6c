#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
#
# The check of the built library must pass on it and fail on a bad one, naming each fault.
#   abi_test.sh CHECK GOOD_LIBRARY BAD_LIBRARY HOOKS_DEF...
set -eu
check=$1
good=$2
bad=$3
shift 3
"$check" "$good" "$@"
if output=$("$check" "$bad" "$@"); then
  echo "the check accepts a bad library" >&2
  exit 1
fi
for fault in 'needs libm.so.6' 'the floor is GLIBC_2.17' 'exported, but no hook: cuNotAHook' \
  'a hook, but not exported: dlsym' 'a hook, but not exported: cuMemAlloc_v2' \
  'a hook, but not exported: nvmlDeviceGetMemoryInfo'; do
  case $output in
    *"$fault"*) ;;
    *) printf 'the check does not say: %s\nIt says:\n%s\n' "$fault" "$output" >&2; exit 1 ;;
  esac
done
