/* SPDX-License-Identifier: Apache-2.0 */
/* The seeds' records that workloads compute: counts of operations, ledgers, capacity, training,
   speculation, temperature. */
#include "kernels/quant.h"
#include "tests/golden/seed_records.h"
#include "workloads/common/rejection.h"
#include "workloads/common/slow.h"
#include "workloads/common/trainer.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

static struct arena *arena;
static struct device *ref;

/* A shape with "key=value" of [model] ("type") or [shape] ("shape.n_kv") on top. */
static struct model_config config_of(const char *shape, const char *settings) {
    struct model_config config = drive_config(shape, arena);
    char *copy = arena_text(arena, settings), *rest;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = 0;
        if (!strncmp(word, "shape.", 6))
            drive_set(shape_options, &config.shape, word + 6, value, arena);
        else
            drive_model(&config, word, value, arena);
    }
    return config;
}

/* A metric of a workload that runs, after one execution if asked for. */
static double ran(const char *workload, const struct model_config *config, const char *settings,
                  bool execute, const char *metric) {
    struct drive drive;
    struct err err = {0};
    drive_open_run(&drive, ref, config, arena);
    if (drive_prepare(&drive, workload, settings, &err)) fail_msg("%s: %s", settings, err.text);
    if (execute) drive_execute(&drive);
    const struct values values = drive_report(&drive);
    drive_dispose(&drive);
    drive_close_run(&drive);
    return values_get(&values, metric);
}

/* A metric of a workload that computes. */
static double computed(const char *workload, const struct model_config *config,
                       const char *settings, const char *metric) {
    const struct workload *w = workload_find(workload);
    void *params = arena_alloc(arena, w->params_size);
    struct problems *problems = problems_create();
    struct values values = {0};
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, " ", arena);
    if (w->check) w->check(params, config, problems);
    assert_int_equal(problems_count(problems), 0);
    problems_close(&problems);
    w->compute(params, config, &values);
    return values_get(&values, metric);
}

#define TEXT(...) arena_printf(arena, __VA_ARGS__)

/* ---- operations */

static bool one_head(const struct record *r) {
    static const char *const modes[] = {"recompute", "cached"};
    const char *settings = TEXT("context=%lld mode=%s", (long long)whole(r, "n"),
                                modes[r->n == 15   ? 0
                                      : r->n == 16 ? 1
                                                   : (r->n + 1) % 2]);
    const double bytes = ran("one_head", NULL, settings, false, "score_bytes_allocated");
    expect(r, r->n == 15 ? bytes / 1e6 : r->n == 16 ? bytes / 1e3 : bytes);
    return true;
}

static bool generation(const struct record *r) {
    static const char *const modes[] = {"full", "cached", "full", "triangle"}; /* by n % 4 */
    const char *mode = modes[r->n % 4];
    const int64_t t = whole(r, "T"), d = whole(r, "d");
    const struct model_config config = config_of(
        "tiny",
        TEXT("shape.n_layers=1 shape.n_q=1 shape.n_kv=1 shape.d_h=%lld kv_type=f32", (long long)d));
    const char *settings = TEXT("tokens=%lld mode=%s count=false", (long long)t, mode);
    const char *metric = r->n % 4 ? "macs" : "over_cached";
    expect(r, ran("op_counts", &config, settings, false, metric));
    if (t <= 64 && r->n % 4) /* as the device executes them */
        expect(r, ran("op_counts", &config, TEXT("tokens=%lld mode=%s", (long long)t, mode), true,
                      "macs_counted"));
    return true;
}

/* Rows of a list of lists. */
static void read_rows(const cJSON *list, float *to) {
    const cJSON *row, *v;
    cJSON_ArrayForEach(row, list) cJSON_ArrayForEach(v, row) *to++ = (float)v->valuedouble;
}

static void attention(const struct record *r, const cJSON *inputs, const char *const *names,
                      int row) {
    float q[64], k[64], v[64];
    double out[2];
    read_rows(cJSON_GetObjectItem(inputs, names[0]), q);
    read_rows(cJSON_GetObjectItem(inputs, names[1]), k);
    read_rows(cJSON_GetObjectItem(inputs, names[2]), v);
    slow_attention(q + 2L * row, k, v, cJSON_GetArraySize(cJSON_GetObjectItem(inputs, names[1])), 2,
                   1 / sqrt(2.0), out, NULL);
    expect_list(r, out, 2);
}

static bool toy(const struct record *r) {
    static const char *const names[] = {"q", "k", "v"};
    double lengths[5], shape[2];
    if (r->n > 2) {
        attention(r, r->inputs, names, r->n - 3);
        return true;
    }
    for (int i = 0; i < 5; i++) {
        const char *settings = TEXT("context=%d width=64", i + 1);
        lengths[i] = ran("one_head", NULL, settings, true, "cache_tokens");
        shape[0] = ran("one_head", NULL, settings, true, "output_rows");
        shape[1] = ran("one_head", NULL, settings, true, "macs_counted") / 2 / (i + 1);
    }
    expect_list(r, r->n == 1 ? lengths : shape, r->n == 1 ? 5 : 2);
    return true;
}

/* ---- caches of other shapes */

static bool latent(const struct record *r) {
    const struct model_config config = config_of("13b", "shape.n_q=128 shape.n_kv=128 "
                                                        "shape.n_layers=1 kv_type=bf16");
    static const char *const metrics[] = {
        "token_elements",       "token_elements",       "smaller",
        "kv_layer_token_bytes", "kv_layer_token_bytes", "equal_heads"};
    const char *method = r->n == 1 || r->n == 4 ? "heads" : "latent";
    expect(r,
           computed("kv_methods", &config, TEXT("method=%s length=7", method), metrics[r->n - 1]));
    return true;
}

static bool windows(const struct record *r) {
    const struct model_config config = config_of("7b", "kv_type=f16");
    if (has(r, "g"))
        expect(r, computed("kv_methods", &config,
                           TEXT("method=shared share=%lld length=9", (long long)whole(r, "g")),
                           "kv_bytes_per_token"));
    else if (has(r, "W"))
        expect(r, computed("kv_methods", &config,
                           TEXT("method=window window=%lld local_layers=%lld length=%lld",
                                (long long)whole(r, "W"), (long long)whole(r, "local"),
                                (long long)whole(r, "S")),
                           "kv_bytes"));
    else
        expect(r, computed("kv_methods", &config, TEXT("length=%lld", (long long)whole(r, "S")),
                           "kv_bytes"));
    return true;
}

static bool batch_cache(const struct record *r) {
    if (!has(r, "per_token")) return false; /* arithmetic on printed gains */
    const struct model_config config = config_of("seed-0.5b", "kv_type=f16");
    expect(r, computed("ledger", &config,
                       TEXT("batch=%lld context=%lld", (long long)whole(r, "batch"),
                            (long long)whole(r, "tokens")),
                       "kv_bytes"));
    return true;
}

/* E07: what a cache adds to the bytes of a step, beside weights in f16. */
static double step_of(int64_t context, const char *metric) {
    const struct model_config config = config_of("seed-0.5b", "type=f16 kv_type=f16");
    return computed("ledger", &config,
                    TEXT("parameters=494032768 context=%lld", (long long)context), metric);
}

static bool history(const struct record *r) {
    if (has(r, "from")) {
        expect(r, step_of(whole(r, "to"), "kv_bytes") / step_of(whole(r, "from"), "kv_bytes"));
    } else if (!has(r, "C")) {
        expect(r, step_of(1024, "memory_bytes") / step_of(16, "memory_bytes"));
    } else {
        const double kv = step_of(whole(r, "C"), "kv_bytes");
        expect(r, has(r, "per_token") ? kv : kv / step_of(whole(r, "C"), "memory_bytes"));
    }
    return true;
}

/* ---- the ledger */

static double ledger_13b(int64_t n_kv, int64_t batch, const char *metric) {
    const struct model_config config =
        config_of("13b", TEXT("shape.n_kv=%lld type=bf16 kv_type=bf16", (long long)n_kv));
    return computed("ledger", &config,
                    TEXT("batch=%lld hbm_bytes_per_s=3.35e12 memory_bytes=80GB", (long long)batch),
                    metric);
}

static bool parts_of_13b(const struct record *r) {
    struct model_config config = config_of("13b", "");
    struct model_shape bare = config.shape, none = config.shape;
    bare.d_ff = 0;
    none.n_layers = 0;
    const double all = theory_matrix_parameters(&config.shape);
    const double matrices[] = {theory_matrix_parameters(&none),
                               all - theory_matrix_parameters(&bare),
                               theory_matrix_parameters(&bare) - theory_matrix_parameters(&none),
                               (double)model_parameters(&config.shape) - all};
    expect(r, matrices[r->n - 32]);
    return true;
}

static bool ledger(const struct record *r) {
    static const struct {
        const char *what, *metric;
    } kinds[] = {{"parameters", "parameters"},     {"memory", "memory_gb"},
                 {"time", "token_time"},           {"throughput limit", "token_rate_limit"},
                 {"throughput B/t", "token_rate"}, {"KV bytes", "kv_bytes"},
                 {"largest batch", "users"}};
    if (r->family == 29 && r->n >= 32 && r->n <= 35) return parts_of_13b(r);
    if (!strncmp(r->what, "the same in billions", 20)) {
        expect(r, ledger_13b(8, 1, "parameters") / 1e9);
    } else if (r->family == 29 && r->n >= 36) {
        const char *metric = r->n == 36 ? "token_rate" : "token_time";
        expect(r, ledger_13b(40, 64, metric) / ledger_13b(40, 1, metric));
    } else if (r->family == 30 && r->n >= 64) {
        expect(r, r->n == 64 ? ledger_13b(40, 64, "token_time") / ledger_13b(8, 64, "token_time")
                             : ledger_13b(8, 64, "token_rate") / ledger_13b(40, 64, "token_rate"));
    } else {
        const int64_t batch = has(r, "B") ? whole(r, "B") : 1;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            if (strncmp(r->what, kinds[i].what, strlen(kinds[i].what))) continue;
            expect(r, ledger_13b(whole(r, "K"), batch, kinds[i].metric));
            return true;
        }
        fail_msg("%s is not covered: %s", r->id, r->what);
    }
    return true;
}

/* Weights of a round number of parameters, by bits. */
static double weights(double parameters, double bits, const char *metric) {
    const char *type = bits == 32   ? "f32"
                       : bits == 16 ? "f16"
                       : bits == 8  ? "int8"
                       : bits == 4  ? "int4-row"
                                    : "int4";
    const struct model_config config = config_of("tiny", TEXT("type=%s", type));
    return computed("ledger", &config, TEXT("parameters=%.0f", parameters), metric);
}

static bool weight_bytes(const struct record *r) {
    const struct model_config config = config_of("seed-0.5b", "");
    const double layers = (double)config.shape.n_layers;
    struct model_shape none = config.shape;
    none.n_layers = 0;
    const double projections =
        theory_matrix_parameters(&config.shape) - theory_matrix_parameters(&none);
    if (r->n == 4 || r->n == 5) return false; /* bounds on what was printed */
    if (r->n == 1)
        expect(r, 7 * layers);
    else if (r->n <= 3)
        expect(r, r->n == 2 ? projections : projections / 1e6);
    else
        expect(r, weights(input(r, "params"), 8 * input(r, "elem"), "weight_bytes") / 1e9);
    if (r->n == 6) assert_int_equal(model_parameters(&config.shape), whole(r, "params"));
    return true;
}

static bool weight_bits(const struct record *r) {
    if (r->family == 42) {
        const double bits = r->n == 1 ? 8 : r->n == 4 ? 4.125 : 4;
        const double size = weights(1e9, bits, "weight_bytes") / 1e9;
        expect(r, r->n == 2 ? size : 2 / size);
        return true;
    }
    if (has(r, "zero_bits") || has(r, "bytes")) return false; /* formats that we do not have */
    const char *type = input(r, "bits") == 8 ? "int8-group" : r->n == 2 ? "nf4" : "int4";
    const struct model_config config =
        config_of("tiny", TEXT("type=%s group=%lld", type, (long long)whole(r, "group")));
    expect(r, computed("ledger", &config, "parameters=1000000000", "weight_bits"));
    return true;
}

/* ---- capacity */

static double card(const char *size, const char *type, const char *settings, const char *metric) {
    const bool small = !strcmp(size, "7B"), large = !strcmp(size, "70B");
    const struct model_config config = config_of(small   ? "7b"
                                                 : large ? "70b"
                                                         : "13b",
                                                 TEXT("kv_type=f16 type=%s", type));
    const char *parameters = small ? "7000000000" : large ? "70000000000" : "13000000000";
    return computed("ledger", &config, TEXT("parameters=%s %s", parameters, settings), metric);
}

/* "... 8 GB card, 7B int4 ..." or "..., 13B int4 on 8 GB": size, type and card of the words. */
static double card_of(const struct record *r, const char *settings, const char *metric) {
    const char *size = strstr(r->what, "70B") ? "70B" : strstr(r->what, "13B") ? "13B" : "7B";
    const char *type = strstr(r->what, "fp16") ? "f16" : strstr(r->what, "int8") ? "int8" : "int4";
    const int gib = strstr(r->what, "16 GB") ? 16 : strstr(r->what, "24 GB") ? 24 : 8;
    return card(size, type, TEXT("memory_bytes=%dGiB reserve=1.5GiB %s", gib, settings), metric);
}

/* The largest reserve, in bytes, that leaves so many tokens. */
static double largest_reserve(const struct record *r, const char *size, const char *type,
                              double tokens) {
    int64_t fits = 0, too_much = whole(r, "card_GiB") << 30;
    while (too_much - fits > 1) {
        const int64_t middle = fits + (too_much - fits) / 2;
        const char *settings = TEXT("memory_bytes=%lldGiB reserve=%lld",
                                    (long long)whole(r, "card_GiB"), (long long)middle);
        if (card(size, type, settings, "resident_tokens") >= tokens)
            fits = middle;
        else
            too_much = middle;
    }
    return (double)fits;
}

/* "reserve implied by 337 tokens, in (from, to]": more than what leaves one token more. The oracle
 * prints six digits. */
static void reserve_bounds(const struct record *r) {
    long long tokens = 0;
    const char *size = input(r, "params") > 1e10 ? "13B" : "7B";
    const char *type = input(r, "bits") < 8 ? "int4" : "int8";
    assert_int_equal(sscanf(r->what, "reserve implied by %lld", &tokens), 1);
    for (int i = 0; i < 2; i++) {
        const double bytes = largest_reserve(r, size, type, (double)tokens + 1 - i);
        const cJSON *item = cJSON_GetArrayItem(r->value, i);
        assert_non_null(item);
        const double gib = bytes * 0x1p-30, want = item ? item->valuedouble : 0;
        if (!(fabs(gib - want) <= 0.5e-6 + 1e-9))
            fail_msg("%s: %.9f GiB, expected %.6f", r->id, gib, want);
    }
}

static bool capacity(const struct record *r) {
    const char *metric = "weight_gib";
    if (r->n <= 4) {
        const double bytes = card(r->n == 4 ? "7B" : "13B", "f16", "", "kv_bytes_per_token");
        expect(r, r->n == 1 ? bytes : r->n == 3 ? bytes / 1e3 : bytes / 1024);
    } else if (r->n <= 13) {
        expect(r, card_of(r, "", metric));
    } else if (r->n <= 15) {
        const double more =
            card("13B", "int8", "", "weight_bytes") - card("7B", "int8", "", "weight_bytes");
        expect(r, r->n == 14 ? more * 0x1p-30 : more / 1e9);
    } else if (r->n == 16) {
        expect(r, card("13B", "int4", "", "weight_bytes") / 1e9);
    } else if (r->n <= 43) {
        expect(r, card_of(r, "", "resident_tokens"));
    } else if (r->n == 44) {
        const char *settings = "memory_bytes=16GiB reserve=1.5GiB";
        expect(r, card("7B", "int8", settings, "resident_tokens") /
                      card("13B", "int8", settings, "resident_tokens"));
    } else if (r->n == 48) {
        expect(r, card("13B", "int4", "memory_bytes=8GiB", "resident_tokens"));
    } else if (r->n == 49) {
        expect(r, card("13B", "int4-row", "memory_bytes=8GiB reserve=1.5GiB", "resident_tokens"));
    } else if (r->n == 50) { /* SI gigabytes: the model would not fit, and by how much */
        const char *settings = "memory_bytes=8000000000 reserve=1500000000";
        assert_true(card("13B", "int4", settings, "resident_tokens") == 0);
        expect(r, 8e9 - 1.5e9 - card("13B", "int4", "", "weight_bytes"));
    } else {
        reserve_bounds(r);
    }
    return true;
}

static bool users(const struct record *r) {
    const char *context = TEXT("context=%lld", (long long)whole(r, "context"));
    expect(r, card_of(r, context, "users"));
    assert_true(card_of(r, context, "resident_tokens") == input(r, "resident_tokens"));
    return true;
}

/* ---- training, speculation, temperature */

static bool training_state(const struct record *r) {
    const struct model_config config = config_of("13b", "");
    const char *fp32 = "weight_size=4 gradient_size=4 state_size=4 master_size=0";
    const char *master = "weight_size=2 gradient_size=2 state_size=4 master_size=4";
    if (has(r, "s_w"))
        expect(r, computed("training", &config,
                           TEXT("weight_size=%g gradient_size=%g state_size=%g master_size=%g",
                                input(r, "s_w"), input(r, "s_g"), input(r, "s_o"),
                                input(r, "s_master")),
                           "bytes_per_parameter"));
    else if (has(r, "params"))
        expect(r, computed("training", &config,
                           TEXT("parameters=%lld weight_size=%g gradient_size=0 state_size=0",
                                (long long)whole(r, "params"), input(r, "bytes_per_param")),
                           "static_bytes"));
    else
        expect(r, computed("training", &config, master, "static_bytes") /
                      computed("training", &config, fp32, "static_bytes"));
    return true;
}

static double activations(const struct record *r, const char *metric) {
    const int64_t heads = has(r, "H") ? whole(r, "H") : 40;
    struct model_config config = config_of("13b", TEXT("shape.n_q=%lld", (long long)heads));
    if (has(r, "D")) config.shape.d_model = whole(r, "D");
    return computed("training", &config,
                    TEXT("batch=%lld tokens=%lld element_size=%g", (long long)whole(r, "B"),
                         (long long)whole(r, "T"), has(r, "s") ? input(r, "s") : 2),
                    metric);
}

/* What a step really keeps, in f32. */
static void trained(const struct record *r, const char *metric) {
    struct trainer_spec spec = {
        .shape = config_of("13b", "").shape, .batch = whole(r, "B"), .tokens = whole(r, "T")};
    struct trainer_memory m;
    if (has(r, "D")) spec.shape.d_model = whole(r, "D");
    if (has(r, "H")) spec.shape.n_q = spec.shape.n_kv = whole(r, "H");
    trainer_memory(&spec, &m);
    expect(r, (double)(strcmp(metric, "residual_bytes") ? m.attention : m.entry));
}

static bool training_activations(const struct record *r) {
    const struct model_config config = config_of("13b", "");
    if (r->family == 52 && r->n >= 11) {
        static const char *const metrics[] = {"residual_bytes", "attention_bytes"};
        if (r->n == 13)
            expect(r, computed("training", &config, "", "equal_tokens"));
        else
            expect(r, computed("training", &config, "tokens=2048", metrics[r->n - 11]) /
                          computed("training", &config, "tokens=1024", metrics[r->n - 11]));
        return true;
    }
    const char *metric = strstr(r->what, "logsumexp")            ? "logsumexp_bytes"
                         : strstr(r->what, "residual")           ? "residual_bytes"
                         : strstr(r->what, "traffic of a naive") ? "naive_extra_bytes"
                         : strstr(r->what, "fused")              ? "fused_bytes"
                                                                 : "attention_bytes";
    expect(r, activations(r, metric));
    if (r->family == 52 && input(r, "s") == 4) trained(r, metric);
    return true;
}

static double entry_bytes(int64_t batch, int64_t tokens, int64_t d_model, int element_size) {
    struct model_config config = config_of("13b", "");
    config.shape.d_model = d_model;
    return computed("training", &config,
                    TEXT("batch=%lld tokens=%lld element_size=%d", (long long)batch,
                         (long long)tokens, element_size),
                    "residual_bytes");
}

static bool checkpoints(const struct record *r) {
    static const char *const printed = "entry=40MiB saved=3651.3125MiB segment=1";
    struct model_config config = config_of("13b", "shape.n_layers=4");
    if (r->n <= 3) {
        const double saved = computed("training", &config, printed, "saved_bytes");
        const double kept = computed("training", &config, printed, "kept_bytes");
        expect(r, r->n == 1 ? saved / kept : (r->n == 2 ? saved : kept) / 4 * 0x1p-20);
    } else if (r->n <= 5) { /* a shape that the printed 40 MiB fit: the record's own example */
        const int size = r->n == 4 ? 4 : 2;
        const double bytes = entry_bytes(4, r->n == 4 ? 1024 : 2048, 2560, size);
        assert_true(bytes == input(r, "MiB") * 0x1p20);
        expect(r, bytes / size);
    } else if (r->n == 15) {
        config.shape.n_layers = whole(r, "N");
        expect(r, computed("training", &config, "entry=1MiB saved=4MiB", "best_segment"));
    } else {
        config.shape.n_layers = whole(r, "N");
        expect(r, computed("training", &config,
                           TEXT("entry=%.17gMiB saved=%.17gMiB segment=%lld", input(r, "c_MiB"),
                                input(r, "a_MiB"), (long long)whole(r, "K")),
                           "checkpoint_peak_mib"));
    }
    return true;
}

static bool speculation(const struct record *r) {
    if (r->family == 45 && (r->n == 39 || r->n == 40)) { /* 3.40 was printed: rounded */
        expect(r, speculation_cost(0.9, 8, r->n == 39 ? 3.405 : 3.395));
        return true;
    }
    const char *metric = r->family == 44 ? "tokens_per_pass"
                         : r->n == 38    ? "forward_passes"
                         : r->n < 41     ? "speedup"
                         : r->n < 44     ? "break_even"
                                         : "best_draft";
    /* The printed agreement of 142 of 144, of which the record holds 12 digits. */
    const double alpha = has(r, "alpha") ? input(r, "alpha") : 0.5;
    const double exact = fabs(alpha - 142.0 / 144) < 1e-9 ? 142.0 / 144 : alpha;
    expect(r, computed("speculation", NULL,
                       TEXT("acceptance=%.17g draft=%lld cost=%.17g passes=0", exact,
                            (long long)(has(r, "gamma") ? whole(r, "gamma") : 4),
                            has(r, "c") ? input(r, "c") : 0.1),
                       metric));
    return true;
}

/* A distribution of the inputs; of thirds the record holds 12 digits. */
static int read_distribution(const struct record *r, const char *name, double *to) {
    const cJSON *list = cJSON_GetObjectItem(r->inputs, name), *item;
    double sum = 0;
    int n = 0;
    cJSON_ArrayForEach(item, list) sum += to[n++] = item->valuedouble;
    for (int i = 0; i < n; i++) to[i] /= sum;
    return n;
}

static bool sampling(const struct record *r) {
    double p[8], q[8], out[8];
    if (r->n == 7) {
        expect(r, rejection_keeps(input(r, "pA"), input(r, "qA")));
        return true;
    }
    const int n = read_distribution(r, "draft_p", p);
    assert_int_equal(read_distribution(r, "target_q", q), n);
    rejection_output(p, q, n, out);
    if (r->n % 2)
        expect_list(r, out, n);
    else
        expect(r, rejection_acceptance(p, q, n));
    return true;
}

static bool temperature(const struct record *r) {
    const double t = has(r, "T") ? input(r, "T") : 1;
    expect(r,
           computed("temperature", NULL, TEXT("temperature=%g", t), r->n == 6 ? "mass" : "ratio"));
    return true;
}

/* ---- codes, and attention by tiles */

static bool codes(const struct record *r) {
    const cJSON *x = cJSON_GetObjectItem(r->inputs, "x");
    const bool nf4 = r->family == 36;
    if (strncmp(r->what, nf4 ? "NF4 codes" : "codes", 5)) return false; /* scales are f32 here */
    const int n = cJSON_GetArraySize(x);
    float w[16], scales[2];
    int8_t out[16];
    double list[16];
    for (int i = 0; i < n; i++) w[i] = (float)cJSON_GetArrayItem(x, i)->valuedouble;
    const struct weight_spec spec = {.what = "",
                                     .rows = 1,
                                     .cols = n,
                                     .type = nf4                     ? DT_NF4
                                             : input(r, "bits") == 8 ? DT_I8
                                                                     : DT_I4,
                                     .scale = nf4 ? SCALE_GROUP : SCALE_ROW,
                                     .group = nf4 ? n : 0};
    quant_row(&spec, w, 0, out, scales);
    for (int i = 0; i < n; i++) list[i] = out[i];
    expect_list(r, list, n);
    return true;
}

static bool tiles(const struct record *r) {
    static const char *const names[] = {"Q", "K", "V"};
    static cJSON *inputs; /* the first record's */
    if (has(r, "Q") && !inputs) inputs = cJSON_Duplicate(r->inputs, 1);
    if (r->n % 3 != 2) return false; /* running states and L: test_seed_flash */
    attention(r, inputs, names, (int)whole(r, "row"));
    if (r->n == 8) cJSON_Delete(inputs);
    return true;
}

/* ---- */

static const struct product products[] = {
    {2, one_head},
    {3, generation},
    {7, history},
    {15, toy},
    {17, latent},
    {18, windows},
    {19, batch_cache},
    {29, ledger},
    {30, ledger},
    {31, weight_bytes},
    {32, codes},
    {35, weight_bits},
    {36, codes},
    {42, weight_bits},
    {44, speculation},
    {45, speculation},
    {46, sampling}, /* the rule of workloads/common/rejection.h */
    {48, temperature},
    {49, capacity},
    {50, users},
    {51, training_state},
    {52, training_activations},
    {54, checkpoints},
    {55, tiles},
    {57, training_activations},
    {0},
};

static void every_record(void **state) {
    (void)state;
    assert_int_equal(each_record(products), 486);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_record)};
    arena = arena_create();
    ref = drive_open("ref", arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&ref);
    arena_close(&arena);
    return failed;
}
