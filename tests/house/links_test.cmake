# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# The layering check over targets, on a tiny project that has nothing to compile.
# Usage: cmake -D SOURCE_DIR=<repository> -D WORK_DIR=<scratch> -D GENERATOR=Ninja -P links_test.cmake
cmake_policy(VERSION 3.25)
# It is removed first: never what was there before.
set(WORK_DIR "${WORK_DIR}/made")

function(configure_project links out_result out_text)
  file(REMOVE_RECURSE "${WORK_DIR}")
  file(WRITE "${WORK_DIR}/CMakeLists.txt"
    "cmake_minimum_required(VERSION 3.25)\n"
    "project(tiny LANGUAGES NONE)\n"
    "include(${SOURCE_DIR}/cmake/Layering.cmake)\n"
    "add_library(options INTERFACE)\n"
    "add_subdirectory(common)\nadd_subdirectory(scheduler)\nadd_subdirectory(noderuntime)\n"
    "sluice_check_links(\${PROJECT_SOURCE_DIR})\n")
  foreach(folder common scheduler noderuntime/flow)
    get_filename_component(name ${folder} NAME)
    file(WRITE "${WORK_DIR}/${folder}/CMakeLists.txt"
      "add_library(t_${name} INTERFACE)\nadd_library(t::${name} ALIAS t_${name})\n"
      "target_link_libraries(t_${name} INTERFACE options m)\n")
  endforeach()
  file(WRITE "${WORK_DIR}/noderuntime/CMakeLists.txt" "add_subdirectory(flow)\n")
  file(APPEND "${WORK_DIR}/noderuntime/CMakeLists.txt" "${links}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK_DIR} -B ${WORK_DIR}/build
    RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${out_result} ${result} PARENT_SCOPE)
  set(${out_text} "${text}" PARENT_SCOPE)
endfunction()

configure_project("target_link_libraries(t_flow INTERFACE t::scheduler t::common)" result text)
if(NOT result EQUAL 0)
  message(SEND_ERROR "good links were refused:\n${text}")
endif()
configure_project("target_link_libraries(t_scheduler INTERFACE t::flow)" result text)
if(result EQUAL 0 OR NOT text MATCHES "scheduler: t_scheduler must not link t::flow of noderuntime/flow")
  message(SEND_ERROR "a bad link was not refused by name (${result}):\n${text}")
endif()
