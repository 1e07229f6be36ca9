/* SPDX-License-Identifier: Apache-2.0 */
/* A data sheet of a device, protocols/devices/NAME.toml: its figures, and where each comes from. */
#ifndef HARNESS_SHEET_H
#define HARNESS_SHEET_H
#include <stddef.h>

struct arena;
struct err;

struct toml_entry;

/* Figures that workloads ask for, each a key of theirs; NULL ends them. A sheet may hold others. */
extern const char *const sheet_figures[];

struct sheet_figure {
    const char *name, *value; /* "hbm_bytes_per_s", "3.35e12" */
    const char *kind, *from; /* sheet, assumed or measured; in words; "" where the file says none */
    const char *place;       /* of the value: "devices/h100.toml:7:1" */
};
struct sheet {
    const char *title; /* "NVIDIA H100 SXM, 80 GB" */
    struct sheet_figure *figures;
    size_t n;
};
/* A key that no sheet has, a figure without value or one that is called almost as one of
   sheet_figures: ERR_INPUT with its place. What the values may be is up to who asks for them. */
int sheet_check(const struct toml_entry *, size_t n, const char *file, struct err *);
/* name: a file, or the name of one of our own in any case ("H100"). All in the arena. ERR_INPUT
   names the sheets that there are. */
int sheet_read(struct sheet *, const char *name, struct arena *, struct err *);

#endif
