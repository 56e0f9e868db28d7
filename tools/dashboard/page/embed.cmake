# Writes TABLE, the source of the table of ASSETS (each PATH=FILE, relative to FOLDER):
#   cmake "-DASSETS=/=index.html;/page.js=page.js" -DTABLE=page_assets.cpp -DFOLDER=. -P embed.cmake
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_txt "text/plain; charset=utf-8")

set(entries "")
foreach(asset IN LISTS ASSETS)
  string(REGEX MATCH "^([^=]*)=(.*\\.([a-z]+))$" matched "${asset}")
  set(path ${CMAKE_MATCH_1})
  set(type "${type_${CMAKE_MATCH_3}}")
  cmake_path(ABSOLUTE_PATH CMAKE_MATCH_2 BASE_DIRECTORY ${FOLDER} OUTPUT_VARIABLE file)
  if(NOT type)
    message(FATAL_ERROR "${file}: no content type is known for it")
  endif()
  # As numbers: string literals have limits, and files may hold anything.
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(MD5 name ${path})
  string(APPEND arrays "constexpr char file_${name}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${path}\", \"${type}\", {file_${name}, sizeof file_${name}}},\n")
endforeach()

file(WRITE ${TABLE} "// Made by embed.cmake.
#include \"page_assets.hpp\"

namespace tensorpool::page {
namespace {

${arrays}
constexpr Asset all[] = {
${entries}};

}  // namespace

std::span<const Asset> assets() noexcept { return all; }

}  // namespace tensorpool::page
")
