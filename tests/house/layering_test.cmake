# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The layering check on tiny trees: each bad edge must be reported by file and line, each good one passed.
# Usage: cmake -D SOURCE_DIR=<repository> -D WORK_DIR=<scratch> -P layering_test.cmake
cmake_policy(VERSION 3.25)
# It is removed first: never what was there before.
set(WORK_DIR "${WORK_DIR}/made")
include(${SOURCE_DIR}/cmake/Layering.cmake)

# "file | included" pairs. The include stands in line 3.
set(good
  [[common/bytes.cc | "common/bytes.h"]]
  [[common/fd.cc | <unistd.h>]]
  [[scheduler/ledger/ledger.h | <cstdint>]]
  [[scheduler/ledger/ledger.cc | "common/status.h"]]
  [[intercept/protocol/pages.h | "intercept/protocol/wire.h"]]
  [[intercept/hooks/memory.cc | "common/cuda/driver_api.h"]]
  [[noderuntime/session/session.cc | "intercept/protocol/wire.h"]]
  [[noderuntime/gpu/pool.cc | "common/cuda/driver_api.h"]]
  [[noderuntime/flow/flow.cc | "scheduler/profile/profile.h"]]
  [[noderuntime/cli/options.cc | <CLI/CLI.hpp>]]
  [[common/log/log.cc | <spdlog/spdlog.h>]]
  [[simgpu/ctl/stats.cc | <nlohmann/json.hpp>]]
  [[simgpu/driver/launch.cc | "common/cuda/abi.h"]]
  [[examples/train/main.cc | <CLI/CLI.hpp>]]
  [[tools/replay/plan.h | "scheduler/trace/trace.h"]]
  [[tools/replay/report.cc | <nlohmann/json.hpp>]]
  [[bench/blocks_bench.cc | "intercept/blocks/blocks.h"]]
  [[tests/unit/intercept/blocks_test.cc | "intercept/blocks/blocks.h"]]
  [[tests/contract/memory_test.cc | "tests/support/environment.h"]]
  [[tests/unit/simgpu/token_test.cc | "simgpu/sharing/token.h"]])
set(bad
  [[common/bytes.cc | "scheduler/ledger/ledger.h"]]
  [[common/bytes.cc | "bytes.h"]]
  [[common/bytes.cc | <spdlog/spdlog.h>]]
  [[noderuntime/daemon/daemon.cc | <spdlog/spdlog.h>]]
  [[scheduler/ledger/ledger.cc | "noderuntime/flow/flow.h"]]
  [[scheduler/ledger/ledger.cc | "common/log/log.h"]]
  [[scheduler/ledger/ledger.cc | <thread>]]
  [[scheduler/ledger/ledger.cc | <chrono>]]
  [[scheduler/ledger/ledger.h | <sys/mman.h>]]
  [[scheduler/ledger/ledger.h | <nlohmann/json.hpp>]]
  [[intercept/protocol/wire.h | "intercept/blocks/blocks.h"]]
  [[intercept/hooks/memory.cc | "common/status.h"]]
  [[intercept/hooks/memory.cc | "noderuntime/session/session.h"]]
  [[intercept/hooks/memory.cc | "simgpu/driver/launch.h"]]
  [[noderuntime/session/session.cc | "intercept/blocks/blocks.h"]]
  [[noderuntime/session/session.cc | "common/cuda/driver_api.h"]]
  [[noderuntime/session/session.cc | <CLI/CLI.hpp>]]
  [[noderuntime/gpu/pool.cc | "simgpu/driver/launch.h"]]
  [[simgpu/driver/launch.cc | "intercept/protocol/wire.h"]]
  [[simgpu/driver/launch.cc | <nlohmann/json.hpp>]]
  [[examples/train/main.cc | "common/bytes.h"]]
  [[examples/train/main.cc | "intercept/protocol/wire.h"]]
  [[tools/replay/main.cc | "examples/train/device.h"]]
  [[tools/replay/main.cc | "simgpu/driver/launch.h"]]
  [[noderuntime/daemon/main.cc | "tests/support/environment.h"]]
  [[bench/blocks_bench.cc | "tests/support/environment.h"]]
  [[common/bytes.h | <gtest/gtest.h>]])

set(failures 0)
function(write_tree edge out_file)
  string(REGEX MATCH "^(.*) [|] (.*)$" unused "${edge}")
  set(${out_file} "${CMAKE_MATCH_1}" PARENT_SCOPE)
  file(WRITE "${WORK_DIR}/${CMAKE_MATCH_1}" "// one\n// two\n  #  include ${CMAKE_MATCH_2}\nint x;\n")
endfunction()

foreach(edge IN LISTS good)
  file(REMOVE_RECURSE "${WORK_DIR}")
  write_tree("${edge}" file)
  sluice_layering_errors("${WORK_DIR}" errors)
  if(errors)
    message(SEND_ERROR "good edge reported: ${edge}\n  ${errors}")
  endif()
endforeach()
foreach(edge IN LISTS bad)
  file(REMOVE_RECURSE "${WORK_DIR}")
  write_tree("${edge}" file)
  sluice_layering_errors("${WORK_DIR}" errors)
  string(FIND "${errors}" "${file}:3: must not include " at)
  if(NOT at EQUAL 0)
    message(SEND_ERROR "bad edge not reported: ${edge}\n  ${errors}")
  endif()
endforeach()

# As configuring sees it: the whole good tree passes, one bad edge stops it by name.
file(REMOVE_RECURSE "${WORK_DIR}")
foreach(edge IN LISTS good)
  write_tree("${edge}" file)
endforeach()
set(check ${CMAKE_COMMAND} -D SLUICE_ROOT=${WORK_DIR} -P ${SOURCE_DIR}/cmake/Layering.cmake)
execute_process(COMMAND ${check} RESULT_VARIABLE result ERROR_VARIABLE text)
if(NOT result EQUAL 0)
  message(SEND_ERROR "the good tree was refused:\n${text}")
endif()
write_tree([[scheduler/policy/flow.cc | "noderuntime/daemon/main.h"]] file)
execute_process(COMMAND ${check} RESULT_VARIABLE result ERROR_VARIABLE text)
if(result EQUAL 0 OR NOT text MATCHES "scheduler/policy/flow.cc:3: must not include noderuntime/daemon/main.h"
   OR NOT text MATCHES "scheduler/ may include only: scheduler, common")
  message(SEND_ERROR "the bad tree was not refused by name (${result}):\n${text}")
endif()
