/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two programs are the same machine code: what is found between such two is no change. */
#ifndef HARNESS_SAME_PROGRAM_H
#define HARNESS_SAME_PROGRAM_H
#include <stdbool.h>

/* Two ELF files of which everything that is loaded (code, constants, data, symbols to link) has the
   same bytes at the same addresses. What is not loaded may differ (debugging information), and of
   what is: notes, as the build's id, and the 40 hexadecimal digits of a git revision, by which
   alone two builds differ whose commits change nothing that is compiled. NULL: this program. False
   for what cannot be read or is no ELF file of 64 bits, unless both are one file. */
bool same_program(const char *a, const char *b);

#endif
