/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler against an independent computation by events, on drawn traces; that it always ends,
   whatever the pool; and the traffic that it is given. */
#include "tests/unit/workloads/drive.h"

#include "base/random.h"
#include "workloads/common/step_costs.h"
#include "workloads/common/traffic.h"

enum { MOST = 60 };

static int64_t one(void *ctx, const struct batch *batch) {
    (void)ctx, (void)batch;
    return 1;
}

static int32_t draw_trace(struct request *trace, uint64_t key, int32_t prompts) {
    const int32_t n = 1 + (int32_t)random_below(key, 0, MOST);
    const uint32_t gap = random_below(key, 1, 9);
    int64_t now = 0;
    for (int32_t i = 0; i < n; i++) {
        now += gap ? (int64_t)random_below(key, 3 * (uint64_t)i + 2, gap) : 0;
        trace[i] = (struct request){
            now, 1 + (int32_t)random_below(key, 3 * (uint64_t)i + 3, (uint32_t)prompts),
            1 + (int32_t)random_below(key, 3 * (uint64_t)i + 4, 40)};
    }
    return n;
}

static void steps_agree_with_events(void **state) {
    struct request trace[MOST];
    int64_t done[MOST];
    (void)state;
    for (uint64_t k = 0; k < 400; k++) {
        const uint64_t key = random_key(20, k);
        const int32_t n = draw_trace(trace, key, 1 + (int32_t)(k % 7));
        for (int policy = 0; policy < 2; policy++) {
            const struct scheduler_spec spec = {
                .policy = policy, .slots = 1 + (int32_t)random_below(key, 1000, 12), .block = 16};
            struct scheduler *s = scheduler_create(trace, n, &spec);
            const int64_t end = schedule_simulate(s, one, NULL);
            int64_t last = 0, tokens = 0;
            schedule_by_events(trace, n, policy, spec.slots, done);
            for (int32_t i = 0; i < n; i++) {
                assert_int_equal(scheduler_served(s)[i].returned, done[i]);
                assert_int_equal(scheduler_served(s)[i].tokens, trace[i].output);
                if (done[i] > last) last = done[i];
                tokens += trace[i].output;
            }
            assert_int_equal(end, last);
            assert_int_equal(scheduler_sums(s)->runs - scheduler_sums(s)->padding, tokens);
            if (policy == POLICY_CONTINUOUS) {
                assert_int_equal(scheduler_sums(s)->idle_slots, 0);
                assert_int_equal(scheduler_sums(s)->padding, 0);
            }
            scheduler_close(&s);
        }
    }
}

/* What every step must be, whoever is preempted: texts are fed in order and without gaps, slots
   rise, and what is held fits the pool. */
static int64_t checked(const struct request *trace, int32_t n, const struct scheduler_spec *spec) {
    struct scheduler *s = scheduler_create(trace, n, spec);
    struct batch batch;
    const bool whole = spec->policy == POLICY_STATIC && spec->prefill == PREFILL_TOGETHER;
    int32_t resident[MOST] = {0}, goal[MOST] = {0}, written[MOST] = {0};
    const int32_t prefill = spec->prefill_batch && !whole ? spec->prefill_batch : MOST;
    int64_t now = 0, until = 0, steps = 0, of_run,
            most_rows = scheduler_most_rows(trace, n, spec, &of_run),
            most_tokens = scheduler_most_tokens(trace, n, spec);
    for (enum act act; (act = scheduler_next(s, now, &batch, &until)) != ACT_END; steps++) {
        assert_true(steps < 1000000);
        if (act == ACT_WAIT) {
            assert_true(until > now);
            now = until;
            continue;
        }
        int32_t rows = 0, reading = 0;
        assert_true(batch.n >= 1 && batch.n <= spec->slots);
        for (int32_t i = 0; i < batch.n; i++) {
            const struct run_of_rows *run = &batch.runs[i];
            if (i) assert_true(run->slot > batch.runs[i - 1].slot);
            assert_int_equal(scheduler_in_slot(s, run->slot), run->request);
            if (run->begin) assert_int_equal(run->begin, resident[run->request]);
            resident[run->request] = run->begin + run->rows;
            assert_true(resident[run->request] <= most_tokens && run->rows <= of_run);
            assert_true(trace[run->request].arrival <= now);
            /* It reads all that it had when it began, in pieces where these are bounded; then one
               token a step. */
            if (!run->begin)
                goal[run->request] = trace[run->request].prompt + written[run->request];
            const bool reads = run->begin < goal[run->request];
            const int32_t left = reads ? goal[run->request] - run->begin : 1;
            const bool piece = spec->chunk && left > spec->chunk;
            assert_int_equal(run->rows, piece ? spec->chunk : left);
            assert_int_equal(run->partial, piece);
            if (!run->padding && !run->partial) written[run->request]++;
            rows += run->rows;
            reading += reads;
        }
        assert_int_equal(rows, batch.rows);
        assert_int_equal(reading, batch.reading);
        assert_true(rows <= most_rows && reading <= prefill);
        if (spec->prefill == PREFILL_APART) assert_true(!reading || reading == batch.n);
        scheduler_done(s, ++now);
    }
    for (int32_t i = 0; i < n; i++) {
        const struct served *served = &scheduler_served(s)[i];
        const bool fits =
            !spec->pool || (request_most(&trace[i]) + spec->block - 1) / spec->block <= spec->pool;
        assert_int_equal(served->refused, !fits);
        assert_int_equal(served->tokens, fits ? trace[i].output : 0);
        assert_int_equal(served->returned == NEVER, !fits);
        if (!fits) continue;
        assert_true(served->admitted >= trace[i].arrival && served->first > served->admitted);
        assert_true(served->last >= served->first && served->returned >= served->last);
    }
    if (spec->pool) assert_true(scheduler_sums(s)->most_blocks <= spec->pool);
    int64_t preempted = scheduler_sums(s)->preempted;
    scheduler_close(&s);
    return preempted;
}

static void always_ends(void **state) {
    struct request trace[MOST];
    int64_t preempted = 0;
    (void)state;
    for (uint64_t k = 0; k < 600; k++) {
        const uint64_t key = random_key(21, k);
        const int32_t n = draw_trace(trace, key, 30);
        const struct scheduler_spec spec = {
            .policy = (int)(k % 2),
            .prefill = (int)(k / 2 % 2),
            .slots = 1 + (int32_t)random_below(key, 1000, 9),
            .prefill_batch = (int32_t)random_below(key, 1001, 4),
            .block = 1 + (int32_t)random_below(key, 1002, 20),
            .chunk = k % 3 ? 0 : 1 + (int32_t)random_below(key, 1004, 12),
            .pool = random_below(key, 1003, 40)}; /* 0: no bound; 1: most are refused */
        preempted += checked(trace, n, &spec);
    }
    assert_true(preempted > 100); /* the pool was felt */
}

static int64_t end_of(const struct request *trace, int32_t n, int policy, int32_t slots) {
    const struct scheduler_spec spec = {.policy = policy, .slots = slots, .block = 16};
    struct scheduler *s = scheduler_create(trace, n, &spec);
    const int64_t end = schedule_simulate(s, one, NULL);
    scheduler_close(&s);
    return end;
}

static void edges(void **state) {
    struct request trace[64];
    int64_t sum = 0;
    (void)state;
    for (int i = 0; i < 64; i++) trace[i] = (struct request){0, 1, 29};
    for (int32_t slots = 1; slots <= 80; slots++) /* identical lengths: nothing to gain */
        assert_int_equal(end_of(trace, 64, POLICY_STATIC, slots),
                         end_of(trace, 64, POLICY_CONTINUOUS, slots));
    for (int i = 0; i < 64; i++) sum += trace[i].output = 1 + i * 7 % 50;
    assert_int_equal(end_of(trace, 64, POLICY_STATIC, 1), sum); /* one slot: one after the other */
    assert_int_equal(end_of(trace, 64, POLICY_CONTINUOUS, 1), sum);
    for (int policy = 0; policy < 2; policy++) {
        const struct scheduler_spec tight = {.policy = policy, .slots = 8, .block = 1, .pool = 1};
        struct scheduler *s = scheduler_create(trace, 0, &tight); /* nobody comes */
        assert_int_equal(schedule_simulate(s, one, NULL), 0);
        assert_true(isnan(served_mean(trace, scheduler_served(s), 0, SERVED_LATENCY)));
        scheduler_close(&s);
        for (int i = 0; i < 64; i++) trace[i] = (struct request){(int64_t)1 << 60, 3, 4};
        s = scheduler_create(trace, 64, &tight); /* nobody fits: refused, not waited for */
        assert_int_equal(schedule_simulate(s, one, NULL), 0);
        assert_int_equal(scheduler_sums(s)->refused, 64);
        scheduler_close(&s);
        for (int i = 0; i < 64; i++) trace[i] = (struct request){0, 1, 1 + i * 7 % 50};
    }
}

/* E23 of a schedule: what is held, by hand. Blocks of 4; 2 requests of 3 + 6 tokens; 3 blocks. */
static void preemption_by_hand(void **state) {
    const struct request trace[2] = {{0, 3, 6}, {0, 3, 6}};
    const struct scheduler_spec spec = {
        .policy = POLICY_CONTINUOUS, .slots = 2, .block = 4, .pool = 3};
    struct scheduler *s = scheduler_create(trace, 2, &spec);
    (void)state;
    /* Both read (1 block each) and write to 4 tokens at step 2. At step 3 the first takes the third
       block, and the second loses its place with 2 tokens written. The first returns at 6; the
       second reads 3 + 2 tokens, and ends 4 tokens later. */
    assert_int_equal(schedule_simulate(s, one, NULL), 10);
    const struct served *served = scheduler_served(s);
    assert_int_equal(served[0].returned, 6);
    assert_int_equal(served[1].returned, 10);
    assert_int_equal(served[1].first, 1); /* what was streamed stays */
    assert_int_equal(served[1].preempted, 1);
    assert_int_equal(scheduler_sums(s)->preempted, 1);
    assert_int_equal(scheduler_sums(s)->most_blocks, 2); /* after a step */
    scheduler_close(&s);
}

/* Chunks by hand: 4 slots, chunks of 4. The first reads 10 tokens in steps 1 to 3 and writes from 3
   on; the second comes at 1, reads 2 in step 2 and writes beside it. */
static void chunks_by_hand(void **state) {
    const struct request trace[2] = {{0, 10, 2}, {1, 2, 4}};
    const struct scheduler_spec spec = {
        .policy = POLICY_CONTINUOUS, .slots = 4, .block = 4, .chunk = 4};
    struct scheduler *s = scheduler_create(trace, 2, &spec);
    (void)state;
    assert_int_equal(schedule_simulate(s, one, NULL), 5);
    const struct served *served = scheduler_served(s);
    assert_int_equal(served[0].first, 3);
    assert_int_equal(served[0].returned, 4);
    assert_int_equal(served[1].first, 2);
    assert_int_equal(served[1].returned, 5);
    assert_int_equal(served[1].longest, 1);
    assert_int_equal(scheduler_sums(s)->rows, 4 + 4 + 2 + 2 + 1 + 1 + 1 + 1);
    /* Attention sees the same positions, in however many pieces they are read. */
    assert_int_equal(scheduler_sums(s)->pairs, 11 * 12 / 2 + 5 * 6 / 2);
    assert_int_equal(scheduler_most_rows(trace, 2, &spec, NULL), 2 * 4);
    scheduler_close(&s);
}

/* Where only one prompt is read at a time, a long one in pieces keeps its turn, and whoever waits
 * is not read before it has ended. */
static void chunks_keep_their_turn(void **state) {
    struct request trace[6];
    for (int i = 0; i < 6; i++) trace[i] = (struct request){0, 9, 1};
    const struct scheduler_spec spec = {
        .policy = POLICY_CONTINUOUS, .slots = 3, .prefill_batch = 1, .block = 4, .chunk = 3};
    struct scheduler *s = scheduler_create(trace, 6, &spec);
    (void)state;
    assert_int_equal(schedule_simulate(s, one, NULL), 18);
    for (int i = 0; i < 6; i++) assert_int_equal(scheduler_served(s)[i].returned, 3 * (i + 1));
    scheduler_close(&s);
}

static void costs_are_interpolated(void **state) {
    struct step_costs costs;
    (void)state;
    step_costs_grid(&costs, 6, 20);
    const int32_t rows[] = {1, 2, 4, 6, 12, 20};
    assert_int_equal(costs.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(costs.rows[i], rows[i]);
        costs.ns[i] = 100 + 10 * rows[i];
    }
    for (int32_t r = 1; r <= 30; r++) assert_true(step_costs_at(&costs, r) == 100 + 10 * r);
    step_costs_grid(&costs, 1, 1);
    assert_int_equal(costs.n, 1);
    costs.ns[0] = 7;
    assert_true(step_costs_at(&costs, 5) == 7.0);
    step_costs_grid(&costs, 4096, (int64_t)1 << 31); /* ends all the same */
    assert_true(costs.n <= STEP_COSTS_MOST);
}

/* ---- traffic */

static struct arena *arena;

static struct traffic_params traffic(const char *settings) {
    const struct workload *w = workload_find("batching");
    void *params = arena_alloc(arena, w->params_size);
    option_defaults(w->params, params, arena);
    drive_settings(w->params, params, settings, " ", arena);
    return *(const struct traffic_params *)params; /* its first member */
}

static int mistakes(const char *settings) {
    const struct traffic_params p = traffic(settings);
    struct problems *problems = problems_create();
    traffic_check(&p, problems);
    const int n = (int)problems_count(problems);
    problems_close(&problems);
    return n;
}

static void lengths_follow_their_law(void **state) {
    static const struct {
        const char *settings;
        double mean, within, median;
    } cases[] = {{"law=fixed output=29 requests=50", 29, 0, 29},
                 {"law=uniform output=29 requests=20000", 29, 0.5, 29},
                 {"law=geometric output=29 most=4000 requests=20000", 29, 0.8, 20},
                 {"law=geometric output=1 requests=100", 1, 0, 1},
                 {"law=lognormal most=65536 requests=20000", 29.28, 0.9, 18},
                 {"law=lognormal spread=0 requests=100", 18, 0, 18},
                 {"lengths=[4,6] requests=1001", 5, 0.01, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct traffic_params p = traffic(cases[i].settings);
        int32_t n;
        double sum = 0, *x;
        struct request *trace = traffic_make(&p, 1, &n), *again = traffic_make(&p, 1, &n);
        assert_int_equal(mistakes(cases[i].settings), 0);
        assert_memory_equal(trace, again, sizeof *trace * (size_t)n);
        x = must_alloc(sizeof *x * (size_t)n);
        for (int32_t k = 0; k < n; k++) sum += x[k] = trace[k].output;
        if (!(fabs(sum / n - cases[i].mean) <= cases[i].within))
            fail_msg("%s: mean %g", cases[i].settings, sum / n);
        if (!(fabs(served_quantile(x, n, 0.5) - cases[i].median) <= 1))
            fail_msg("%s: median %g", cases[i].settings, served_quantile(x, n, 0.5));
        free(x);
        free(trace);
        free(again);
    }
}

static void arrivals_follow_their_process(void **state) {
    static const struct {
        const char *settings;
        double last, within; /* in steps */
    } cases[] = {{"arrival=together requests=100", 0, 0},
                 {"arrival=evenly gap=6 requests=64", 378, 0},
                 {"arrival=evenly gap=0 requests=64", 0, 0},
                 {"arrival=poisson gap=0 requests=64", 0, 0},
                 {"arrival=poisson gap=2.5 requests=20000", 50000, 1500},
                 {"arrival=bursts gap=2.5 burst=8 requests=20000", 50000, 4000},
                 {"arrival=given times=[3,3,9]", 9, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct traffic_params p = traffic(cases[i].settings);
        int32_t n;
        struct request *trace = traffic_make(&p, 1000, &n);
        for (int32_t k = 1; k < n; k++) assert_true(trace[k].arrival >= trace[k - 1].arrival);
        if (!(fabs((double)trace[n - 1].arrival / 1000 - cases[i].last) <= cases[i].within))
            fail_msg("%s: last at %g", cases[i].settings, (double)trace[n - 1].arrival / 1000);
        free(trace);
    }
    const struct traffic_params far = traffic("arrival=evenly gap=1000000 requests=100000");
    int32_t n;
    struct request *trace = traffic_make(&far, 1e18, &n); /* no time overflows */
    assert_true(trace[n - 1].arrival > 0);
    free(trace);
}

static void contradictions_are_told(void **state) {
    (void)state;
    assert_int_equal(mistakes("lengths=[3,0,2]"), 1);
    assert_int_equal(mistakes("arrival=given times=[3,1]"), 1);
    assert_int_equal(mistakes("arrival=given times=[1,3] requests=5"), 1);
    assert_int_equal(mistakes("arrival=given times=[1,3] requests=2"), 0);
    assert_int_equal(mistakes("requests=100000 law=fixed output=5000 most=5000"), 1);
    assert_int_equal(mistakes(""), 0);
}

static void quantiles_are_of_type_7(void **state) {
    double x[] = {40, 10, 30, 20};
    (void)state;
    assert_true(served_quantile(x, 4, 0.5) == 25.0);
    assert_true(served_quantile(x, 4, 1) == 40.0);
    assert_true(served_quantile(x, 4, 0) == 10.0);
    assert_true(fabs(served_quantile(x, 4, 0.95) - 38.5) < 1e-12);
    assert_true(isnan(served_quantile(x, 0, 0.5)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_agree_with_events),
                                       cmocka_unit_test(always_ends),
                                       cmocka_unit_test(edges),
                                       cmocka_unit_test(preemption_by_hand),
                                       cmocka_unit_test(chunks_by_hand),
                                       cmocka_unit_test(chunks_keep_their_turn),
                                       cmocka_unit_test(costs_are_interpolated),
                                       cmocka_unit_test(lengths_follow_their_law),
                                       cmocka_unit_test(arrivals_follow_their_process),
                                       cmocka_unit_test(contradictions_are_told),
                                       cmocka_unit_test(quantiles_are_of_type_7)};
    arena = arena_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_close(&arena);
    return failed;
}
