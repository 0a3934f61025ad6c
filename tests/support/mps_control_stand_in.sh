#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# Stands in for nvidia-cuda-mps-control: -f serves in the foreground, without arguments the commands that it reads are
# passed on to the one that serves. MPS_STAND_IN_REFUSES names a GPU on which it cannot start, MPS_STAND_IN_DEAF=1 lets
# it overhear "quit".
set -u
dir=${CUDA_MPS_PIPE_DIRECTORY:?} log=${CUDA_MPS_LOG_DIRECTORY:?} gpu=${CUDA_VISIBLE_DEVICES:?}
pid=$dir/nvidia-cuda-mps-control.pid

if [ $# -eq 0 ]; then
  [ -p "$dir/control" ] || { echo "Cannot find MPS control daemon process"; exit 1; }
  cat > "$dir/control"
  exit
fi
[ "$*" = -f ] || { echo "Unknown option: $*"; exit 1; }
if [ "${MPS_STAND_IN_REFUSES:-}" = "$gpu" ]; then
  echo "cannot start on $gpu" >> "$log/control.log"
  exit 1
fi
rm -f "$dir/control"
mkfifo "$dir/control"
exec 3<> "$dir/control"
echo $$ > "$pid.new"
mv "$pid.new" "$pid"
while read -r command <&3; do
  echo "$command" >> "$log/control.log"
  [ "$command" != quit ] || [ -n "${MPS_STAND_IN_DEAF:-}" ] || break
done
rm -f "$pid" "$dir/control"
