#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# Stands in for nvidia-cuda-mps-control of MPS v3, as NVIDIA's manual for release 615 has it (mpsv3-interface,
# mpsv3-namespaces): -f -m -p 3 serves in the foreground, -q ends it, and of its commands "server create|delete|list",
# "namespace create|delete|list" and "client list". A server is a process that ends with the control daemon; the
# sockets are pipes at the same places. What a server's clients are is said by the file "clients" beside its log, a
# line "SERVER NAMESPACE PID" each: without --force nothing is deleted that has some. Without "-p 3" the other
# stand-in, beside this one, serves.
# shellcheck disable=SC2317  # what a command names is called by its name
set -u
case "$*" in
  '' | -f) exec "${BASH:-bash}" "$(dirname "$0")/mps_control_stand_in.sh" "$@" ;;
esac

dir=${CUDA_MPS_PIPE_DIRECTORY:?} log=${CUDA_MPS_LOG_DIRECTORY:?}
pid_file=$dir/nvidia-cuda-mps-control.pid
[ "${CUDA_MPS_PROTOCOL_VERSION:-}" = 3 ] || { echo "protocol version ${CUDA_MPS_PROTOCOL_VERSION:-none}" >&2; exit 1; }

if [ "$*" != "-f -m -p 3" ]; then
  # One of the commands: the one that serves answers.
  daemon=$(cat "$pid_file" 2> /dev/null)
  kill -0 "${daemon:-none}" 2> /dev/null || { echo "Cannot find MPS control daemon process" >&2; exit 1; }
  reply=$(mktemp -d)
  trap 'rm -rf "$reply"' EXIT
  mkfifo "$reply/answer"
  echo "$reply/answer $*" > "$dir/control"
  { read -r code; cat; } < "$reply/answer"
  exit "$code"
fi

declare -A server_pid namespaces
name='^[a-z0-9_]{1,64}$'

alive() { [ -n "${server_pid[$1]:-}" ] && kill -0 "${server_pid[$1]}" 2> /dev/null; }
# A server that has died is gone with all that it had.
forget_dead() {
  local each
  for each in "${!server_pid[@]}"; do
    alive "$each" || unset "server_pid[$each]" "namespaces[$each]"
  done
}
make_socket() { mkdir -p "$1" && rm -f "$1/control" && mkfifo "$1/control"; }
has_clients() { grep -q "^$1 $2 " "$log/clients" 2> /dev/null; }
fail() { echo "$1"; return 1; }

server() {
  local verb=$1 what=${2:-} option=${3:-}
  case $verb in
    create)
      [[ $what =~ $name ]] || { fail "Invalid server name '$what'"; return; }
      [ "$option" = --uid=0 ] || { fail "Multiuser mode: only --uid=0 is allowed"; return; }
      [ -z "${server_pid[$what]:-}" ] || { fail "Server '$what' already exists"; return; }
      # shellcheck disable=SC2034  # it stays open
      exec {life}> >(exec cat > /dev/null 2>&1 3>&-)
      server_pid[$what]=$! namespaces[$what]=default
      make_socket "$dir/$what" && make_socket "$dir/$what/default" ;;
    delete)
      [ -n "${server_pid[$what]:-}" ] || { fail "Server '$what' does not exist"; return; }
      if has_clients "$what" '[^ ]*' && [ "$option" != --force ]; then fail "Server '$what' has active clients"; return; fi
      kill -9 "${server_pid[$what]}"
      unset "server_pid[$what]" "namespaces[$what]"
      rm -rf "${dir:?}/$what" ;;
    list)
      [ "$what" = --format=csv,noheader ] || { fail "Invalid argument '$what'"; return; }
      local each
      for each in "${!server_pid[@]}"; do echo "$each,0,${server_pid[$each]},Ready,$dir/$each,-,-"; done ;;
    *) fail "Unknown verb '$verb'" ;;
  esac
}

namespace() {
  local verb=$1 what=${2:-} of=${3:-} option=${4:-} each one
  if [ "$verb" = list ]; then
    [ "$what" = --format=csv,noheader ] || { fail "Invalid argument '$what'"; return; }
    for each in "${!namespaces[@]}"; do
      for one in ${namespaces[$each]}; do echo "$one,$each,Ready,-,100,0,$dir/$each/$one"; done
    done
    return
  fi
  [[ $what =~ $name && $of == --server=* ]] || { fail "Invalid arguments '$what $of'"; return; }
  of=${of#--server=}
  [ -n "${server_pid[$of]:-}" ] || { fail "Server '$of' does not exist"; return; }
  case $verb in
    create)
      [[ " ${namespaces[$of]} " != *" $what "* ]] || { fail "Namespace '$what' already exists"; return; }
      namespaces[$of]+=" $what"
      make_socket "$dir/$of/$what" ;;
    delete)
      [[ " ${namespaces[$of]} " == *" $what "* ]] || { fail "Namespace '$what' does not exist"; return; }
      if has_clients "$of" "$what" && [ "$option" != --force ]; then fail "Namespace '$what' has active clients"; return; fi
      local left=" ${namespaces[$of]} "
      namespaces[$of]=${left/ $what / }
      rm -rf "${dir:?}/$of/$what" ;;
    *) fail "Unknown verb '$verb'" ;;
  esac
}

answer() {
  case ${1:-} in
    server | namespace) "$@" ;;
    client) cat "$log/clients" 2> /dev/null || true ;;
    -q) ;;
    *) fail "Unknown module '${1:-}'" ;;
  esac
}

rm -f "$dir/control"
mkfifo "$dir/control"
exec 3<> "$dir/control"
echo $$ > "$pid_file.new"
mv "$pid_file.new" "$pid_file"
while read -r reply words <&3; do
  echo "$words" >> "$log/control.log"
  forget_dead
  # Not in a subshell: it changes what there is.
  # shellcheck disable=SC2086  # words
  answer $words > "$log/answer" 2>&1
  code=$?
  { echo "$code"; cat "$log/answer"; } > "$reply"
  [ "$words" != -q ] || break
done
rm -f "$pid_file" "$dir/control"
for each in "${!server_pid[@]}"; do kill -9 "${server_pid[$each]}" 2> /dev/null; done
exit 0
