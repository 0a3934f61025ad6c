# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The arrows between folders (docs/ARCHITECTURE.md), checked whenever CMake configures: first over the
# #include lines, then over the targets that link each other. An edge that is not listed is an error.
#
# As a script: cmake -D SLUICE_ROOT=<tree> -P cmake/Layering.cmake
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)

# "folder : folders it may include". A file follows the first line that matches its path, so finer
# folders stand before the folders that hold them. `*` allows every project folder except tests/.
set(SLUICE_LAYERS
  "common/peer : common/peer"
  "common : common"
  "scheduler : scheduler common"
  "intercept/protocol : intercept/protocol"
  "intercept : intercept common/cuda common/peer"
  "noderuntime/gpu : noderuntime scheduler common intercept/protocol"
  "noderuntime/grants : noderuntime/grants common"
  "noderuntime/hosttier : noderuntime/hosttier noderuntime/gpu scheduler common"
  "noderuntime/tuner : noderuntime/tuner noderuntime/flow scheduler common"
  "noderuntime : noderuntime scheduler common intercept/protocol"
  "deviceplugin : deviceplugin common"
  "simgpu : simgpu common"
  "examples : examples common/cuda"
  "tools/replay : tools/replay scheduler common"
  "bench : *"
  "tests : * tests")

# "header prefix : folders that may include it". Third-party libraries stay in one component each, and
# the declarations of the driver's entry points stay with those who may call the driver.
set(SLUICE_HEADER_HOMES
  "CLI/ : noderuntime/cli noderuntime/daemon noderuntime/config noderuntime/supervisor noderuntime/gateway deviceplugin/daemon simgpu/ctl examples tests bench"
  "curses.h : noderuntime/cli/look"
  "spdlog/ : common/log"
  "fmt/ : common/log"
  "common/log/ : common/log noderuntime deviceplugin tests"
  "grpc : deviceplugin/server deviceplugin/registrar deviceplugin/collect noderuntime/gateway tests"
  "google/protobuf : deviceplugin/server deviceplugin/registrar deviceplugin/collect noderuntime/gateway tests"
  "prometheus/ : common/metrics bench tests"
  "openssl/ : deviceplugin/cluster tests"
  "yaml-cpp : deviceplugin/daemon"
  "httplib.h : common/http common/metrics noderuntime/page"
  "nlohmann/ : deviceplugin/cluster noderuntime simgpu/ctl tools bench tests"
  "gtest/ : tests"
  "gmock/ : tests"
  "benchmark/ : bench"
  "mimalloc : bench"
  "cuda.h : tests/gpu"
  "common/cuda/driver_api.h : common intercept noderuntime/gpu simgpu examples tools/replay tests bench")

# The scheduling library is pure: no clock, thread, lock or file (a header prefix each).
set(SLUICE_IMPURE_HEADERS
  thread mutex shared_mutex condition_variable future semaphore stop_token chrono ctime time.h random
  fstream iostream cstdio stdio.h filesystem unistd.h fcntl.h pthread.h signal.h csignal poll.h
  dlfcn.h sys/ linux/)

set(SLUICE_FOLDERS
  common scheduler intercept noderuntime deviceplugin simgpu examples tools bench tests)

# Does `path` lie in one of the folders of a rule? Compares whole path components.
function(_sluice_in_folders path folders out)
  foreach(folder IN LISTS folders)
    if("${path}/" MATCHES "^${folder}/")
      set(${out} TRUE PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} FALSE PARENT_SCOPE)
endfunction()

# The folders that a file or target in `path` may use; an empty list when the path has no rule.
function(_sluice_allowed_folders path out)
  foreach(rule IN LISTS SLUICE_LAYERS)
    string(REGEX MATCH "^(.*) : (.*)$" unused "${rule}")
    set(allowed "${CMAKE_MATCH_2}")
    _sluice_in_folders("${path}" "${CMAKE_MATCH_1}" matches)
    if(matches)
      string(REPLACE " " ";" allowed "${allowed}")
      if("*" IN_LIST allowed)
        list(REMOVE_ITEM allowed "*")
        list(APPEND allowed common scheduler intercept noderuntime deviceplugin simgpu examples tools bench)
      endif()
      set(${out} "${allowed}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# Why `file` must not include `header` (with its <> or "" kept in `quoted`), or nothing.
function(_sluice_edge_error file header quoted allowed out)
  set(${out} "" PARENT_SCOPE)
  foreach(rule IN LISTS SLUICE_HEADER_HOMES)
    string(REGEX MATCH "^(.*) : (.*)$" unused "${rule}")
    set(prefix "${CMAKE_MATCH_1}")
    string(REPLACE " " ";" homes "${CMAKE_MATCH_2}")
    string(FIND "${header}" "${prefix}" at)
    if(at EQUAL 0)
      _sluice_in_folders("${file}" "${homes}" ok)
      if(NOT ok)
        list(JOIN homes ", " homes)
        set(${out} "only these may include it: ${homes}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  if("${file}" MATCHES "^scheduler/")
    foreach(impure IN LISTS SLUICE_IMPURE_HEADERS)
      if("${header}" STREQUAL "${impure}" OR ("${impure}" MATCHES "/$" AND "${header}" MATCHES "^${impure}"))
        set(${out} "scheduler/ is pure: no clock, thread, lock or file" PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endif()
  string(REGEX MATCH "^[^/]*" top "${header}")
  if(top IN_LIST SLUICE_FOLDERS)
    _sluice_in_folders("${header}" "${allowed}" ok)
    if(NOT ok)
      list(JOIN allowed ", " allowed)
      string(REGEX MATCH "^[^/]*" from "${file}")
      set(${out} "${from}/ may include only: ${allowed}" PARENT_SCOPE)
    endif()
  elseif(quoted)
    set(${out} "a quoted include names a file of this project from the repository's root" PARENT_SCOPE)
  endif()
endfunction()

# The number of the first line of `path` that includes `header`. Slow, for messages only.
function(_sluice_line_of path header out)
  file(READ "${path}" text)
  string(FIND "${text}" "${header}" at)
  string(SUBSTRING "${text}" 0 ${at} text)
  string(REGEX REPLACE "[^\n]" "" text "${text}")
  string(LENGTH "${text}" newlines)
  math(EXPR line "${newlines} + 1")
  set(${out} ${line} PARENT_SCOPE)
endfunction()

# One message for each include of the tree that is not allowed.
function(sluice_layering_errors root out)
  set(errors "")
  foreach(folder IN LISTS SLUICE_FOLDERS)
    file(GLOB_RECURSE files RELATIVE "${root}"
      "${root}/${folder}/*.h" "${root}/${folder}/*.cc" "${root}/${folder}/*.c" "${root}/${folder}/*.def"
      "${root}/${folder}/*.S" "${root}/${folder}/*.inc")
    foreach(file IN LISTS files)
      set(allowed "")
      file(STRINGS "${root}/${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
      foreach(line IN LISTS lines)
        string(REGEX MATCH "include[ \t]*([<\"])([^>\"]*)" unused "${line}")
        set(header "${CMAKE_MATCH_2}")
        if(CMAKE_MATCH_1 STREQUAL "\"")
          set(quoted TRUE)
        else()
          set(quoted FALSE)
        endif()
        if(NOT allowed)
          _sluice_allowed_folders("${file}" allowed)
        endif()
        _sluice_edge_error("${file}" "${header}" ${quoted} "${allowed}" error)
        if(error)
          _sluice_line_of("${root}/${file}" "${header}" number)
          list(APPEND errors "${file}:${number}: must not include ${header} (${error})")
        endif()
      endforeach()
    endforeach()
  endforeach()
  set(${out} "${errors}" PARENT_SCOPE)
endfunction()

function(sluice_check_layering root)
  sluice_layering_errors("${root}" errors)
  if(errors)
    list(JOIN errors "\n  " errors)
    message(FATAL_ERROR "The layering of the source tree is broken:\n  ${errors}\n")
  endif()
endfunction()

# Targets of `folder` and below, with the folder that each stands in.
function(_sluice_check_link_folder root folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  file(RELATIVE_PATH from "${root}" "${folder}")
  _sluice_allowed_folders("${from}/" allowed)
  foreach(target IN LISTS targets)
    get_target_property(links ${target} LINK_LIBRARIES)
    get_target_property(interface_links ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link IN LISTS links interface_links)
      if(NOT TARGET "${link}")
        continue()
      endif()
      get_target_property(imported ${link} IMPORTED)
      get_target_property(home ${link} SOURCE_DIR)
      if(imported OR home STREQUAL root)
        continue()
      endif()
      file(RELATIVE_PATH to "${root}" "${home}")
      _sluice_in_folders("${to}" "${allowed}" ok)
      if(NOT ok)
        list(JOIN allowed ", " text)
        message(FATAL_ERROR "The layering of the targets is broken:\n"
          "  ${from}: ${target} must not link ${link} of ${to} (may link only: ${text})\n")
      endif()
    endforeach()
  endforeach()
  get_property(subfolders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    _sluice_check_link_folder("${root}" "${subfolder}")
  endforeach()
endfunction()

# After the last add_subdirectory: the same arrows between the targets that link each other.
function(sluice_check_links root)
  get_property(subfolders DIRECTORY "${root}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    _sluice_check_link_folder("${root}" "${subfolder}")
  endforeach()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  sluice_check_layering("${SLUICE_ROOT}")
endif()
