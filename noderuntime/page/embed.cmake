# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
# Writes the files of FOLDER into the C++ source OUT (static_files.h). As bytes: string literals have an end.
cmake_policy(VERSION 3.25)

set(types_html "text/html; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_svg "image/svg+xml")

file(GLOB names RELATIVE "${FOLDER}" "${FOLDER}/*")
list(SORT names)
set(arrays "")
set(entries "")
set(number 0)
foreach(name IN LISTS names)
  string(REGEX MATCH "[^.]*$" extension "${name}")
  set(type "${types_${extension}}")
  if(NOT type)
    message(FATAL_ERROR "${FOLDER}/${name}: allowed: .html, .css, .js, .svg")
  endif()
  file(READ "${FOLDER}/${name}" bytes HEX)
  file(SHA256 "${FOLDER}/${name}" hash)
  string(SUBSTRING "${hash}" 0 16 hash)
  string(LENGTH "${bytes}" length)
  math(EXPR length "${length} / 2")
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${path}\", \"${type}\", \"\\\"${hash}\\\"\", {kFile${number}, ${length}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}.new" "// Made by noderuntime/page/embed.cmake.
#include \"noderuntime/page/static_files.h\"

namespace sluice::page {
namespace {

${arrays}
constexpr StaticFile kFiles[] = {
${entries}};

}  // namespace

std::span<const StaticFile> StaticFiles() { return kFiles; }

}  // namespace sluice::page
")
file(COPY_FILE "${OUT}.new" "${OUT}" ONLY_IF_DIFFERENT)
