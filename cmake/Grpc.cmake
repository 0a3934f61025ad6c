# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# Debian's gRPC; its own CMake package asks for development packages that nothing here needs.
include_guard(GLOBAL)

# sluice_grpc_api(NAME FOLDER FILE...): the messages and services of FOLDER/FILE.proto as sluice::NAME, generated below
# the build tree as FOLDER/FILE.pb.h and FOLDER/FILE.grpc.pb.h. All of them are spoken on Unix sockets, and nothing asks
# a message what it is made of. So it is gRPC without TLS, and the messages are `lite`, without their descriptions: MiBs
# of libraries that no process has to hold.
function(sluice_grpc_api name folder)
  find_package(Protobuf REQUIRED)
  find_program(SLUICE_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
  find_library(SLUICE_GRPC_UNSECURE grpc++_unsecure REQUIRED)
  find_library(SLUICE_GRPC_CORE_UNSECURE grpc_unsecure REQUIRED)
  find_library(SLUICE_GPR gpr REQUIRED)
  find_library(SLUICE_ABSL absl_synchronization REQUIRED)  # its headers use it inline

  set(generated ${CMAKE_BINARY_DIR}/generated/${folder})
  file(MAKE_DIRECTORY ${generated})
  foreach(file IN LISTS ARGN)
    set(made ${generated}/${file}.pb.cc ${generated}/${file}.pb.h ${generated}/${file}.grpc.pb.cc
             ${generated}/${file}.grpc.pb.h)
    add_custom_command(OUTPUT ${made}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=lite:${CMAKE_BINARY_DIR}/generated
              --grpc_out=${CMAKE_BINARY_DIR}/generated --plugin=protoc-gen-grpc=${SLUICE_GRPC_PLUGIN}
              ${folder}/${file}.proto
      DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/${file}.proto VERBATIM)
    list(APPEND outputs ${made})
  endforeach()

  # Neither our warnings nor our sanitizers: it is not our code.
  add_library(sluice_${name} STATIC ${outputs})
  add_library(sluice::${name} ALIAS sluice_${name})
  target_include_directories(sluice_${name} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
  # gRPC's headers would ask for a description otherwise.
  target_compile_definitions(sluice_${name} PUBLIC GRPC_USE_PROTO_LITE)
  target_link_libraries(sluice_${name} PUBLIC ${SLUICE_GRPC_UNSECURE} ${SLUICE_GRPC_CORE_UNSECURE} ${SLUICE_GPR}
    ${SLUICE_ABSL} protobuf::libprotobuf-lite)
endfunction()
