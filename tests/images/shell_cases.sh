# shellcheck shell=sh disable=SC2012
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# What shells do all day, in words that every POSIX shell knows. Prints nothing that differs from run to
# run: tests/images/run compares two runs of each shell, with the library preloaded and without.
echo "arguments: $# $*"
echo "pipe: $(printf 'b\na\n' | sort | tr '\n' ' ')"
(exit 7)
echo "subshell: $?"
false || echo "or"
no-such-command-at-all
echo "not found: $?"
/etc/passwd
echo "not executable: $?"
cat <<TEXT
here: $((6 * 7))
TEXT
exec 3>&1
echo "fd 3" >&3
exec 3>&-
echo "to stderr" >&2
trap 'echo "usr1"' USR1
kill -USR1 $$
trap 'echo "bye"' EXIT
sh -c 'kill -TERM $$'
echo "killed: $?"
sh -c 'exit 3' &
wait $!
echo "background: $?"
for signal in INT TERM CHLD PIPE; do
  (trap '' "$signal"; sh -c "kill -$signal \$\$; echo 'ignored $signal'")
done
yes 2>/dev/null | head -n 1
env | grep -v -e '^LD_PRELOAD=' -e '^_=' | sort
# shellcheck disable=SC3045  # every shell that is tested has it
ulimit -n
umask
if [ -d /proc/self/fd ]; then
  ls /proc/self/fd
  sed -n 's/^Sig\(Blk\|Ign\|Cgt\):/signals &/p' /proc/self/status
  ls /proc/self/task | wc -l
fi
eval 'echo "eval $((1 + 1))"'
x=$(echo a; echo b >&2)
echo "substituted: $x"
(
  set -e
  false
  echo "unreached"
)
echo "set -e: $?"
(exec sh -c 'echo "executed"; exit 4')
echo "exec: $?"
exit 5
