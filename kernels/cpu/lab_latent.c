/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on latent caches and on chosen blocks. Absorbed, a latent is a cache of one KV head whose
   keys are its values: where there is room for queries and outputs as wide as it, the device's
   attention runs over it. The rest are plain loops, a row's head by one thread; their softmax runs
   along with the positions, so that no memory grows with them. */
#include <float.h>
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/lab_latent.h"

struct latent_job {
    struct cpu *cpu;
    const struct latent_cache *cache;
    const struct latent_heads *heads;
    const struct step *step;
    const struct tensor *x, *q, *o;
    const struct rope *rope;
    float scale;
    enum latent_form form;
};

/* n values from element `at` on, where they lie or widened into room. */
static const float *load(const struct cpu *cpu, const void *data, enum dtype type, int64_t at,
                         int64_t n, float *room) {
    const char *from = (const char *)data + at * (dtype_bits(type) / 8);
    if (type == DT_F32) return (const float *)(const void *)from;
    cpu->kernels->widen[type](room, from, n);
    return room;
}

static void store(const struct cpu *cpu, void *data, enum dtype type, int64_t at, const float *v,
                  int64_t n) {
    cpu->kernels->narrow[type]((char *)data + at * (dtype_bits(type) / 8), v, n);
}

static void add_times(float *y, const float *x, float by, int32_t n) {
    for (int32_t i = 0; i < n; i++) y[i] += by * x[i];
}

static bool fits(struct cpu *cpu, const struct tensor *q, const struct latent_cache *c,
                 const struct latent_heads *heads) {
    return cpu_expects(cpu,
                       latent_fits(q, c, heads) && cpu_is_float(q->type) && cpu_is_float(c->type),
                       "latent: queries, heads and the cache do not fit");
}

static void rotate(float *v, const float *cosine, const float *sine, int32_t half,
                   enum rope_style style) {
    for (int32_t i = 0; i < half; i++) {
        float *a = style == ROPE_HALVES ? v + i : v + 2 * i;
        float *b = style == ROPE_HALVES ? v + half + i : a + 1;
        const float x = *a, y = *b;
        *a = x * cosine[i] - y * sine[i];
        *b = x * sine[i] + y * cosine[i];
    }
}

static void append_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct latent_job *job = ctx;
    const struct latent_cache *c = job->cache;
    const int32_t d = job->heads->d_h, width = d + c->rotary, half = c->rotary / 2;
    float room[LATENT_MOST], cosine[LATENT_MOST / 2], sine[LATENT_MOST / 2];
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const struct tensor *x = job->x, *q = job->q;
        const int32_t p = job->step->pos[r], kept = c->latent + c->rotary;
        cpu_angles(cosine, sine, p, half, job->rope);
        for (int32_t h = 0; h < job->heads->n_q; h++) {
            job->cpu->kernels->widen[x->type](
                room, (char *)cpu_row(x, r) + (int64_t)h * width * (dtype_bits(x->type) / 8),
                width);
            rotate(room + d, cosine, sine, half, job->rope->style);
            store(job->cpu, q->data, q->type, r * q->stride + (int64_t)h * width, room, width);
        }
        job->cpu->kernels->widen[x->type](
            room, (char *)cpu_row(x, r) + (int64_t)q->cols * (dtype_bits(x->type) / 8), kept);
        rotate(room + c->latent, cosine, sine, half, job->rope->style);
        store(job->cpu, c->rows, c->type, latent_row(c, job->step->seq[r], p), room, kept);
    }
}

static void append(struct device *device, struct tensor *q, const struct latent_cache *c,
                   const struct latent_heads *heads, const struct tensor *x,
                   const struct step *step, const struct rope *rope) {
    struct latent_job job = {.cpu = cpu_of(device),
                             .cache = c,
                             .heads = heads,
                             .step = step,
                             .x = x,
                             .q = q,
                             .rope = rope};
    if (!fits(job.cpu, q, c, heads) ||
        !cpu_expects(job.cpu, x->cols == q->cols + c->latent + c->rotary && cpu_is_float(x->type),
                     "latent append: x does not fit"))
        return;
    pool_run(job.cpu->pool, step->n_row, 1, 4, append_rows, &job);
}

/* A softmax on the way: what was summed up so far belongs to `most`. */
struct running {
    float most, sum;
};

/* The weight of one more score; sums (n) shrink where it is the largest yet. */
static float enter(struct running *run, float score, float *sums, int32_t n) {
    if (score > run->most) {
        const float shrink = expf(run->most - score);
        for (int32_t i = 0; i < n; i++) sums[i] *= shrink;
        run->sum *= shrink;
        run->most = score;
    }
    const float weight = expf(score - run->most);
    run->sum += weight;
    return weight;
}

/* One head of a row: q (d_h + rotary) to o (d_h). */
static void absorbed(const struct latent_job *job, int32_t s, int32_t p, const float *q,
                     const float *wk, const float *wv, float *o) {
    const struct latent_cache *c = job->cache;
    const int32_t d = job->heads->d_h, n = c->latent, width = n + c->rotary;
    float taken[LATENT_MOST] = {0}, mean[LATENT_MOST] = {0}, room[LATENT_MOST];
    struct running run = {-INFINITY, 0};
    for (int32_t i = 0; i < d; i++) add_times(taken, wk + (int64_t)i * n, q[i], n);
    for (int32_t i = 0; i < c->rotary; i++) taken[n + i] = q[d + i];
    for (int32_t t = 0; t <= p; t++) {
        const float *row = load(job->cpu, c->rows, c->type, latent_row(c, s, t), width, room);
        add_times(mean, row, enter(&run, cpu_dot(taken, row, width) * job->scale, mean, n), n);
    }
    for (int32_t i = 0; i < d; i++) o[i] = cpu_dot(wv + (int64_t)i * n, mean, n) / run.sum;
}

static void rebuilt(const struct latent_job *job, int32_t s, int32_t p, const float *q,
                    const float *wk, const float *wv, float *o) {
    const struct latent_cache *c = job->cache;
    const int32_t d = job->heads->d_h, n = c->latent, width = n + c->rotary;
    float head[LATENT_MOST], room[LATENT_MOST];
    struct running run = {-INFINITY, 0};
    for (int32_t i = 0; i < d; i++) o[i] = 0;
    for (int32_t t = 0; t <= p; t++) {
        const float *row = load(job->cpu, c->rows, c->type, latent_row(c, s, t), width, room);
        for (int32_t i = 0; i < d; i++) head[i] = cpu_dot(wk + (int64_t)i * n, row, n);
        for (int32_t i = 0; i < c->rotary; i++) head[d + i] = row[n + i];
        const float weight = enter(&run, cpu_dot(q, head, d + c->rotary) * job->scale, o, d);
        for (int32_t i = 0; i < d; i++) o[i] += weight * cpu_dot(wv + (int64_t)i * n, row, n);
    }
    for (int32_t i = 0; i < d; i++) o[i] /= run.sum;
}

/* The three parts of an absorbed attention by the device's own: items are (row, head). */
struct wide_job {
    const struct latent_job *job;
    struct tensor q, o; /* (n_row, n_q (latent + rotary)) f32 */
};

static void absorb_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct wide_job *wide = ctx;
    const struct latent_job *job = wide->job;
    const int32_t d = job->heads->d_h, n = job->cache->latent, rotary = job->cache->rotary;
    float room[LATENT_MOST];
    (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t r = item / job->heads->n_q, h = item % job->heads->n_q;
        const float *q = load(job->cpu, job->q->data, job->q->type,
                              r * job->q->stride + h * (d + rotary), d + rotary, room);
        float *to = (float *)wide->q.data + item * (n + rotary);
        for (int32_t j = 0; j < n; j++) to[j] = 0;
        for (int32_t i = 0; i < d; i++) add_times(to, job->heads->k + (h * d + i) * n, q[i], n);
        for (int32_t i = 0; i < rotary; i++) to[n + i] = q[d + i];
    }
}

static void expand_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct wide_job *wide = ctx;
    const struct latent_job *job = wide->job;
    const int32_t d = job->heads->d_h, n = job->cache->latent;
    float out[LATENT_MOST];
    (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t r = item / job->heads->n_q, h = item % job->heads->n_q;
        const float *mean = (const float *)wide->o.data + item * (n + job->cache->rotary);
        for (int32_t i = 0; i < d; i++) out[i] = cpu_dot(job->heads->v + (h * d + i) * n, mean, n);
        store(job->cpu, job->o->data, job->o->type, r * job->o->stride + h * d, out, d);
    }
}

/* false: there is no room for it. */
static bool by_attention(const struct latent_job *job) {
    const struct latent_cache *c = job->cache;
    const struct step *step = job->step;
    const int32_t n_q = job->heads->n_q, width = c->latent + c->rotary;
    const int64_t items = (int64_t)step->n_row * n_q;
    const struct step_bounds now = {.n_q = n_q, .n_kv = 1, .d_h = width};
    struct kv kv = {.type = c->type, .n_kv = 1, .d_h = width, .block = c->capacity};
    if (job->heads->room == NULL || n_q > QUERY_ROWS || width > job->cpu->bounds.d_h ||
        cpu_attention_scratch(&now) > job->cpu->scratch_floats)
        return false;
    kv.k = kv.v = c->rows;
    struct wide_job wide = {.job = job};
    wide.q = (struct tensor){.data = job->heads->room,
                             .type = DT_F32,
                             .rows = step->n_row,
                             .cols = n_q * width,
                             .stride = (int64_t)n_q * width};
    wide.o = wide.q;
    wide.o.data = job->heads->room + items * width;
    pool_run(job->cpu->pool, items, 1, 1, absorb_items, &wide);
    cpu_attention(&job->cpu->base, &wide.o, &wide.q, &kv, step, job->scale);
    pool_run(job->cpu->pool, items, 1, 1, expand_items, &wide);
    return true;
}

/* Items are (row, head). */
static void attention_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct latent_job *job = ctx;
    const struct latent_heads *heads = job->heads;
    const int32_t d = heads->d_h, width = d + job->cache->rotary;
    float room[LATENT_MOST], out[LATENT_MOST];
    (void)thread;
    for (int64_t item = begin; item < end; item++) {
        const int64_t r = item / heads->n_q, h = item % heads->n_q;
        const int64_t w = h * d * job->cache->latent;
        const float *q =
            load(job->cpu, job->q->data, job->q->type, r * job->q->stride + h * width, width, room);
        (job->form == LATENT_ABSORBED ? absorbed : rebuilt)(
            job, job->step->seq[r], job->step->pos[r], q, heads->k + w, heads->v + w, out);
        store(job->cpu, job->o->data, job->o->type, r * job->o->stride + h * d, out, d);
    }
}

static void attention(struct device *device, struct tensor *o, const struct tensor *q,
                      const struct latent_cache *c, const struct latent_heads *heads,
                      const struct step *step, float scale, enum latent_form form) {
    struct latent_job job = {.cpu = cpu_of(device),
                             .cache = c,
                             .heads = heads,
                             .step = step,
                             .q = q,
                             .o = o,
                             .scale = scale,
                             .form = form};
    if (!fits(job.cpu, q, c, heads) ||
        !cpu_expects(job.cpu, o->cols == heads->n_q * heads->d_h && cpu_is_float(o->type),
                     "latent attention: o does not fit"))
        return;
    if (form == LATENT_ABSORBED && by_attention(&job)) return;
    pool_run(job.cpu->pool, (int64_t)step->n_row * heads->n_q, 1, 1, attention_items, &job);
}

/* ---- blocks */

struct blocks_job {
    struct cpu *cpu;
    const struct block_means *means;
    const struct block_choice *choice;
    const struct kv *kv;
    const struct step *step;
    const struct tensor *q;
};

/* Items are (row, KV head). */
static void mean_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct blocks_job *job = ctx;
    const struct kv *kv = job->kv;
    const int32_t d = kv->d_h;
    float *room = cpu_scratch(job->cpu, thread), *mean = room + d;
    for (int64_t item = begin; item < end; item++) {
        const int32_t r = (int32_t)(item / kv->n_kv), h = (int32_t)(item % kv->n_kv);
        const int32_t s = job->step->seq[r], p = job->step->pos[r], block = p / kv->block;
        const int32_t n = p % kv->block + 1;
        const int64_t from = cpu_kv_place(kv, s, h, block * kv->block);
        const int64_t to = ((int64_t)s * job->means->most + block) * kv->n_kv + h;
        /* Rows of a sequence in the same block: the last of them is the one that counts. */
        if (r + 1 < job->step->q_begin[s + 1] && job->step->pos[r + 1] / kv->block == block)
            continue;
        for (int32_t i = 0; i < d; i++) mean[i] = 0;
        for (int32_t o = 0; o < n; o++)
            add_times(mean, load(job->cpu, kv->k, kv->type, (from + o) * d, d, room), 1, d);
        for (int32_t i = 0; i < d; i++) mean[i] /= (float)n;
        store(job->cpu, job->means->means, job->means->type, to * d, mean, d);
    }
}

static bool blocks_fit(struct cpu *cpu, const struct kv *kv) {
    const struct step_bounds now = {.d_h = kv->d_h};
    return cpu_expects(cpu, kv->table != NULL && cpu_is_float(kv->type),
                       "blocks are chosen from a paged cache of floats") &&
           cpu_expects(cpu, cpu_rows_scratch(&now) <= cpu->scratch_floats,
                       "blocks: heads larger than planned");
}

static void summarize(struct device *device, const struct block_means *means, const struct kv *kv,
                      const struct step *step) {
    struct blocks_job job = {.cpu = cpu_of(device), .means = means, .kv = kv, .step = step};
    if (!blocks_fit(job.cpu, kv)) return;
    pool_run(job.cpu->pool, (int64_t)step->n_row * kv->n_kv, 1, 16, mean_items, &job);
}

/* Items are (row, block). */
static void score_items(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct blocks_job *job = ctx;
    const struct kv *kv = job->kv;
    const struct block_means *m = job->means;
    const int32_t d = kv->d_h, n_q = job->q->cols / d, group = n_q / kv->n_kv;
    float *q_room = cpu_scratch(job->cpu, thread), *mean_room = q_room + d;
    for (int64_t item = begin; item < end; item++) {
        const int64_t r = item / m->most, b = item % m->most;
        const int64_t s = job->step->seq[r];
        float sum = 0;
        if (b >= job->step->pos[r] / kv->block) continue;
        for (int32_t h = 0; h < n_q; h++) {
            const int64_t at = ((s * m->most + b) * kv->n_kv + h / group) * d;
            const float *q = load(job->cpu, job->q->data, job->q->type,
                                  r * job->q->stride + (int64_t)h * d, d, q_room);
            sum += cpu_dot(q, load(job->cpu, m->means, m->type, at, d, mean_room), d);
        }
        m->scores[s * m->most + b] = sum > -FLT_MAX ? sum : -FLT_MAX; /* of NaN too */
    }
}

static void choose_rows(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct blocks_job *job = ctx;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        block_take(job->choice, job->means, job->kv, job->step, r);
}

static void choose(struct device *device, const struct block_choice *choice,
                   const struct block_means *means, const struct tensor *q, const struct kv *kv,
                   const struct step *step) {
    struct blocks_job job = {
        .cpu = cpu_of(device), .means = means, .choice = choice, .kv = kv, .step = step, .q = q};
    if (!blocks_fit(job.cpu, kv) ||
        !cpu_expects(job.cpu,
                     choice->most > 0 && cpu_is_float(q->type) &&
                         q->cols % (kv->n_kv * kv->d_h) == 0,
                     "choose: one block or more, and queries of whole groups"))
        return;
    const int64_t pairs = (int64_t)step->n_row * means->most;
    pool_run(job.cpu->pool, pairs, 4, 8, score_items, &job);
    pool_run(job.cpu->pool, step->n_row, 1, 1, choose_rows, &job);
}

const struct lab_latent cpu_lab_latent = {
    .append = append, .attention = attention, .summarize = summarize, .choose = choose};
