/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of select and advance against ref, and of the ops that measure ceilings against their
 * definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "tests/support/op_rig.h"

/* ---- select ---- */

static void select_run(struct op_rig *rig, struct op_target *target, const struct op_step *step,
                       int32_t vocab, const float *logits, const struct sampler *sampler,
                       int32_t *next) {
    struct device *device = target->device;
    struct step on = op_step_on(target, step);
    struct tensor t = op_tensor(target, DT_F32, on.n_out, vocab, vocab + 3, logits, false);
    device->ops->select(device, &on, &t, sampler);
    op_download(target, next, on.next, (size_t)on.n_out * 4);
    op_release(rig, target);
}

/* What the winner of output o is worth, in double: two devices may disagree about logs in the last
 * place only. */
static double worth(const struct op_step *step, int32_t o, const float *logits, int32_t vocab,
                    int32_t id, const struct sampler *sampler) {
    const struct step *h = &step->host;
    int32_t row = h->out_row[o];
    double z = (double)logits[(int64_t)o * vocab + id];
    if (!(sampler->temperature > 0)) return z;
    double u = random_unit(h->rng[h->seq[row]], ((uint64_t)h->pos[row] << 32) + (uint64_t)id);
    return z / (double)sampler->temperature - log(-log(u + 0x1p-54));
}

static void select_case(struct op_rig *rig, int32_t vocab, float temperature) {
    int32_t n_seq = op_int(rig, 1, 5), before[5], rows[5];
    for (int32_t s = 0; s < n_seq; s++) {
        before[s] = op_int(rig, 0, 5000);
        rows[s] = OP_PICK(rig, ((const int32_t[]){1, 1, 6}));
    }
    struct op_step step;
    op_step_make(rig, &step, n_seq, before, rows, vocab);
    float *logits = op_reals(rig, (int64_t)n_seq * vocab, 2);
    for (int32_t o = 0; o < n_seq; o++) { /* ties for the largest, wherever vector lanes may fall */
        float *row = logits + (int64_t)o * vocab, most = row[0];
        for (int32_t i = 1; i < vocab; i++) most = fmaxf(most, row[i]);
        for (int i = op_int(rig, 0, 3); i > 0; i--) row[op_int(rig, 0, vocab - 1)] = most;
        if (op_int(rig, 0, 5) == 0) row[op_int(rig, 0, vocab - 1)] = NAN; /* never larger */
        if (op_int(rig, 0, 9) == 0) /* nothing is possible: id 0 */
            for (int32_t i = 0; i < vocab; i++) row[i] = i == 0 && o % 2 == 0 ? NAN : -INFINITY;
        if (op_int(rig, 0, 3) == 0) /* all far below zero: 0 must not win */
            for (int32_t i = 0; i < vocab; i++) row[i] -= 1000;
    }
    op_case_name(rig, "select at %g, %d rows, vocabulary %d", (double)temperature, n_seq, vocab);
    const struct op_case ask = {.activation = DT_F32};
    const struct sampler sampler = {.temperature = temperature, .end_id = -1};
    int32_t want[5], got[5];
    op_supported(rig, &rig->ref, OP_SELECT, &ask);
    select_run(rig, &rig->ref, &step, vocab, logits, &sampler, want);
    for (int t = 0; t < rig->n_targets; t++) {
        struct op_target *target = &rig->targets[t];
        if (!op_supported(rig, target, OP_SELECT, &ask)) continue;
        select_run(rig, target, &step, vocab, logits, &sampler, got);
        for (int32_t o = 0; o < n_seq; o++) {
            if (got[o] == want[o]) continue;
            bool inside = got[o] >= 0 && got[o] < vocab;
            double a = inside ? worth(&step, o, logits, vocab, got[o], &sampler) : -INFINITY;
            double b = worth(&step, o, logits, vocab, want[o], &sampler);
            if (!(temperature > 0) || !(b - a <= 1e-9 * fabs(b)))
                op_fail(rig, target, "row %d: token %d (%.9g), ref has %d (%.9g)", o, got[o], a,
                        want[o], b);
        }
    }
    free(logits);
}

void op_check_select(struct op_rig *rig) {
    static const int32_t vocabs[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 1023, 4096};
    static const float temperatures[] = {0, 0, 0.3f, 1};
    op_plan_dense(rig);
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++)
        for (int i = 0; i < 8; i++) select_case(rig, vocabs[v], temperatures[i % 4]);
    select_case(rig, 151937, 0);
    select_case(rig, 49152, 0.7f);
}

/* ---- advance ---- */

struct advanced {
    int32_t token[8], pos[8], kv_len[8], alive[8];
};

static void advance_run(struct op_rig *rig, struct op_target *target, const struct op_step *from,
                        const struct op_step *to, int32_t end_id, struct advanced *out) {
    struct device *device = target->device;
    struct step a = op_step_on(target, from), b = a;
    if (to != from) b = op_step_on(target, to);
    const struct sampler sampler = {.end_id = end_id};
    device->ops->advance(device, &a, &b, &sampler);
    size_t seqs = (size_t)b.n_seq * 4;
    *out = (struct advanced){0};
    op_download(target, out->token, b.token, seqs);
    op_download(target, out->pos, b.pos, seqs);
    op_download(target, out->kv_len, b.kv_len, seqs);
    op_download(target, out->alive, b.alive, seqs);
    op_release(rig, target);
}

void op_check_advance(struct op_rig *rig) {
    for (int i = 0; i < 60; i++) {
        bool same = i % 2;
        int32_t n_seq = op_int(rig, 1, 8), before[8], rows[8], ones[8];
        for (int32_t s = 0; s < n_seq; s++) {
            before[s] = op_int(rig, 0, 100);
            rows[s] = same ? 1 : op_int(rig, 1, 5);
            ones[s] = 1;
        }
        struct op_step from, to;
        op_step_make(rig, &from, n_seq, before, rows, 4);
        op_step_make(rig, &to, n_seq, before, ones, 4);
        if (op_int(rig, 0, 1)) from.host.n_out = op_int(rig, 1, n_seq); /* only some go on */
        int32_t end_id = op_int(rig, -1, 3);
        op_case_name(rig, "advance %s, %d of %d sequences, end %d",
                     same ? "in place" : "to another step", from.host.n_out, n_seq, end_id);
        const struct op_case ask = {.activation = DT_F32};
        struct advanced want, got;
        op_supported(rig, &rig->ref, OP_ADVANCE, &ask);
        advance_run(rig, &rig->ref, &from, same ? &from : &to, end_id, &want);
        for (int t = 0; t < rig->n_targets; t++) {
            struct op_target *target = &rig->targets[t];
            if (!op_supported(rig, target, OP_ADVANCE, &ask)) continue;
            advance_run(rig, target, &from, same ? &from : &to, end_id, &got);
            op_equal(rig, target, "step", &got, &want, sizeof got);
        }
    }
}

/* ---- ceilings ---- */

static void copy_on(struct op_rig *rig, struct op_target *target, const float *from, size_t bytes) {
    struct device *device = target->device;
    void *a = op_buffer(target, bytes, from), *b = op_buffer(target, bytes, NULL);
    device->ops->copy(device, b, a, (int64_t)bytes);
    unsigned char *got = must_alloc(bytes);
    op_download(target, got, b, bytes);
    op_equal(rig, target, "copy", got, from, bytes);
    free(got);
    op_release(rig, target);
}

/* The sink's value is the device's own; it must be written and must depend on what was read. */
static void read_on(struct op_rig *rig, struct op_target *target, const float *x, size_t bytes) {
    struct device *device = target->device;
    float *zero = must_alloc(bytes), sinks[2];
    for (int i = 0; i < 2; i++) {
        void *a = op_buffer(target, bytes, i ? x : zero);
        float *sink = op_buffer(target, 64, NULL);
        device->ops->read(device, a, (int64_t)bytes, sink);
        op_download(target, &sinks[i], sink, sizeof(float));
        op_release(rig, target);
        if (f32_bits(sinks[i]) == 0xffffffffu) op_fail(rig, target, "read wrote no sink");
    }
    if (f32_bits(sinks[0]) == f32_bits(sinks[1]))
        op_fail(rig, target, "read's sink ignores the data");
    free(zero);
}

static void triad_on(struct op_rig *rig, struct op_target *target, const float *b, const float *c,
                     size_t bytes) {
    struct device *device = target->device;
    int64_t n = (int64_t)(bytes / 4);
    float *a = op_buffer(target, bytes, NULL), *want = must_alloc(bytes), *got = must_alloc(bytes);
    device->ops->triad(device, a, op_buffer(target, bytes, b), op_buffer(target, bytes, c), 0.37f,
                       n);
    op_download(target, got, a, bytes);
    for (int64_t i = 0; i < n; i++) want[i] = (float)((double)b[i] + (double)0.37f * (double)c[i]);
    op_compare(rig, target, "triad", got, want, n, 2e-7f, 2e-7f);
    free(want);
    free(got);
    op_release(rig, target);
}

static void fma_on(struct op_rig *rig, struct op_target *target) {
    for (int type = DT_F32; type <= DT_BF16; type++) {
        const struct op_case ask = {.activation = (enum dtype)type};
        if (!op_supported(rig, target, OP_FMA_PEAK, &ask)) continue;
        target->device->ops->fma_peak(target->device, (enum dtype)type, (int64_t)1 << 22);
        op_release(rig, target);
    }
}

static void ceilings_on(struct op_rig *rig, struct op_target *target, const float *x,
                        const float *y, size_t bytes) {
    const struct op_case ask = {.activation = DT_F32};
    op_case_name(rig, "ceilings, %zu bytes", bytes);
    if (op_supported(rig, target, OP_COPY, &ask)) copy_on(rig, target, x, bytes);
    if (op_supported(rig, target, OP_READ, &ask)) read_on(rig, target, x, bytes);
    if (op_supported(rig, target, OP_TRIAD, &ask)) triad_on(rig, target, x, y, bytes);
}

void op_check_ceilings(struct op_rig *rig) {
    static const size_t pages[] = {
        1, 2, 3, 5, 16, 257, 1025, 4161}; /* the last, moved twice, is beyond 32 MiB of cache */
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        size_t bytes = pages[i] * 4096;
        float *x = op_reals(rig, (int64_t)bytes / 4, 1), *y = op_reals(rig, (int64_t)bytes / 4, 1);
        ceilings_on(rig, &rig->ref, x, y, bytes);
        for (int t = 0; t < rig->n_targets; t++) ceilings_on(rig, &rig->targets[t], x, y, bytes);
        free(x);
        free(y);
    }
    op_case_name(rig, "fma_peak");
    fma_on(rig, &rig->ref);
    for (int t = 0; t < rig->n_targets; t++) fma_on(rig, &rig->targets[t]);
}
