# SPDX-License-Identifier: Apache-2.0
# A module compiled and run in the test's process; the examples' tests use it too.
add_library(sluice_nvrtc_module STATIC ${CMAKE_CURRENT_LIST_DIR}/nvrtc_module.cc)
target_link_libraries(sluice_nvrtc_module PUBLIC sluice::simgpu_nvrtc GTest::gtest ${CMAKE_DL_LIBS})
foreach(name cache image kernels options program scanner)
  sluice_test(SOURCES nvrtc_${name}_test.cc LINK sluice_nvrtc_module
    ENVIRONMENT SLUICE_SIMGPU_CACHE=${PROJECT_BINARY_DIR}/nvrtc-cache)
endforeach()
sluice_test(SOURCES nvrtc_library_test.cc LINK ${CMAKE_DL_LIBS} DEPENDS simgpu_nvrtc_shared
  ENVIRONMENT SLUICE_SIMGPU_CACHE=${PROJECT_BINARY_DIR}/nvrtc-cache)
target_compile_definitions(unit.simgpu.nvrtc_library_test
  PRIVATE NVRTC_LIBRARY="$<TARGET_FILE:simgpu_nvrtc_shared>")
