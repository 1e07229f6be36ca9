/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over chunks of CHUNK positions that start at its multiples: each chunk's softmax and
   weighted sum are computed alone and joined in order, so the bits of a row depend neither on the
   rows beside it nor on who computes which chunk. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

struct attention {
    struct cpu *cpu;
    const struct step *step;
    const struct kv *kv;
    const float *q;
    float *o;
    int64_t ldq, ldo;
    float scale;
    int32_t group;      /* query heads per KV head */
    int32_t width;      /* d_h rounded up to whole panels */
    int32_t block_rows; /* rows of a piece */
    int32_t n_blocks;   /* most pieces of a sequence */
    int32_t n_chunks;   /* most chunks of a sequence (when split over chunks) */
};

struct room {     /* one thread's scratch */
    float *k;     /* (d_h, CHUNK) as panels of 16 positions */
    float *v;     /* (CHUNK, width) as panels of 16 values */
    float *rows;  /* (CHUNK, d_h) widened */
    float *q;     /* (m, d_h), scaled */
    float *s;     /* (m, CHUNK) */
    float *part;  /* (m, width) */
    float *o;     /* (m, width) */
    float *m, *l; /* (m): running maximum and sum */
};

static int32_t round_up(int32_t n, int32_t to) { return (n + to - 1) / to * to; }

static int32_t rows_of_piece(int32_t group) { return group >= QUERY_ROWS ? 1 : QUERY_ROWS / group; }

int64_t cpu_attention_scratch(const struct step_bounds *b) {
    if (b->n_kv <= 0 || b->d_h <= 0) return 0;
    const int32_t group = (b->n_q + b->n_kv - 1) / b->n_kv, width = round_up(b->d_h, PANEL);
    const int64_t m = (int64_t)rows_of_piece(group) * group;
    return CHUNK * (2 * (int64_t)width + b->d_h + PANEL) + m * (b->d_h + CHUNK + 2 * width + 2) +
           64;
}

static struct room make_room(const struct attention *job, float *at) {
    const int32_t d = job->kv->d_h, width = job->width;
    const int64_t m = (int64_t)job->block_rows * job->group;
    struct room room = {.k = at};
    room.v = room.k + CHUNK * width;
    room.part = room.v + CHUNK * width;
    room.o = room.part + m * width;
    room.s = room.o + m * width;
    room.q = room.s + m * CHUNK;
    room.rows = room.q + m * d;
    room.m = room.rows + CHUNK * d + PANEL;
    room.l = room.m + m;
    return room;
}

/* A split pays when there are fewer sequences and heads than twice the threads, and more than a few
 * chunks. */
static bool splits(const struct cpu *cpu, int32_t n_seq, int32_t n_kv, int32_t most_q,
                   int32_t most_kv) {
    const int threads = pool_threads(cpu->pool);
    return threads > 1 && most_q == 1 && (int64_t)n_seq * n_kv < 2 * threads &&
           most_kv >= 4 * CHUNK;
}

int64_t cpu_attention_parts(const struct cpu *cpu, const struct step_bounds *b) {
    if (b->n_kv <= 0 || b->d_h <= 0) return 0;
    int64_t pairs = (int64_t)b->n_seq * b->n_kv;
    const int64_t most = 2 * (int64_t)pool_threads(cpu->pool) - 1;
    if (pairs > most) pairs = most;
    const int64_t chunks = (b->most_kv + CHUNK - 1) / CHUNK,
                  group = (b->n_q + b->n_kv - 1) / b->n_kv;
    return pairs * chunks * group * (round_up(b->d_h, PANEL) + 2);
}

/* n neighbouring slots, from `place` on, become rows of f32, ld apart. */
static void widen_slots(const struct attention *job, const void *values, const float *scales,
                        int64_t place, int32_t n, float *rows, int32_t ld) {
    const enum dtype type = job->kv->type;
    const int32_t d = job->kv->d_h;
    if (type == DT_I8) {
        const int8_t *codes = (const int8_t *)values + place * d;
        for (int32_t j = 0; j < n; j++)
            for (int32_t i = 0; i < d; i++)
                rows[j * ld + i] = (float)codes[j * d + i] * scales[place + j];
        return;
    }
    const char *from = (const char *)values + place * d * (dtype_bits(type) / 8);
    if (ld == d)
        job->cpu->kernels->widen[type](rows, from, (int64_t)n * d);
    else
        for (int32_t j = 0; j < n; j++)
            job->cpu->kernels->widen[type](rows + j * ld,
                                           from + (int64_t)j * d * (dtype_bits(type) / 8), d);
}

/* Positions of one head as rows of f32, ld apart: slot i is position c0 + i. Slots before p0, from
   p1 up to `used`, and columns beyond d_h are zeros, whatever the cache holds there. */
static void widen_chunk(const struct attention *job, const void *values, const float *scales,
                        int32_t s, int32_t head, int32_t c0, int32_t p0, int32_t p1, int32_t used,
                        float *rows, int32_t ld) {
    const struct kv *kv = job->kv;
    memset(rows, 0, (size_t)(p0 - c0) * (size_t)ld * sizeof *rows);
    memset(rows + (p1 - c0) * ld, 0, (size_t)(used - (p1 - c0)) * (size_t)ld * sizeof *rows);
    for (int32_t p = p0; p < p1;) { /* as far as slots lie side by side */
        const int32_t left = kv->block - p % kv->block, n = left < p1 - p ? left : p1 - p;
        widen_slots(job, values, scales, cpu_kv_place(kv, s, head, p), n, rows + (p - c0) * ld, ld);
        p += n;
    }
    for (int32_t p = p0; p < p1 && ld > kv->d_h; p++)
        memset(rows + (p - c0) * ld + kv->d_h, 0, (size_t)(ld - kv->d_h) * sizeof *rows);
}

/* K and V of positions p0 ... p1-1; the chunk starts at c0 <= p0. K becomes panels of 16 positions;
 * V is one as it is. */
static void load_chunk(const struct attention *job, const struct room *room, int32_t s,
                       int32_t head, int32_t c0, int32_t p0, int32_t p1) {
    const struct kv *kv = job->kv;
    const int32_t d = kv->d_h, used = round_up(p1 - c0, PANEL);
    widen_chunk(job, kv->k, kv->k_scale, s, head, c0, p0, p1, used, room->rows, d);
    for (int32_t j = 0; j < used; j += PANEL)
        job->cpu->kernels->transpose(room->k + (int64_t)j * d, room->rows + j * d, d, d);
    widen_chunk(job, kv->v, kv->v_scale, s, head, c0, p0, p1, used, room->v, job->width);
}

/* c (m, 16 n_panels) = x (m, k) times panels of f32. */
static void multiply(const struct attention *job, float *c, int64_t ldc, const float *x,
                     int64_t ldx, int32_t m, const float *panels, int64_t k_step, int64_t step,
                     int n_panels, int64_t k) {
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int32_t n = (m + kernels->rows - 1) / kernels->rows;
    struct tile t = {.ldc = ldc,
                     .ldx = ldx,
                     .k = k,
                     .k_step = k_step * (int64_t)sizeof(float),
                     .step = step * (int64_t)sizeof(float),
                     .n_panels = n_panels,
                     .panels = panels,
                     .ahead = panels};
    for (int32_t i = 0; i < n; i++) {
        const int32_t r0 = cpu_tile_row(m, i, n, kernels), r1 = cpu_tile_row(m, i + 1, n, kernels);
        t.m = r1 - r0;
        t.x = x + r0 * ldx;
        t.c = c + r0 * ldc;
        kernels->tile[DT_F32](&t);
    }
}

static int32_t first_position(const struct kv *kv, int32_t p) {
    return kv->window > 0 && p >= kv->window ? p - kv->window + 1 : 0;
}

static int32_t within(int32_t i, int32_t n) { return i < 0 ? 0 : i > n ? n : i; }

/* Rows r0 ... r1-1 (consecutive positions of sequence s) over the chunk at c0: room->part, and (m)
 * maxima and sums. */
static void do_chunk(const struct attention *job, const struct room *room, int32_t s, int32_t head,
                     int32_t r0, int32_t r1, int32_t c0, float *part_m, float *part_l) {
    const int32_t *pos = job->step->pos, d = job->kv->d_h;
    const int32_t low = first_position(job->kv, pos[r0]), p0 = low > c0 ? low : c0;
    const int32_t p1 = pos[r1 - 1] + 1 < c0 + CHUNK ? pos[r1 - 1] + 1 : c0 + CHUNK;
    const int32_t m = (r1 - r0) * job->group, used = round_up(p1 - c0, PANEL);
    load_chunk(job, room, s, head, c0, p0, p1);
    multiply(job, room->s, CHUNK, room->q, d, m, room->k, PANEL, (int64_t)PANEL * d, used / PANEL,
             d);
    for (int32_t i = 0; i < m; i++) {
        const int32_t p = pos[r0 + i / job->group];
        /* The row's positions within the chunk; none where its window begins later or it ends
         * before. */
        const int32_t lo = within(first_position(job->kv, p) - c0, used),
                      hi = within(p + 1 - c0, used);
        part_m[i] = job->cpu->kernels->softmax(room->s + i * CHUNK, used, lo, hi, &part_l[i]);
    }
    multiply(job, room->part, job->width, room->s, CHUNK, m, room->v, job->width, PANEL,
             job->width / PANEL, p1 - c0);
}

static void load_queries(const struct attention *job, const struct room *room, int32_t head,
                         int32_t r0, int32_t r1) {
    const int32_t n = job->group * job->kv->d_h;
    for (int32_t r = r0; r < r1; r++)
        job->cpu->kernels->scale(room->q + (r - r0) * n, job->q + r * job->ldq + head * n,
                                 job->scale, n);
}

static void store_row(const struct attention *job, int32_t r, int32_t query_head, const float *o,
                      float l) {
    const int32_t d = job->kv->d_h;
    job->cpu->kernels->scale(job->o + r * job->ldo + query_head * d, o, 1.0f / l, d);
}

/* Items are (sequence, head, piece of its rows): each runs over all chunks. */
static void whole_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct attention *job = ctx;
    const struct room room = make_room(job, cpu_scratch(job->cpu, thread));
    const int32_t n_kv = job->kv->n_kv, group = job->group, width = job->width;
    float part_m[QUERY_ROWS], part_l[QUERY_ROWS];
    for (int64_t item = begin; item < end; item++) {
        const int32_t b = (int32_t)(item % job->n_blocks),
                      head = (int32_t)(item / job->n_blocks % n_kv);
        const int32_t s = (int32_t)(item / job->n_blocks / n_kv);
        const int32_t r0 = job->step->q_begin[s] + b * job->block_rows,
                      after = job->step->q_begin[s + 1];
        const int32_t r1 = r0 + job->block_rows < after ? r0 + job->block_rows : after;
        if (r0 >= r1) continue;
        const int32_t m = (r1 - r0) * group;
        load_queries(job, &room, head, r0, r1);
        memset(room.o, 0, (size_t)m * (size_t)width * sizeof *room.o);
        for (int32_t i = 0; i < m; i++) {
            room.m[i] = -INFINITY;
            room.l[i] = 0;
        }
        const int32_t low = first_position(job->kv, job->step->pos[r0]),
                      last = job->step->pos[r1 - 1];
        for (int32_t c0 = low / CHUNK * CHUNK; c0 <= last; c0 += CHUNK) {
            do_chunk(job, &room, s, head, r0, r1, c0, part_m, part_l);
            for (int32_t i = 0; i < m; i++)
                job->cpu->kernels->join(room.o + i * width, &room.m[i], &room.l[i],
                                        room.part + i * width, part_m[i], part_l[i], width);
        }
        for (int32_t i = 0; i < m; i++)
            store_row(job, r0 + i / group, head * group + i % group, room.o + i * width, room.l[i]);
    }
}

/* (sequence, head, chunk) of a decode step: group rows of (width + 2) floats. */
static float *part_at(const struct attention *job, int64_t pair, int32_t chunk) {
    return job->cpu->parts + (pair * job->n_chunks + chunk) * job->group * (job->width + 2);
}

static void chunk_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct attention *job = ctx;
    struct room room = make_room(job, cpu_scratch(job->cpu, thread));
    const int32_t n_kv = job->kv->n_kv, group = job->group;
    int64_t loaded = -1;
    for (int64_t item = begin; item < end; item++) {
        const int64_t pair = item / job->n_chunks;
        const int32_t chunk = (int32_t)(item % job->n_chunks), s = (int32_t)(pair / n_kv),
                      head = (int32_t)(pair % n_kv);
        const int32_t r = job->step->q_begin[s];
        if (r == job->step->q_begin[s + 1]) continue;
        const int32_t p = job->step->pos[r], c0 = chunk * CHUNK;
        if (c0 > p || c0 + CHUNK <= first_position(job->kv, p)) continue;
        if (loaded != pair) load_queries(job, &room, head, r, r + 1);
        loaded = pair;
        room.part = part_at(job, pair, chunk);
        float *part_m = room.part + (int64_t)group * job->width;
        do_chunk(job, &room, s, head, r, r + 1, c0, part_m, part_m + group);
    }
}

static void join_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct attention *job = ctx;
    const struct room room = make_room(job, cpu_scratch(job->cpu, thread));
    const int32_t n_kv = job->kv->n_kv, group = job->group, width = job->width;
    for (int64_t pair = begin; pair < end; pair++) {
        const int32_t s = (int32_t)(pair / n_kv), head = (int32_t)(pair % n_kv),
                      r = job->step->q_begin[s];
        if (r == job->step->q_begin[s + 1]) continue;
        const int32_t p = job->step->pos[r];
        for (int32_t i = 0; i < group; i++) {
            float m = -INFINITY, l = 0;
            memset(room.o, 0, (size_t)width * sizeof *room.o);
            for (int32_t c = first_position(job->kv, p) / CHUNK; c <= p / CHUNK; c++) {
                const float *part = part_at(job, pair, c), *part_m = part + (int64_t)group * width;
                job->cpu->kernels->join(room.o, &m, &l, part + i * width, part_m[i],
                                        part_m[group + i], width);
            }
            store_row(job, r, head * group + i, room.o, l);
        }
    }
}

void cpu_attention(struct device *device, struct tensor *o, const struct tensor *q,
                   const struct kv *kv, const struct step *step, float scale) {
    struct cpu *cpu = cpu_of(device);
    const struct step_bounds *bounds = &cpu->bounds;
    const int32_t n_q = kv->d_h > 0 ? q->cols / kv->d_h : 0;
    if (step->n_row == 0) return;
    if (!cpu_expects(cpu, q->type == DT_F32 && o->type == DT_F32,
                     "attention: activations are f32 here") ||
        !cpu_expects(cpu,
                     kv->n_kv > 0 && n_q % kv->n_kv == 0 && o->cols == q->cols &&
                         q->cols == n_q * kv->d_h,
                     "attention: q, o and the cache do not fit") ||
        !cpu_expects(cpu, n_q / kv->n_kv <= QUERY_ROWS,
                     "attention: too many query heads for one KV head"))
        return;
    struct attention job = {.cpu = cpu,
                            .step = step,
                            .kv = kv,
                            .q = q->data,
                            .o = o->data,
                            .ldq = q->stride,
                            .ldo = o->stride,
                            .scale = scale,
                            .group = n_q / kv->n_kv,
                            .width = round_up(kv->d_h, PANEL)};
    const struct step_bounds now = {.n_seq = step->n_seq,
                                    .n_q = n_q,
                                    .n_kv = kv->n_kv,
                                    .d_h = kv->d_h,
                                    .most_kv = step->most_kv};
    job.block_rows = rows_of_piece(job.group);
    job.n_blocks = (step->most_q + job.block_rows - 1) / job.block_rows;
    job.n_chunks = (step->most_kv + CHUNK - 1) / CHUNK;
    if (!cpu_expects(cpu,
                     cpu_attention_scratch(&now) <= cpu->scratch_floats && kv->d_h <= bounds->d_h,
                     "attention: heads larger than planned"))
        return;
    const int64_t pairs = (int64_t)step->n_seq * kv->n_kv;
    if (splits(cpu, step->n_seq, kv->n_kv, step->most_q, step->most_kv) &&
        cpu_attention_parts(cpu, &now) <= cpu->parts_floats) {
        pool_run(cpu->pool, pairs * job.n_chunks, 4, 1, chunk_items, &job);
        pool_run(cpu->pool, pairs, 1, 1, join_items, &job);
    } else {
        /* One short sequence and head is less than a dispatch. */
        const int64_t macs = 2 * (int64_t)step->n_row * n_q * kv->d_h * step->most_kv;
        pool_run(cpu->pool, pairs * job.n_blocks, 1, macs < 8192 ? pairs * job.n_blocks : 1,
                 whole_items, &job);
    }
}
