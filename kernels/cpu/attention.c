/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over chunks of CHUNK positions that start at its multiples: each chunk's softmax and
   weighted sum are computed alone and joined in order, so the bits of a row depend neither on the
   rows beside it nor on who computes which chunk.

   Few rows, as in decode, are bound by reading the cache: keys are transposed as they are stored,
   word by word, values multiplied where they lie, and both widened in registers only. Scales of
   int8 go to the scores and to the weights. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

struct attention {
    struct cpu *cpu;
    const struct step *step;
    const struct kv *kv;
    const struct tensor *q;
    struct tensor *o;
    float scale;
    int32_t group;      /* query heads per KV head */
    int32_t width;      /* d_h rounded up to whole panels */
    int32_t block_rows; /* rows of a piece */
    int32_t n_blocks;   /* most pieces of a sequence */
    int32_t n_chunks;   /* most chunks of a sequence (when split over chunks) */
};

struct room {      /* one thread's scratch */
    word *k;       /* (words, APART) keys: panels of 16 positions side by side */
    char *v;       /* (CHUNK, width) values in the cache's type, where they cannot stay in place */
    char *rows;    /* (PANEL) keys of a panel likewise */
    float *scales; /* (CHUNK) of int8 */
    float *q;      /* (m, q_width), scaled; zeros behind d_h */
    float *s;      /* (m, CHUNK) */
    float *part;   /* (m, width) */
    float *o;      /* (m, width) */
    float *m, *l;  /* (m): running maximum and sum */
};

/* Words between the lines of a chunk's keys. Of a power of two, stores would often agree with the
   next loads in the lowest 12 bits of the address, and those would wait. */
enum { APART = CHUNK + PANEL };

static int32_t round_up(int32_t n, int32_t to) { return (n + to - 1) / to * to; }

static int32_t rows_of_piece(int32_t group) { return group >= QUERY_ROWS ? 1 : QUERY_ROWS / group; }

int64_t cpu_attention_scratch(const struct step_bounds *b) {
    if (b->n_kv <= 0 || b->d_h <= 0) return 0;
    const int32_t group = (b->n_q + b->n_kv - 1) / b->n_kv, width = round_up(b->d_h, PANEL);
    const int64_t m = (int64_t)rows_of_piece(group) * group;
    return (2 * CHUNK + 2 * PANEL) * (int64_t)width + CHUNK + m * (CHUNK + 3 * width + 2);
}

static struct room make_room(const struct attention *job, float *at) {
    const int64_t width = job->width, m = (int64_t)job->block_rows * job->group;
    struct room room = {.k = (word *)at};
    room.v = (char *)(at + APART * width);
    room.rows = room.v + CHUNK * width * (int64_t)sizeof *at;
    room.scales = at + (2 * CHUNK + 2 * PANEL) * width;
    room.s = room.scales + CHUNK;
    room.part = room.s + m * CHUNK;
    room.o = room.part + m * width;
    room.q = room.o + m * width;
    room.m = room.q + m * width;
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

static int64_t value_bytes(const struct kv *kv) { return dtype_bits(kv->type) / 8; }

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

/* How many positions from p on, before `end`, lie side by side. */
static int32_t side_by_side(const struct kv *kv, int32_t p, int32_t end) {
    return least(kv->block - p % kv->block, end - p);
}

/* Rows of positions p0 ... p1-1, ld bytes apart. */
static void copy_rows(const struct kv *kv, const void *values, int32_t s, int32_t head, int32_t p0,
                      int32_t p1, char *to, int64_t ld) {
    const int64_t row = kv->d_h * value_bytes(kv);
    for (int32_t p = p0; p < p1; p++, to += ld)
        memcpy(to, (const char *)values + cpu_kv_place(kv, s, head, p) * row, (size_t)row);
}

/* The scales of positions p0 ... p1-1 at their places in the chunk at c0, zeros elsewhere. */
static const float *load_scales(const struct kv *kv, const struct room *room, const float *scales,
                                int32_t s, int32_t head, int32_t c0, int32_t p0, int32_t p1) {
    memset(room->scales, 0, CHUNK * sizeof *room->scales);
    for (int32_t p = p0, n; p < p1; p += n) {
        n = side_by_side(kv, p, p1);
        memcpy(room->scales + (p - c0), scales + cpu_kv_place(kv, s, head, p),
               (size_t)n * sizeof *scales);
    }
    return room->scales;
}

/* The panel of positions c ... c+15: from where they lie, or else from copies, with zeros for those
   outside p0 ... p1-1, whatever the cache holds there. */
static void load_keys(const struct attention *job, const struct room *room, int32_t s, int32_t head,
                      int32_t c, int32_t p0, int32_t p1, word *panel, const char *ahead) {
    const struct kv *kv = job->kv;
    const int64_t row = kv->d_h * value_bytes(kv), words = (row + WORD - 1) / WORD;
    const void *from = room->rows;
    if (c >= p0 && c + PANEL <= p1 && side_by_side(kv, c, p1) >= PANEL && row % WORD == 0) {
        from = (const char *)kv->k + cpu_kv_place(kv, s, head, c) * row;
    } else {
        const int32_t begin = c > p0 ? c : p0;
        memset(room->rows, 0, (size_t)(PANEL * words * WORD));
        copy_rows(kv, kv->k, s, head, begin, least(c + PANEL, p1),
                  room->rows + (begin - c) * words * WORD, words * WORD);
    }
    const char *near = from;
    if (c + PANEL < p1) near = (const char *)kv->k + cpu_kv_place(kv, s, head, c + PANEL) * row;
    job->cpu->kernels->transpose(panel, APART, from, words, words, ahead != NULL ? ahead : from,
                                 near);
}

/* n bytes by `parts`, rounded up. */
static int64_t part_of(int64_t bytes, int64_t parts) { return (bytes + parts - 1) / parts; }

/* The rows of a piece: how many positions of a chunk, from its first on, each of them sees at most,
   later ones more. */
struct rows {
    int32_t m, seen[QUERY_ROWS];
};

enum product { SCORES, VALUES };

/* What is asked for beside a product: `bytes` from `from` on (or from each of t->ahead_runs),
   `asks` times in each tile and panel (and run). */
struct asked {
    const char *from; /* NULL: nothing */
    int64_t bytes, asks;
};

/* One product of all rows of a piece, by tiles, each over as many positions from `begin` on as its
   last row sees: panels of the scores, k of the values. */
static void multiply(const struct attention *job, enum product product, struct tile *t,
                     const struct rows *rows, int32_t begin, const struct asked *asked) {
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int32_t m = rows->m, n = m <= kernels->few ? 1 : (m + kernels->rows - 1) / kernels->rows;
    const struct tile whole = *t;
    t->ahead = t->panels;
    t->ahead_panel = asked->from == NULL ? 0 : part_of(asked->bytes, t->n_panels);
    t->ahead_step = part_of(t->ahead_panel, asked->asks * n);
    t->ahead_panel = t->ahead_step * asked->asks;
    for (int32_t i = 0; i < n; i++) {
        const int32_t r0 = cpu_tile_row(m, i, n, kernels), r1 = cpu_tile_row(m, i + 1, n, kernels);
        const int32_t seen = rows->seen[r1 - 1] - begin;
        if (seen <= 0) continue;
        t->m = r1 - r0;
        t->x = whole.x + r0 * t->ldx;
        t->c = whole.c + r0 * t->ldc;
        if (product == SCORES) t->n_panels = least(whole.n_panels, (seen + PANEL - 1) / PANEL);
        if (product == VALUES) t->k = least((int32_t)whole.k, seen);
        t->ahead_at = i * asked->asks * t->ahead_step * whole.n_panels;
        if (asked->from != NULL) t->ahead = asked->from + t->ahead_at;
        (product == SCORES ? kernels->keys : kernels->tile)[job->kv->type](t);
    }
}

/* The next chunk, or after the last one the first of the next head, which mostly goes to the same
   thread: keys and values of its panels. NULL: nothing. */
struct next {
    const char *k[CHUNK / PANEL], *v[CHUNK / PANEL + 1];
    int64_t bytes; /* of a panel's keys, and of its values */
    bool whole;    /* all panels lie side by side, and so do those of this chunk */
};

/* Beside positions p0 ... p1-1 of the chunk at c0. */
static void next_chunk(const struct attention *job, int32_t s, int32_t head, int32_t c0, int32_t p0,
                       int32_t p1, struct next *next) {
    const struct kv *kv = job->kv;
    const int32_t length = job->step->kv_len[s];
    const int64_t row = kv->d_h * value_bytes(kv);
    *next = (struct next){.bytes = PANEL * row};
    int32_t p = c0 + CHUNK;
    if (p >= length) {
        p = 0;
        head++;
        if (head == kv->n_kv || kv->window > 0) return;
    }
    next->whole = side_by_side(kv, p, p + CHUNK) == CHUNK && side_by_side(kv, p0, p1) == p1 - p0;
    for (int32_t i = 0; i < CHUNK / PANEL && p < length; i++, p += PANEL) {
        const int64_t at = cpu_kv_place(kv, s, head, p) * row;
        next->k[i] = (const char *)kv->k + at;
        next->v[i] = (const char *)kv->v + at;
    }
}

/* What is asked for when. Few rows leave little arithmetic to ask in (the less, the larger the
   values): keys while keys are transposed, and values half by half while the products run. Of more
   rows, keys in one product and values in the other: asked for faster than memory answers, they
   would stop the arithmetic. Where panels lie apart, keys of each while one is transposed, the
   first one's values in the first product and the others' in those of the second. */
static bool few(const struct attention *job, int32_t m) {
    const int64_t bytes = value_bytes(job->kv);
    return m <= job->cpu->kernels->few * bytes * bytes / 4;
}

/* room->s of positions p0 ... p1-1, and of the rest of their panels, which means nothing. */
static void score(const struct attention *job, const struct room *room, int32_t s, int32_t head,
                  const struct rows *rows, int32_t c0, int32_t p0, int32_t p1,
                  const struct next *next) {
    const struct kv *kv = job->kv;
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int64_t words = (kv->d_h * value_bytes(kv) + WORD - 1) / WORD;
    const int32_t m = rows->m, first = (p0 - c0) / PANEL, end = (p1 - c0 + PANEL - 1) / PANEL;
    for (int32_t i = first; i < end; i++)
        load_keys(job, room, s, head, c0 + i * PANEL, p0, p1, room->k + i * PANEL,
                  few(job, m) || !next->whole ? next->k[i] : NULL);
    struct tile t = {.c = room->s + first * PANEL,
                     .ldc = CHUNK,
                     .x = room->q,
                     .ldx = job->width,
                     .k = words * WORD / value_bytes(kv),
                     .panels = room->k + first * PANEL,
                     .k_step = APART * WORD,
                     .step = PANEL * WORD,
                     .n_panels = end - first};
    const struct asked asked = {.from = few(job, m) || !next->whole ? next->v[0] : next->k[0],
                                .bytes = (!next->whole  ? 1
                                          : few(job, m) ? 2
                                                        : 4) *
                                         next->bytes,
                                .asks = kv->type == DT_F32 ? part_of(words, 2) : words};
    multiply(job, SCORES, &t, rows, first * PANEL, &asked);
    if (kv->type != DT_I8) return;
    const float *scales = load_scales(kv, room, kv->k_scale, s, head, c0, p0, p1);
    for (int32_t i = 0; i < m; i++)
        kernels->multiply(room->s + first * PANEL + i * CHUNK, scales + first * PANEL,
                          (end - first) * PANEL);
}

/* Values in blocks, as runs of one product: a call for each costs decode in blocks of 16 about 4 %
 * (bf16, AVX-512). */
static void weigh_runs(const struct attention *job, int32_t s, int32_t head,
                       const struct tile *like, const struct rows *rows, int32_t c0, int32_t p0,
                       int32_t p1, const struct next *next) {
    const struct kv *kv = job->kv;
    const char *runs[CHUNK / RUN], *ahead[CHUNK / RUN];
    struct tile t = *like;
    const int32_t first = (p0 - c0) / RUN;
    for (int32_t i = first; c0 + i * RUN < p1; i++) {
        const int64_t at = cpu_kv_place(kv, s, head, c0 + i * RUN) * t.k_step;
        runs[i - first] = (const char *)kv->v + at;
        ahead[i - first] = next->v[i + 1] != NULL ? next->v[i + 1] : runs[i - first];
    }
    t.panels = runs[0]; /* of the first run: places are counted from it, which may not be NULL */
    t.runs = runs;
    t.ahead_runs = ahead;
    t.first_row = p0 % RUN;
    t.k = p1 - p0;
    multiply(job, VALUES, &t, rows, p0 - c0, &(struct asked){next->v[1], next->bytes, RUN / 2});
}

/* room->part: the values of positions p0 ... p1-1 by their weights in room->s. */
static void weigh(const struct attention *job, const struct room *room, int32_t s, int32_t head,
                  const struct rows *rows, int32_t c0, int32_t p0, int32_t p1,
                  const struct next *next) {
    const struct kv *kv = job->kv;
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int64_t bytes = value_bytes(kv);
    const bool copied = kv->d_h != job->width; /* else the last panel would reach past the row */
    const int32_t m = rows->m;
    struct tile t = {.c = room->part,
                     .ldc = job->width,
                     .x = room->s + (p0 - c0),
                     .ldx = CHUNK,
                     .k_step = job->width * bytes,
                     .step = PANEL * bytes,
                     .n_panels = job->width / PANEL};
    if (kv->type == DT_I8) {
        const float *scales = load_scales(kv, room, kv->v_scale, s, head, c0, p0, p1);
        for (int32_t i = 0; i < m; i++) kernels->multiply(room->s + i * CHUNK, scales, p1 - c0);
    }
    if (copied) {
        memset(room->v, 0, (size_t)((p1 - p0) * t.k_step));
        copy_rows(kv, kv->v, s, head, p0, p1, room->v, t.k_step);
    }
    if (!copied && !next->whole && kv->block % RUN == 0) {
        weigh_runs(job, s, head, &t, rows, c0, p0, p1, next);
        return;
    }
    for (int32_t p = p0, n; p < p1; p += n) {
        n = copied ? p1 - p0 : side_by_side(kv, p, p1);
        t.k = n;
        t.panels = copied ? room->v : (const char *)kv->v + cpu_kv_place(kv, s, head, p) * t.k_step;
        t.x = room->s + (p - c0);
        t.c = room->part;
        t.add = p > p0;
        const int32_t i = !next->whole ? (p - c0) / PANEL + 1 : few(job, m) ? 2 : 0;
        const int64_t bytes_asked = next->whole ? (4 - i) * next->bytes : n * kv->d_h * bytes;
        multiply(job, VALUES, &t, rows, p - c0,
                 &(struct asked){next->v[i], bytes_asked, part_of(n, 2)});
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
    const int32_t *pos = job->step->pos;
    const int32_t low = first_position(job->kv, pos[r0]), p0 = low > c0 ? low : c0;
    const int32_t p1 = pos[r1 - 1] + 1 < c0 + CHUNK ? pos[r1 - 1] + 1 : c0 + CHUNK;
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int32_t m = (r1 - r0) * job->group, used = round_up(p1 - c0, PANEL);
    struct rows rows = {.m = m};
    struct next next;
    for (int32_t i = 0; i < m; i++) rows.seen[i] = within(pos[r0 + i / job->group] + 1 - c0, used);
    next_chunk(job, s, head, c0, p0, p1, &next);
    score(job, room, s, head, &rows, c0, p0, p1, &next);
    /* All maxima first: an exponential that waits for its own row's would keep the next row's
     * from being begun. */
    for (int32_t i = 0; i < m; i++) {
        const int32_t lo = first_position(job->kv, pos[r0 + i / job->group]) - c0;
        part_m[i] = kernels->mask(room->s + i * CHUNK, used, within(lo, used), rows.seen[i]);
    }
    for (int32_t i = 0; i < m; i++) part_l[i] = kernels->exps(room->s + i * CHUNK, used, part_m[i]);
    weigh(job, room, s, head, &rows, c0, p0, p1, &next);
}

static char *head_of(const struct tensor *t, int64_t r, int64_t head, int64_t d) {
    return (char *)cpu_row(t, r) + head * d * (dtype_bits(t->type) / 8);
}

static void load_queries(const struct attention *job, const struct room *room, int32_t head,
                         int32_t r0, int32_t r1) {
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int32_t d = job->kv->d_h, behind = job->width - d;
    float *to = room->q;
    for (int32_t r = r0; r < r1; r++)
        for (int32_t i = 0; i < job->group; i++, to += job->width) {
            const char *q = head_of(job->q, r, head * job->group + i, d);
            kernels->widen[job->q->type](to, q, d);
            kernels->scale(to, to, job->scale, d);
            memset(to + d, 0, (size_t)behind * sizeof *to);
        }
}

/* Spoils `o`. */
static void store_row(const struct attention *job, int32_t r, int32_t query_head, float *o,
                      float l) {
    const struct cpu_kernels *kernels = job->cpu->kernels;
    const int32_t d = job->kv->d_h;
    char *to = head_of(job->o, r, query_head, d);
    float *out = job->o->type == DT_F32 ? (float *)(void *)to : o;
    if (job->kv->type == DT_BF16)
        kernels->scale_woven(out, o, 1.0f / l, d);
    else
        kernels->scale(out, o, 1.0f / l, d);
    if (out == o) kernels->narrow[job->o->type](to, o, d);
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
    if (!cpu_expects(cpu, cpu_is_float(q->type) && cpu_is_float(o->type),
                     "attention: activations are floats") ||
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
                            .q = q,
                            .o = o,
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
