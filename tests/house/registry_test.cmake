# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The comparison of registered tests with the disk must find both kinds of difference.
# Usage: cmake -D SOURCE_DIR=<repository> -D WORK_DIR=<scratch> -P registry_test.cmake
cmake_policy(VERSION 3.25)
# It is removed first: never what was there before.
set(WORK_DIR "${WORK_DIR}/made")
include(${SOURCE_DIR}/cmake/TestRegistry.cmake)

file(REMOVE_RECURSE "${WORK_DIR}")
file(WRITE "${WORK_DIR}/tests/unit/a/one_test.cc" "")
file(WRITE "${WORK_DIR}/tests/unit/a/two_test.cc" "")
file(WRITE "${WORK_DIR}/tests/unit/a/helper.cc" "")
file(WRITE "${WORK_DIR}/tests/unit/a/three_test" "")

function(expect listed expected)
  list(TRANSFORM listed PREPEND "${WORK_DIR}/tests/unit/a/")
  list(JOIN listed "\n" text)
  file(WRITE "${WORK_DIR}/listed.txt" "${text}\n")
  sluice_test_registry_errors("${WORK_DIR}" "${WORK_DIR}/listed.txt" errors)
  list(TRANSFORM errors REPLACE "^.*/" "")
  if(NOT "${errors}" STREQUAL "${expected}")
    message(SEND_ERROR "listed ${listed}: expected '${expected}', got '${errors}'")
  endif()
endfunction()
expect("one_test.cc;two_test.cc;three_test" "")
expect("one_test.cc;three_test" "two_test.cc: not registered with sluice_test()")
expect("one_test.cc;two_test.cc" "three_test: not registered with sluice_test()")
expect("one_test.cc;two_test.cc;three_test;gone_test.cc" "gone_test.cc: registered, but not on disk")

file(WRITE "${WORK_DIR}/threads.cc" "#include <thread>\nstd::jthread other{[] {}};\n")
file(WRITE "${WORK_DIR}/id.cc" "auto me = std::this_thread::get_id(); std::thread_local_thing x;\n")
sluice_sources_with_threads(threaded "${WORK_DIR}/id.cc" "${WORK_DIR}/threads.cc")
if(NOT threaded STREQUAL "${WORK_DIR}/threads.cc")
  message(SEND_ERROR "a source that makes threads, and one that does not: got '${threaded}'")
endif()
