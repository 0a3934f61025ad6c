# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# What `cmake --install` puts under its prefix P, in the layout in which the programs look for each other
# (noderuntime/cli/layout.h):
#   P/bin                 the programs, and sluice-install-library
#   P/lib/libsluice.so    the library
#   P/lib/preload/$LIB    links to it under each word that glibc has for $LIB
#   P/lib/simgpu          machine files: what `sluice simulate` knows of a GPU that it finds by name
#   P/simgpu              a link to lib/simgpu, where the programs look for them
# With --component simulated-driver instead: the simulated driver into P/lib/simgpu, simgpu-ctl and the example
# trainer. A machine with a GPU must never find the simulated driver, so it is not among the rest.
#
# The target `installed` builds the first, `installed-simulated-driver` the second.
include_guard(GLOBAL)

set(_sluice_installed sluice sluice-noded sluice-keeper sluice-device-plugin)
if(TARGET sluice-node)
  list(APPEND _sluice_installed sluice-node sluice-gateway)
endif()
install(TARGETS ${_sluice_installed} RUNTIME DESTINATION bin)
install(TARGETS sluice_intercept LIBRARY DESTINATION lib)
# Links, which stay links.
install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/preload DESTINATION lib)

# `kubectl sluice` runs a program of this name.
set(_sluice_links ${PROJECT_BINARY_DIR}/links)
file(MAKE_DIRECTORY ${_sluice_links})
file(CREATE_LINK sluice ${_sluice_links}/kubectl-sluice SYMBOLIC)
file(CREATE_LINK lib/simgpu ${_sluice_links}/simgpu SYMBOLIC)
install(FILES ${_sluice_links}/kubectl-sluice DESTINATION bin)

install(PROGRAMS scripts/install-library DESTINATION bin RENAME sluice-install-library)
install(FILES LICENSE DESTINATION share/doc/sluice)

file(GLOB _sluice_machines CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/simgpu/machines/*.machine)
install(FILES ${_sluice_machines} DESTINATION lib/simgpu)
install(FILES ${_sluice_links}/simgpu DESTINATION .)

add_custom_target(installed)
add_dependencies(installed ${_sluice_installed} sluice_intercept)

# What a program on the simulated GPU needs: driver, NVML, NVRTC, and the process that stands for the GPU.
install(TARGETS simgpu_cuda simgpu_nvml simgpu_nvrtc_shared simgpu-executor
  RUNTIME DESTINATION lib/simgpu COMPONENT simulated-driver EXCLUDE_FROM_ALL
  LIBRARY DESTINATION lib/simgpu COMPONENT simulated-driver EXCLUDE_FROM_ALL NAMELINK_SKIP)
install(TARGETS simgpu-ctl train
  RUNTIME DESTINATION bin COMPONENT simulated-driver EXCLUDE_FROM_ALL)
add_custom_target(installed-simulated-driver)
add_dependencies(installed-simulated-driver simgpu_cuda simgpu_nvml simgpu_nvrtc_shared simgpu-executor simgpu-ctl train)
