# SPDX-License-Identifier: Apache-2.0
# bench_layer makes the library of one folder; bench_registry writes the array of its plug-ins from their file names.

# bench_layer(NAME USES libraries... SOURCES files...): a static library bench_NAME of this folder's sources.
function(bench_layer name)
  cmake_parse_arguments(arg "" "" "USES;SOURCES" ${ARGN})
  if(NOT arg_SOURCES)  # a folder without sources is still a library, so that nobody has to ask
    set(arg_SOURCES "${PROJECT_BINARY_DIR}/gen/empty.c")
    bench_write("${arg_SOURCES}" "typedef int bench_empty;\n")
  endif()
  add_library(bench_${name} STATIC ${arg_SOURCES})
  target_link_libraries(bench_${name} PUBLIC ${arg_USES} bench_packages)
endfunction()

# Writes only when the content differs: nothing is rebuilt because CMake ran again.
function(bench_write path content)
  if(EXISTS "${path}")
    file(READ "${path}" old)
    if(old STREQUAL content)
      return()
    endif()
  endif()
  file(WRITE "${path}" "${content}")
endfunction()

# bench_registry(OUT path HEADER h TYPE t ARRAY a PREFIX p NAMES names... [EXTRA text]):
#   const struct TYPE *const ARRAY[] = {&PREFIX_name, ..., NULL}, sorted; an empty file while the header is absent.
function(bench_registry)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT;HEADER;TYPE;ARRAY;PREFIX;EXTRA" "NAMES")
  list(SORT arg_NAMES)
  set(text "/* Written by CMake from the names of files: see tools/cmake/layers.cmake. */\n")
  if(EXISTS "${PROJECT_SOURCE_DIR}/${arg_HEADER}")
    string(APPEND text "#include \"${arg_HEADER}\"\n#include <stddef.h>\n\n")
    set(rows "")
    foreach(name ${arg_NAMES})
      string(APPEND text "extern const struct ${arg_TYPE} ${arg_PREFIX}_${name};\n")
      string(APPEND rows "    &${arg_PREFIX}_${name},\n")
    endforeach()
    # The declaration first: the header's own may lack, and -Wmissing-variable-declarations should stay quiet.
    string(APPEND text "extern const struct ${arg_TYPE} *const ${arg_ARRAY}[];\n")
    string(APPEND text "const struct ${arg_TYPE} *const ${arg_ARRAY}[] = {\n${rows}    NULL,\n};\n${arg_EXTRA}")
  else()
    string(APPEND text "typedef int ${arg_ARRAY}_empty;\n")
  endif()
  bench_write("${arg_OUT}" "${text}")
endfunction()

# The names of plug-ins among files: PREFIX_NAME.c, or NAME.c without a prefix.
function(bench_names out prefix)
  set(names "")
  foreach(path ${ARGN})
    get_filename_component(name "${path}" NAME_WE)
    if(NOT prefix OR name MATCHES "^${prefix}_")
      string(REGEX REPLACE "^${prefix}_" "" name "${name}")
      list(APPEND names ${name})
    endif()
  endforeach()
  set(${out} ${names} PARENT_SCOPE)
endfunction()
