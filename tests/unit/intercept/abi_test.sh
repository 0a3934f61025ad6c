#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
#
# The check of the built library must pass on it and fail on a bad one, naming each fault.
#   abi_test.sh CHECK HOOKS_DEF GOOD_LIBRARY BAD_LIBRARY
set -eu
check=$1
hooks=$2
"$check" "$3" "$hooks"
if output=$("$check" "$4" "$hooks"); then
  echo "the check accepts a bad library" >&2
  exit 1
fi
for fault in 'needs libm.so.6' 'the floor is GLIBC_2.17' 'exported, but no hook: cuNotAHook' \
  'a hook, but not exported: dlsym' 'a hook, but not exported: cuMemAlloc_v2'; do
  case $output in
    *"$fault"*) ;;
    *) printf 'the check does not say: %s\nIt says:\n%s\n' "$fault" "$output" >&2; exit 1 ;;
  esac
done
