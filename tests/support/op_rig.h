/* SPDX-License-Identifier: Apache-2.0 */
/* What the op tests share: opened devices at every ISA level, guarded buffers, random cases,
 * comparison with ref. */
#ifndef TESTS_SUPPORT_OP_RIG_H
#define TESTS_SUPPORT_OP_RIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device.h"

struct arena;

enum { OP_TARGETS = 24, OP_SKIPS = 48, OP_BUFFERS = 64 };

struct op_skip {
    enum op op;
    const char *reason;
    long n;
};
struct op_buffer { /* GUARD bytes of 0xff before and behind: NaN to whoever reads them, a fault to
                      whoever writes */
    unsigned char *base;
    size_t bytes;
    uint64_t hash; /* of an input, which must not change; 0: an output */
};
struct op_target { /* an opened device with its options */
    char name[64];
    struct device *device;
    struct op_skip skips[OP_SKIPS];
    int n_skips;
    struct op_buffer buffers[OP_BUFFERS];
    int n_buffers;
    size_t owned; /* live allocations that belong to the device itself: workspace */
    long ran[N_OPS];
};
struct op_rig {
    struct op_target ref;
    struct op_target targets[OP_TARGETS];
    int n_targets;
    uint64_t seed, draw; /* BENCH_SEED, or 1; printed */
    long failures;       /* mismatches, damaged guards, changed inputs, leaks, failed syncs */
    bool quiet;          /* the test of the test: failures are wanted */
    int one_in;          /* BENCH_ONE_IN: of so many cases, one runs */
    char what[200];      /* the case at hand, for messages */
    struct arena *arena;
};

/* Opens ref and every device that really computes, at each of its levels; prints the seed and what
   is not available. threads: NULL-terminated list of values for the option `threads`. */
void op_rig_open(struct op_rig *, const char *const *threads);
/* A rig with one target only, of this kind: for the test of the test. */
void op_rig_open_one(struct op_rig *, const struct device_kind *);
/* Prints how often each op ran and what was skipped why; returns the failures. */
long op_rig_close(struct op_rig *);
void op_fail(struct op_rig *, const struct op_target *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void op_case_name(struct op_rig *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether a case is left out: the test of the test has seen what it wanted, or BENCH_ONE_IN=n, of
   slow builds, runs about one case in n. */
bool op_enough(struct op_rig *);

int32_t op_int(struct op_rig *, int32_t low, int32_t high); /* uniform, both inclusive */
#define OP_PICK(rig, list) ((list)[op_int((rig), 0, (int32_t)(sizeof(list) / sizeof *(list)) - 1)])
float op_real(struct op_rig *); /* about normal, mean 0, deviation 1, within 3.5 */
float *op_reals(struct op_rig *, int64_t n, float deviation); /* malloc'ed */

/* supports(); a refusal is counted under its reason. */
bool op_supported(struct op_rig *, struct op_target *, enum op, const struct op_case *);
void op_plan(struct op_rig *, struct op_target *, const struct step_bounds *);

/* All targets, for steps without a cache: more than any check takes. */
void op_plan_dense(struct op_rig *);

/* Guarded device memory, released by op_release. content NULL: an output, filled with 0xff. */
void *op_buffer(struct op_target *, size_t bytes, const void *content);
void *op_inout(struct op_target *, size_t bytes, const void *content); /* may change */
void op_download(struct op_target *, void *to, const void *from, size_t bytes);
/* Values (rows, cols) in the type; NULL: an output. stride - cols elements behind each row stay
 * 0xff. */
struct tensor op_tensor(struct op_target *, enum dtype, int32_t rows, int32_t cols, int64_t stride,
                        const float *values, bool may_change);
/* Back to floats (malloc'ed); the gaps of the stride are checked. */
float *op_values(struct op_rig *, struct op_target *, const struct tensor *);
/* Packs; a failure or wrong byte counts are failures of the rig (then NULL). */
struct weight *op_pack(struct op_rig *, struct op_target *, const struct weight_spec *, int n,
                       const struct row_source *);
/* Waits, checks guards, inputs and leaks, frees all buffers. */
void op_release(struct op_rig *, struct op_target *);

/* got and want as floats; NaN never equals. At most `most` elements may differ by more than rtol
 * |want| + atol. */
void op_compare(struct op_rig *, struct op_target *, const char *what, const float *got,
                const float *want, int64_t n, float rtol, float atol);
void op_equal(struct op_rig *, struct op_target *, const char *what, const void *got,
              const void *want, size_t bytes);
/* Half a step up or down at a rounding of this type: one unit in the last place, relative. */
float op_ulp(enum dtype);

/* A random step: n_seq sequences, each with `rows` new rows after `before` resident ones; host
 * arrays in the arena. */
struct op_step {
    struct step host; /* arrays on the host */
    int32_t *before;  /* (n_seq) */
};
void op_step_make(struct op_rig *, struct op_step *, int32_t n_seq, const int32_t *before,
                  const int32_t *rows, int32_t vocab);
struct step op_step_on(
    struct op_target *,
    const struct op_step *); /* inputs on the device; next, alive and so on may change */

/* The checks: each draws its cases and runs ref and all targets. */
void op_check_linear(struct op_rig *);
void op_check_linear_codes(struct op_rig *);
void op_check_embed(struct op_rig *);
void op_check_add_norm(struct op_rig *);
void op_check_gather(struct op_rig *);
void op_check_rope_append(struct op_rig *);
void op_check_attention(struct op_rig *);
void op_check_kv_copy_block(struct op_rig *);
void op_check_select(struct op_rig *);
void op_check_advance(struct op_rig *);
void op_check_ceilings(struct op_rig *);
/* Lab ops (kernels/lab.h), of the devices that have them. */
void op_check_flash(struct op_rig *);
void op_check_flash_edges(struct op_rig *);
void op_check_latent(struct op_rig *);
void op_check_blocks(struct op_rig *);
/* Devices that promise batch invariance: the same bits alone, in any batch, split and thread count.
 */
void op_check_invariance(struct op_rig *);

#endif
