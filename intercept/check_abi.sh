#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
#
# Checks a built libsluice.so: what it needs, how old a C library it runs on, and that it exports the
# hooks of the tables, dlsym and dlmopen, nothing more and nothing less.
#   check_abi.sh LIBRARY HOOKS_DEF...
set -eu
export LC_ALL=C
[ $# -ge 2 ] || { echo "usage: check_abi.sh LIBRARY HOOKS_DEF..." >&2; exit 2; }
library=$1
shift
floor=2.17
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

for name in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  case $name in
    libc.so.6 | libdl.so.2 | libpthread.so.0) ;;
    *) echo "needs $name: only libc, libdl and libpthread are allowed"; bad=1 ;;
  esac
done

objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu > "$work/versions"
if ! grep -q . "$work/versions"; then
  echo "no versioned symbols found in $library"; bad=1
fi
newest=$(tail -n 1 "$work/versions")
if [ "$(printf '%s\n%s\n' "$floor" "$newest" | sort -V | tail -n 1)" != "$floor" ]; then
  bad=1
  echo "needs GLIBC_$newest, the floor is GLIBC_$floor:"
  objdump -T "$library" | grep -F "(GLIBC_$newest)" | sed 's/.*(GLIBC/  (GLIBC/'
fi
for foreign in GLIBCXX CXXABI GCC; do
  if objdump -T "$library" | grep -q "${foreign}_[0-9]"; then
    echo "uses symbols of C++'s or gcc's run time ($foreign)"; bad=1
  fi
done

{ sed -n 's/^SLUICE_\(NVML_\)*HOOK(\([A-Za-z0-9_]*\),.*/\2/p' "$@"; echo dlsym; echo dlmopen; } | sort > "$work/wanted"
nm -D --defined-only "$library" | sed 's/.* //; s/@.*//' | sort > "$work/exported"
if ! diff "$work/wanted" "$work/exported" > "$work/diff"; then
  bad=1
  sed -n 's/^> /exported, but no hook: /p; s/^< /a hook, but not exported: /p' "$work/diff"
fi

if [ $bad -eq 0 ]; then
  echo "$library: $(wc -l < "$work/exported") exported names, newest GLIBC_$newest"
fi
exit $bad
