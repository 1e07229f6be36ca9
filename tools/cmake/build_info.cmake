# SPDX-License-Identifier: Apache-2.0
# gen/build_info.h: revision, compiler and flags, asked at every build and rewritten only when they changed.
# Included by the project it defines the target bench_build_info; run with -P it writes the header.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  list(JOIN bench_flags " " flags)
  string(STRIP "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}} ${flags}" flags)
  string(REPLACE "${PROJECT_SOURCE_DIR}" "." flags "${flags}")
  # What it takes to build the same once more: bench gate --baseline does, and reads these words.
  set(command "cmake -S . -B build")
  foreach(name CMAKE_BUILD_TYPE CMAKE_C_COMPILER CMAKE_CXX_COMPILER CMAKE_C_FLAGS CMAKE_CXX_FLAGS BENCH_CUDA BENCH_SANITIZE)
    if("${${name}}" MATCHES "[^A-Za-z0-9_./=+-]")
      string(APPEND command " -D${name}='${${name}}'")
    elseif(NOT "${${name}}" STREQUAL "")
      string(APPEND command " -D${name}=${${name}}")
    endif()
  endforeach()
  string(APPEND command " && cmake --build build --target bench")
  set(BENCH_BUILD_INFO_COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
    "-DOUT=${PROJECT_BINARY_DIR}/gen/build_info.h" "-DVERSION=${PROJECT_VERSION}"
    "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}" "-DFLAGS=${flags}" "-DTYPE=${CMAKE_BUILD_TYPE}" "-DCOMMAND=${command}"
    -P "${CMAKE_CURRENT_LIST_FILE}")
  # Once at configuration, so that the header is there for tools which read single files; then at every build.
  execute_process(COMMAND ${BENCH_BUILD_INFO_COMMAND})
  add_custom_target(bench_build_info COMMAND ${BENCH_BUILD_INFO_COMMAND} VERBATIM
    BYPRODUCTS "${PROJECT_BINARY_DIR}/gen/build_info.h")
  return()
endif()

set(revision unknown)
set(dirty 0)
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")
  # Clones are often owned by somebody else than the builder; only these two questions are asked.
  set(ask "${git}" -c safe.directory=* -c core.fsmonitor=false -C "${SOURCE}")
  execute_process(COMMAND ${ask} rev-parse --verify HEAD
    OUTPUT_VARIABLE head ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision "${head}")
    execute_process(COMMAND ${ask} --no-optional-locks status --porcelain --untracked-files=no
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(dirty 1)
    endif()
  endif()
endif()
foreach(name FLAGS COMMAND)
  string(REPLACE "\\" "\\\\" ${name} "${${name}}")
  string(REPLACE "\"" "\\\"" ${name} "${${name}}")
endforeach()
set(text "/* Written by tools/cmake/build_info.cmake. */
#ifndef GEN_BUILD_INFO_H
#define GEN_BUILD_INFO_H
#define BENCH_VERSION \"${VERSION}\"
#define BUILD_REVISION \"${revision}\"
#define BUILD_DIRTY ${dirty}
#define BUILD_COMPILER \"${COMPILER}\"
#define BUILD_FLAGS \"${FLAGS}\"
#define BUILD_TYPE \"${TYPE}\"
#define BUILD_COMMAND \"${COMMAND}\"
#endif
")
set(old "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" old)
endif()
if(NOT old STREQUAL text)
  file(WRITE "${OUT}" "${text}")
endif()
