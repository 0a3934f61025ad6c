# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# tests/gpu/run builds targets by name, on machines that this suite does not see: each must exist.
# Usage: cmake -D RUN=<tests/gpu/run> -D NINJA=<ninja> -D BUILD_DIR=<build> -P gpu_targets.cmake
cmake_policy(VERSION 3.25)

file(STRINGS "${RUN}" line REGEX "^TARGETS = \\[.*\\]$")
string(REGEX MATCHALL "\"[^\"]+\"" names "${line}")
string(REPLACE "\"" "" names "${names}")
if(NOT names)
  message(FATAL_ERROR "${RUN}: no line TARGETS = [\"...\"] with names")
endif()

execute_process(COMMAND ${NINJA} -C ${BUILD_DIR} -t targets all
  RESULT_VARIABLE result OUTPUT_VARIABLE targets ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "ninja -t targets all: ${result}\n${errors}")
endif()
foreach(name IN LISTS names)
  string(FIND "\n${targets}" "\n${name}: " at)
  if(at EQUAL -1)
    list(APPEND missing ${name})
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "${RUN}: no such target in ${BUILD_DIR}: ${missing}")
endif()
