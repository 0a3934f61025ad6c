# SPDX-License-Identifier: Apache-2.0
# A module compiled and run in the test's process; the examples' tests use it too.
add_library(sluice_nvrtc_module STATIC ${CMAKE_CURRENT_LIST_DIR}/nvrtc_module.cc)
target_link_libraries(sluice_nvrtc_module PUBLIC sluice::simgpu_nvrtc GTest::gtest ${CMAKE_DL_LIBS})
