/* SPDX-License-Identifier: Apache-2.0 */
/* The gate side by side: the program that made a baseline and this one, in turns. */
#ifndef HARNESS_GATE_LIVE_H
#define HARNESS_GATE_LIVE_H
#include "harness/gate_files.h"

struct gate_live {
    const struct arguments *a;
    const char *format;
    int repeats;
    /* Whether the baseline may judge; notes go to the gate. */
    int (*accepted)(const struct arguments *, struct gate *, const struct gate_files *,
                    struct err *);
    int (*finished)(const struct gate *, int code); /* says what is left to say; the exit code */
};
/* --baseline FILE [--baseline-bin PATH] [--protocol P]. Returns the exit code; err: why it could
   not be done. Prints. */
int gate_live(const struct gate_live *, struct err *);

/* --calibrate PROTOCOL [--sittings K], or FILE.h5 of one: what the rows can show here. */
int gate_calibrate(const struct arguments *, struct err *);

#endif
