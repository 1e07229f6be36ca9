# SPDX-License-Identifier: Apache-2.0
# What the build takes from the system; whatever is missing is named with its Debian package, in one sentence.
set(CMAKE_THREAD_PREFER_PTHREAD ON)
find_package(Threads REQUIRED)

set(bench_missing "")
function(bench_need package what)
  foreach(variable ${ARGN})
    if(NOT ${variable})
      set(bench_missing ${bench_missing} "${what} (package ${package})" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

if(BENCH_KERNELS_ONLY)  # one header, whose function text.c takes in
  find_path(BENCH_XXHASH_INCLUDE xxhash.h REQUIRED)
  add_library(bench_packages INTERFACE)
  target_include_directories(bench_packages SYSTEM INTERFACE ${BENCH_XXHASH_INCLUDE})
  target_link_libraries(bench_packages INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
  return()
endif()

find_package(HDF5 QUIET COMPONENTS C)
bench_need(libhdf5-dev HDF5 HDF5_FOUND)
find_path(BENCH_TOML_INCLUDE toml++/toml.h)
bench_need(libtomlplusplus-dev toml++ BENCH_TOML_INCLUDE)
foreach(row "CJSON|cjson/cJSON.h|cjson|libcjson-dev" "HWLOC|hwloc.h|hwloc|libhwloc-dev"
            "XXHASH|xxhash.h|xxhash|libxxhash-dev" "PCRE2|pcre2.h|pcre2-8|libpcre2-dev"
            "UNISTRING|uninorm.h|unistring|libunistring-dev" "CMOCKA|cmocka.h|cmocka|libcmocka-dev")
  string(REPLACE "|" ";" row "${row}")
  list(GET row 0 id)
  list(GET row 1 header)
  list(GET row 2 library)
  list(GET row 3 package)
  find_path(BENCH_${id}_INCLUDE ${header})
  find_library(BENCH_${id}_LIBRARY ${library})
  if(NOT id STREQUAL "CMOCKA" OR BENCH_TESTS STREQUAL "ON")
    bench_need(${package} ${library} BENCH_${id}_INCLUDE BENCH_${id}_LIBRARY)
  endif()
endforeach()
if(bench_missing)
  list(JOIN bench_missing ", " bench_missing)
  message(FATAL_ERROR "This build needs ${bench_missing}; `./bench --build` or `./test` installs them on Debian and Ubuntu.")
endif()

add_library(bench_packages INTERFACE)
target_include_directories(bench_packages SYSTEM INTERFACE
  ${HDF5_C_INCLUDE_DIRS} ${BENCH_CJSON_INCLUDE} ${BENCH_HWLOC_INCLUDE} ${BENCH_XXHASH_INCLUDE} ${BENCH_PCRE2_INCLUDE}
  ${BENCH_UNISTRING_INCLUDE} ${BENCH_TOML_INCLUDE})
target_compile_definitions(bench_packages INTERFACE ${HDF5_C_DEFINITIONS})
target_link_libraries(bench_packages INTERFACE
  ${HDF5_C_LIBRARIES} ${BENCH_CJSON_LIBRARY} ${BENCH_HWLOC_LIBRARY} ${BENCH_XXHASH_LIBRARY}
  ${BENCH_PCRE2_LIBRARY} ${BENCH_UNISTRING_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} m)

# Header only: ranges are named for Nsight Systems where the CUDA toolkit's headers are at hand.
file(GLOB bench_cuda_roots /usr/local/cuda /usr/local/cuda-* /usr/lib/cuda /opt/cuda)
find_path(BENCH_NVTX_INCLUDE nvtx3/nvToolsExt.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS ${bench_cuda_roots} PATH_SUFFIXES include targets/x86_64-linux/include)
# Headers only: the library is loaded when a profiled pass asks for it.
find_path(BENCH_CUPTI_INCLUDE cupti.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS ${bench_cuda_roots}
  PATH_SUFFIXES include extras/CUPTI/include targets/x86_64-linux/include)
