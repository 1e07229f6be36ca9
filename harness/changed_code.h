/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions of two programs are other machine code: what stands beside 'slower'. */
#ifndef HARNESS_CHANGED_CODE_H
#define HARNESS_CHANGED_CODE_H
#include <stdbool.h>

struct text;

/* "12 of 2345 functions differ, among them cpu_linear (linear.c) and dot_int8 (codes.c); 1 is new":
   the longest first, by the symbol tables of both files (NULL: this program). Functions are matched
   by name and source file, and compared byte by byte, where addresses of 32 bits that lead to the
   same function, object or constant count as equal: a function that was only moved has not changed.
   False, and nothing is added: a file cannot be read, is no ELF file of 64 bits of x86-64, has no
   symbol table, or is so odd that comparing it does not end soon. */
bool changed_code(const char *a, const char *b, struct text *);

#endif
