/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt without a GPU: its descriptors, of which the library says back what we asked for; and
   how often it is asked for an algorithm, by one that only counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#ifdef BENCH_HAS_CUDA
#include <dlfcn.h>

#include "base/facts.h"
#include "kernels/cuda/engine.h"
#include "kernels/cuda/lt.h"
#include "kernels/cuda/lt_desc.h"
#endif

#ifdef CUDA_LT_HEADER
static struct lt_api api;

static int64_t of_layout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which) {
    int64_t v = 0;
    size_t written;
    assert_int_equal(api.layout_get(layout, which, &v, sizeof v, &written), 0);
    return v;
}
static int32_t type_of_layout(cublasLtMatrixLayout_t layout) {
    int32_t v = -1;
    size_t written;
    assert_int_equal(api.layout_get(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &v, sizeof v, &written),
                     0);
    return v;
}
static int32_t of_desc(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which) {
    int32_t v = -1;
    size_t written;
    assert_int_equal(api.desc_get(desc, which, &v, sizeof v, &written), 0);
    return v;
}

static int64_t alignment_of(cublasLtMatmulPreference_t preference,
                            cublasLtMatmulPreferenceAttributes_t which) {
    uint32_t v = 0;
    size_t written;
    assert_int_equal(api.preference_get(preference, which, &v, sizeof v, &written), 0);
    return v;
}

static void expect_layout(cublasLtMatrixLayout_t layout, int64_t rows, int64_t cols, int64_t ld,
                          cudaDataType_t type) {
    assert_int_equal(of_layout(layout, CUBLASLT_MATRIX_LAYOUT_ROWS), rows);
    assert_int_equal(of_layout(layout, CUBLASLT_MATRIX_LAYOUT_COLS), cols);
    assert_int_equal(of_layout(layout, CUBLASLT_MATRIX_LAYOUT_LD), ld);
    assert_int_equal(type_of_layout(layout), type);
}

/* 512 rows times a weight of 300 rows and 100 columns, padded to 128. */
static void row_major_is_transposed(void **state) {
    (void)state;
    struct lt_problem p;
    const struct lt_shape shape = {.m = 512,
                                   .n = 300,
                                   .k = 100,
                                   .ldx = 104,
                                   .ldw = 128,
                                   .ldy = 304,
                                   .in = DT_BF16,
                                   .out = DT_F32,
                                   .x_align = 16,
                                   .y_align = 4,
                                   .room_bytes = 1 << 20};
    assert_true(lt_problem_open(&api, &p, &shape));
    expect_layout(p.w, 100, 300, 128, CUDA_R_16BF);
    expect_layout(p.x, 100, 512, 104, CUDA_R_16BF);
    expect_layout(p.y, 300, 512, 304, CUDA_R_32F);
    assert_int_equal(of_desc(p.desc, CUBLASLT_MATMUL_DESC_TRANSA), CUBLAS_OP_T);
    assert_int_equal(of_desc(p.desc, CUBLASLT_MATMUL_DESC_TRANSB), CUBLAS_OP_N);
    assert_int_equal(alignment_of(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES), 256);
    assert_int_equal(alignment_of(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES), 16);
    assert_int_equal(alignment_of(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES), 4);
    assert_int_equal(alignment_of(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES), 4);
    lt_problem_close(&api, &p);
    assert_null(p.desc);
}

static void f32_is_full_f32(void **state) {
    (void)state;
    struct lt_problem p;
    const struct lt_shape shape = {.m = 65,
                                   .n = 16,
                                   .k = 64,
                                   .ldx = 64,
                                   .ldw = 64,
                                   .ldy = 16,
                                   .in = DT_F32,
                                   .out = DT_F32,
                                   .x_align = 256,
                                   .y_align = 256,
                                   .room_bytes = 0};
    assert_true(lt_problem_open(&api, &p, &shape));
    assert_int_equal(of_desc(p.desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE), CUBLAS_COMPUTE_32F);
    assert_int_equal(of_desc(p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE), CUBLASLT_EPILOGUE_DEFAULT);
    lt_problem_close(&api, &p);
}

static void alignments_are_powers_of_two(void **state) {
    (void)state;
    assert_int_equal(lt_alignment((const void *)(uintptr_t)0x7000), 256);
    assert_int_equal(lt_alignment((const void *)(uintptr_t)0x7080), 128);
    assert_int_equal(lt_alignment((const void *)(uintptr_t)0x7012), 2);
}

static void a_wrong_name_is_told(void **state) {
    (void)state;
    struct lt_api none;
    struct err err = {0};
    setenv("BENCH_CUBLASLT", "/no/such/library", 1);
    assert_int_equal(lt_load(&none, &err), ERR_UNSUPPORTED);
    unsetenv("BENCH_CUBLASLT");
    assert_non_null(strstr(err.text, "/no/such/library"));
    assert_non_null(strstr(err.text, "BENCH_CUBLASLT"));
}

/* ---- choices, by a library that only counts ---- */

static int64_t *counter(void *library, const char *name) {
    int64_t *at = dlsym(library, name);
    assert_non_null(at);
    return at;
}

static void multiply(struct cuda *c, int32_t m, uintptr_t y_at) {
    const struct cuda_weight w = {.padded_rows = 16, .padded_cols = 64};
    const struct tensor x = {
        .data = (void *)(uintptr_t)4096, .type = DT_BF16, .rows = m, .cols = 64, .stride = 64};
    struct tensor y = {.data = (void *)y_at, .type = DT_F32, .rows = m, .cols = 16, .stride = 16};
    assert_true(cuda_lt_linear(c, &y, &x, &w));
}

/* Each shape and alignment asks once; however many come, what is kept has a bound and goes back. */
static void a_shape_is_chosen_for_once(void **state) {
    (void)state;
    enum { FEW = 100, MANY = 5000, KEPT = 1024, OF_SHAPE = 5 };
    static struct cuda_engine engine;
    static struct plan_set plan;
    struct cuda c = {.engine = &engine, .params = {.gemm = GEMM_CUBLASLT}, .bounds.n_row = 4096};
    struct facts facts = {0};
    struct err err = {0};
    setenv("BENCH_CUBLASLT", FAKE_CUBLASLT, 1);
    void *library = dlopen(FAKE_CUBLASLT, RTLD_NOW);
    assert_non_null(library);
    int64_t *asked = counter(library, "fake_heuristics"), *open = counter(library, "fake_open");
    plan.room[ROOM_LT].data = &plan;
    engine.plan = &plan;
    if (cuda_lt_open(&c, &err)) fail_msg("%s", err.text);
    unsetenv("BENCH_CUBLASLT");
    for (int round = 0; round < 2; round++)
        for (int32_t m = 65; m < 65 + FEW; m++) multiply(&c, m, 8192);
    assert_int_equal(*asked, FEW);
    multiply(&c, 65, 8192 + 4);
    assert_int_equal(*asked, FEW + 1);
    cuda_lt_describe(&c, &facts);
    assert_non_null(strstr(facts_get(&facts, "device.gemm_algorithms", ""), "; 61 more"));
    assert_string_equal(facts_get(&facts, "device.gemm_library", ""), "cuBLASLt 13.1.2");
    for (int32_t m = 65; m < 65 + MANY; m++) multiply(&c, m, 8192);
    assert_true(*open <= OF_SHAPE * KEPT + 1);
    assert_int_equal(*counter(library, "fake_matmuls"), 2 * FEW + 1 + MANY);
    assert_int_equal(c.launches, 2 * FEW + 1 + MANY);
    cuda_lt_close(&c);
    assert_int_equal(*open, 0);
    facts_free(&facts);
    dlclose(library);
}

int main(void) {
    struct err err = {0};
    if (lt_load(&api, &err)) {
        fprintf(stderr, "SKIPPED: %s\n", err.text);
        return 77;
    }
    assert_true(api.version() >= 120000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_major_is_transposed),      cmocka_unit_test(f32_is_full_f32),
        cmocka_unit_test(alignments_are_powers_of_two), cmocka_unit_test(a_wrong_name_is_told),
        cmocka_unit_test(a_shape_is_chosen_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    fputs("SKIPPED: this build has no cuda device with cublasLt.h (-DBENCH_CUDA=on)\n", stderr);
    return 77;
}
#endif
