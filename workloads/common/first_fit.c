/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted list of pieces; the holes lie between. */
#include "workloads/common/first_fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void first_fit_open(struct first_fit *f, int64_t size) { *f = (struct first_fit){.size = size}; }

void first_fit_close(struct first_fit *f) {
    free(f->pieces);
    *f = (struct first_fit){0};
}

/* Where piece i begins, or the memory ends. */
static int64_t begin_of(const struct first_fit *f, int32_t i) {
    return i < f->n ? f->pieces[i].begin : f->size;
}

int64_t first_fit_take(struct first_fit *f, int64_t size) {
    int64_t at = 0;
    int32_t i = 0;
    while (i < f->n && begin_of(f, i) - at < size) {
        at = f->pieces[i].begin + f->pieces[i].size;
        i++;
    }
    if (begin_of(f, i) - at < size) return -1;
    if (f->n == f->room) {
        f->room = f->room ? 2 * f->room : 16;
        f->pieces = must_realloc(f->pieces, sizeof *f->pieces * (size_t)f->room);
    }
    memmove(f->pieces + i + 1, f->pieces + i, sizeof *f->pieces * (size_t)(f->n - i));
    f->pieces[i] = (struct piece){at, size};
    f->n++;
    f->used += size;
    return at;
}

void first_fit_give(struct first_fit *f, int64_t begin) {
    for (int32_t i = 0; i < f->n; i++) {
        if (f->pieces[i].begin != begin) continue;
        f->used -= f->pieces[i].size;
        memmove(f->pieces + i, f->pieces + i + 1, sizeof *f->pieces * (size_t)(--f->n - i));
        return;
    }
}

int64_t first_fit_hole(const struct first_fit *f) {
    int64_t at = 0, most = 0;
    for (int32_t i = 0; i <= f->n; i++) {
        if (begin_of(f, i) - at > most) most = begin_of(f, i) - at;
        if (i < f->n) at = f->pieces[i].begin + f->pieces[i].size;
    }
    return most;
}
