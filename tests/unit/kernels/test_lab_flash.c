/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one head in double: tiles of any size against the whole matrix, gradients against
   finite differences, scores of any size, and what the ops refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/random.h"
#include "kernels/device.h"
#include "kernels/lab.h"
#include "kernels/lab_flash.h"
#include "kernels/ref/lab_flash.h"

enum { MOST = 12, WIDE = 5 };
struct head { /* a head and its memory */
    double q[MOST * WIDE], k[MOST * WIDE], v[MOST * WIDE], d_o[MOST * WIDE], o[MOST * WIDE];
    double dq[MOST * WIDE], dk[MOST * WIDE], dv[MOST * WIDE];
    double p[MOST * MOST], ds[MOST * MOST], lse[MOST], d[MOST];
    struct flash_head h;
};

static void fill(double *v, uint64_t key, double size) {
    for (int i = 0; i < MOST * WIDE; i++) v[i] = size * random_normal(key, (uint64_t)i);
}

static void make(struct head *x, int32_t queries, int32_t keys, int32_t d_h, bool causal,
                 double size) {
    memset(x, 0, sizeof *x);
    fill(x->q, 1, size);
    fill(x->k, 2, 1);
    fill(x->v, 3, 1);
    fill(x->d_o, 4, 1);
    x->h = (struct flash_head){.queries = queries,
                               .keys = keys,
                               .d_h = d_h,
                               .rows = 3,
                               .columns = 2,
                               .scale = 1 / sqrt(d_h),
                               .causal = causal,
                               .q = x->q,
                               .k = x->k,
                               .v = x->v,
                               .d_o = x->d_o,
                               .o = x->o,
                               .dq = x->dq,
                               .dk = x->dk,
                               .dv = x->dv,
                               .p = x->p,
                               .ds = x->ds,
                               .lse = x->lse,
                               .d = x->d};
}

static void run(struct head *x, bool naive) {
    memset(x->dq, 0, sizeof x->dq);
    memset(x->dk, 0, sizeof x->dk);
    memset(x->dv, 0, sizeof x->dv);
    (naive ? flash_head_naive_forward : flash_head_tiled_forward)(&x->h);
    (naive ? flash_head_naive_backward : flash_head_tiled_backward)(&x->h);
}

static void near(const char *what, const double *a, const double *b, int n, double tolerance) {
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance))
            fail_msg("%s[%d]: %.17g, %.17g", what, i, a[i], b[i]);
}

static void any_tile_is_the_whole_matrix(void **state) {
    static struct head naive, tiled;
    (void)state;
    for (int causal = 0; causal < 2; causal++)
        for (int32_t queries = 1; queries <= 7; queries += 3)
            for (int32_t keys = 1; keys <= 7; keys += 2)
                for (int32_t rows = 1; rows <= 8; rows++)
                    for (int32_t columns = 1; columns <= 8; columns++) {
                        make(&naive, queries, keys, 3, causal, 2);
                        make(&tiled, queries, keys, 3, causal, 2);
                        tiled.h.rows = rows;
                        tiled.h.columns = columns;
                        run(&naive, true);
                        run(&tiled, false);
                        near("O", tiled.o, naive.o, MOST * WIDE, 1e-13);
                        near("dQ", tiled.dq, naive.dq, MOST * WIDE, 1e-13);
                        near("dK", tiled.dk, naive.dk, MOST * WIDE, 1e-13);
                        near("dV", tiled.dv, naive.dv, MOST * WIDE, 1e-13);
                    }
}

/* sum(O * dO), whose gradient backward is. */
static double loss(struct head *x) {
    double sum = 0;
    flash_head_tiled_forward(&x->h);
    for (int i = 0; i < x->h.queries * x->h.d_h; i++) sum += x->o[i] * x->d_o[i];
    return sum;
}

static void gradients_are_finite_differences(void **state) {
    static struct head x;
    static const int32_t shapes[][3] = {{4, 4, 3}, {3, 6, 2}, {7, 2, 1}, {1, 1, 5}, {5, 5, 4}};
    const double step = 1e-5;
    (void)state;
    for (int s = 0; s < 5; s++)
        for (int kind = 0; kind < 4; kind++) { /* causal or not, naive or not */
            make(&x, shapes[s][0], shapes[s][1], shapes[s][2], kind % 2, 1.5);
            run(&x, kind / 2);
            double *const of[] = {x.q, x.k, x.v}, *const gradient[] = {x.dq, x.dk, x.dv};
            for (int t = 0; t < 3; t++)
                for (int i = 0; i < shapes[s][t > 0] * shapes[s][2]; i++) {
                    const double kept = of[t][i];
                    of[t][i] = kept + step;
                    const double above = loss(&x);
                    of[t][i] = kept - step;
                    const double below = loss(&x);
                    of[t][i] = kept;
                    near("gradient", &gradient[t][i], &(double){(above - below) / (2 * step)}, 1,
                         1e-9);
                }
        }
}

static void rows_of_ds_sum_to_zero(void **state) {
    static struct head x;
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        make(&x, 6, 9, 4, causal, 3);
        run(&x, true);
        for (int i = 0; i < 6; i++) {
            double sum = 0, most = 0;
            for (int j = 0; j < 9; j++) {
                sum += x.ds[i * 9 + j];
                most = fmax(most, fabs(x.ds[i * 9 + j]));
            }
            assert_true(fabs(sum) < 1e-14 && most > 1e-3);
        }
    }
}

/* The running maximum rises with every tile, and the last key is all that counts. */
static void the_maximum_arrives_last(void **state) {
    static struct head x;
    (void)state;
    for (int32_t columns = 1; columns <= 10; columns++) {
        make(&x, 1, 9, 1, false, 1);
        x.h.columns = columns;
        x.q[0] = 1e4;
        for (int j = 0; j < 9; j++) x.k[j] = j - 4;
        flash_head_tiled_forward(&x.h);
        assert_true(x.o[0] == x.v[8] && x.lse[0] == 4e4);
        for (int j = 0; j < 9; j++) x.k[j] = 4 - j; /* and first */
        flash_head_tiled_forward(&x.h);
        assert_true(x.o[0] == x.v[0] && x.lse[0] == 4e4);
        x.q[0] = -1e4;
        for (int j = 0; j < 9; j++) x.k[j] = 1; /* all alike */
        flash_head_tiled_forward(&x.h);
        double mean = 0;
        for (int j = 0; j < 9; j++) mean += x.v[j] / 9;
        assert_true(fabs(x.o[0] - mean) < 1e-15 && fabs(x.lse[0] - (log(9) - 1e4)) < 1e-11);
    }
}

static void counts_are_those_of_whole_tiles(void **state) {
    static struct head x;
    (void)state;
    make(&x, 7, 7, 3, true, 1);
    run(&x, true);
    assert_int_equal(x.h.macs, 7 * 7 * 3 * (2 + 4));
    make(&x, 7, 7, 3, true, 1); /* tiles of 3 x 2: queries 0-2 see 2 of keys, 3-5 three, 6 all */
    run(&x, false);
    assert_int_equal(x.h.macs, (3 * 4 + 3 * 6 + 1 * 7) * 3 * (2 + 5));
}

static void ops_refuse_what_does_not_fit(void **state) {
    static const char *const kinds[] = {"ref", "cpu"};
    float memory[64] = {0};
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int fault = 0; fault < 8; fault++) {
            struct device *device = NULL;
            struct err err = {0};
            assert_int_equal(device_open(&device, device_kind_find(kinds[kind]), NULL, &err), 0);
            struct tensor t[4];
            for (int i = 0; i < 4; i++) t[i] = (struct tensor){memory + 8 * i, DT_F32, 2, 4, 4};
            struct lab_attention a = {.n_seq = 1,
                                      .queries = 2,
                                      .keys = 2,
                                      .heads = 2,
                                      .d_h = 2,
                                      .rows = 1,
                                      .columns = 1,
                                      .scale = 1,
                                      .q = &t[0],
                                      .k = &t[1],
                                      .v = &t[2],
                                      .o = &t[3],
                                      .lse = memory + 40};
            const size_t bytes = (size_t)device->lab->flash->room_bytes(device, &a);
            a.room = bytes ? device_alloc(device, bytes, MEM_OTHER, "test") : NULL;
            float *room = a.room;
            if (fault == 1) a.rows = 0;
            if (fault == 2) a.columns = -1;
            if (fault == 3) t[1].rows = 3;
            if (fault == 4) t[3].cols = 5;
            if (fault == 5) t[0].type = DT_F16;
            if (fault == 6) a.lse = NULL;
            if (fault == 7) a.v = NULL;
            device->lab->flash->tiled_forward(device, &a);
            assert_int_equal(device->kind->sync(device, &err) != 0, fault != 0);
            device->lab->flash->tiled_backward(device, &a); /* no gradients were given */
            assert_int_not_equal(device->kind->sync(device, &err), 0);
            device_free(device, room);
            device_close(&device);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_tile_is_the_whole_matrix),
                                       cmocka_unit_test(gradients_are_finite_differences),
                                       cmocka_unit_test(rows_of_ds_sum_to_zero),
                                       cmocka_unit_test(the_maximum_arrives_last),
                                       cmocka_unit_test(counts_are_those_of_whole_tiles),
                                       cmocka_unit_test(ops_refuse_what_does_not_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
