// SPDX-License-Identifier: Apache-2.0
// What lanes do together and what wrappers compute: against maps of another origin
// (tests/golden/frag_maps.tsv) and against plain definitions.
#include <vector>

#include "kernels/cuda/ptx.cuh"
#include "tests/cuda/simt/test/scenario.h"

/* ---- fragments ---- */

struct place {
    int row, column;
};
struct maps {
    struct place a[32][8], b[32][4], c[32][4], load[32][8], load_trans[32][8];
    int n;
};
static struct maps maps;

static void read_maps(void) {
    const char *source = getenv("SOURCE_DIR");
    const std::string path = std::string(source ? source : ".") + "/tests/golden/frag_maps.tsv";
    FILE *f = fopen(path.c_str(), "r");
    EXPECT(f != nullptr);
    char line[256], what[32];
    int lane, i, row, column;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%31s %d %d %d %d", what, &lane, &i, &row, &column) != 5) continue;
        const struct place p = {row, column};
        if (strcmp(what, "mma_a") == 0) maps.a[lane][i] = p;
        if (strcmp(what, "mma_b") == 0) maps.b[lane][i] = p;
        if (strcmp(what, "mma_c") == 0) maps.c[lane][i] = p;
        if (strcmp(what, "ldmatrix") == 0) maps.load[lane][i] = p;
        if (strcmp(what, "ldmatrix_trans") == 0) maps.load_trans[lane][i] = p;
        maps.n++;
    }
    fclose(f);
    EXPECT(maps.n == 32 * (8 + 4 + 4 + 8 + 8));
}

struct mma_args {
    uint32_t a[32][4], b[32][2];
    float c[32][4];
    float (*d)[4];
    bool f16;
};
static void mma_kernel(struct mma_args m) {
    const unsigned l = threadIdx.x;
    float(&c)[4] = m.c[l];
    if (m.f16)
        mma_f16(c, m.a[l][0], m.a[l][1], m.a[l][2], m.a[l][3], m.b[l][0], m.b[l][1]);
    else
        mma_bf16(c, m.a[l][0], m.a[l][1], m.a[l][2], m.a[l][3], m.b[l][0], m.b[l][1]);
    memcpy(m.d[l], c, sizeof c);
}
static float small(int i) { return float(i * 7 % 31 - 15) / 4; } // exact in both types

static uint32_t pair_of(float low, float high, bool f16) {
    return f16 ? pack_f16(low, high) : pack_bf16(low, high);
}
template <class Kernel, class Args>
static void run_warp(Kernel kernel, const Args &args, size_t shared = 0) {
    EXPECT(simt::launch("test", kernel, dim3(1), dim3(32), shared, nullptr, false, args) ==
           cudaSuccess);
}
static void mma_is_a_product(void) {
    read_maps();
    for (bool f16 : {false, true}) {
        float a[16][16], b[16][8], c[16][8];
        for (int i = 0; i < 256; i++) a[i / 16][i % 16] = small(i * i + 3 * i);
        for (int i = 0; i < 128; i++)
            b[i / 8][i % 8] = small(i * i * 5 + i), c[i / 8][i % 8] = small(i);
        float d[32][4];
        struct mma_args m = {};
        m.d = d;
        m.f16 = f16;
        const auto in = [](const auto &matrix, struct place p) { return matrix[p.row][p.column]; };
        for (int l = 0; l < 32; l++) {
            for (int r = 0; r < 4; r++)
                m.a[l][r] = pair_of(in(a, maps.a[l][2 * r]), in(a, maps.a[l][2 * r + 1]), f16);
            for (int r = 0; r < 2; r++)
                m.b[l][r] = pair_of(in(b, maps.b[l][2 * r]), in(b, maps.b[l][2 * r + 1]), f16);
            for (int r = 0; r < 4; r++) m.c[l][r] = in(c, maps.c[l][r]);
        }
        run_warp(mma_kernel, m);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < 4; r++) {
                const struct place p = maps.c[l][r];
                float sum = c[p.row][p.column];
                for (int k = 0; k < 16; k++) sum += a[p.row][k] * b[k][p.column];
                EXPECT(d[l][r] == sum); // all terms are exact
            }
    }
}

struct load_args {
    uint32_t (*r)[4];
    int pitch; // elements between rows
    bool transposed;
};
static void rows_kernel(struct load_args a) {
    uint16_t *s = dynamic_shared<uint16_t>();
    const int l = int(threadIdx.x);
    for (int i = 0; i < 8; i++) s[l * a.pitch + i] = uint16_t(l * 8 + i);
    __syncwarp();
    if (a.transposed)
        ldmatrix_x4_trans(a.r[l], s + l * a.pitch);
    else
        ldmatrix_x4(a.r[l], s + l * a.pitch);
}
static void ldmatrix_follows_the_maps(void) {
    read_maps();
    for (bool transposed : {false, true}) {
        uint32_t r[32][4];
        run_warp(rows_kernel, load_args{r, 8, transposed}, 512);
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 8; i++) {
                const struct place p = (transposed ? maps.load_trans : maps.load)[l][i];
                EXPECT((r[l][i / 2] >> (i % 2 * 16) & 0xffff) == uint32_t(p.row * 8 + p.column));
            }
    }
}
static void ldmatrix_counts_bank_conflicts(void) {
    const struct {
        int pitch;
        uint64_t cycles; // of the four matrices
    } cases[] = {{8, 4}, {40, 4}, {32, 16}, {64, 32}};
    for (const auto &c : cases) {
        const struct simt::counters before = simt::counters;
        uint32_t r[32][4];
        run_warp(rows_kernel, load_args{r, c.pitch, false}, 32 * size_t(c.pitch) * 2);
        EXPECT(simt::counters.ldmatrix_ideal - before.ldmatrix_ideal == 4);
        EXPECT(simt::counters.ldmatrix_actual - before.ldmatrix_actual == c.cycles);
    }
}
static void bad_ldmatrix_kernel(struct load_args a) {
    ldmatrix_x4(a.r[threadIdx.x], dynamic_shared<uint16_t>() + 8 * threadIdx.x + 4);
}
static void ldmatrix_must_be_aligned(void) {
    uint32_t r[32][4];
    run_warp(bad_ldmatrix_kernel, load_args{r, 8, false}, 1024);
}
static void far_ldmatrix_kernel(struct load_args a) {
    ldmatrix_x4(a.r[threadIdx.x], dynamic_shared<uint16_t>() + 8 * (threadIdx.x + 1));
}
static void ldmatrix_must_lie_inside(void) {
    uint32_t r[32][4];
    run_warp(far_ldmatrix_kernel, load_args{r, 8, false}, 512);
}

/* ---- warps ---- */

struct warp_args {
    int *out;
};
static void warp_kernel(struct warp_args a) {
    const int l = int(threadIdx.x);
    const unsigned all = 0xffffffffu;
    int *o = a.out + 16 * l;
    o[0] = __shfl_sync(all, l, 5);
    o[1] = __shfl_sync(all, l, 3, 8);
    o[2] = __shfl_xor_sync(all, l, 17);
    o[3] = __shfl_up_sync(all, l, 2, 16);
    o[4] = __shfl_down_sync(all, l, 3, 4);
    o[5] = int(__ballot_sync(all, l % 3 == 0));
    o[6] = __any_sync(all, l == 40);
    o[7] = __all_sync(all, l < 32);
    o[8] = int(__double2float_rn(__shfl_sync(all, double(l) + 0.5, 9) * 2));
    o[9] = __reduce_add_sync(all, l);
    o[10] = int(__reduce_max_sync(all, unsigned(l)));
    o[11] = l < 16 ? __shfl_xor_sync(0x0000ffffu, l, 1) : __shfl_xor_sync(0xffff0000u, l, 2);
    o[12] = __syncthreads_count(l < 7);
    o[13] = __syncthreads_or(l == 3) * 2 + __syncthreads_and(l < 31);
}
static void warp_operations(void) {
    static int out[32 * 16];
    for (unsigned seed = 0; seed < 6; seed++) {
        simt::set_seed(seed);
        run_warp(warp_kernel, warp_args{out});
        for (int l = 0; l < 32; l++) {
            const int *o = out + 16 * l;
            EXPECT(o[0] == 5 && o[1] == l / 8 * 8 + 3 && o[2] == (l ^ 17));
            EXPECT(o[3] == (l % 16 >= 2 ? l - 2 : l) && o[4] == (l % 4 == 0 ? l + 3 : l));
            EXPECT(o[5] == 0x49249249 && o[6] == 0 && o[7] == 1 && o[8] == 19);
            EXPECT(o[9] == 496 && o[10] == 31 && o[11] == (l < 16 ? l ^ 1 : l ^ 2));
            EXPECT(o[12] == 7 && o[13] == 2);
        }
    }
}

struct grid_args {
    int *seen;
};
static void grid_kernel(struct grid_args a) {
    const unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    a.seen[b * blockDim.x * blockDim.y * blockDim.z + t]++;
}
static void every_thread_runs_once(void) {
    for (unsigned seed = 0; seed < 4; seed++) {
        simt::set_seed(seed);
        std::vector<int> seen(3 * 2 * 4 * 5 * 3 * 7);
        simt::launch("test", grid_kernel, dim3(3, 2, 4), dim3(5, 3, 7), 0, nullptr, false,
                     grid_args{seen.data()});
        for (int n : seen) EXPECT(n == 1);
    }
}
static void sampled_blocks(void) {
    setenv("SIMT_BLOCKS", "5", 1);
    std::vector<int> seen(1000 * 32);
    simt::launch("test", grid_kernel, dim3(1000), dim3(32), 0, nullptr, false,
                 grid_args{seen.data()});
    int n = 0;
    for (int i : seen) n += i;
    EXPECT(n == 5 * 32 && seen[0] && seen[999 * 32]);
}
static void deep_kernel(struct grid_args a) {
    volatile char room[128 << 10]; // more than a device gives a thread
    room[0] = room[sizeof room - 1] = 1;
    atomicAdd(&a.seen[0], int(room[0]));
}
static void stacks_are_large(void) {
    int seen = 0;
    run_warp(deep_kernel, grid_args{&seen});
    EXPECT(seen == 32);
}

/* ---- numbers ---- */

static void scalars(void) {
    EXPECT(__byte_perm(0x33221100, 0x77665544, 0x7250) == 0x77225500);
    EXPECT(__byte_perm(0x0000ff80, 0, 0x9988) == 0xffffffff);
    EXPECT(__funnelshift_l(0x80000000, 1, 1) == 3 && __funnelshift_r(2, 1, 1) == 0x80000001);
    EXPECT(__brev(1) == 0x80000000 && __clz(1) == 31 && __clz(0) == 32 && __popc(0xf0f0) == 8);
    EXPECT(__umulhi(0x80000000, 6) == 3 && __umul64hi(1ull << 63, 6) == 3);
    EXPECT(__float2int_rn(2.5f) == 2 && __float2int_rn(3.5f) == 4 && __float2int_rz(-2.9f) == -2);
    EXPECT(__float2int_rn(3e9f) == INT32_MAX && __float2int_rn(NAN) == 0);
    EXPECT(__float2uint_rn(-1) == 0);
    EXPECT(exp2_fast(3) == 8 && exp2_fast(-130) == 0 && exp2_fast(-INFINITY) == 0);
    EXPECT(exp2_fast(-126) > 0 && std::isnan(exp2_fast(NAN)));
    EXPECT(rsqrtf(4) == 0.5f && __fdividef(1, 4) == 0.25f && __expf(0) == 1);
    const uint32_t a = 0xf0f0f0f0, b = 0xcccccccc, c = 0xaaaaaaaa;
    EXPECT((logic3<0x96>(a, b, c) == (a ^ b ^ c)) &&
           (logic3<0xca>(a, b, c) == ((a & b) | (~a & c))));
    EXPECT(low_bf16(pack_bf16(1.5f, -2)) == 1.5f && high_bf16(pack_bf16(1.5f, -2)) == -2);
    EXPECT(pack_bf16(1.00390625f, 0) == 0x3f80); // a tie, to even
}
static const struct {
    uint16_t bits;
    float value;
} halves[] = {
    {0x3c00, 1}, {0xc000, -2}, {0x0001, 0x1p-24f}, {0x83ff, -0x3ffp-24f}, {0x7bff, 65504}};
static void halves_convert(void) { // through mma: one product with 1
    read_maps();
    for (const auto &h : halves) {
        struct mma_args m = {};
        float d[32][4];
        m.d = d;
        m.f16 = true;
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 2; i++)
                if (maps.a[l][i].row == 0 && maps.a[l][i].column == 0) {
                    m.a[l][0] = uint32_t(h.bits) << (16 * i);
                    m.b[l][0] = 0x3c00u << (16 * i);
                }
        run_warp(mma_kernel, m);
        EXPECT(d[0][0] == h.value);
    }
}

static const struct scenario list[] = {
    {"mma is a product, by the maps", mma_is_a_product, 0, nullptr},
    {"ldmatrix follows the maps", ldmatrix_follows_the_maps, 0, nullptr},
    {"ldmatrix counts bank conflicts", ldmatrix_counts_bank_conflicts, 0, nullptr},
    {"ldmatrix must be aligned", ldmatrix_must_be_aligned, 97, "not a multiple of 16"},
    {"ldmatrix must lie inside", ldmatrix_must_lie_inside, 97, "dynamic shared memory"},
    {"warp operations", warp_operations, 0, nullptr},
    {"every thread runs once", every_thread_runs_once, 0, nullptr},
    {"sampled blocks", sampled_blocks, 0, nullptr},
    {"stacks are large", stacks_are_large, 0, nullptr},
    {"scalars", scalars, 0, nullptr},
    {"halves convert", halves_convert, 0, nullptr},
};

int main(void) { return run_scenarios(list); }
