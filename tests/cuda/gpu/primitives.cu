/* SPDX-License-Identifier: Apache-2.0 */
/* What ptx.cuh promises, asked of the hardware: fragment maps against those of a third origin,
   copies, and arithmetic. Every value is chosen so that all results are exact. Runs on the emulated
   runtime too. Usage: primitives FRAG_MAPS.TSV */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/ptx.cuh"

enum { LANES = 32, POSITIONS = 256, EXP_VALUES = 1 << 16 };

struct map { /* row and column of each element of each lane's registers */
    int row[LANES][8], column[LANES][8];
    int n;
};
static map mma_a, mma_b, mma_c, straight, transposed;
static long failures;

static void must(cudaError_t e, const char *what) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

static void expect(bool holds, const char *what, long i, double got, double want) {
    if (holds || failures++ > 20) return;
    fprintf(stderr, "%s: element %ld is %g, not %g\n", what, i, got, want);
}

static void read_maps(const char *path) {
    FILE *f = fopen(path, "r");
    char line[200], name[40];
    int lane, element, row, column;
    if (f == nullptr) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    while (fgets(line, sizeof line, f) != nullptr) {
        if (sscanf(line, "%39s %d %d %d %d", name, &lane, &element, &row, &column) != 5) continue;
        map *m = !strcmp(name, "mma_a")            ? &mma_a
                 : !strcmp(name, "mma_b")          ? &mma_b
                 : !strcmp(name, "mma_c")          ? &mma_c
                 : !strcmp(name, "ldmatrix")       ? &straight
                 : !strcmp(name, "ldmatrix_trans") ? &transposed
                                                   : nullptr;
        if (m == nullptr || lane < 0 || lane >= LANES || element < 0 || element >= 8) continue;
        m->row[lane][element] = row;
        m->column[lane][element] = column;
        m->n++;
    }
    fclose(f);
    if (mma_a.n == 256 && mma_b.n == 128 && mma_c.n == 128 && straight.n == 256 &&
        transposed.n == 256)
        return;
    fprintf(stderr, "%s is not whole\n", path);
    exit(2);
}

template <class T> static T *device_copy(const T *from, size_t n) {
    void *p = nullptr;
    must(cudaMalloc(&p, n * sizeof(T)), "cudaMalloc");
    if (from != nullptr) must(cudaMemcpy(p, from, n * sizeof(T), cudaMemcpyHostToDevice), "upload");
    return static_cast<T *>(p);
}
template <class T> static void fetch(T *to, const T *from, size_t n) {
    must(cudaDeviceSynchronize(), "the kernel");
    must(cudaMemcpy(to, from, n * sizeof(T), cudaMemcpyDeviceToHost), "download");
}
template <class Args>
static void go(void (*kernel)(Args), const card &c, unsigned blocks, unsigned shared_bytes,
               const Args &args) {
    const launch l = {&c, {blocks, 1, 1}, shared_bytes, 0, 0};
    must(load_kernel(kernel, c), c.name);
    must(launch_kernel(kernel, l, queue{nullptr, false}, args), c.name);
}

/* ---- mma: one element of A is 1, the other operand counts
 * -----------------------------------------*/

struct mma_args {
    const uint32_t *a, *b; /* (blocks, lanes, 4) and (blocks, lanes, 2) registers */
    float *c;              /* (blocks, lanes, 4) */
    int32_t half;          /* 1: f16, 0: bf16 */
};
static const card mma_card = {"one_mma", "bf16", 0, 32, 1, 255, 0, 0, 0, 0, 0, 0, "primitives"};
extern "C" __global__ void __launch_bounds__(32, 1) one_mma(KERNEL_ARGS(struct mma_args, p)) {
    const size_t at = size_t(blockIdx.x) * LANES + threadIdx.x;
    const uint32_t *a = p.a + 4 * at, *b = p.b + 2 * at;
    float c[4] = {1000.0f, 2000.0f, 3000.0f, 4000.0f}; /* what was there stays */
    if (p.half)
        mma_f16(c, a[0], a[1], a[2], a[3], b[0], b[1]);
    else
        mma_bf16(c, a[0], a[1], a[2], a[3], b[0], b[1]);
    for (int i = 0; i < 4; i++) p.c[4 * at + i] = c[i];
}

static uint16_t coded(float v, bool half) { /* small integers are exact in both */
    uint16_t u;
    if (half) {
        const __half h = __float2half(v);
        memcpy(&u, &h, sizeof u);
    } else {
        const __nv_bfloat16 h = __float2bfloat16(v);
        memcpy(&u, &h, sizeof u);
    }
    return u;
}

/* Block i: position i (lane i / 8, element i % 8) of A is 1; B[k][n] = 8 k + n + 1, so every
 * product has a name. */
static void check_mma(bool half) {
    static uint16_t a[POSITIONS][LANES][8], b[POSITIONS][LANES][4];
    static float c[POSITIONS][LANES][4];
    memset(a, 0, sizeof a);
    for (int i = 0; i < POSITIONS; i++) {
        a[i][i / 8][i % 8] = coded(1, half);
        for (int lane = 0; lane < LANES; lane++)
            for (int e = 0; e < 4; e++)
                b[i][lane][e] =
                    coded(float(8 * mma_b.row[lane][e] + mma_b.column[lane][e] + 1), half);
    }
    uint32_t *da = device_copy(reinterpret_cast<const uint32_t *>(a), sizeof a / 4),
             *db = device_copy(reinterpret_cast<const uint32_t *>(b), sizeof b / 4);
    float *dc = device_copy<float>(nullptr, sizeof c / 4);
    go(one_mma, mma_card, POSITIONS, 0, mma_args{da, db, dc, half});
    fetch(&c[0][0][0], dc, sizeof c / 4);
    for (int i = 0; i < POSITIONS; i++)
        for (int lane = 0; lane < LANES; lane++)
            for (int e = 0; e < 4; e++) {
                const int row = mma_a.row[i / 8][i % 8], k = mma_a.column[i / 8][i % 8];
                const bool hit = mma_c.row[lane][e] == row;
                const float want = 1000.0f * float(e + 1) +
                                   (hit ? float(8 * k + mma_c.column[lane][e] + 1) : 0.0f);
                expect(c[i][lane][e] == want, half ? "mma_f16" : "mma_bf16",
                       (i * LANES + lane) * 4 + e, c[i][lane][e], want);
            }
    must(cudaFree(da), "free");
    must(cudaFree(db), "free");
    must(cudaFree(dc), "free");
}

/* ---- ldmatrix
 * ----------------------------------------------------------------------------------*/

struct load_args {
    uint32_t *r; /* (2, lanes, 4): straight, transposed */
};
static const card load_card = {"load_matrices", "bf16", 0, 32, 1, 255, 512, 0, 0, 0, 0, 0,
                               "primitives"};
extern "C" __global__ void __launch_bounds__(32, 1)
    load_matrices(KERNEL_ARGS(struct load_args, p)) {
    uint16_t *rows = dynamic_shared<uint16_t>(); /* (32 rows, 8): element 8 row + column + 1 */
    for (int i = 0; i < 8; i++) rows[8 * threadIdx.x + i] = uint16_t(8 * threadIdx.x + i + 1);
    __syncthreads();
    uint32_t r[4];
    ldmatrix_x4(r, rows + 8 * threadIdx.x);
    for (int i = 0; i < 4; i++) p.r[4 * threadIdx.x + i] = r[i];
    ldmatrix_x4_trans(r, rows + 8 * threadIdx.x);
    for (int i = 0; i < 4; i++) p.r[4 * (LANES + threadIdx.x) + i] = r[i];
}

static void check_ldmatrix() {
    uint16_t got[2][LANES][8];
    uint32_t *r = device_copy<uint32_t>(nullptr, sizeof got / 4);
    go(load_matrices, load_card, 1, 512, load_args{r});
    fetch(reinterpret_cast<uint32_t *>(got), r, sizeof got / 4);
    for (int lane = 0; lane < LANES; lane++)
        for (int e = 0; e < 8; e++) {
            const int s = 8 * straight.row[lane][e] + straight.column[lane][e] + 1;
            const int t = 8 * transposed.row[lane][e] + transposed.column[lane][e] + 1;
            expect(got[0][lane][e] == s, "ldmatrix_x4", lane * 8 + e, got[0][lane][e], s);
            expect(got[1][lane][e] == t, "ldmatrix_x4_trans", lane * 8 + e, got[1][lane][e], t);
        }
    must(cudaFree(r), "free");
}

/* ---- copies
 * ------------------------------------------------------------------------------------*/

struct copy_args {
    const uint4 *from;
    uint4 *asynchronous, *streamed, *plain; /* (threads) each */
};
static const card copy_card = {"copies", "none", 0, 64, 1, 255, 2048, 0, 0, 0, 0, 0, "primitives"};
/* Two groups of copies, of which every third has nothing to copy; the first group is waited for
 * alone. */
extern "C" __global__ void __launch_bounds__(64, 1) copies(KERNEL_ARGS(struct copy_args, p)) {
    uint4 *shared = dynamic_shared<uint4>();
    const unsigned i = threadIdx.x;
    shared[i] = shared[64 + i] = make_uint4(7, 7, 7, 7);
    __syncthreads();
    copy_async_16(shared + i, p.from + i, i % 3 != 0);
    copy_async_commit();
    copy_async_16(shared + 64 + i, p.from + (63 - i), true);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    p.asynchronous[i] = shared[63 - i];
    copy_async_wait<0>();
    __syncthreads();
    p.asynchronous[64 + i] = shared[64 + (63 - i)];
    p.streamed[i] = load_stream_16(p.from + i);
    store_16(p.plain + i, load_16(p.from + i));
}

static void check_copies() {
    enum { N = 64 };
    uint32_t from[N][4], got[4 * N][4];
    for (uint32_t i = 0; i < 4 * N; i++) from[i / 4][i % 4] = 1000003u * (i + 1);
    const uint4 *d = device_copy(reinterpret_cast<const uint4 *>(from), N);
    uint4 *to = device_copy<uint4>(nullptr, 4 * N);
    go(copies, copy_card, 1, 2048, copy_args{d, to, to + 2 * N, to + 3 * N});
    fetch(reinterpret_cast<uint4 *>(got), to, 4 * N);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 4; k++) {
            const int j = N - 1 - i;
            const uint32_t first = j % 3 ? from[j][k] : 0;
            expect(got[i][k] == first, "copy_async_16", i, got[i][k], first);
            expect(got[N + i][k] == from[i][k], "copy_async_16, second group", i, got[N + i][k],
                   from[i][k]);
            expect(got[2 * N + i][k] == from[i][k], "load_stream_16", i, got[2 * N + i][k],
                   from[i][k]);
            expect(got[3 * N + i][k] == from[i][k], "load_16 and store_16", i, got[3 * N + i][k],
                   from[i][k]);
        }
    must(cudaFree(const_cast<uint4 *>(d)), "free");
    must(cudaFree(to), "free");
}

/* ---- arithmetic
 * --------------------------------------------------------------------------------*/

struct sum_args {
    const float *x;
    float *exp2;
    uint32_t *pairs, *halves, *logic;
};
static const card sum_card = {"arithmetic", "f32", 0, 256, 1, 255, 0, 0, 0, 0, 0, 0, "primitives"};
extern "C" __global__ void __launch_bounds__(256, 1) arithmetic(KERNEL_ARGS(struct sum_args, p)) {
    const unsigned i = blockIdx.x * 256 + threadIdx.x;
    const float x = p.x[i];
    p.exp2[i] = exp2_fast(x);
    p.pairs[i] = pack_bf16(x, -x);
    p.halves[i] = pack_f16(x, -x);
    const uint32_t a = 2654435761u * i, b = ~a * 40503u, c = a ^ (b << 7);
    p.logic[i] = logic3<0xEA>(a, b, c); /* (a & b) | c */
}

/* x from -128 up to 0, as a softmax has it; every rounding of bf16 and f16 on the way. */
static void check_arithmetic() {
    static float x[EXP_VALUES], e[EXP_VALUES];
    static uint32_t pairs[EXP_VALUES], halves[EXP_VALUES], logic[EXP_VALUES];
    double worst = 0;
    for (int i = 0; i < EXP_VALUES; i++) x[i] = -128.0f * float(i) / EXP_VALUES;
    const float *dx = device_copy(x, EXP_VALUES);
    float *de = device_copy<float>(nullptr, EXP_VALUES);
    uint32_t *dp = device_copy<uint32_t>(nullptr, EXP_VALUES),
             *dh = device_copy<uint32_t>(nullptr, EXP_VALUES),
             *dl = device_copy<uint32_t>(nullptr, EXP_VALUES);
    go(arithmetic, sum_card, EXP_VALUES / 256, 0, sum_args{dx, de, dp, dh, dl});
    fetch(e, de, EXP_VALUES);
    fetch(pairs, dp, EXP_VALUES);
    fetch(halves, dh, EXP_VALUES);
    fetch(logic, dl, EXP_VALUES);
    for (uint32_t i = 0; i < EXP_VALUES; i++) {
        const double want = exp2(double(x[i])),
                     error = want > 1.2e-38 ? fabs(e[i] / want - 1) : 0; /* ftz below */
        if (error > worst) worst = error;
        const uint32_t pair = coded(x[i], false) | uint32_t(coded(-x[i], false)) << 16;
        const uint32_t both = coded(x[i], true) | uint32_t(coded(-x[i], true)) << 16;
        expect(pairs[i] == pair, "pack_bf16", long(i), pairs[i], pair);
        expect(halves[i] == both, "pack_f16", long(i), halves[i], both);
        const uint32_t a = 2654435761u * i, b = ~a * 40503u, c = a ^ (b << 7);
        expect(logic[i] == ((a & b) | c), "logic3", long(i), logic[i], (a & b) | c);
    }
    expect(worst < 0x1p-21, "exp2_fast: largest relative error", 0, worst, 0x1p-22);
    printf("exp2_fast: largest relative error %.3g\n", worst);
}

int main(int argc, char **argv) {
    int n = 0;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (argc != 2) {
        fprintf(stderr, "usage: primitives FRAG_MAPS.TSV\n");
        return 2;
    }
    read_maps(argv[1]);
    if (e != cudaSuccess || n == 0) {
        fprintf(stderr, "skipped: %s\n", e != cudaSuccess ? cudaGetErrorString(e) : "no device");
        return 77;
    }
    check_mma(false);
    check_mma(true);
    check_ldmatrix();
    check_copies();
    check_arithmetic();
    printf("%ld failures\n", failures);
    return failures ? 1 : 0;
}
