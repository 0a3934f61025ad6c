# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The same kind of things in fish's own words.
echo "arguments:" (count $argv) $argv
echo "pipe:" (printf 'b\na\n' | sort | tr '\n' ' ')
sh -c 'exit 7'
echo "status: $status"
no-such-command-at-all 2>/dev/null
echo "not found: $status"
echo "to stderr" >&2
function on_usr1 --on-signal USR1
    echo usr1
end
kill -USR1 $fish_pid
sh -c 'exit 3' &
wait
sh -c 'kill -TERM $$'
echo "killed: $status"
env | grep -v -e '^LD_PRELOAD=' -e '^_=' | sort
if test -d /proc/self/fd
    ls /proc/self/fd
    sed -n 's/^Sig\(Blk\|Ign\|Cgt\):/signals &/p' /proc/self/status
end
exit 5
