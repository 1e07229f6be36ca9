/* SPDX-License-Identifier: Apache-2.0 */
/* latent_golden.tsv, made by latent_golden.py in float64 NumPy, against the lab ops of every device
 * that has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "kernels/lab.h"
#include "kernels/lab_latent.h"
#include "tests/support/op_rig.h"

enum { LONGEST = 2000 };
static struct op_rig rig;
static char *at; /* the line after the last that was read */

/* The numbers of the next line, which must have this name; -1: another one. */
static int numbers(const char *name, float *out) {
    const size_t len = strlen(name);
    char *end = strchr(at, '\n');
    int n = 0;
    if (!end || strncmp(at, name, len) != 0 || at[len] != '\t') return -1;
    *end = 0;
    for (char *word = strtok(at + len, "\t"); word && n < LONGEST; word = strtok(NULL, "\t")) {
        double v;
        if (!parse_f64(word, &v)) op_fail(&rig, &rig.ref, "'%s' in line %s", word, name);
        out[n++] = (float)v;
    }
    at = end + 1;
    return n;
}

static void expect(const char *name, float *out, int n) {
    const int got = numbers(name, out);
    if (got != n) op_fail(&rig, &rig.ref, "line %s has %d numbers, expected %d", name, got, n);
}

static void step_rows(struct op_step *step, int32_t before, int32_t rows) {
    op_step_make(&rig, step, 1, &before, &rows, 2);
}

typedef void check_on(struct op_target *);
static void on_all(check_on *check) {
    check(&rig.ref);
    for (int t = 0; t < rig.n_targets; t++)
        if (rig.targets[t].device->lab && rig.targets[t].device->lab->latent)
            check(&rig.targets[t]);
}

static float shape[8], x[LONGEST], wk[LONGEST], wv[LONGEST], q[LONGEST], rows[LONGEST], o[LONGEST],
    means[LONGEST], chosen[LONGEST], seen[1];

/* ---- latents: all tokens are appended in one step, and each row sees those before it */

static void latent_on(struct op_target *target) {
    const struct lab_latent *lab = target->device->lab->latent;
    const int32_t n_q = (int32_t)shape[0], d_h = (int32_t)shape[1], n = (int32_t)shape[2];
    const int32_t rotary = (int32_t)shape[3], tokens = (int32_t)shape[4], width = n + rotary;
    const int32_t q_cols = n_q * (d_h + rotary);
    const struct rope rope = {.base = shape[6], .style = shape[5] > 0 ? ROPE_PAIRS : ROPE_HALVES};
    const struct step_bounds bounds = {
        1, tokens, 1, tokens, tokens, n_q, 1, d_h > width ? d_h : width, 8, 8, 8, DT_F32};
    struct op_step step;
    step_rows(&step, 0, tokens);
    op_plan(&rig, target, &bounds);
    const struct step on = op_step_on(target, &step);
    const size_t kept = (size_t)(tokens * width), weights = (size_t)(n_q * d_h * n);
    const struct latent_cache cache = {DT_F32, n, rotary, tokens,
                                       op_buffer(target, kept * sizeof(float), NULL)};
    struct latent_heads heads = {n_q, d_h, op_buffer(target, weights * sizeof(float), wk),
                                 op_buffer(target, weights * sizeof(float), wv), NULL};
    float *room = op_buffer(target, 2 * sizeof *room * (size_t)(tokens * n_q * width), NULL);
    const struct tensor in =
        op_tensor(target, DT_F32, tokens, q_cols + width, q_cols + width, x, false);
    struct tensor turned = op_tensor(target, DT_F32, tokens, q_cols, q_cols, NULL, true);
    float got[LONGEST], *values;
    lab->append(target->device, &turned, &cache, &heads, &in, &on, &rope);
    op_download(target, got, cache.rows, kept * sizeof(float));
    op_compare(&rig, target, "what is kept", got, rows, (int64_t)kept, 1e-6f, 1e-6f);
    values = op_values(&rig, target, &turned);
    op_compare(&rig, target, "queries", values, q, (int64_t)tokens * q_cols, 1e-6f, 1e-6f);
    free(values);
    for (int i = 0; i < 3; i++) {
        heads.room = i == 2 ? room : NULL;
        struct tensor out = op_tensor(target, DT_F32, tokens, n_q * d_h, n_q * d_h, NULL, true);
        lab->attention(target->device, &out, &turned, &cache, &heads, &on,
                       (float)(1 / sqrt((double)(d_h + rotary))),
                       i == 1 ? LATENT_REBUILT : LATENT_ABSORBED);
        values = op_values(&rig, target, &out);
        op_compare(&rig, target,
                   i == 1 ? "rebuilt"
                   : i    ? "absorbed, with room"
                          : "absorbed",
                   values, o, (int64_t)tokens * n_q * d_h, 2e-5f, 2e-5f);
        free(values);
    }
    op_release(&rig, target);
}

/* ---- blocks: the means of all of them in one step; then the last row chooses */

static void blocks_on(struct op_target *target) {
    const struct lab_latent *lab = target->device->lab->latent;
    const int32_t n_kv = (int32_t)shape[0], n_q = n_kv * (int32_t)shape[1], d = (int32_t)shape[2];
    const int32_t block = (int32_t)shape[3], tokens = (int32_t)shape[4], most = (int32_t)shape[5];
    const int32_t n = (tokens + block - 1) / block, slots = n * block;
    const size_t bytes = sizeof(float) * (size_t)(slots * n_kv * d);
    const struct step_bounds bounds = {1, tokens, 1, tokens, tokens, n_q, n_kv, d, 8, 8, 8, DT_F32};
    int32_t units[LONGEST], table[LONGEST];
    float *k = calloc(1, bytes), *v = calloc(1, bytes), got[LONGEST];
    if (!k || !v) abort();
    for (int32_t b = 0; b < n; b++) units[b] = n - 1 - b; /* in reverse */
    for (int32_t t = 0; t < tokens; t++)
        for (int32_t h = 0; h < n_kv; h++) {
            const int32_t to = ((units[t / block] * n_kv + h) * block + t % block) * d;
            memcpy(k + to, wk + (t * n_kv + h) * d, sizeof *k * (size_t)d);
            memcpy(v + to, wv + (t * n_kv + h) * d, sizeof *v * (size_t)d);
        }
    op_plan(&rig, target, &bounds);
    struct kv kv = {.type = DT_F32, .n_kv = n_kv, .d_h = d, .block = block, .table_stride = n};
    kv.k = op_buffer(target, bytes, k), kv.v = op_buffer(target, bytes, v);
    kv.table = op_buffer(target, sizeof *units * (size_t)n, units);
    const struct block_means m = {DT_F32, n,
                                  op_buffer(target, sizeof(float) * (size_t)(n * n_kv * d), NULL),
                                  op_buffer(target, sizeof(float) * (size_t)n, NULL)};
    const struct block_choice choice = {most, op_buffer(target, sizeof *table * (size_t)most, NULL),
                                        op_buffer(target, sizeof(int32_t), NULL),
                                        op_buffer(target, sizeof(int32_t), NULL)};
    struct op_step all, last;
    step_rows(&all, 0, tokens);
    step_rows(&last, tokens - 1, 1);
    const struct step filling = op_step_on(target, &all), on = op_step_on(target, &last);
    lab->summarize(target->device, &m, &kv, &filling);
    op_download(target, got, m.means, sizeof(float) * (size_t)(n * n_kv * d));
    op_compare(&rig, target, "means", got, means, (int64_t)n * n_kv * d, 1e-6f, 1e-6f);
    const struct tensor in = op_tensor(target, DT_F32, 1, n_q * d, n_q * d, q, false);
    lab->choose(target->device, &choice, &m, &in, &kv, &on);
    op_download(target, table, choice.table, sizeof *table * (size_t)most);
    for (int32_t i = 0; i < (most < n ? most : n); i++)
        if (table[i] != units[(int32_t)chosen[i]])
            op_fail(&rig, target, "block %d is unit %d, expected block %g", i, table[i],
                    (double)chosen[i]);
    struct kv few = kv;
    struct step over = on;
    few.table = choice.table, few.table_stride = most;
    over.pos = choice.pos, over.kv_len = choice.kv_len;
    int32_t pos, len;
    op_download(target, &pos, over.pos, sizeof pos);
    op_download(target, &len, over.kv_len, sizeof len);
    if (len != (int32_t)seen[0] || pos != len - 1)
        op_fail(&rig, target, "%d tokens are seen, expected %g", len, (double)seen[0]);
    struct tensor out = op_tensor(target, DT_F32, 1, n_q * d, n_q * d, NULL, true);
    target->device->ops->attention(target->device, &out, &in, &few, &over,
                                   (float)(1 / sqrt((double)d)));
    float *values = op_values(&rig, target, &out);
    op_compare(&rig, target, "o", values, o, (int64_t)n_q * d, 2e-5f, 2e-5f);
    free(values);
    free(k);
    free(v);
    op_release(&rig, target);
}

static void read_latent(void) {
    const int n_q = (int)shape[0], d_h = (int)shape[1], n = (int)shape[2], rotary = (int)shape[3];
    const int tokens = (int)shape[4], q_cols = n_q * (d_h + rotary);
    expect("x", x, tokens * (q_cols + n + rotary));
    expect("wk", wk, n_q * d_h * n);
    expect("wv", wv, n_q * d_h * n);
    expect("q", q, tokens * q_cols);
    expect("rows", rows, tokens * (n + rotary));
    expect("o", o, tokens * n_q * d_h);
    op_case_name(&rig, "latent %d of %d heads of %d, rotary %d, %d tokens", n, n_q, d_h, rotary,
                 tokens);
}

static void read_blocks(void) {
    const int n_kv = (int)shape[0], n_q = n_kv * (int)shape[1], d = (int)shape[2];
    const int block = (int)shape[3], tokens = (int)shape[4], most = (int)shape[5];
    const int n = (tokens + block - 1) / block;
    expect("keys", wk, tokens * n_kv * d);
    expect("values", wv, tokens * n_kv * d);
    expect("q", q, n_q * d);
    expect("means", means, n * n_kv * d);
    expect("chosen", chosen, most < n ? most : n);
    expect("seen", seen, 1);
    expect("o", o, n_q * d);
    op_case_name(&rig, "%d of %d blocks of %d, %d tokens, %d heads over %d of %d", most, n, block,
                 tokens, n_q, n_kv, d);
}

int main(void) {
    static const char *const threads[] = {"1", "3", NULL};
    const char *root = getenv("SOURCE_DIR");
    char path[1000], *text;
    struct err err = {0};
    size_t len;
    int cases = 0;
    snprintf(path, sizeof path, "%s/tests/golden/latent_golden.tsv", root ? root : ".");
    if (file_read(path, 1 << 20, &text, &len, &err)) {
        printf("FAILED %s\n", err.text);
        return 1;
    }
    op_rig_open(&rig, threads);
    at = text;
    while (*at && !rig.failures) {
        if (numbers("latent", shape) == 7) {
            read_latent();
            on_all(latent_on);
        } else if (numbers("blocks", shape) == 6) {
            read_blocks();
            on_all(blocks_on);
        } else {
            op_fail(&rig, &rig.ref, "a line that begins no case: %.20s", at);
        }
        cases++;
    }
    if (cases != 11) op_fail(&rig, &rig.ref, "%d cases of 11", cases);
    free(text);
    return op_rig_close(&rig) ? 1 : 0;
}
