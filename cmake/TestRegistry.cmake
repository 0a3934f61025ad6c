# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# A test that nobody registered passes for ever. So the test sources that CMake knows are written to the
# build folder, and a test compares them with the disk.
#
# As a script: cmake -D SOURCE_DIR=<repository> -D REGISTERED=<list> -P cmake/TestRegistry.cmake
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)

# Called once at the end of configuring.
function(sluice_write_test_registry)
  get_property(sources GLOBAL PROPERTY SLUICE_TEST_SOURCES)
  list(JOIN sources "\n" text)
  file(WRITE ${PROJECT_BINARY_DIR}/test_sources.txt "${text}\n")
endfunction()

# One message for each tests/**/*_test and *_test.* that is not in the list, and each listed one that is gone.
function(sluice_test_registry_errors source_dir registered out)
  file(STRINGS "${registered}" listed)
  file(GLOB_RECURSE on_disk "${source_dir}/tests/*_test.*" "${source_dir}/tests/*_test")
  list(FILTER on_disk EXCLUDE REGEX "/__pycache__/")
  set(errors "")
  foreach(source IN LISTS on_disk)
    if(NOT source IN_LIST listed)
      list(APPEND errors "${source}: not registered with sluice_test()")
    endif()
  endforeach()
  foreach(source IN LISTS listed)
    if(NOT EXISTS "${source}")
      list(APPEND errors "${source}: registered, but not on disk")
    endif()
  endforeach()
  set(${out} "${errors}" PARENT_SCOPE)
endfunction()

# Which of the sources make threads: their test has to say THREADS, or ThreadSanitizer never sees it.
function(sluice_sources_with_threads out)
  set(found "")
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" lines REGEX "std::(j?thread|async)[^_a-z]|pthread_create")
    if(lines)
      list(APPEND found "${source}")
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  sluice_test_registry_errors("${SOURCE_DIR}" "${REGISTERED}" errors)
  if(errors)
    list(JOIN errors "\n  " errors)
    message(FATAL_ERROR "The list of tests is wrong:\n  ${errors}\n")
  endif()
endif()
