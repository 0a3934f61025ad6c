# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The check of the targets that tests/gpu/run names must find a wrong name, and a list that it cannot read.
# Usage: cmake -D SOURCE_DIR=<repository> -D WORK_DIR=<scratch> -D NINJA=<ninja> -P gpu_targets_test.cmake
cmake_policy(VERSION 3.25)
# It is removed first: never what was there before.
set(WORK_DIR "${WORK_DIR}/made")

file(REMOVE_RECURSE "${WORK_DIR}")
file(WRITE "${WORK_DIR}/build.ninja"
  "build there: phony\nbuild over-there: phony\nbuild not_here_either: phony\n")

function(expect line expected_result expected_text)
  file(WRITE "${WORK_DIR}/run" "import os\n${line}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -D RUN=${WORK_DIR}/run -D NINJA=${NINJA}
    -D BUILD_DIR=${WORK_DIR} -P ${SOURCE_DIR}/tests/house/gpu_targets.cmake
    RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(result)
    set(result 1)
  endif()
  # Long paths make it break its lines elsewhere.
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  if(NOT result EQUAL expected_result OR NOT "${text}" MATCHES "${expected_text}")
    message(SEND_ERROR "${line}: expected ${expected_result} '${expected_text}', got ${result}:\n${text}")
  endif()
endfunction()
expect("TARGETS = [\"there\", \"over-there\"]" 0 "")
expect("TARGETS = [\"there\", \"not_here\", \"here\"]" 1 "[ :]not_here;here")
expect("TARGETS = []" 1 "no line TARGETS")
expect("TARGETS += [\"there\"]" 1 "no line TARGETS")
