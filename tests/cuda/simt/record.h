/* SPDX-License-Identifier: Apache-2.0 */
/* Launches written to files, to be replayed by whatever else can run a kernel (the PTX interpreter)
   and compared.

   With SIMT_RECORD=DIR set, the emulated device writes for each kernel name the SIMT_RECORD_MAX
   (default 2) smallest launches, of different shapes, to DIR/NAME-THREADS-GX.GY.GZ-SHARED.rec
   (THREADS: of the whole grid, 12 digits). DIR may be shared by several programs, one after
   another.

   A file, little-endian; every part is padded with zeros to a multiple of 8 bytes:
     char magic[8]          "SIMTREC1"
     u32  grid[3], block[3]
     u32  shared_bytes      dynamic shared memory of a block
     u32  pdl               1: launched with programmatic serialization
     u32  name_bytes, args_bytes, n_memory, zero
     char name[name_bytes]  of the kernel's function, in PTX too; no terminator
     u8   args[args_bytes]  the one argument, a struct of pointers and integers
     then n_memory times, addresses ascending:
       u64 address, bytes   as the pointers in args have them
       u64 changed          1: `after` follows; 0: the launch left it as it was
       u8  before[bytes]
       u8  after[bytes]
   Memory is every device allocation into which an aligned 8-byte word of args points; a kernel has
   no other way to memory. */
#ifndef TESTS_CUDA_SIMT_RECORD_H
#define TESTS_CUDA_SIMT_RECORD_H
#include "tests/cuda/simt/simt.h"

namespace simt {

/* Around the run of a launch, while its memory can be read. Both do nothing unless SIMT_RECORD is
   set and the launch is wanted. */
void record_before(const struct launch_record &);
void record_after(const struct launch_record &);

} // namespace simt
#endif
