/* SPDX-License-Identifier: Apache-2.0 */
/* Every device that this build has: its record is whole, memory is aligned, zeroed and tracked,
 * failures are reported once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/option.h"
#include "kernels/device.h"

static struct arena *arena;

static struct device *open_default(const struct device_kind *kind) {
    void *params = arena_alloc(arena, kind->params_size + 1);
    if (kind->params) option_defaults(kind->params, params, arena);
    struct device *d = NULL;
    struct err err = {0};
    if (device_open(&d, kind, params, &err)) fail_msg("%s: %s", kind->name, err.text);
    return d;
}

static void test_records(void **state) {
    (void)state;
    assert_non_null(all_devices[0]);
    for (int i = 0; all_devices[i]; i++) {
        const struct device_kind *k = all_devices[i];
        assert_ptr_equal(device_kind_find(k->name), k);
        assert_true(k->brief && k->open && k->close && k->describe && k->supports && k->plan &&
                    k->alloc && k->free);
        assert_true(k->pack && k->unpack && k->upload && k->download && k->sync);
        assert_int_equal(k->now != NULL, (k->has & DEV_VIRTUAL_CLOCK) != 0);
    }
    assert_non_null(device_kind_find("ref"));
    assert_null(device_kind_find("no such device"));
    for (int i = 0; all_devices_absent[i].name; i++) {
        assert_null(device_kind_find(all_devices_absent[i].name));
        assert_true(strlen(all_devices_absent[i].reason) > 3);
    }
    for (int i = 0; i < N_OPS; i++) assert_true(strlen(op_names[i]) > 2);
    assert_null(op_names[N_OPS]);
}

static void test_memory(void **state) {
    (void)state;
    for (int i = 0; all_devices[i]; i++) {
        struct device *d = open_default(all_devices[i]);
        size_t before = device_live_allocations(d);
        int64_t kv = tracker_live(d->tracker, MEM_KV);
        static const size_t sizes[] = {0, 1, 63, 64, 65, 4097, 3 << 20};
        void *p[7];
        for (int s = 0; s < 7; s++) {
            p[s] = device_alloc(d, sizes[s], MEM_KV, "test");
            assert_non_null(p[s]);
            assert_int_equal((uintptr_t)p[s] % 64, 0);
            if (!(d->kind->has & DEV_HOST_MEMORY)) continue;
            for (size_t j = 0; j < sizes[s]; j++) assert_int_equal(((unsigned char *)p[s])[j], 0);
            memset(p[s], 0xff, sizes[s]); /* so that reused memory shows if it is not zeroed */
        }
        assert_int_equal(tracker_live(d->tracker, MEM_KV) - kv,
                         1 + 1 + 63 + 64 + 65 + 4097 + (3 << 20));
        assert_int_equal(device_live_allocations(d), before + 7);
        for (int s = 0; s < 7; s++) device_free(d, p[s]);
        device_free(d, NULL);
        assert_int_equal(device_live_allocations(d), before);
        assert_int_equal(tracker_live(d->tracker, MEM_KV), kv);
        void *again = device_alloc(d, 4097, MEM_KV, "test");
        if (d->kind->has & DEV_HOST_MEMORY)
            for (size_t j = 0; j < 4097; j++) assert_int_equal(((unsigned char *)again)[j], 0);
        device_free(d, again);
        assert_null(device_alloc(d, SIZE_MAX / 4, MEM_KV,
                                 "absurd")); /* out of memory is an answer, not a signal */
        assert_int_equal(device_live_allocations(d), before);
        device_close(&d);
        assert_null(d);
        device_close(&d);
    }
}

static void test_transfer_and_clock(void **state) {
    (void)state;
    for (int i = 0; all_devices[i]; i++) {
        struct device *d = open_default(all_devices[i]);
        struct err err = {0};
        if (d->kind->has & DEV_HOST_MEMORY) {
            char there[5] = "data", back[5] = "";
            void *p = device_alloc(d, 5, MEM_OTHER, "test");
            d->kind->upload(d, p, there, 5);
            d->kind->download(d, back, p, 5);
            assert_string_equal(back, "data");
            device_free(d, p);
        }
        int64_t a = device_now(d), b = device_now(d);
        assert_true(b >= a);
        assert_int_equal(d->kind->sync(d, &err), 0);
        struct facts facts = {0};
        d->kind->describe(d, &facts);
        for (size_t f = 0; f < facts.n; f++)
            assert_int_equal(strncmp(facts.items[f].key, "device.", 7), 0);
        facts_free(&facts);
        device_close(&d);
    }
}

static void row_of_ones(void *ctx, int64_t r, float *out) {
    (void)r;
    for (int64_t c = 0; c < *(const int64_t *)ctx; c++) out[c] = 1;
}

/* What supports says no to, pack must refuse with a sentence; what it says yes to must come and go
 * without a trace. */
static void test_pack(void **state) {
    (void)state;
    for (int i = 0; all_devices[i]; i++) {
        struct device *d = open_default(all_devices[i]);
        size_t before = device_live_allocations(d);
        for (const struct weight_format *f = weight_formats; f->name; f++) {
            int64_t cols = 40;
            const int group = f->scale == SCALE_GROUP ? 32 : 0;
            const struct weight_spec parts[2] = {
                {"gate", 5, cols, f->type, f->scale, group, DT_F32},
                {"up", 7, cols, f->type, f->scale, group, DT_F32}};
            const struct row_source sources[2] = {{.row = row_of_ones, .ctx = &cols},
                                                  {.row = row_of_ones, .ctx = &cols}};
            const struct op_case ask = {.weight = f->type,
                                        .scale = f->scale,
                                        .group = group,
                                        .activation = device_activation(d->kind, f->type)};
            const char *why = NULL;
            struct weight *w = NULL;
            struct err err = {0};
            bool yes = d->kind->supports(d, OP_LINEAR, &ask, &why);
            int code = d->kind->pack(d, &w, parts, 2, sources, &err);
            assert_non_null(why);
            if (yes) {
                assert_int_equal(code, 0);
                assert_int_equal(w->rows, 12);
                assert_int_equal(w->cols, cols);
                assert_true(w->bytes >=
                            quant_payload_bytes(&parts[0]) + quant_payload_bytes(&parts[1]));
            } else {
                assert_int_equal(code, ERR_UNSUPPORTED);
                assert_true(strlen(err.text) > 5);
            }
            d->kind->unpack(d, &w);
            assert_null(w);
            d->kind->unpack(d, &w);
            assert_int_equal(device_live_allocations(d), before);
        }
        device_close(&d);
    }
}

/* ref remembers the first failure until the next sync, and only until then. */
static void test_sticky_failure(void **state) {
    (void)state;
    struct device *d = open_default(device_kind_find("ref"));
    float x[6] = {0}, y[4] = {0};
    struct tensor a = {x, DT_F32, 2, 3, 3}, b = {y, DT_F32, 2, 2, 2};
    int64_t cols = 5;
    const struct weight_spec spec = {"w", 2, cols, DT_F32, SCALE_NONE, 0, DT_F32};
    const struct row_source source = {.row = row_of_ones, .ctx = &cols};
    struct weight *w = NULL;
    struct err err = {0};
    assert_int_equal(d->kind->pack(d, &w, &spec, 1, &source, &err), 0);
    d->ops->linear(d, &b, &a, w, NULL, EPI_NONE);
    assert_int_equal(d->kind->sync(d, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "linear"));
    assert_int_equal(d->kind->sync(d, &err), 0);
    d->kind->unpack(d, &w);
    /* Parts of different width cannot be stacked, and leave nothing behind. */
    const struct weight_spec parts[2] = {spec, {"v", 2, 4, DT_F32, SCALE_NONE, 0, DT_F32}};
    const struct row_source sources[2] = {source, source};
    assert_int_equal(d->kind->pack(d, &w, parts, 2, sources, &err), ERR_INTERNAL);
    assert_null(w);
    assert_int_equal(device_live_allocations(d), 0);
    const struct step_bounds wide = {.d_h = 100000};
    assert_int_equal(d->kind->plan(d, &wide, &err), ERR_UNSUPPORTED);
    device_close(&d);
}

/* Queued, a call takes its launch, and the work is over when somebody has waited: one op after the
 * other, whatever the host did meanwhile. */
static void test_queued_fake(void **state) {
    (void)state;
    const struct device_kind *kind = device_kind_find("fake");
    static const char *const settings[][2] = {
        {"time", "0 s"}, {"queued", "true"}, {"launch", "5 us"}, {"bandwidth", "1e9"}};
    void *params = arena_alloc(arena, kind->params_size);
    struct device *d = NULL;
    struct err err = {0};
    unsigned char word = 0;
    option_defaults(kind->params, params, arena);
    for (int i = 0; i < 4; i++)
        assert_int_equal(option_parse(option_find(kind->params, settings[i][0]), settings[i][1],
                                      params, arena, &err),
                         0);
    assert_int_equal(device_open(&d, kind, params, &err), 0);
    float *sink = device_alloc(d, 4, MEM_OTHER, "sink");
    d->ops->read(d, sink, 100000, sink); /* 100 us at 1 GB/s */
    assert_int_equal(d->kind->now(d), 5000);
    d->ops->read(d, sink, 100000, sink); /* begins when the first is done, at 105 us */
    assert_int_equal(d->kind->now(d), 10000);
    assert_int_equal(d->kind->sync(d, &err), 0);
    assert_int_equal(d->kind->now(d), 205000);
    d->kind->wait(d, 300000); /* the device idles: the next one begins after its launch */
    d->ops->read(d, sink, 50000, sink);
    assert_int_equal(d->kind->now(d), 305000);
    d->kind->download(d, &word, sink, 1); /* waits, as on a GPU */
    assert_int_equal(d->kind->now(d), 355000);
    assert_int_equal(d->kind->sync(d, &err), 0);
    assert_int_equal(d->kind->now(d), 355000);
    device_free(d, sink);
    device_close(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_transfer_and_clock),
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_sticky_failure),
        cmocka_unit_test(test_queued_fake),
    };
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
