/* SPDX-License-Identifier: Apache-2.0 */
/* Opening devices at every level, guarded memory, random numbers and comparison for the op tests.
 */
#include "tests/support/op_rig.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/option.h"
#include "base/random.h"
#include "base/text.h"
#include "tests/support/op_amx.h"

enum { GUARD = 256 }; /* bytes; keeps the alignment of 64 */

/* ---- opening ---- */

static void set_option(const struct option *table, const char *key, const char *value, void *params,
                       struct arena *arena) {
    const struct option *option = option_find(table, key);
    struct err err = {0};
    if (option_parse(option, value, params, arena, &err)) {
        printf("option %s = %s: %s\n", key, value, err.text);
        abort(); /* words come from the table itself */
    }
}

/* Opens the kind with isa, threads and pdl (each NULL where it has no such option) as one more
   target. */
static void open_target(struct op_rig *rig, const struct device_kind *kind, const char *isa,
                        const char *threads, const char *pdl) {
    struct op_target *target = &rig->targets[rig->n_targets];
    void *params = arena_alloc(rig->arena, kind->params_size + 1);
    struct err err = {0};
    if (kind->params) option_defaults(kind->params, params, rig->arena);
    if (isa) set_option(kind->params, "isa", isa, params, rig->arena);
    if (threads) set_option(kind->params, "threads", threads, params, rig->arena);
    if (pdl) set_option(kind->params, "pdl", pdl, params, rig->arena);
    snprintf(target->name, sizeof target->name, "%s%s%s%s%s%s%s", kind->name, isa ? " isa=" : "",
             isa ? isa : "", threads ? " threads=" : "", threads ? threads : "", pdl ? " pdl=" : "",
             pdl ? pdl : "");
    if (rig->n_targets == OP_TARGETS || device_open(&target->device, kind, params, &err)) {
        printf("SKIPPED %s: %s\n", target->name, err.code ? err.text : "too many targets");
        return;
    }
    target->owned = device_live_allocations(target->device);
    rig->n_targets++;
}

static void open_kind(struct op_rig *rig, const struct device_kind *kind,
                      const char *const *threads) {
    static const char *const none[] = {NULL};
    const char *only = getenv("BENCH_ISA"); /* emulated processors: the level that is new there */
    const struct option *isa = kind->params ? option_find(kind->params, "isa") : NULL;
    bool takes_threads = kind->params && option_find(kind->params, "threads");
    if (kind->params && option_find(kind->params, "pdl")) {
        open_target(rig, kind, NULL, NULL, "true");
        /* Emulated launches run alike, and the rule of early ones is the stricter. */
        if (strcmp(kind->name, "cuda-emu") != 0) open_target(rig, kind, NULL, NULL, "false");
        return;
    }
    const char *const *levels = isa ? isa->words : none;
    for (int l = 0; l == 0 || (isa && levels[l]); l++) {
        if (levels[l] && strcmp(levels[l], "auto") == 0) continue; /* one of the others */
        if (levels[l] && only && strcmp(levels[l], only) != 0) continue;
        for (int t = 0; t == 0 || (takes_threads && threads[t]); t++)
            open_target(rig, kind, levels[l], takes_threads ? threads[t] : NULL, NULL);
    }
}

static void begin(struct op_rig *rig) {
    *rig = (struct op_rig){.arena = arena_create()};
    const char *seed = getenv("BENCH_SEED");
    if (!seed || !parse_u64(seed, &rig->seed)) rig->seed = 1; /* check_seeds.sh: others */
    const char *one_in = getenv("BENCH_ONE_IN");
    if (one_in) rig->one_in = atoi(one_in);
    printf("BENCH_SEED=%llu\n", (unsigned long long)rig->seed);
    struct err err = {0};
    snprintf(rig->ref.name, sizeof rig->ref.name, "ref");
    if (device_open(&rig->ref.device, device_kind_find("ref"), NULL, &err)) abort();
}

void op_rig_open(struct op_rig *rig, const char *const *threads) {
    const char *only = getenv("BENCH_DEVICE"); /* gpu-check: a device that must be there */
    begin(rig);
    for (int i = 0; all_devices[i]; i++)
        if (!(all_devices[i]->has & DEV_VIRTUAL_CLOCK) &&
            strcmp(all_devices[i]->name, "ref") != 0 &&
            (!only || !strcmp(all_devices[i]->name, only)))
            open_kind(rig, all_devices[i], threads);
    const struct device_kind *amx = op_amx_in_memory();
    if (!only || !strcmp(amx->name, only))
        for (int t = 0; threads[t]; t++) open_target(rig, amx, NULL, threads[t], NULL);
    if (rig->n_targets > 0) return;
    printf("SKIPPED all but ref: no other device computes here\n");
    if (only) rig->failures++;
}

void op_rig_open_one(struct op_rig *rig, const struct device_kind *kind) {
    begin(rig);
    rig->quiet = true;
    open_target(rig, kind, NULL, NULL, NULL);
}

static void report(const struct op_target *target) {
    printf("%s:", target->name);
    for (int i = 0; i < N_OPS; i++)
        if (target->ran[i]) printf(" %s %ld", op_names[i], target->ran[i]);
    printf("\n");
    for (int i = 0; i < target->n_skips; i++)
        printf("  SKIPPED %s %ld: %s\n", op_names[target->skips[i].op], target->skips[i].n,
               target->skips[i].reason);
}

long op_rig_close(struct op_rig *rig) {
    report(&rig->ref);
    for (int i = 0; i < rig->n_targets; i++) {
        report(&rig->targets[i]);
        device_close(&rig->targets[i].device);
    }
    device_close(&rig->ref.device);
    arena_close(&rig->arena);
    return rig->failures;
}

void op_case_name(struct op_rig *rig, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(rig->what, sizeof rig->what, fmt, args);
    va_end(args);
}

void op_fail(struct op_rig *rig, const struct op_target *target, const char *fmt, ...) {
    if (rig->failures++ >= 20 || rig->quiet) return;
    va_list args;
    va_start(args, fmt);
    printf("FAILED %s: %s: ", target->name, rig->what);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

bool op_enough(struct op_rig *rig) {
    if (rig->quiet && rig->failures > 0) return true;
    return rig->one_in > 1 && op_int(rig, 1, rig->one_in) > 1;
}

/* ---- random numbers ---- */

int32_t op_int(struct op_rig *rig, int32_t low, int32_t high) {
    return low + (int32_t)random_below(rig->seed, rig->draw++, (uint32_t)(high - low + 1));
}

/* The sum of four uniform numbers: cheap, and near enough to normal. */
float op_real(struct op_rig *rig) {
    uint64_t u = random_at(rig->seed, rig->draw++);
    int32_t sum = (int32_t)(u & 0xffff) + (int32_t)(u >> 16 & 0xffff) +
                  (int32_t)(u >> 32 & 0xffff) + (int32_t)(u >> 48);
    return (float)(sum - 131070) * (1.0f / 37837.0f);
}

float *op_reals(struct op_rig *rig, int64_t n, float deviation) {
    float *v = must_alloc((size_t)(n + 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = op_real(rig) * deviation;
    return v;
}

/* ---- devices ---- */

bool op_supported(struct op_rig *rig, struct op_target *target, enum op op,
                  const struct op_case *c) {
    const char *reason = NULL;
    bool yes = target->device->kind->supports(target->device, op, c, &reason);
    if (!reason) op_fail(rig, target, "supports gives no kernel or reason for %s", op_names[op]);
    if (!reason) return false;
    if (yes) {
        target->ran[op]++;
        return true;
    }
    for (int i = 0; i < target->n_skips; i++) {
        if (target->skips[i].op == op && strcmp(target->skips[i].reason, reason) == 0) {
            target->skips[i].n++;
            return false;
        }
    }
    if (target->n_skips < OP_SKIPS)
        target->skips[target->n_skips++] = (struct op_skip){op, reason, 1};
    return false;
}

void op_plan(struct op_rig *rig, struct op_target *target, const struct step_bounds *bounds) {
    struct err err = {0};
    size_t mine = device_live_allocations(target->device) - target->owned;
    if (target->device->kind->plan(target->device, bounds, &err))
        op_fail(rig, target, "plan: %s", err.text);
    target->owned = device_live_allocations(target->device) - mine;
}

void op_plan_dense(struct op_rig *rig) {
    const struct step_bounds most = {.n_seq = 128,
                                     .n_row = 1024,
                                     .n_out = 128,
                                     .most_q = 128,
                                     .most_kv = 8192,
                                     .n_q = 16,
                                     .n_kv = 4,
                                     .d_h = 128,
                                     .d_model = 4865,
                                     .d_ff = 4865,
                                     .vocab = 151937,
                                     .activation = DT_BF16};
    for (int t = 0; t < rig->n_targets; t++) op_plan(rig, &rig->targets[t], &most);
}

static void *guarded(struct op_target *target, size_t bytes, const void *content, bool may_change) {
    size_t all = bytes + 2 * GUARD;
    unsigned char *image = must_alloc(all),
                  *base = device_alloc(target->device, all, MEM_OTHER, "op test");
    if (!base || target->n_buffers == OP_BUFFERS)
        abort(); /* small memory, few buffers: a fault of the test itself */
    memset(image, 0xff, all);
    if (content && bytes) memcpy(image + GUARD, content, bytes);
    target->device->kind->upload(target->device, base, image, all);
    struct op_buffer *b = &target->buffers[target->n_buffers++];
    *b = (struct op_buffer){base, bytes, 0};
    if (content && !may_change) b->hash = hash_bytes(image, all, 0) | 1;
    free(image);
    return base + GUARD;
}

void *op_buffer(struct op_target *target, size_t bytes, const void *content) {
    return guarded(target, bytes, content, false);
}

void *op_inout(struct op_target *target, size_t bytes, const void *content) {
    return guarded(target, bytes, content, true);
}

void op_download(struct op_target *target, void *to, const void *from, size_t bytes) {
    if (bytes) target->device->kind->download(target->device, to, from, bytes);
}

struct tensor op_tensor(struct op_target *target, enum dtype type, int32_t rows, int32_t cols,
                        int64_t stride, const float *values, bool may_change) {
    size_t size = (size_t)dtype_bits(type) / 8, bytes = (size_t)(rows * stride) * size;
    unsigned char *image = must_alloc(bytes + 1);
    memset(image, 0xff, bytes);
    for (int32_t r = 0; values && r < rows; r++)
        for (int32_t c = 0; c < cols; c++)
            dtype_store(image, type, r * stride + c, values[(int64_t)r * cols + c]);
    struct tensor t = {.type = type, .rows = rows, .cols = cols, .stride = stride};
    t.data = guarded(target, bytes, image, may_change || !values);
    free(image);
    return t;
}

float *op_values(struct op_rig *rig, struct op_target *target, const struct tensor *t) {
    size_t size = (size_t)dtype_bits(t->type) / 8, bytes = (size_t)(t->rows * t->stride) * size;
    unsigned char *image = must_alloc(bytes + 1);
    float *values = must_alloc((size_t)t->rows * (size_t)t->cols * sizeof *values + 1);
    bool damaged = false;
    op_download(target, image, t->data, bytes);
    for (int32_t r = 0; r < t->rows; r++) {
        for (int32_t c = 0; c < t->cols; c++)
            values[(int64_t)r * t->cols + c] = dtype_load(image, t->type, r * t->stride + c);
        for (size_t i = (size_t)(r * t->stride + t->cols) * size;
             i < (size_t)((r + 1) * t->stride) * size; i++)
            damaged |= image[i] != 0xff;
    }
    if (damaged) op_fail(rig, target, "wrote between the rows of a tensor");
    free(image);
    return values;
}

struct weight *op_pack(struct op_rig *rig, struct op_target *target,
                       const struct weight_spec *parts, int n, const struct row_source *sources) {
    struct err err = {0};
    struct weight *w = NULL;
    const struct tracker *tracker = target->device->tracker;
    int64_t codes = tracker_live(tracker, MEM_WEIGHT), scales = tracker_live(tracker, MEM_SCALE);
    if (target->device->kind->pack(target->device, &w, parts, n, sources, &err)) {
        op_fail(rig, target, "pack: %s", err.text);
        return NULL;
    }
    int64_t rows = 0, payload = 0, scale_bytes = 0;
    for (int i = 0; i < n; i++) {
        rows += parts[i].rows;
        payload += quant_payload_bytes(&parts[i]);
        scale_bytes += quant_scale_bytes(&parts[i]);
    }
    bool exact = strcmp(target->device->kind->name, "ref") == 0;
    if (w->rows != rows || w->cols != parts[0].cols || w->type != parts[0].type ||
        w->bytes < payload || w->scale_bytes < scale_bytes ||
        (exact && (w->bytes != payload || w->scale_bytes != scale_bytes)))
        op_fail(rig, target,
                "packed weight has %lld rows, %lld and %lld bytes; expected %lld, %lld and %lld",
                (long long)w->rows, (long long)w->bytes, (long long)w->scale_bytes, (long long)rows,
                (long long)payload, (long long)scale_bytes);
    if (tracker_live(tracker, MEM_WEIGHT) - codes != w->bytes ||
        tracker_live(tracker, MEM_SCALE) - scales != w->scale_bytes)
        op_fail(rig, target, "the tracker saw other bytes than the weight says");
    return w;
}

void op_release(struct op_rig *rig, struct op_target *target) {
    struct err err = {0};
    if (target->device->kind->sync(target->device, &err))
        op_fail(rig, target, "sync: %s", err.text);
    for (int i = 0; i < target->n_buffers; i++) {
        struct op_buffer *b = &target->buffers[i];
        size_t all = b->bytes + 2 * GUARD;
        unsigned char *image = must_alloc(all);
        op_download(target, image, b->base, all);
        bool damaged = false;
        for (size_t j = 0; j < GUARD; j++)
            damaged |= image[j] != 0xff || image[GUARD + b->bytes + j] != 0xff;
        if (damaged)
            op_fail(rig, target, "wrote outside of a buffer of %zu bytes", b->bytes);
        else if (b->hash && b->hash != (hash_bytes(image, all, 0) | 1))
            op_fail(rig, target, "changed an input of %zu bytes", b->bytes);
        free(image);
        device_free(target->device, b->base);
    }
    target->n_buffers = 0;
    size_t live = device_live_allocations(target->device);
    if (live != target->owned)
        op_fail(rig, target, "%zu allocations live, %zu expected", live, target->owned);
    target->owned = live;
    tracker_reset(target->device->tracker);
}

/* ---- comparison ---- */

void op_compare(struct op_rig *rig, struct op_target *target, const char *what, const float *got,
                const float *want, int64_t n, float rtol, float atol) {
    int64_t wrong = 0, first = 0;
    for (int64_t i = 0; i < n; i++) {
        bool same = f32_bits(got[i]) == f32_bits(want[i]);
        if (same && got[i] == got[i]) continue;
        if (fabsf(got[i] - want[i]) <= rtol * fabsf(want[i]) + atol) continue; /* false for NaN */
        if (wrong++ == 0) first = i;
    }
    if (wrong)
        op_fail(rig, target, "%s: %lld of %lld differ; first at %lld: %.9g, ref has %.9g", what,
                (long long)wrong, (long long)n, (long long)first, (double)got[first],
                (double)want[first]);
}

void op_equal(struct op_rig *rig, struct op_target *target, const char *what, const void *got,
              const void *want, size_t bytes) {
    const unsigned char *a = got, *b = want;
    size_t i = 0;
    while (i < bytes && a[i] == b[i]) i++;
    if (i < bytes)
        op_fail(rig, target, "%s: not the same bits, first at byte %zu of %zu", what, i, bytes);
}

float op_ulp(enum dtype type) {
    return type == DT_F16 ? 0x1p-10f : type == DT_BF16 ? 0x1p-7f : 0x1p-23f;
}

/* ---- steps ---- */

void op_step_make(struct op_rig *rig, struct op_step *step, int32_t n_seq, const int32_t *before,
                  const int32_t *rows, int32_t vocab) {
    struct step *h = &step->host;
    *h = (struct step){.n_seq = n_seq, .n_out = n_seq};
    for (int32_t s = 0; s < n_seq; s++) {
        h->n_row += rows[s];
        if (rows[s] > h->most_q) h->most_q = rows[s];
        if (before[s] + rows[s] > h->most_kv) h->most_kv = before[s] + rows[s];
    }
    size_t seqs = (size_t)n_seq * 4, wide = (size_t)h->n_row * 4;
    h->token = arena_alloc(rig->arena, wide + 4);
    h->pos = arena_alloc(rig->arena, wide + 4);
    h->seq = arena_alloc(rig->arena, wide + 4);
    h->q_begin = arena_alloc(rig->arena, seqs + 4);
    h->kv_len = arena_alloc(rig->arena, seqs);
    h->out_row = arena_alloc(rig->arena, seqs);
    h->next = arena_alloc(rig->arena, seqs);
    h->alive = arena_alloc(rig->arena, seqs);
    h->rng = arena_alloc(rig->arena, seqs * 2);
    step->before = arena_alloc(rig->arena, seqs);
    for (int32_t s = 0, r = 0; s < n_seq; s++) {
        for (int32_t i = 0; i < rows[s]; i++, r++) {
            h->token[r] = op_int(rig, 0, vocab - 1);
            h->pos[r] = before[s] + i;
            h->seq[r] = s;
        }
        step->before[s] = before[s];
        h->q_begin[s + 1] = r;
        h->kv_len[s] = before[s] + rows[s];
        h->out_row[s] = r - 1;
        h->next[s] = op_int(rig, 0, vocab - 1);
        h->alive[s] = op_int(rig, 0, 3) > 0;
        h->rng[s] = random_key(rig->seed, rig->draw++);
    }
}

struct step op_step_on(struct op_target *target, const struct op_step *from) {
    struct step d = from->host;
    size_t seqs = (size_t)d.n_seq * 4, wide = (size_t)d.n_row * 4;
    d.token = op_inout(target, wide, d.token);
    d.pos = op_inout(target, wide, d.pos);
    d.seq = op_buffer(target, wide, d.seq);
    d.q_begin = op_buffer(target, seqs + 4, d.q_begin);
    d.kv_len = op_inout(target, seqs, d.kv_len);
    d.out_row = op_buffer(target, (size_t)d.n_out * 4, d.out_row);
    d.next = op_inout(target, (size_t)d.n_out * 4, d.next);
    d.alive = op_inout(target, seqs, d.alive);
    d.rng = op_buffer(target, seqs * 2, d.rng);
    return d;
}
