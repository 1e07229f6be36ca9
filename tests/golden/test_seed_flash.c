/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' records of attention by tiles: the running states of E55, the gradients of E56 and the
   bytes of E57; and flash_golden.tsv, made by NumPy for other shapes, against every device. */
#include "kernels/lab.h"
#include "kernels/lab_flash.h"
#include "kernels/ref/lab_flash.h"
#include "tests/golden/seed_records.h"
#include "workloads/workload.h"

static struct arena *arena;
static struct device *ref;

#define TEXT(...) arena_printf(arena, __VA_ARGS__)

/* ---- E55 and E56: three queries, six keys, two values wide */

enum { QUERIES = 3, KEYS = 6, WIDE = 2, TILES = 3 };
static struct {
    double q[QUERIES * WIDE], k[KEYS * WIDE], v[KEYS * WIDE], d_o[QUERIES * WIDE];
    double o[QUERIES * WIDE], dq[QUERIES * WIDE], dk[KEYS * WIDE], dv[KEYS * WIDE];
    double p[QUERIES * KEYS], ds[QUERIES * KEYS], lse[QUERIES], d[QUERIES];
    double states[QUERIES][TILES][2 + WIDE];
    bool known;
} seed;

static void see(void *ctx, int32_t row, int32_t tile, double m, double l, const double *a) {
    double *to = seed.states[row][tile];
    (void)ctx;
    to[0] = m, to[1] = l, to[2] = a[0], to[3] = a[1];
}

static struct flash_head seed_head(void) {
    return (struct flash_head){.queries = QUERIES,
                               .keys = KEYS,
                               .d_h = WIDE,
                               .rows = 2,
                               .columns = 2,
                               .scale = 1 / sqrt(2.0),
                               .q = seed.q,
                               .k = seed.k,
                               .v = seed.v,
                               .d_o = seed.d_o,
                               .o = seed.o,
                               .dq = seed.dq,
                               .dk = seed.dk,
                               .dv = seed.dv,
                               .p = seed.p,
                               .ds = seed.ds,
                               .lse = seed.lse,
                               .d = seed.d,
                               .seen = see};
}

static int read_rows(const cJSON *inputs, const char *name, double *to) {
    const cJSON *row, *v;
    int n = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(inputs, name)) cJSON_ArrayForEach(v, row) to[n++] =
        v->valuedouble;
    return n;
}

/* Within 1e-12, and what the record's 12 digits leave open. */
static void expect_near(const struct record *r, const cJSON *value, const double *ours, int n) {
    int i = 0;
    const cJSON *row, *v;
    if (cJSON_IsNumber(value)) {
        assert_true(n == 1 && fabs(value->valuedouble - ours[0]) <= 1e-12 + 5e-12 * fabs(ours[0]));
        return;
    }
    cJSON_ArrayForEach(row, value) {
        const cJSON *first = cJSON_IsArray(row) ? row->child : row;
        for (v = first; v; v = cJSON_IsArray(row) ? v->next : NULL, i++)
            if (i >= n || !(fabs(v->valuedouble - ours[i]) <= 1e-12 + 5e-12 * fabs(ours[i])))
                fail_msg("%s: %.17g, expected %.17g at %d", r->id, ours[i], v->valuedouble, i);
    }
    assert_int_equal(i, n);
}

static bool forward(const struct record *r) {
    if (has(r, "Q") && !seed.known) {
        struct flash_head h = seed_head();
        assert_int_equal(read_rows(r->inputs, "Q", seed.q), QUERIES * WIDE);
        assert_int_equal(read_rows(r->inputs, "K", seed.k), KEYS * WIDE);
        assert_int_equal(read_rows(r->inputs, "V", seed.v), KEYS * WIDE);
        assert_int_equal(whole(r, "tile"), 2);
        flash_head_tiled_forward(&h);
        seed.known = true;
    }
    const int row = (int)whole(r, "row");
    if (r->n % 3 == 1) expect_near(r, r->value, &seed.states[row][0][0], TILES * (2 + WIDE));
    if (r->n % 3 == 2) expect_near(r, r->value, seed.o + row * WIDE, WIDE);
    if (r->n % 3 == 0) expect_near(r, r->value, seed.lse + row, 1);
    return true;
}

static bool backward(const struct record *r) {
    const struct {
        const double *ours;
        int n;
    } values[] = {{seed.d, QUERIES},
                  {seed.ds, QUERIES * KEYS},
                  {seed.dq, QUERIES * WIDE},
                  {seed.dk, KEYS * WIDE},
                  {seed.dv, KEYS * WIDE}};
    struct flash_head h = seed_head();
    assert_true(seed.known && r->n >= 1 && r->n <= 5);
    read_rows(r->inputs, "dO", seed.d_o);
    for (int naive = 1; naive >= 0; naive--) { /* dS is naive's own, D that of tiles */
        memset(seed.dq, 0, sizeof seed.dq);
        memset(seed.dk, 0, sizeof seed.dk);
        memset(seed.dv, 0, sizeof seed.dv);
        (naive ? flash_head_naive_forward : flash_head_tiled_forward)(&h);
        (naive ? flash_head_naive_backward : flash_head_tiled_backward)(&h);
        if (r->n > 1 || !naive) expect_near(r, r->value, values[r->n - 1].ours, values[r->n - 1].n);
    }
    return true;
}

/* ---- E57: what is kept and moved, by formula and, where small, by the allocator */

static double of_workload(const char *settings, const char *metric) {
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, ref, NULL, arena);
    if (drive_prepare(&drive, "flash", settings, &err)) fail_msg("%s: %s", settings, err.text);
    const struct values values = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    assert_int_equal(tracker_live(ref->tracker, -1), 0);
    return values_get(&values, metric);
}

static struct plan planned(const char *settings) {
    const struct workload *w = workload_find("flash");
    void *params = arena_alloc(arena, w->params_size);
    struct plan plan = {0};
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, " ", arena);
    w->plan(params, NULL, &plan);
    return plan;
}

static bool savings(const struct record *r) {
    const bool traffic = strstr(r->what, "traffic") != NULL, fused = has(r, "D");
    const bool naive = !fused && !strstr(r->what, "logsumexp");
    const int64_t tokens = whole(r, "T"), heads = has(r, "H") ? whole(r, "H") : 40;
    /* Ours are f32; bytes are in proportion to an element's. E57's bf16 has 8 B T D and s = 2. */
    const double share = fused ? 0.5 : has(r, "s") ? input(r, "s") / 4 : 1;
    const int64_t width = fused ? whole(r, "D") / heads : 1;
    const char *settings =
        TEXT("method=%s tokens=%lld heads=%lld d_h=%lld", naive ? "naive" : "tiled",
             (long long)tokens, (long long)heads, (long long)width);
    const struct plan plan = planned(settings);
    expect(r, share * (fused     ? plan.work[0].bytes[MEM_ACTIVATION]
                       : traffic ? plan.work[0].bytes[MEM_WORKSPACE]
                                 : (double)plan.bytes[MEM_WORKSPACE]));
    if (traffic || fused || plan.bytes[MEM_WORKSPACE] > 1 << 27) return true;
    expect(r, share * of_workload(settings, "kept_bytes"));
    expect(r, share * of_workload(settings, "kept_bytes_allocated"));
    return true;
}

static const struct product products[] = {{55, forward}, {56, backward}, {57, savings}, {0}};

static void every_record(void **state) {
    (void)state;
    assert_int_equal(each_record(products), 9 + 5 + 28);
}

/* ---- NumPy's shapes */

enum { LONGEST = 600 };
static FILE *file;

static int read_array(const char *name, float *to) {
    static char line[20000];
    int n = 0;
    char *rest;
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(strtok_r(line, " \n", &rest), name);
    for (char *word; (word = strtok_r(NULL, " \n", &rest)) != NULL; n++) {
        assert_true(n < LONGEST);
        to[n] = strtof(word, NULL);
    }
    return n;
}

static float *on_device(struct device *device, const float *values, int n) {
    float *to = device_alloc(device, sizeof *to * (size_t)n, MEM_OTHER, "golden");
    device->kind->upload(device, to, values, sizeof *to * (size_t)n);
    return to;
}

static void expect_values(const char *what, const float *ours, const float *golden, int n,
                          double tolerance) {
    for (int i = 0; i < n; i++)
        if (!(fabs((double)ours[i] - (double)golden[i]) <= tolerance) &&
            !(isinf(golden[i]) && ours[i] < 0 && isinf(ours[i])))
            fail_msg("%s[%d] = %.9g, golden %.9g", what, i, (double)ours[i], (double)golden[i]);
}

enum { I_Q, I_K, I_V, I_G, I_O, I_DQ, I_DK, I_DV, I_L, N_ARRAYS };
static const char *const array_names[N_ARRAYS] = {"Q", "K", "V", "G", "O", "dQ", "dK", "dV", "L"};
static float golden[N_ARRAYS][LONGEST];
static int lengths[N_ARRAYS];

static void run_golden(struct device *device, struct lab_attention a, bool naive) {
    const struct lab_flash *lab = device->lab->flash;
    float *memory[N_ARRAYS], empty[LONGEST] = {0};
    struct tensor t[N_ARRAYS];
    const int cols = a.heads * a.d_h, matrix = a.heads * a.queries * a.keys;
    for (int i = 0; i < N_ARRAYS; i++) {
        memory[i] = on_device(device, i <= I_G ? golden[i] : empty, lengths[i]);
        t[i] = (struct tensor){memory[i], DT_F32, lengths[i] / cols, cols, cols};
    }
    a.q = &t[I_Q], a.k = &t[I_K], a.v = &t[I_V], a.d_o = &t[I_G];
    a.o = &t[I_O], a.dq = &t[I_DQ], a.dk = &t[I_DK], a.dv = &t[I_DV];
    a.lse = memory[I_L];
    a.p = device_alloc(device, sizeof(float) * (size_t)matrix, MEM_OTHER, "golden");
    a.ds = device_alloc(device, sizeof(float) * (size_t)matrix, MEM_OTHER, "golden");
    a.d = device_alloc(device, sizeof(float) * (size_t)lengths[I_L], MEM_OTHER, "golden");
    a.room = device_alloc(device, (size_t)lab->room_bytes(device, &a), MEM_OTHER, "golden");
    (naive ? lab->naive_forward : lab->tiled_forward)(device, &a);
    (naive ? lab->naive_backward : lab->tiled_backward)(device, &a);
    struct err err = {0};
    assert_int_equal(device->kind->sync(device, &err), 0);
    for (int i = I_O; i < (naive ? I_L : N_ARRAYS); i++)
        expect_values(array_names[i], memory[i], golden[i], lengths[i], 4e-6);
    for (int i = 0; i < N_ARRAYS; i++) device_free(device, memory[i]);
    float *const rest[] = {a.p, a.ds, a.d, a.room};
    for (int i = 0; i < 4; i++) device_free(device, rest[i]);
}

static void numpy_agrees(void **state) {
    static const int32_t tiles[][2] = {{1, 1}, {2, 3}, {5, 4}, {16, 16}, {64, 64}};
    const char *root = getenv("SOURCE_DIR");
    struct device *cpu = drive_open("cpu", arena);
    int cases = 0, queries, keys, heads, d_h, causal;
    (void)state;
    file = fopen(TEXT("%s/tests/golden/flash_golden.tsv", root ? root : "."), "r");
    assert_non_null(file);
    assert_non_null(cpu);
    while (fscanf(file, "case %d %d %d %d %d\n", &queries, &keys, &heads, &d_h, &causal) == 5) {
        for (int i = 0; i < N_ARRAYS; i++) lengths[i] = read_array(array_names[i], golden[i]);
        for (int i = 0; i < 5; i++)
            for (int way = 0; way < 4; way++)
                run_golden(way / 2 ? cpu : ref,
                           (struct lab_attention){.n_seq = 1,
                                                  .queries = queries,
                                                  .keys = keys,
                                                  .heads = heads,
                                                  .d_h = d_h,
                                                  .scale = 1 / sqrtf((float)d_h),
                                                  .causal = causal,
                                                  .rows = tiles[i][0],
                                                  .columns = tiles[i][1]},
                           way % 2);
        cases++;
    }
    assert_int_equal(cases, 6);
    fclose(file);
    device_close(&cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_record),
                                       cmocka_unit_test(numpy_agrees)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
