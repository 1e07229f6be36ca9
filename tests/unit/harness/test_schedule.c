/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds visit every point once in seeded order, blocks stay together, and the budget is a budget.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "harness/schedule.h"

static struct protocol *load(const char *text, const char *const *sets, size_t n_sets) {
    struct err err = {0};
    struct problems *problems = problems_create();
    struct protocol *p = NULL;
    struct protocol_request request = {
        .path = "test.toml", .text = text, .sets = sets, .n_sets = n_sets};
    int code = protocol_load(&p, &request, problems, &err);
    if (code || !p) {
        struct text out = {0};
        problems_print(problems, &out);
        fail_msg("%s %s", err.text, out.data ? out.data : "");
    }
    problems_close(&problems);
    return p;
}

static const char many[] =
    "title = 't'\nquestion = 'q'\n"
    "device = { kind = 'fake' }\n"
    "[[case]]\nname = 'exact'\nworkload = { name = 'kv_memory' }\nmodel = { shape = 'tiny' }\n"
    "[[case]]\nname = 'top'\nworkload = { name = 'ceiling' }\n"
    "[[case.sweep]]\nworkload.op = ['read', 'fma']\n"
    "[[case]]\nname = 'null'\nworkload = { name = 'null' }\n"
    "[[case.sweep]]\nworkload.marks = [0, 1, 2, 3, 4, 5, 6, 7]\n"
    "[[case]]\nname = 'models'\nworkload = { name = 'decode', context = 4 }\nmodel = { shape = 'tiny' }\n"
    "[[case.sweep]]\nmodel.type = ['f32', 'bf16', 'f16']\n"
    "[[case.sweep]]\nworkload.batch = [1, 2]\n";

static void test_round_visits_each_point_once(void **state) {
    (void)state;
    struct protocol *p = load(many, NULL, 0);
    assert_int_equal(p->n_points, 1 + 2 + 8 + 6);
    for (int64_t round = 0; round < 3; round++) {
        int64_t n, controls = 0;
        struct scheduled *visits = schedule_round(p, round, &n);
        int seen[17] = {0};
        assert_int_equal(n, (round ? 16 : 17) + 1);
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(visits[i].round, round);
            assert_int_equal(visits[i].position, i);
            assert_int_equal(visits[i].visit, round * 18 + i);
            controls += visits[i].control;
            seen[visits[i].point] += !visits[i].control;
        }
        assert_int_equal(controls, 1);
        assert_true(visits[n - 1].control);
        for (int i = 0; i < 17; i++)
            assert_int_equal(seen[i], round && i == 0 ? 0 : 1); /* exact rows: once in a run */
        free(visits);
    }
    protocol_close(&p);
}

static void test_blocks_and_ceilings(void **state) {
    (void)state;
    struct protocol *p = load(many, NULL, 0);
    int orders = 0;
    int64_t first_point = -1;
    for (int64_t round = 0; round < 8; round++) {
        int64_t n, changes = 0, ceilings_end = 0, first_timed = -1;
        struct scheduled *visits = schedule_round(p, round, &n);
        for (int64_t i = 0; i < n - 1; i++) {
            const struct point *point = &p->points[visits[i].point];
            bool ceiling = point->workload->flags & WORK_CEILING,
                 once = point->workload->flags & WORK_ONCE;
            if (ceiling) assert_int_equal(ceilings_end, i); /* they come first */
            if (ceiling) ceilings_end = i + 1;
            if (!ceiling && !once && first_timed < 0) first_timed = visits[i].point;
            uint64_t before = i ? p->points[visits[i - 1].point].weights_key : 0;
            changes += point->weights_key != before;
        }
        assert_int_equal(visits[n - 1].point,
                         first_timed); /* the control closes the round that its twin opened */
        assert_true(changes <= 3 + 3); /* three weight sets, each packed once */
        orders += first_timed != first_point;
        first_point = first_timed;
        free(visits);
    }
    assert_true(orders > 2); /* shuffled, not always the same */
    protocol_close(&p);
}

static void test_order_follows_seed(void **state) {
    (void)state;
    static const char *const other[] = {"measure.seed=2"};
    static const char *const declared[] = {"measure.order=declared"};
    struct protocol *a = load(many, NULL, 0), *b = load(many, NULL, 0), *c = load(many, other, 1);
    struct protocol *d = load(many, declared, 1);
    int64_t n;
    bool differ = false;
    struct scheduled *x = schedule_round(a, 1, &n), *y = schedule_round(b, 1, &n),
                     *z = schedule_round(c, 1, &n);
    struct scheduled *w = schedule_round(d, 1, &n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(x[i].point, y[i].point); /* a resumed run meets the same visits */
        differ = differ || x[i].point != z[i].point;
        if (i) assert_true(w[i].control || w[i].point > w[i - 1].point);
    }
    assert_true(differ);
    free(x), free(y), free(z), free(w);
    protocol_close(&a), protocol_close(&b), protocol_close(&c), protocol_close(&d);
}

static void test_rounds(void **state) {
    (void)state;
    static const char *const three[] = {"measure.rounds=3"};
    struct protocol *p = load(many, NULL, 0), *q = load(many, three, 1);
    assert_int_equal(schedule_rounds(p), 8);
    assert_int_equal(schedule_rounds(q), 3);
    protocol_close(&p), protocol_close(&q);
    p = load("title='t'\nquestion='q'\nworkload={name='kv_memory'}\nmodel={shape='tiny'}\n", NULL,
             0);
    assert_int_equal(schedule_rounds(p), 1); /* nothing but exact rows */
    protocol_close(&p);
}

/* Set-up a hundred times the measured part: the wall budget counts it, and fewer rounds are said
 * with numbers. */
static void test_budget(void **state) {
    (void)state;
    static const char *const ten[] = {"measure.budget=10 s"};
    struct protocol *p = load(many, ten, 1);
    struct budget b;
    budget_begin(&b, p);
    assert_int_equal(b.rounds, 8);
    int64_t share = budget_share(&b, 80);
    assert_true(share >= 20000000 && share <= 10000000000 / 80);
    for (int i = 0; i < 10; i++) budget_spent(&b, 200000000, 3000000); /* a round of 2 s */
    assert_true(budget_another(&b, 1, 2000000000));
    assert_int_equal(b.rounds,
                     8); /* the first is dearer than the others: too early to plan fewer */
    for (int i = 0; i < 10; i++) budget_spent(&b, 300000000, 3000000);
    assert_true(budget_another(&b, 2, 3000000000));
    assert_true(b.rounds >= 5 && b.rounds < 8); /* the plan falls, not below five */
    for (int i = 0; i < 10; i++) budget_spent(&b, 300000000, 3000000);
    assert_false(budget_another(&b, 3, 3000000000)); /* the next would not fit */
    assert_non_null(strstr(b.note, "3 of"));
    assert_non_null(strstr(b.note, "3.0 s"));
    assert_true(b.elapsed_ns <= b.budget_ns);
    /* What the last round's set-up took is what the next visits are expected to take. */
    budget_begin(&b, p);
    for (int i = 0; i < 10; i++) budget_spent(&b, 100000000, 0);
    budget_another(&b, 1, 1000000000);
    assert_int_equal(budget_share(&b, 30), 9000000000 / 30 - 100000000);
    for (int i = 0; i < 10; i++) budget_spent(&b, 10000000, 0);
    budget_another(&b, 2, 100000000);
    assert_int_equal(budget_share(&b, 30), 8900000000 / 30 - 10000000);
    budget_begin(&b, p);
    budget_spent(&b, 11000000000, 1);
    assert_int_equal(budget_share(&b, 3), 20000000); /* spent: the least */
    protocol_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_visits_each_point_once),
        cmocka_unit_test(test_blocks_and_ceilings),
        cmocka_unit_test(test_order_follows_seed),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
