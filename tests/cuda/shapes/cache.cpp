/* SPDX-License-Identifier: Apache-2.0 */
/* rope_append, attention and kv_copy_block over caches of production. */
#include "tests/cuda/shapes/rig.h"

struct cache {
    struct kv kv;
    std::unique_ptr<array> k, v, k_scale, v_scale;
    std::vector<int32_t> table;

    /* units of `block` slots; with a table each sequence has `blocks` of them, drawn from all. */
    cache(const struct model &m, enum dtype type, int64_t units, int64_t block, int64_t n_seq,
          int64_t blocks, bool filled) {
        const int64_t slots = units * m.n_kv * block;
        k.reset(new array("keys", type, slots * m.d, filled ? 31 : 0));
        v.reset(new array("values", type, slots * m.d, filled ? 32 : 0));
        kv = {type,    m.n_kv,  m.d,     0, int32_t(block), k->data(), v->data(),
              nullptr, nullptr, nullptr, 0};
        if (type == DT_I8) {
            for (auto *scale : {&k_scale, &v_scale})
                scale->reset(filled ? new array("scales", DT_F32, slots)
                                    : new array("scales", DT_F32, slots, 0));
            kv.k_scale = static_cast<float *>(k_scale->data());
            kv.v_scale = static_cast<float *>(v_scale->data());
        }
        if (!blocks) return;
        std::vector<bool> is_used(size_t(units), false);
        for (int64_t i = 0; i < n_seq * blocks; i++) { /* no two have the same */
            int64_t unit = i == 0 ? units - 1 : draw(units);
            while (is_used[size_t(unit)]) unit = (unit + 1) % units;
            is_used[size_t(unit)] = true;
            table.push_back(int32_t(unit));
        }
        kv.table = table.data();
        kv.table_stride = int32_t(blocks);
    }
    int64_t slot(int64_t s, int64_t head, int64_t p) const {
        const int64_t block = kv.block;
        const int64_t unit = kv.table ? table[size_t(s * kv.table_stride + p / block)] : s;
        return (unit * kv.n_kv + head) * block + p % block;
    }
};

static double turned(const array &qkv, int64_t at, const struct model &m, int64_t p, int64_t i) {
    const int64_t half = m.d / 2, j = i % half;
    const double angle = double(p) * pow(10000, -2.0 * double(j) / double(m.d));
    const double x = qkv.at(at + j), y = qkv.at(at + j + half);
    return i < half ? x * cos(angle) - y * sin(angle) : x * sin(angle) + y * cos(angle);
}

/* Every row of all sequences is appended. */
static void append(const struct model &m, enum dtype type, enum dtype kv_type, int64_t n_seq,
                   int64_t units, int64_t block, int64_t blocks_of_seq, int more) {
    const int64_t n_row = n_seq * CONTEXT, q_cols = m.n_q * m.d, cols = q_cols + 2 * m.n_kv * m.d;
    const array qkv("qkv", type, n_row * cols, 41);
    array q("q", type, n_row * q_cols, 0);
    struct cache c(m, kv_type, units, block, n_seq, blocks_of_seq, false);
    struct rows rows(n_seq, CONTEXT, [](int64_t) { return CONTEXT; });
    const struct tensor from = tensor_of(qkv, n_row, cols, cols);
    struct tensor to = tensor_of(q, n_row, q_cols, q_cols);
    const struct rope rope = {10000, ROPE_HALVES, NULL, 0};
    chosen = [&](const launch_record &l, size_t n) { /* of a row all heads */
                                                     blocks list;
                                                     for (size_t row : some_of(l.grid.x, more))
                                                         for (size_t b = row; b < n; b += l.grid.x)
                                                             list.push_back(b);
                                                     return list;
    };
    cuda_rope_append(device, &to, &c.kv, &from, &rows.step, &rope);
    run();
    const struct bar bar = {HALF_A_STEP, 1e-5};
    compare(q, m.d, bar, 1, 0, q.size() - 1, [&](int64_t g, double *v) {
        const int64_t row = g / m.n_q, head = g % m.n_q;
        for (int64_t i = 0; i < m.d; i++)
            v[i] = turned(qkv, row * cols + head * m.d, m, row % CONTEXT, i);
        return true;
    });
    /* Where the rows that ran must lie, which are those whose first query was written. */
    for (const bool is_key : {true, false}) {
        std::vector<std::pair<int64_t, int64_t>> lies; /* slot, place in qkv */
        for (int64_t i : q.written())
            if (i % q_cols == 0)
                for (int64_t h = 0; h < m.n_kv; h++) {
                    const int64_t row = i / q_cols;
                    const int64_t head = m.n_q + h + (is_key ? 0 : m.n_kv);
                    lies.push_back(
                        {c.slot(row / CONTEXT, h, row % CONTEXT), row * cols + head * m.d});
                }
        std::sort(lies.begin(), lies.end());
        const auto source = [&](int64_t slot) {
            const auto i =
                std::lower_bound(lies.begin(), lies.end(), std::pair<int64_t, int64_t>(slot, 0));
            return i != lies.end() && i->first == slot ? i->second : int64_t(-1);
        };
        const auto values = [&](int64_t slot, double *v) {
            const int64_t at = source(slot);
            for (int64_t i = 0; i < m.d && at >= 0; i++)
                v[i] = is_key ? turned(qkv, at, m, at / cols % CONTEXT, i) : qkv.at(at + i);
            return at >= 0;
        };
        const auto scale = [&](const double *v) {
            double most = 0;
            for (int64_t i = 0; i < m.d; i++) most = std::max(most, fabs(v[i]));
            return most / 127;
        };
        const array &kept = is_key ? *c.k : *c.v;
        const int64_t first = lies.front().first * m.d, last = lies.back().first * m.d + m.d - 1;
        if (kv_type != DT_I8) {
            compare(kept, m.d, bar, 1, first, last, values);
            continue;
        }
        compare(kept, m.d, {0, 0.51}, 1, first, last, [&](int64_t slot, double *v) {
            const bool is = values(slot, v);
            const double by = scale(v);
            for (int64_t i = 0; i < m.d; i++) v[i] /= by;
            return is;
        });
        std::vector<double> v(size_t(m.d), 0);
        compare(is_key ? *c.k_scale : *c.v_scale, 1, {1e-5, 0}, 1, first / m.d, last / m.d,
                [&](int64_t slot, double *of) {
                    const bool is = values(slot, v.data());
                    *of = scale(v.data());
                    return is;
                });
    }
}

void appends(void) {
    plan_for(m13b, 1, 1, 1, CONTEXT);
    append(m13b, DT_BF16, DT_BF16, BATCH, BATCH, CONTEXT, 0, 2);
    append(m13b, DT_BF16, DT_I8, 2 * BATCH, 2 * BATCH, CONTEXT, 0, 2);
    plan_for(m7b, 1, 1, 1, CONTEXT);
    append(m7b, DT_F16, DT_F16, BATCH, 300000, 16, CONTEXT / 16, 2);
}

/* What attention gives for one row and query head. */
static void attend(const struct cache &c, const array &q, int64_t q_at, int64_t s, int64_t head,
                   int64_t last, double scale, double *o) {
    const int64_t d = c.kv.d_h,
                  low = c.kv.window ? std::max<int64_t>(0, last - c.kv.window + 1) : 0;
    std::vector<double> query(size_t(d), 0), weight;
    for (int64_t i = 0; i < d; i++) query[size_t(i)] = q.at(q_at + i);
    double most = -INFINITY, total = 0;
    for (int64_t p = low; p <= last; p++) {
        const int64_t slot = c.slot(s, head, p);
        double sum = 0;
        for (int64_t i = 0; i < d; i++) sum += query[size_t(i)] * c.k->at(slot * d + i);
        weight.push_back(sum * scale * (c.k_scale ? c.k_scale->at(slot) : 1));
        most = std::max(most, weight.back());
    }
    for (int64_t i = 0; i < d; i++) o[i] = 0;
    for (int64_t p = low; p <= last; p++) {
        const int64_t slot = c.slot(s, head, p);
        const double by = exp(weight[size_t(p - low)] - most);
        total += by;
        const double of = by * (c.v_scale ? c.v_scale->at(slot) : 1);
        for (int64_t i = 0; i < d; i++) o[i] += of * c.v->at(slot * d + i);
    }
    for (int64_t i = 0; i < d; i++) o[i] /= total;
}

static void attention(const struct model &m, enum dtype type, struct cache &c, int64_t n_seq,
                      int64_t each, const std::function<int32_t(int64_t)> &length,
                      const struct bar &bar) {
    const int64_t cols = m.n_q * m.d, n_row = n_seq * each;
    const array q("q", type, n_row * cols, 51);
    array o("o", type, n_row * cols, 0);
    struct rows rows(n_seq, each, length);
    const struct tensor from = tensor_of(q, n_row, cols, cols);
    struct tensor to = tensor_of(o, n_row, cols, cols);
    cuda_attention(device, &to, &from, &c.kv, &rows.step, 0.35f);
    run();
    compare(o, m.d, bar, 1, 0, o.size() - 1, [&](int64_t g, double *v) {
        const int64_t row = g / m.n_q, head = g % m.n_q;
        attend(c, q, row * cols + head * m.d, row / each, head / (m.n_q / m.n_kv),
               rows.pos[size_t(row)], 0.35, v);
        return true;
    });
}

/* All splits of the first KV head of the first sequence, of the last of the last and of one more,
   and then the rows that these make. */
static void choose_heads(const struct model &m, int64_t n_seq) {
    const int64_t middle = draw(n_seq * m.n_kv), group = m.n_q / m.n_kv, n_kv = m.n_kv;
    chosen = [=](const launch_record &l, size_t n) {
        const bool combines = !strcmp(l.name, "attention_combine");
        blocks list;
        for (size_t b = 0; b < n; b++) {
            const int64_t x = int64_t(b % l.grid.x), y = int64_t(b / l.grid.x % l.grid.y);
            const int64_t s = int64_t(b / l.grid.x / l.grid.y);
            const int64_t pair = s * n_kv + (combines ? x / group : y * n_kv / l.grid.y);
            if (pair == 0 || pair == middle || pair == n_seq * n_kv - 1) list.push_back(b);
        }
        return list;
    };
}

/* Long sequences at both ends. */
static int32_t decode_length(int64_t s, int64_t n_seq) {
    return s == n_seq - 1 ? int32_t(CONTEXT) : s == 0 ? 3000 : 700;
}

static void decode(const struct model &m, enum dtype type, enum dtype kv_type, int64_t n_seq,
                   int64_t units, int64_t block, int64_t blocks_of_seq) {
    struct cache c(m, kv_type, units, block, n_seq, blocks_of_seq, true);
    plan_for(m, n_seq, n_seq, 1, CONTEXT);
    choose_heads(m, n_seq);
    attention(m, type, c, n_seq, 1, [=](int64_t s) { return decode_length(s, n_seq); },
              {0x1p-7, 4e-4});
}

void decodes(void) {
    decode(m13b, DT_BF16, DT_BF16, BATCH, BATCH, CONTEXT, 0);
    decode(m13b, DT_BF16, DT_I8, 2 * BATCH, 2 * BATCH, CONTEXT, 0);
    decode(m7b, DT_BF16, DT_BF16, 8, 300000, 16, CONTEXT / 16);
    decode(llama, DT_F16, DT_F16, 8, 600000, 16, CONTEXT / 16);
}

/* All splits of the first row's first query head, of the last's last and of one more. */
static void choose_rows(int64_t n_q, int64_t n_row) {
    const int64_t middle = draw(n_row * n_q);
    chosen = [=](const launch_record &l, size_t n) {
        const bool combines = !strcmp(l.name, "attention_combine");
        blocks list;
        for (size_t b = 0; b < n; b++) {
            const int64_t x = int64_t(b % l.grid.x), y = int64_t(b / l.grid.x % l.grid.y);
            const int64_t z = int64_t(b / l.grid.x / l.grid.y);
            const int64_t pair = combines ? z * n_q + x : x * n_q + y;
            if (pair == 0 || pair == middle || pair == n_row * n_q - 1) list.push_back(b);
        }
        return list;
    };
}

void plain_attention(void) {
    struct cache c(m13b, DT_F32, BATCH, CONTEXT, BATCH, 0, true);
    plan_for(m13b, BATCH, BATCH, 1, CONTEXT);
    choose_rows(m13b.n_q, BATCH);
    attention(m13b, DT_F32, c, BATCH, 1, [](int64_t s) { return int32_t(s == 15 ? 3000 : 700); },
              {1e-5, 1e-5});
}

/* Tiles of a sequence begin at its end: the first and the last rows are none of the first and the
   last block. */
static void choose_tiles(int64_t n_seq) {
    chosen = [=](const launch_record &l, size_t n) {
        const size_t of_seq = l.grid.x / size_t(n_seq), last = l.grid.x - of_seq;
        return some_of(n, 1, {of_seq - 1, n - l.grid.x + last});
    };
}
void prefills(void) {
    { /* every row of all sequences, each of which sees the last 256 */
        struct cache c(m13b, DT_BF16, BATCH * CONTEXT / 16, 16, BATCH, CONTEXT / 16, true);
        c.kv.window = 256;
        plan_for(m13b, 1, 1, 1, CONTEXT);
        choose_tiles(BATCH);
        attention(m13b, DT_BF16, c, BATCH, CONTEXT, [](int64_t) { return CONTEXT; },
                  {0x1p-7, 0x1p-8});
    }
    for (const enum dtype type : {DT_BF16, DT_I8}) { /* short prompts in long places */
        const int64_t n_seq = type == DT_I8 ? 2 * BATCH : BATCH;
        struct cache c(m13b, type, n_seq, CONTEXT, n_seq, 0, true);
        const double largest = type == DT_I8 ? 128 * 3.0 / 64 : 1; /* weights are rounded to bf16 */
        choose_tiles(n_seq);
        attention(m13b, DT_BF16, c, n_seq, 300, [](int64_t) { return 300; },
                  {0x1p-7, largest * 0x1p-8});
    }
}

void copies_of_units(void) {
    const int64_t block = 16, from = 7, slots = m13b.n_kv * block;
    for (const enum dtype type : {DT_BF16, DT_I8}) {
        const int64_t units = type == DT_I8 ? 80000 : 40000, to = units - 1; /* 6.5 GB each */
        struct cache c(m13b, type, units, block, 1, 0, true);
        chosen = [](const launch_record &, size_t n) { return all_of(n); };
        cuda_kv_copy_block(device, &c.kv, int32_t(from), int32_t(to));
        run();
        for (array *a : {c.k.get(), c.v.get(), c.k_scale.get(), c.v_scale.get()}) {
            if (!a) continue;
            const int64_t unit = a == c.k.get() || a == c.v.get() ? slots * m13b.d : slots;
            compare(*a, unit, {0, 0}, 1, to * unit, a->size() - 1, [&](int64_t u, double *v) {
                for (int64_t i = 0; i < unit; i++) v[i] = a->at(from * unit + i);
                return u == to;
            });
        }
    }
}

/* What no grid can hold is refused by a sentence. */
void too_many_sequences(void) {
    const int64_t n_seq = 65536, cols = seed.n_q * seed.d;
    struct cache c(seed, DT_BF16, n_seq, 16, n_seq, 0, true);
    const array q("q", DT_BF16, n_seq * cols, 51);
    array o("o", DT_BF16, n_seq * cols, 0);
    struct rows rows(n_seq, 1, [](int64_t) { return 1; });
    const struct tensor from = tensor_of(q, n_seq, cols, cols);
    struct tensor to = tensor_of(o, n_seq, cols, cols);
    cuda_attention(device, &to, &from, &c.kv, &rows.step, 0.35f);
    struct err err = {};
    if (!device->kind->sync(device, &err) || !strstr(err.text, "more than 65535 sequences"))
        wrong("65536 sequences at once: '%s'", err.text);
}
