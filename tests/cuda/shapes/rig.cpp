/* SPDX-License-Identifier: Apache-2.0 */
/* See rig.h. */
#include "tests/cuda/shapes/rig.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- values ---- */

static uint64_t of_float(float x) { return simt_bits<uint32_t>(x); }
/* Of few bits, so that all types of 16 bits have them exactly. */
static float coarse(uint64_t salt, int64_t i) {
    return float(int(random_at(salt, uint64_t(i)) >> 57) - 64) / 64;
}
static uint64_t bf16_bits(uint64_t salt, int64_t i) { return of_float(coarse(salt, i)) >> 16; }
static uint64_t f16_bits(uint64_t salt, int64_t i) { return f16_from_f32(coarse(salt, i)); }
static uint64_t f32_values(uint64_t salt, int64_t i) {
    return of_float(float(random_at(salt, uint64_t(i)) >> 40) * 0x1p-23f - 1);
}
static uint64_t code_bits(uint64_t salt, int64_t i) { return random_at(salt, uint64_t(i)) >> 56; }
static float scale_value(uint64_t salt, int64_t i) { return (2 + coarse(salt, i)) / 64; }
static uint64_t f32_scale(uint64_t salt, int64_t i) { return of_float(scale_value(salt, i)); }
static uint64_t f16_scale(uint64_t salt, int64_t i) { return f16_from_f32(scale_value(salt, i)); }
static uint64_t nothing(uint64_t, int64_t) { return ~uint64_t(0); } /* NaN */

double number(enum dtype type, uint64_t bits) {
    switch (type) {
    case DT_F32: return double(simt_bits<float>(uint32_t(bits)));
    case DT_BF16: return double(simt_bits<float>(uint32_t(bits) << 16));
    case DT_F16: return double(__half2float(__ushort_as_half(uint16_t(bits))));
    default: return double(int8_t(bits));
    }
}
simt::element_bits *values_of(enum dtype type, uint64_t salt) {
    if (!salt) return nothing;
    return type == DT_BF16  ? bf16_bits
           : type == DT_F16 ? f16_bits
           : type == DT_F32 ? f32_values
                            : code_bits;
}
simt::element_bits *scales_of(enum dtype type) { return type == DT_F16 ? f16_scale : f32_scale; }

struct tensor tensor_of(const array &a, int64_t rows, int64_t cols, int64_t stride) {
    return {a.data(), a.type, int32_t(rows), int32_t(cols), stride};
}

/* ---- which blocks run ---- */

static uint64_t draws;
int64_t draw(int64_t n) { return int64_t(random_at(99, draws++) % uint64_t(n)); }

blocks some_of(size_t n, int more, const blocks &named) {
    blocks list = {0, n - 1};
    for (int i = 0; i < more; i++) list.push_back(size_t(draw(int64_t(n))));
    list.insert(list.end(), named.begin(), named.end());
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
}
std::function<blocks(const launch_record &, size_t n)> chosen;
static blocks choose(const launch_record &l, size_t n) { return chosen(l, n); }
blocks all_of(size_t n) {
    blocks all;
    for (size_t b = 0; b < n; b++) all.push_back(b);
    return all;
}
void choose_some(int more) {
    chosen = [more](const launch_record &, size_t n) { return some_of(n, more); };
}

/* ---- what they wrote ---- */

int n_wrong;
int64_t n_written;
double worst;
const char *case_now = "";

void wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (n_wrong++ < 50) {
        printf("%s: ", case_now);
        vprintf(format, list);
        puts("");
    }
    va_end(list);
}

void compare(const array &out, int64_t group, const struct bar &bar, int every, int64_t first,
             int64_t last, const truth &expected) {
    const std::vector<int64_t> list = out.written();
    std::vector<double> values(size_t(group), 0);
    if (list.empty()) return wrong("nothing was written");
    n_written += int64_t(list.size());
    if (list.front() / group != first / group || list.back() / group != last / group)
        wrong("elements %lld ... %lld were written, not %lld ... %lld", (long long)list.front(),
              (long long)list.back(), (long long)first, (long long)last);
    for (size_t i = 0, end; i < list.size(); i = end) {
        const int64_t g = list[i] / group;
        for (end = i; end < list.size() && list[end] / group == g; end++) {}
        const bool edge = i == 0 || end == list.size() || list[i] - list[i - 1] > 1 ||
                          list[end] - list[end - 1] > 1;
        if (!edge && random_at(5, uint64_t(g)) % uint64_t(every) != 0) continue;
        const bool may = list[end - 1] < out.size() && expected(g, values.data());
        if (!may) wrong("element %lld was written", (long long)list[i]);
        if (may && out.is_nan && int64_t(end - i) != group)
            wrong("of the %lld from element %lld only %lld were written", (long long)group,
                  (long long)(g * group), (long long)(end - i));
        for (size_t j = i; may && j < end; j++) {
            const double want = values[size_t(list[j] - g * group)];
            const double got = number(out.type, out.now(list[j]));
            const double off = fabs(got - want), allowed = bar.absolute + bar.relative * fabs(want);
            if (off > 0 && off <= allowed) worst = std::max(worst, off / allowed);
            if (!(off <= allowed)) {
                wrong("element %lld is %g, not %g", (long long)list[j], got, want);
                break;
            }
        }
    }
}

/* ---- the device ---- */

struct device *device;

void open_device(void) {
    const struct device_kind *kind = device_kind_find("cuda-emu");
    struct cuda_params params = {};
    params.gemm = 1; /* our own */
    struct err err = {};
    if (!kind || device_open(&device, kind, &params, &err)) {
        fprintf(stderr, "no cuda-emu: %s\n", err.text);
        exit(2);
    }
    simt::hooks.choose = choose;
}
void plan_for(const struct model &m, int64_t n_seq, int64_t n_row, int64_t n_out, int64_t most_kv) {
    struct err err = {};
    const struct step_bounds b = {int32_t(n_seq),   int32_t(n_row), int32_t(n_out), 1,
                                  int32_t(most_kv), m.n_q,          m.n_kv,         m.d,
                                  m.d_model,        m.d_ff,         m.vocab,        DT_F32};
    if (device->kind->plan(device, &b, &err)) wrong("%s", err.text);
}
void run(void) {
    struct err err = {};
    if (device->kind->sync(device, &err)) wrong("%s", err.text);
}

rows::rows(int64_t n_seq, int64_t each, const std::function<int32_t(int64_t)> &length) {
    int32_t longest = 0;
    for (int64_t s = 0; s < n_seq; s++) {
        q_begin.push_back(int32_t(s * each));
        kv_len.push_back(length(s));
        rng.push_back(random_at(3, uint64_t(s)));
        longest = std::max(longest, kv_len.back());
        for (int64_t i = 0; i < each; i++) {
            pos.push_back(int32_t(kv_len.back() - each + i));
            seq.push_back(int32_t(s));
        }
    }
    q_begin.push_back(int32_t(n_seq * each));
    step = {};
    step.n_seq = int32_t(n_seq);
    step.n_row = int32_t(n_seq * each);
    step.most_q = int32_t(each);
    step.most_kv = longest;
    step.pos = pos.data();
    step.seq = seq.data();
    step.q_begin = q_begin.data();
    step.kv_len = kv_len.data();
    step.rng = rng.data();
}
void rows::outputs(const std::vector<int32_t> &rows) {
    out_row = rows;
    next.assign(rows.size(), -1);
    step.n_out = int32_t(rows.size());
    step.out_row = out_row.data();
    step.next = next.data();
}

/* ---- weights ---- */

big_weight::big_weight(enum dtype type, enum scale scale, int group, int64_t rows, int64_t cols,
                       bool interleaved) {
    const bool quantized = type == DT_I8 || type == DT_I4 || type == DT_NF4;
    const int64_t padded = (rows + 15) / 16 * 16;
    const int64_t elements = quantized ? padded * cols * dtype_bits(type) / 8 : padded * cols;
    w = {};
    w.groups = scale == SCALE_GROUP ? cols / group : quantized ? 1 : 0;
    data.reset(new array("weights", quantized ? DT_I8 : type, elements, 11));
    if (quantized) scales.reset(new array("scales", group ? DT_F16 : DT_F32, padded * w.groups));
    w.head = {rows, cols, type, scale, group, DT_F32, 0, 0};
    w.data = data->data();
    w.scales = scales ? scales->data() : nullptr;
    w.padded_rows = padded;
    w.padded_cols = cols;
    w.part_rows[0] = interleaved ? rows / 2 : rows;
    w.part_rows[1] = interleaved ? rows / 2 : 0;
    w.n_parts = interleaved ? 2 : 1;
    w.interleaved = interleaved;
}
int big_weight::nibble(int64_t tile, int64_t col, int place) const {
    const int64_t at = tile + col / 64 * 1024 + place;
    return int(data->made(at / 2) >> (at % 2 * 4)) & 15;
}
double big_weight::at(int64_t row, int64_t col) const {
    const int64_t tile = row / 16 * 16 * w.padded_cols;
    const int r = int(row % 16);
    double code;
    switch (w.head.type) {
    case DT_I8: code = data->at(tile + col / 32 * 512 + frag_int8_byte(r, int(col % 32))); break;
    case DT_I4: code = double(nibble(tile, col, frag_int4_nibble(r, int(col % 64)))) - 8; break;
    case DT_NF4:
        code = double(
            simt_bits<float>(nf4_level_bits(nibble(tile, col, frag_nf4_nibble(r, int(col % 64))))));
        break;
    default: return data->at(row * w.padded_cols + col);
    }
    const int64_t group = w.head.scale == SCALE_GROUP ? col / w.head.group : 0;
    const float v = float(code * scales->at(row * w.groups + group));
    return is_rounded ? number(DT_BF16, bf16_from_f32(v)) : double(v);
}
