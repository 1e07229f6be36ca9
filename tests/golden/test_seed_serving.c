/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' records of batching, packing, paging and sharing (E20, E22-E24), out of the workloads.
 */
#include "tests/golden/seed_records.h"
#include "workloads/common/first_fit.h"
#include "workloads/model/blocks.h"

static struct arena *arena;
static struct device *ref;
static struct model_config small; /* seed-0.5b in f16: the seeds' own */
static struct text trace;         /* the list that E20's records speak of now */

/* A metric of a workload that runs once. */
static double ran(const char *workload, const char *settings, const char *metric) {
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, ref, &small, arena);
    if (drive_prepare(&drive, workload, settings, &err)) fail_msg("%s: %s", settings, err.text);
    drive_execute(&drive);
    if (drive.run.workload->witness) assert_true(drive_witness(&drive).holds);
    const struct values values = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    const double value = values_get(&values, metric);
    if (isnan(value)) fail_msg("%s has no %s", workload, metric);
    return value;
}

static void add_list(struct text *t, const char *key, const cJSON *list) {
    const cJSON *item;
    text_printf(t, "%s=", key);
    cJSON_ArrayForEach(item, list)
        text_printf(t, "%s%d", item == list->child ? "[" : ",", item->valueint);
    text_puts(t, "]");
}

static bool batching(const struct record *r) {
    static const struct {
        const char *what, *metric;
    } known[] = {{"number of requests", "requests"},
                 {"total output tokens", "tokens"},
                 {": longest", "longest"},
                 {": median", "median_length"},
                 {"static batching makespan", "static_steps"},
                 {"continuous batching makespan", "continuous_steps"},
                 {"throughput gain", "throughput_gain"},
                 {"static mean latency, arrival", "static_latency"},
                 {"continuous mean latency, arrival", "continuous_latency"},
                 {"continuous mean latency, admission", "continuous_service"},
                 {"mean latency ratio, both", "latency_gain"},
                 {"mean latency ratio if", "latency_gain_unqueued"},
                 {"static slot utilisation", "static_slot_use"},
                 {"lower bound", "least_steps"}};
    if (cJSON_IsArray(r->value)) { /* the trace itself */
        trace.len = 0;
        add_list(&trace, "lengths", r->value);
        text_printf(&trace, " slots=8 arrival=evenly gap=%d", (int)input(r, "arrival_gap_steps"));
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strstr(r->what, known[i].what)) continue;
        expect(r, ran("batching", trace.data, known[i].metric));
        return true;
    }
    if (!strstr(r->what, "mean output length")) return false;
    expect(r, ran("batching", trace.data, "tokens") / ran("batching", trace.data, "requests"));
    return true;
}

static bool packing(const struct record *r) {
    struct text settings = {0};
    add_list(&settings, "prompt", cJSON_GetObjectItem(r->inputs, "lengths"));
    text_printf(&settings, " law=fixed output=1 slots=4 requests=4");
    const char *metric = strstr(r->what, "packed")   ? "packed_rows"
                         : strstr(r->what, "padded") ? "padded_rows"
                                                     : "pairs";
    expect(r, ran("batching", settings.data, metric));
    text_free(&settings);
    return true;
}

static bool paging(const struct record *r) {
    static const struct {
        const char *what, *metric;
    } known[] = {{"paged slots reserved", "block_slots"}, {"paged internal waste", "block_waste"},
                 {"contiguous slots", "most_slots"},      {"contiguous utilisation", "most_use"},
                 {"paged utilisation", "block_use"},      {"bytes of one block", "block_bytes"}};
    const cJSON *lengths = cJSON_GetObjectItem(r->inputs, "lengths"), *item;
    struct text settings = {0};
    if (cJSON_IsArray(r->value)) {
        int i = 0;
        cJSON_ArrayForEach(item, lengths)
            expect_item(r, cJSON_GetArrayItem(r->value, i++),
                        (double)blocks_for(item->valueint, whole(r, "block")));
        return true;
    }
    if (lengths) add_list(&settings, "lengths", lengths);
    if (has(r, "block")) text_printf(&settings, " block=%d", (int)whole(r, "block"));
    if (has(r, "max_len")) text_printf(&settings, " longest=%d", (int)whole(r, "max_len"));
    bool done = false;
    for (size_t i = 0; i < sizeof known / sizeof *known && !done; i++) {
        if (!strstr(r->what, known[i].what)) continue;
        expect(r, ran("paging", settings.data + strspn(settings.data, " "), known[i].metric));
        done = true;
    }
    text_free(&settings);
    if (done || !has(r, "arena")) return done;
    struct first_fit f; /* holes: "fails contiguous (free 40, largest hole 30), succeeds paged" */
    char said[80];
    first_fit_open(&f, whole(r, "arena"));
    for (int i = 0; i < 3; i++) first_fit_take(&f, 30);
    first_fit_give(&f, 30);
    struct blocks *b = blocks_create(4, 100, (int32_t)f.size, 1);
    for (int32_t q = 0; q < 3; q++) assert_true(blocks_write(b, q, 0, 30, NULL, NULL));
    blocks_trim(b, 1, 0);
    snprintf(said, sizeof said, "%s contiguous (free %d, largest hole %d), %s paged",
             first_fit_take(&f, 35) < 0 ? "fails" : "succeeds", (int)(f.size - f.used),
             (int)first_fit_hole(&f), blocks_write(b, 3, 0, 35, NULL, NULL) ? "succeeds" : "fails");
    assert_string_equal(r->value->valuestring, said);
    blocks_close(&b);
    first_fit_close(&f);
    return true;
}

static bool sharing(const struct record *r) {
    static const char *const metrics[] = {
        "", "blocks", "blocks", "blocks_after_prompt", "prompt_refs", "copies"};
    struct model_config kept = small;
    if (r->n < 1 || r->n > 5) return false;
    small = drive_config("tiny", arena); /* counts know no model; this one runs */
    drive_model(&small, "layout", "paged", arena);
    drive_model(&small, "block", "16", arena);
    small.activation = model_activation(&small.params, ref->kind);
    const char *settings =
        r->n == 1 ? "prompt=40 samples=4 tokens=20 mode=separate" : "prompt=40 samples=4 tokens=20";
    if (has(r, "block")) assert_int_equal(whole(r, "block"), 16);
    if (has(r, "generated")) assert_int_equal(whole(r, "generated"), 20);
    expect(r, ran("sharing", settings, metrics[r->n]));
    small = kept;
    return true;
}

static const struct product products[] = {
    {20, batching}, {22, packing}, {23, paging}, {24, sharing}, {0}};

static void records(void **state) {
    (void)state;
    assert_int_equal(each_record(products), 29 + 3 + 8 + 5); /* all that there are */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(records)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    small = drive_config("seed-0.5b", arena);
    drive_model(&small, "kv_type", "f16", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    text_free(&trace);
    arena_close(&arena);
    return failed;
}
