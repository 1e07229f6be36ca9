# SPDX-License-Identifier: Apache-2.0
# Compiler flags: the same for every file, so that two builds differ only where a file says so (kernels/cpu).
include(CheckCCompilerFlag)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
# Not CMake's defaults: -O3 moves code about for little, and NDEBUG would drop the promises of the code.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -g")
  set(CMAKE_${language}_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer")
endforeach()

set(bench_flags -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Werror -fno-math-errno
    -ffp-contract=off -falign-functions=64 "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
set(bench_c_flags -Wstrict-prototypes -Wmissing-prototypes)
# Code layout is a confounder of timing: aligned loops wherever the compiler can.
check_c_compiler_flag(-falign-loops=32 BENCH_HAVE_ALIGN_LOOPS)
if(BENCH_HAVE_ALIGN_LOOPS)
  list(APPEND bench_flags -falign-loops=32)
endif()
if(BENCH_SANITIZE)
  list(APPEND bench_flags -fsanitize=${BENCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BENCH_SANITIZE})
endif()
add_compile_options(${bench_flags})
foreach(flag ${bench_c_flags})
  add_compile_options($<$<COMPILE_LANGUAGE:C>:${flag}>)
endforeach()
add_compile_definitions(_GNU_SOURCE)
include_directories("${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
