# SPDX-License-Identifier: Apache-2.0
# One place for what every target of the project shares: warnings, sanitizers, output folders, tests.
include_guard(GLOBAL)

option(SLUICE_WERROR "Treat warnings as errors" OFF)
set(SLUICE_SANITIZE "" CACHE STRING "Value for -fsanitize= (for example address,undefined or thread)")
# For clang, where reading them is up to half of the work. A library that forgets an include is found by GCC's builds,
# which do without: GCC forgets with them what it was not to warn of. Tests read theirs precompiled everywhere.
option(SLUICE_PRECOMPILE "Precompile the standard headers that most sources read" OFF)

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  # What it has to overlook where headers are precompiled (_sluice_make_precompiled): that a header's time changes.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${SLUICE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Warnings and the include root (the repository: #include "scheduler/ledger/ledger.h").
add_library(sluice_options INTERFACE)
target_include_directories(sluice_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(sluice_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<BOOL:${SLUICE_WERROR}>:-Werror>)

# Where programs that tests/gpu/run carries to another machine find the libraries that came with them.
set(SLUICE_CARRIED_LIBRARIES "$ORIGIN/../deps")

# Sanitizers are separate: the simulated driver and the interception library are loaded into programs
# that are not instrumented.
add_library(sluice_sanitized INTERFACE)
if(SLUICE_SANITIZE)
  target_compile_options(sluice_sanitized INTERFACE -fsanitize=${SLUICE_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sluice_sanitized INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_SANITIZE MATCHES "undefined")
  # Null and wild pointers are looked for in our code. What it hands to the libraries it is made with, those are made
  # to check: bounds, empty optionals, null pointers.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # GCC knows no such list, and looks everywhere
    target_compile_options(sluice_sanitized INTERFACE
      -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/sanitizer-ignorelist.txt)
  endif()
  target_compile_definitions(sluice_sanitized INTERFACE _GLIBCXX_ASSERTIONS)
endif()
if(SLUICE_SANITIZE MATCHES "fuzzer")
  # New paths are looked for in our code, not in the libraries that it is made with.
  target_compile_options(sluice_sanitized INTERFACE
    -fsanitize-coverage-ignorelist=${PROJECT_SOURCE_DIR}/tests/fuzz/uncovered.txt)
endif()

# Headers that are compiled once: NAME, for all that are compiled as LINK says, position-independent as a
# library's code is, or as POSITION says.
function(_sluice_make_precompiled name)
  cmake_parse_arguments(ARG "" "POSITION" "LINK;HEADERS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_POSITION)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE ${ARG_POSITION})
  endif()
  _sluice_cache_precompiled(${name})
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <atomic> <chrono> <cstdint> <functional> <map>
    <memory> <optional> <set> <span> <string> <thread> <utility> <variant> <vector> ${ARG_HEADERS})
endfunction()
function(_sluice_read_precompiled target name)
  _sluice_cache_precompiled(${target})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()
# ccache has to know what they are made of.
function(_sluice_cache_precompiled target)
  if(SLUICE_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  elseif(SLUICE_CCACHE)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# sluice_library(NAME [OPTIMIZED] [OWN_OPTIONS] SOURCES a.cc ... [LINK t ...] [PUBLIC_LINK t ...]): a static library
# sluice::NAME. To optimise what is sanitized takes twice as long, so the presets do without; OPTIMIZED: where the tests
# spend their time it pays. OWN_OPTIONS: it will be given compiler options, so it cannot share headers.
function(sluice_library name)
  cmake_parse_arguments(ARG "OPTIMIZED;OWN_OPTIONS" "" "SOURCES;LINK;PUBLIC_LINK" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  add_library(sluice::${name} ALIAS sluice_${name})
  target_link_libraries(sluice_${name}
    PUBLIC sluice_options sluice_sanitized ${ARG_PUBLIC_LINK} PRIVATE ${ARG_LINK})
  if(ARG_OPTIMIZED AND SLUICE_SANITIZE)
    target_compile_options(sluice_${name} PRIVATE -O2)
  elseif(SLUICE_PRECOMPILE AND NOT ARG_OWN_OPTIONS)
    if(NOT TARGET sluice_headers)
      _sluice_make_precompiled(sluice_headers LINK sluice_options sluice_sanitized
        HEADERS <filesystem> <fstream> <mutex> <sstream>)
    endif()
    _sluice_read_precompiled(sluice_${name} sluice_headers)
  endif()
endfunction()

# sluice_program(NAME SOURCES a.cc ... LINK t ...): an executable in build/<preset>/bin.
function(sluice_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE sluice_options sluice_sanitized ${ARG_LINK})
  set_target_properties(${name} PROPERTIES BUILD_RPATH "${SLUICE_CARRIED_LIBRARIES}")
endfunction()

# There are hundreds of tests, and each reads GoogleTest and the same half of the standard library. What they
# test is optimised; they themselves take longer to optimise than to run.
function(sluice_without_optimising target)
  if(NOT SLUICE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
function(sluice_compile_quickly target)
  sluice_without_optimising(${target})
  _sluice_read_precompiled(${target} sluice_test_headers)
endfunction()

# Compiled as they are: position-independent as a program's code is.
function(sluice_make_test_headers)
  _sluice_make_precompiled(sluice_test_headers POSITION -fPIE LINK sluice_options sluice_sanitized GTest::gtest
    HEADERS <nlohmann/json.hpp> <gtest/gtest.h>)
  sluice_without_optimising(sluice_test_headers)
endfunction()

# sluice_test(SOURCES x_test.cc ... LINK t ... [TIMEOUT s] [ENVIRONMENT K=V ...] [NAME n]
#             [SERIAL | HEAVY] [DEPENDS targets] [THREADS]): a GoogleTest program. The first source names it; its
# label is the folder under tests/ that it stands in. SERIAL: what it measures is time, so that nothing runs
# beside it; HEAVY: several programs at work, so that it takes two places. THREADS says that it makes threads: ThreadSanitizer runs
# only those (scripts/check sanitize), because in a program of one thread it has nothing to find.
function(sluice_test)
  cmake_parse_arguments(ARG "SERIAL;HEAVY;THREADS" "NAME;TIMEOUT" "SOURCES;LINK;ENVIRONMENT;DEPENDS" ${ARGN})
  list(GET ARG_SOURCES 0 first)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR}/${first})
  string(REGEX REPLACE "/.*" "" label "${relative}")
  if(NOT ARG_NAME)
    string(REGEX REPLACE "\\.cc$" "" ARG_NAME "${relative}")
    string(REPLACE "/" "." ARG_NAME "${ARG_NAME}")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  # Sanitized it takes ten times as long, and other stages of .ci/run may have half of the processors; but .ci/run has
  # to outlive it, to say which one stands still. Those that have longer as it is are none of its.
  if(SLUICE_SANITIZE AND ARG_TIMEOUT LESS 900)
    math(EXPR ARG_TIMEOUT "10 * ${ARG_TIMEOUT}")
    if(ARG_TIMEOUT GREATER 900)
      set(ARG_TIMEOUT 900)
    endif()
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    BUILD_RPATH "${SLUICE_CARRIED_LIBRARIES}")
  target_link_libraries(${ARG_NAME} PRIVATE sluice_options sluice_sanitized ${ARG_LINK}
    GTest::gtest GTest::gtest_main)
  if(ARG_DEPENDS)
    add_dependencies(${ARG_NAME} ${ARG_DEPENDS})
  endif()
  # Those of the models spend their time in code of their own.
  if(NOT label STREQUAL "model")
    sluice_compile_quickly(${ARG_NAME})
  endif()
  set(labels ${label})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  sluice_sources_with_threads(threaded ${paths})
  if(threaded AND label STREQUAL "unit" AND NOT ARG_THREADS)
    message(FATAL_ERROR "${threaded} makes threads: say THREADS in its sluice_test()")
  endif()
  if(ARG_THREADS)
    list(APPEND labels threads)
    target_link_libraries(${ARG_NAME} PRIVATE Threads::Threads)
  endif()
  # One target per label builds all its tests (scripts/check builds only what it runs).
  foreach(label IN LISTS labels)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${ARG_NAME})
  endforeach()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "${ARG_ENVIRONMENT}")
  if(ARG_SERIAL)
    set_tests_properties(${ARG_NAME} PROPERTIES RUN_SERIAL ON)
  endif()
  if(ARG_HEAVY)
    set_tests_properties(${ARG_NAME} PROPERTIES PROCESSORS 2)
  endif()
  sluice_register_test_sources(${ARG_SOURCES})
endfunction()

# sluice_register_test_sources(FILE...): what a test is made of, in this folder (TestRegistry.cmake).
function(sluice_register_test_sources)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY SLUICE_TEST_SOURCES ${ARGN})
endfunction()
