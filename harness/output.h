/* SPDX-License-Identifier: Apache-2.0 */
/* Where a result goes: as asked, or runs/NAME-YYYYmmdd-HHMMSS; never over something that is there.
 */
#ifndef HARNESS_OUTPUT_H
#define HARNESS_OUTPUT_H

struct err;

/* The path without its ending, malloc'ed: of `asked` (OUT.h5), or, if that is NULL, a new one that
   begins with `name`. ERR_INPUT where a result or journal of that name exists. */
int output_choose(const char *name, const char *asked, char **stem, struct err *);
/* Before a document is made: ERR_INPUT where `path` is a folder or lies in none, or is a result or
   a journal, over which nothing is written. NULL and "-" are standard output. */
int output_check_document(const char *path, struct err *);
/* The same of STEM.svg and STEM.png; ERR_INPUT also where STEM itself names no file, as "x/", or is
   a folder or a device. NULL: no picture is wanted. */
int output_check_pictures(const char *stem, struct err *);
/* ERR_INPUT where the folder that a file is to lie in is not there. */
int output_check_folder(const char *path, struct err *);
char *output_with(const char *stem, const char *ending); /* malloc'ed: stem and ".h5" */

#endif
