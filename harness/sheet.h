/* SPDX-License-Identifier: Apache-2.0 */
/* A data sheet of a device, protocols/devices/NAME.toml: its figures, and where each comes from. */
#ifndef HARNESS_SHEET_H
#define HARNESS_SHEET_H
#include <stddef.h>

struct arena;
struct err;

struct sheet_figure {
    const char *name, *value; /* "hbm_bytes_per_s", "3.35e12" */
    const char *kind, *from; /* sheet, assumed or measured; in words; "" where the file says none */
};
struct sheet {
    const char *title; /* "NVIDIA H100 SXM, 80 GB" */
    struct sheet_figure *figures;
    size_t n;
};
/* name: a file, or the name of one of our own in any case ("H100"). All in the arena. ERR_INPUT
   names the sheets that there are. */
int sheet_read(struct sheet *, const char *name, struct arena *, struct err *);

#endif
