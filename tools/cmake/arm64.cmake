# SPDX-License-Identifier: Apache-2.0
# Toolchain file for 64-bit Arm on another machine, with Debian's cross compiler; tests run under qemu-user. For more than
# the preset arm64, CMAKE_SYSROOT is a tree of Debian's arm64 packages: see CONTRIBUTING.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
if(CMAKE_SYSROOT)
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${CMAKE_SYSROOT}")
  set(HDF5_ROOT "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/hdf5/serial")
  set(HDF5_C_COMPILER_EXECUTABLE false)  # h5cc of this machine would answer with this machine's library
endif()
