/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of many rows of a sequence (prefill, chunks of it, long verification): bound by the
   tensor cores. After FlashAttention-2 (Dao 2023): a block keeps its queries and goes over the keys
   in tiles, with a running maximum and sum for each row; scores never leave registers. Keys and
   values have a buffer each: values arrive while scores are computed, the next keys during the
   softmax and the second product. Rows of 16-byte pieces in shared memory are swizzled (piece ^=
   row % 8), so that copies and ldmatrix meet no bank twice. */
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_prefill.card.h"
#include "kernels/cuda/table.cuh"

namespace attention {

constexpr int WARPS = 4, THREADS = 32 * WARPS;

/* A block's queries: `rows` of sequence s from row `first` of the step, whose first position is
   `position`. rows 0: none. */
struct many_rows {
    int32_t s, rows, position, len;
    int64_t first;

    /* Tile x counts the tiles of all sequences that are prefill's; those of a sequence from its
       end, where rows see most keys: the longest work begins first. */
    __device__ __forceinline__ many_rows(const attention_args &a, int32_t x, int32_t most) {
        rows = 0;
        for (s = 0; s < a.n_seq; s++) {
            const int32_t begin = a.q_begin[s], n = a.q_begin[s + 1] - begin;
            const int32_t tiles = n > a.few ? (n + most - 1) / most : 0;
            if (x >= tiles) {
                x -= tiles;
                continue;
            }
            const int32_t before = (tiles - 1 - x) * most;
            len = a.kv_len[s];
            rows = min(most, n - before);
            position = len - n + before;
            first = begin + before;
            return;
        }
    }
};

template <class T, int D, int KEYS, int MT> struct prefiller {
    static constexpr int ROWS = WARPS * 16 * MT;        // queries of a block, 16 MT a warp
    static constexpr int PIECES = D / 8;                // 16-byte pieces of a row in shared memory
    static constexpr int RUN = KEYS * PIECES / THREADS; // rows of a tile that a thread copies
    static_assert(8 % RUN == 0 && KEYS % 16 == 0, "a run never crosses 8 positions");
    /* Of the queries, as many steps of 16 columns as registers have room for beside sums and
       scores; the others are read from shared memory again for each tile. */
    static constexpr int ROOM = (196 - MT * (D / 2 + KEYS / 2)) / (4 * MT);
    static constexpr int KEPT = ROOM < D / 16 ? ROOM : D / 16;

    const attention_args &a;
    const many_rows &r;
    const int32_t head;
    const int warp, lane, g, t;
    const int piece, run;     // that a thread copies: one piece of rows run ... run + RUN - 1
    const bool together;      // 8 positions from a multiple of 8 lie together in the cache
    int64_t run_place;        // of the run, in the tile of keys that is on its way or here
    const int by_16, by_8;    // what a lane names to ldmatrix: rows 0 ... 15 of a piece and of the
                              // next, or rows 0 ... 7 of both, then 8 ... 15
    const int to;             // where a thread's run goes
    float m[MT][2], l[MT][2]; // of rows g and g + 8
    float s[MT][KEYS / 8][4], o[MT][PIECES][4];
    uint32_t q[MT][KEPT + 1][4]; // the last: of the step at hand

    __device__ __forceinline__ prefiller(const attention_args &a, const many_rows &r, int32_t head)
        : a(a), r(r), head(head), warp(int(threadIdx.x) / 32), lane(int(threadIdx.x) % 32),
          g(lane / 4), t(lane % 4), piece(int(threadIdx.x) % PIECES),
          run(int(threadIdx.x) / PIECES * RUN),
          together(a.block % 8 == 0 || (!a.table && a.window == 0)),
          by_16(offset_of(lane % 16, lane / 16)),
          by_8(offset_of(lane % 8 + lane / 16 * 8, lane / 8 % 2)), to(offset_of(run, piece)) {
#pragma unroll
        for (int i = 0; i < MT; i++) {
            m[i][0] = m[i][1] = NOTHING;
            l[i][0] = l[i][1] = 0;
#pragma unroll
            for (int n = 0; n < PIECES; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) o[i][n][e] = 0;
        }
    }

    /* Bytes of shared memory. Row r of a tile has its piece p at place p ^ (r & 7); so going to
       another piece flips bits of an offset, and going down by a multiple of 8 rows adds to it. */
    static constexpr int PITCH = 2 * D, K_AT = ROWS * PITCH, V_AT = K_AT + KEYS * PITCH,
                         SCALES_AT = V_AT + KEYS * PITCH;
    static __device__ __forceinline__ int offset_of(int row, int p) {
        return row * PITCH + (p ^ (row & 7)) * 16;
    }
    static __device__ __forceinline__ unsigned char *shared(int offset) {
        return dynamic_shared<unsigned char>() + offset;
    }
    /* A piece further by an even number, whose lowest bit the offset already has. */
    static __device__ __forceinline__ int further(int offset, int pieces) {
        return (offset ^ (pieces % 8 * 16)) + pieces / 8 * 128;
    }
    /* Row of the block of accumulator half h of tile i. */
    __device__ __forceinline__ int row_of(int i, int h) const {
        return (warp * MT + i) * 16 + g + 8 * h;
    }

    /* ---- copies ---- */

    __device__ __forceinline__ void fetch_queries(int32_t q_head) {
        const uint16_t *from = static_cast<const uint16_t *>(a.q) + r.first * a.q_stride +
                               int64_t(q_head) * a.d + piece * 8;
#pragma unroll
        for (int i = 0; i < ROWS * PIECES / THREADS; i++) {
            const int row = int(threadIdx.x) / PIECES + i * (THREADS / PIECES);
            const bool ok = row < r.rows && piece * 8 < a.d;
            copy_async_16(shared(offset_of(row, piece)), from + (ok ? row * a.q_stride : 0), ok);
        }
    }

    __device__ __forceinline__ int64_t place_of(int key) const { return place(a, r.s, head, key); }

    /* 8 codes as the bf16 they are. */
    static __device__ __forceinline__ uint4 widen(uint2 codes) {
        return make_uint4(int8::pair(__byte_perm(codes.x, 0, 0x4140)),
                          int8::pair(__byte_perm(codes.x, 0, 0x4342)),
                          int8::pair(__byte_perm(codes.y, 0, 0x4140)),
                          int8::pair(__byte_perm(codes.y, 0, 0x4342)));
    }

    __device__ __forceinline__ int row_of_run(int i) const { return (to ^ (i * 16)) + i * PITCH; }

    /* Keys or values of the tile from `first`; zeros past the sequence's end and the head's. */
    __device__ __forceinline__ void fetch(int tile, const void *cache, int first) {
        const int n = piece * 8 < a.d ? min(RUN, r.len - first - run) : 0; // rows to copy
        const char *base = static_cast<const char *>(cache) + piece * 8 * T::BYTES;
        const int64_t pitch = int64_t(a.d) * T::BYTES;
        if (together) {
            fetch_run(tile, base + run_place * pitch, pitch, n);
            return;
        }
#pragma unroll 1
        for (int i = 0; i < RUN; i++) {
            const char *from = base + (i < n ? place_of(first + run + i) * pitch : 0);
            if constexpr (T::BYTES == 1)
                put_codes(tile + row_of_run(i), load_codes(from, i < n));
            else
                copy_async_16(shared(tile + row_of_run(i)), from, i < n);
        }
    }
    __device__ __forceinline__ void fetch_run(int tile, const char *from, int64_t pitch, int n) {
        if constexpr (T::BYTES == 1) {
            uint2 codes[RUN];
#pragma unroll
            for (int i = 0; i < RUN; i++) codes[i] = load_codes(from + i * pitch, i < n);
#pragma unroll
            for (int i = 0; i < RUN; i++) put_codes(tile + row_of_run(i), codes[i]);
        } else {
#pragma unroll
            for (int i = 0; i < RUN; i++)
                copy_async_16(shared(tile + row_of_run(i)), from + (i < n ? i * pitch : 0), i < n);
        }
    }
    static __device__ __forceinline__ uint2 load_codes(const char *from, bool ok) {
        return ok ? *reinterpret_cast<const uint2 *>(from) : make_uint2(0, 0);
    }
    static __device__ __forceinline__ void put_codes(int offset, uint2 codes) {
        *reinterpret_cast<uint4 *>(shared(offset)) = widen(codes);
    }
    __device__ __forceinline__ void fetch_scales(int at, const float *from, int first) {
        const int i = int(threadIdx.x), key = first + i;
        if (i < KEYS) *scale(at + i) = key < r.len ? from[place_of(key)] : 0;
    }
    /* Of keys, then of values. */
    static __device__ __forceinline__ float *scale(int i) {
        return reinterpret_cast<float *>(shared(SCALES_AT)) + i;
    }
    static __device__ __forceinline__ float2 two_scales(int i) {
        return *reinterpret_cast<const float2 *>(scale(i));
    }
    __device__ __forceinline__ void fetch_keys(int first) {
        run_place = place_of(min(first + run, r.len - 1));
        fetch(K_AT, a.k, first);
        if (T::SCALED) fetch_scales(0, a.k_scale, first);
        copy_async_commit();
    }
    __device__ __forceinline__ void fetch_values(int first) {
        fetch(V_AT, a.v, first);
        if (T::SCALED) fetch_scales(KEYS, a.v_scale, first);
        copy_async_commit();
    }
    static __device__ __forceinline__ void arrived() {
        copy_async_wait<0>();
        __syncthreads();
    }

    /* ---- a tile ---- */

    /* Columns 16 c ... of the warp's queries. */
    __device__ __forceinline__ void load_queries(int to, int c) {
#pragma unroll
        for (int i = 0; i < MT; i++)
            ldmatrix_x4(q[i][to], shared(further(by_16, 2 * c) + (warp * MT + i) * 16 * PITCH));
    }

    __device__ __forceinline__ void scores() {
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) s[i][n][e] = 0;
#pragma unroll
        for (int c = 0; c < D / 16; c++) {
            if (c >= KEPT) load_queries(KEPT, c);
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++) {
                uint32_t y[4];
                ldmatrix_x4(y, shared(further(by_8, 2 * c) + K_AT + n * 16 * PITCH));
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    const uint32_t(&x)[4] = q[i][c < KEPT ? c : KEPT];
                    T::mma(s[i][2 * n], x[0], x[1], x[2], x[3], y[0], y[1]);
                    T::mma(s[i][2 * n + 1], x[0], x[1], x[2], x[3], y[2], y[3]);
                }
            }
        }
        if (T::SCALED) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) {
                const float2 by = two_scales(8 * n + 2 * t);
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    s[i][n][0] *= by.x;
                    s[i][n][1] *= by.y;
                    s[i][n][2] *= by.x;
                    s[i][n][3] *= by.y;
                }
            }
        }
    }

    __device__ __forceinline__ void hide(int first) {
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int key = first + 8 * n + 2 * t + e % 2;
                    const int position = r.position + row_of(i, e / 2);
                    if (key > position || (a.window > 0 && key <= position - a.window))
                        s[i][n][e] = -INFINITY;
                }
    }

    /* Scores of row half h of tile i become weights, in p as operand A of the second product. */
    __device__ __forceinline__ void weights(uint32_t (&p)[MT][KEYS / 8][2], int i, int h) {
        float most = m[i][h];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
            most = fmaxf(most, fmaxf(s[i][n][2 * h], s[i][n][2 * h + 1]));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, 1));
        most = fmaxf(most, __shfl_xor_sync(ALL, most, 2));
        const float by = exp2_fast((m[i][h] - most) * a.scale_log2);
        const float base = most * a.scale_log2;
        m[i][h] = most;
        l[i][h] *= by;
#pragma unroll
        for (int n = 0; n < PIECES; n++) {
            o[i][n][2 * h] *= by;
            o[i][n][2 * h + 1] *= by;
        }
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
            float &x = s[i][n][2 * h], &y = s[i][n][2 * h + 1];
            x = exp2_fast(fmaf(x, a.scale_log2, -base));
            y = exp2_fast(fmaf(y, a.scale_log2, -base));
            l[i][h] += x + y;
            if (!T::SCALED) p[i][n][h] = T::pack(x, y);
        }
    }

    /* With the scales of values, of which a lane reads each once. */
    __device__ __forceinline__ void scale_weights(uint32_t (&p)[MT][KEYS / 8][2]) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++) {
            const float2 by = two_scales(KEYS + 8 * n + 2 * t);
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    p[i][n][h] = T::pack(s[i][n][2 * h] * by.x, s[i][n][2 * h + 1] * by.y);
        }
    }

    __device__ __forceinline__ void add_values(const uint32_t (&p)[MT][KEYS / 8][2]) {
#pragma unroll
        for (int c = 0; c < KEYS / 16; c++) {
#pragma unroll
            for (int n = 0; n < D / 16; n++) {
                uint32_t y[4];
                ldmatrix_x4_trans(y, shared(further(by_16, 2 * n) + V_AT + c * 16 * PITCH));
#pragma unroll
                for (int i = 0; i < MT; i++) {
                    const uint32_t(&x)[2] = p[i][2 * c], (&z)[2] = p[i][2 * c + 1];
                    T::mma(o[i][2 * n], x[0], x[1], z[0], z[1], y[0], y[1]);
                    T::mma(o[i][2 * n + 1], x[0], x[1], z[0], z[1], y[2], y[3]);
                }
            }
        }
    }

    template <bool HIDE> __device__ __forceinline__ void tile(int first, int end) {
        uint32_t p[MT][KEYS / 8][2];
        arrived(); // keys are here, and no warp reads values any more
        fetch_values(first);
        scores();
        arrived(); // values are here, and no warp reads keys any more
        if (first + KEYS < end) fetch_keys(first + KEYS);
        if (HIDE) hide(first);
#pragma unroll
        for (int i = 0; i < MT; i++) {
            weights(p, i, 0);
            weights(p, i, 1);
        }
        if constexpr (T::SCALED) scale_weights(p);
        add_values(p);
    }

    __device__ __forceinline__ void run_tiles() {
        const int last = r.position + r.rows - 1, end = last + 1;
        const int low = a.window > 0 ? max(0, r.position - a.window + 1) : 0;
        /* Tiles of [clear, clear_end) are seen whole by every row. */
        const int clear = a.window > 0 ? last - a.window + 1 : 0;
        const int clear_end = r.position + 1 - KEYS;
        int first = low / KEYS * KEYS;
        fetch_keys(first);
        if constexpr (KEPT > 0) {
            arrived();
#pragma unroll
            for (int c = 0; c < KEPT; c++) load_queries(c, c);
        }
        while (first < end) {
            for (; first >= clear && first <= clear_end; first += KEYS) tile<false>(first, end);
            if (first < end) tile<true>(first, end);
            first += KEYS;
        }
    }

    __device__ __forceinline__ void store(int32_t q_head) {
#pragma unroll
        for (int i = 0; i < MT; i++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float total = l[i][h];
                total += __shfl_xor_sync(ALL, total, 1);
                total += __shfl_xor_sync(ALL, total, 2);
                const float by = 1 / total;
                const int row = row_of(i, h);
                uint16_t *to = static_cast<uint16_t *>(a.o) + (r.first + row) * a.o_stride +
                               int64_t(q_head) * a.d + 2 * t;
                if (row >= r.rows) continue;
#pragma unroll
                for (int n = 0; n < PIECES; n++)
                    if (8 * n < a.d)
                        *reinterpret_cast<uint32_t *>(to + 8 * n) =
                            T::pack(o[i][n][2 * h] * by, o[i][n][2 * h + 1] * by);
            }
        }
    }
};

template <class T, int D, int KEYS, int MT>
static __device__ __forceinline__ void prefill(const attention_prefill_args &args) {
    using block = prefiller<T, D, KEYS, MT>;
    const attention_args &a = args.of;
    const int32_t q_head = int(blockIdx.y);
    pdl_launch();
    pdl_wait();
    const many_rows r(a, int(blockIdx.x), block::ROWS);
    if (r.rows == 0) return;
    block b(a, r, q_head / a.group);
    b.fetch_queries(q_head);
    b.run_tiles();
    b.store(q_head);
}

} // namespace attention

#define KERNEL(name, type, d, threads, min_blocks, keys, mt)                                       \
    extern "C" __global__ void __launch_bounds__(threads, min_blocks)                              \
        name(KERNEL_ARGS(struct attention_prefill_args, a)) {                                      \
        attention::prefill<attention::type, d, keys, mt>(a);                                       \
    }
#define TALL(name, type, d, threads, min_blocks, ...)                                              \
    KERNEL(name, type, d, threads, min_blocks, 64, 2)
#define LARGE(name, type, d, threads, min_blocks, ...)                                             \
    KERNEL(name, type, d, threads, min_blocks, 32, 1)
ATTENTION_PREFILL_TALL_CARDS(TALL)
ATTENTION_PREFILL_LARGE_CARDS(LARGE)
KERNEL_TABLE(attention_prefill, ATTENTION_PREFILL_CARDS)
