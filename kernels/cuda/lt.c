/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt by dlopen: its functions, descriptors, and an algorithm per shape, kept once chosen. */
#include "kernels/cuda/lt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/facts.h"
#include "base/text.h"
#include "kernels/cuda/engine.h"
#include "kernels/cuda/lt_desc.h"

#ifdef CUDA_LT_HEADER

enum {
    SETS = 128, /* of shapes, by their hash */
    WAYS = 8,   /* shapes of a set */
    TOLD = 40,  /* shapes that facts name */
    ROOM_BYTES = 32 << 20,
    FEW_ROWS = 64
};

struct shape { /* what an algorithm is chosen for */
    int64_t m, n, k, ldx, ldw, ldy;
    enum dtype in, out;
    uint32_t x_align, y_align;
};
struct chosen {
    struct shape shape;
    struct lt_problem problem;
    cublasLtMatmulAlgo_t algo;
    bool works;
};
struct set {
    struct chosen way[WAYS];
    int n, oldest;
};
struct lt {
    struct lt_api api;
    cublasLtHandle_t handle;
    struct set set[SETS];
};

static struct lt *lt_of(struct cuda *c) { return engine_of(c)->lt; }

static bool wants(const struct cuda *c) {
    return c->params.gemm != GEMM_OWN && (c->bounds.n_row > FEW_ROWS || c->bounds.n_out > FEW_ROWS);
}

static int create(struct lt *lt, struct err *err) {
    int code = lt_load(&lt->api, err);
    if (code) return code;
    cublasStatus_t status = lt->api.create(&lt->handle);
    if (status)
        return err_set(err, ERR_UNSUPPORTED, "cuda: cublasLtCreate failed (%d)", (int)status);
    return 0;
}

int cuda_lt_open(struct cuda *c, struct err *err) {
    struct err why = {0};
    if (lt_of(c) || !wants(c)) return 0;
    struct lt *lt = must_alloc(sizeof *lt);
    engine_of(c)->lt = lt;
    int code = create(lt, &why);
    if (!code) return 0;
    cuda_lt_close(c);
    if (code == ERR_UNSUPPORTED && c->params.gemm == GEMM_AUTO) return 0;
    return err_set(err, code, "%s", why.text);
}

void cuda_lt_close(struct cuda *c) {
    struct lt *lt = lt_of(c);
    if (!lt) return;
    for (int i = 0; i < SETS * WAYS; i++)
        lt_problem_close(&lt->api, &lt->set[i / WAYS].way[i % WAYS].problem);
    if (lt->handle) lt->api.destroy(lt->handle);
    free(lt); /* the library stays loaded: to close it costs more than to keep it */
    engine_of(c)->lt = NULL;
}

int64_t cuda_lt_room(struct cuda *c) { return lt_of(c) && wants(c) ? ROOM_BYTES : 0; }

static void *room_of(struct cuda *c) {
    const struct plan_set *plan = engine_of(c)->plan;
    return plan ? plan->room[ROOM_LT].data : NULL;
}

bool cuda_lt_available(struct cuda *c) { return room_of(c) != NULL; }

void cuda_lt_describe(struct cuda *c, struct facts *facts) {
    struct lt *lt = lt_of(c);
    if (!lt) return;
    size_t version = lt->api.version();
    facts_printf(facts, "device.gemm_library", "", "", "cuBLASLt %d.%d.%d", (int)(version / 10000),
                 (int)(version % 10000 / 100), (int)(version % 100));
    struct text text = {0};
    int told = 0, more = 0;
    for (int i = 0; i < SETS * WAYS; i++) {
        const struct set *set = &lt->set[i / WAYS];
        const struct chosen *chosen = &set->way[i % WAYS];
        if (i % WAYS >= set->n) continue;
        if (told == TOLD) {
            more++;
            continue;
        }
        int32_t id = -1, tile = -1;
        size_t written;
        if (chosen->works) {
            lt->api.algo_get(&chosen->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &written);
            lt->api.algo_get(&chosen->algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile,
                             &written);
        }
        text_printf(&text, "%s%lldx%lldx%lld %s: ", told++ ? "; " : "", (long long)chosen->shape.m,
                    (long long)chosen->shape.n, (long long)chosen->shape.k,
                    dtype_names[chosen->shape.in]);
        if (chosen->works)
            text_printf(&text, "algorithm %d, tile %d", (int)id, (int)tile);
        else
            text_puts(&text, "none");
    }
    if (more) text_printf(&text, "; %d more", more);
    if (text.len) facts_set(facts, "device.gemm_algorithms", text.data, "", "");
    text_free(&text);
}

static bool same_shape(const struct shape *a, const struct shape *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->ldx == b->ldx && a->ldw == b->ldw &&
           a->ldy == b->ldy && a->in == b->in && a->out == b->out && a->x_align == b->x_align &&
           a->y_align == b->y_align;
}

static struct set *set_of(struct lt *lt, const struct shape *s) {
    const int64_t of[] = {s->m, s->n, s->k, s->ldx, s->ldw, s->ldy, s->in, s->out};
    uint64_t hash = s->x_align * 512 + s->y_align;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        hash = (hash ^ (uint64_t)of[i]) * 0x9e3779b97f4a7c15u;
    return &lt->set[hash >> 32 & (SETS - 1)];
}

/* A shape beyond the most takes the oldest one's place: what multiplies must not depend on what
   came before. Recorded steps hold kernels, not what is here. */
static struct chosen *place_in(struct lt *lt, struct set *set) {
    if (set->n < WAYS) return &set->way[set->n++];
    struct chosen *oldest = &set->way[set->oldest];
    set->oldest = (set->oldest + 1) % WAYS;
    lt_problem_close(&lt->api, &oldest->problem);
    return oldest;
}

/* The first that the library's own heuristic names. Chosen at a shape's first use, which is never
   within a sample: warm-up runs what is measured. */
static struct chosen *choose(struct lt *lt, const struct shape *shape) {
    struct set *set = set_of(lt, shape);
    for (int i = 0; i < set->n; i++)
        if (same_shape(&set->way[i].shape, shape)) return &set->way[i];
    struct chosen *chosen = place_in(lt, set);
    *chosen = (struct chosen){.shape = *shape};
    const struct lt_shape s = {.m = shape->m,
                               .n = shape->n,
                               .k = shape->k,
                               .ldx = shape->ldx,
                               .ldw = shape->ldw,
                               .ldy = shape->ldy,
                               .in = shape->in,
                               .out = shape->out,
                               .x_align = shape->x_align,
                               .y_align = shape->y_align,
                               .room_bytes = ROOM_BYTES};
    if (!lt_problem_open(&lt->api, &chosen->problem, &s)) return chosen;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    cublasStatus_t status = lt->api.heuristic(
        lt->handle, chosen->problem.desc, chosen->problem.w, chosen->problem.x, chosen->problem.y,
        chosen->problem.y, chosen->problem.preference, 1, &result, &found);
    chosen->works =
        status == CUBLAS_STATUS_SUCCESS && found > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    if (chosen->works) chosen->algo = result.algo;
    return chosen;
}

bool cuda_lt_linear(struct cuda *c, struct tensor *y, const struct tensor *x,
                    const struct cuda_weight *w) {
    struct lt *lt = lt_of(c);
    const float one = 1, zero = 0;
    if (!lt || !room_of(c)) return false;
    const struct shape shape = {.m = x->rows,
                                .n = y->cols,
                                .k = x->cols,
                                .ldx = x->stride,
                                .ldw = w->padded_cols,
                                .ldy = y->stride,
                                .in = x->type,
                                .out = y->type,
                                .x_align = lt_alignment(x->data),
                                .y_align = lt_alignment(y->data)};
    struct chosen *chosen = choose(lt, &shape);
    if (!chosen->works) return false;
    cublasStatus_t status =
        lt->api.matmul(lt->handle, chosen->problem.desc, &one, w->data, chosen->problem.w, x->data,
                       chosen->problem.x, &zero, y->data, chosen->problem.y, y->data,
                       chosen->problem.y, &chosen->algo, room_of(c), ROOM_BYTES, c->stream);
    c->launches++;
    if (status && !c->failed.code)
        err_set(&c->failed, ERR_DEVICE, "cuda: cublasLtMatmul failed (status %d)", (int)status);
    return true;
}

#else /* no header at build time, or the emulated device */

int cuda_lt_open(struct cuda *c, struct err *err) {
    if (c->params.gemm != GEMM_CUBLASLT) return 0;
    return err_set(err, ERR_UNSUPPORTED, "%s: this build has no cuBLASLt; device.gemm = own runs",
                   c->base.kind->name);
}
void cuda_lt_close(struct cuda *c) { (void)c; }
int64_t cuda_lt_room(struct cuda *c) {
    (void)c;
    return 0;
}
void cuda_lt_describe(struct cuda *c, struct facts *facts) { (void)c, (void)facts; }
/* SIMT_LT=1, for tests of what stands around it: one that has no algorithm for anything. */
bool cuda_lt_available(struct cuda *c) {
#ifdef BENCH_SIMT
    return c->params.gemm != GEMM_OWN && getenv("SIMT_LT");
#else
    (void)c;
    return false;
#endif
}
bool cuda_lt_linear(struct cuda *c, struct tensor *y, const struct tensor *x,
                    const struct cuda_weight *w) {
    (void)c, (void)y, (void)x, (void)w;
    return false;
}
#endif
