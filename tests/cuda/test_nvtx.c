/* SPDX-License-Identifier: Apache-2.0 */
/* What a profiler sees of us: domain, categories, names, nesting and payloads of NVTX ranges, told
 * by an injected recorder (recorder.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/range.h"
#include "base/text.h"

#ifdef NVTX_RECORDER /* the build found NVTX's headers */

static char folder[64];

struct line {
    long pid, tid, payload;
    int depth, category;
    char what[16], domain[32], name[201];
};
static struct line *lines;
static size_t n_lines;

static void read_record(const char *path) {
    FILE *f = fopen(path, "r");
    char text[512];
    assert_non_null(f);
    free(lines);
    lines = NULL;
    n_lines = 0;
    while (fgets(text, sizeof text, f)) {
        struct line l = {0};
        lines = realloc(lines, (n_lines + 1) * sizeof *lines);
        assert_non_null(lines);
        int n = sscanf(text, "%ld\t%ld\t%15[^\t]\t%d\t%31[^\t]\t%d\t%ld\t%200[^\n]", &l.pid, &l.tid,
                       l.what, &l.depth, l.domain, &l.category, &l.payload, l.name);
        assert_true(n >= 7); /* a pop has no name */
        lines[n_lines++] = l;
    }
    fclose(f);
}

/* Runs argv with the recorder injected; its exit status. */
static int run(const char *record, char *const *argv) {
    int status;
    pid_t child = fork();
    if (!child) {
        setenv("NVTX_INJECTION64_PATH", NVTX_RECORDER, 1);
        setenv("NVTX_RECORD", record, 1);
        if (!freopen("/dev/null", "w", stdout)) _exit(126);
        execv(argv[0], argv);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int begin(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/bench-nvtx-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}
static int end(void **state) {
    char path[100];
    static const char *const files[] = {"record", "p.toml", "o.h5", "o.svg", "o.png", "o.journal"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    free(lines);
    lines = NULL;
    n_lines = 0;
    return rmdir(folder);
}

/* The other side of `what_a_tool_sees`, in a process of its own. */
static void *other_thread(void *ctx) {
    (void)ctx;
    range_push(RANGE_STEP, "other thread", 3);
    range_pop();
    return NULL;
}
static int child_main(void) {
    pthread_t thread;
    bool active = range_active(); /* without range_activate: a tool listens */
    range_push(RANGE_RUN, "run", 0);
    range_push(RANGE_VISIT, "decode batch=16 0badcafe", INT64_C(1) << 40);
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        range_push(RANGE_LAYER, "attention", -i);
        range_pop();
    }
    range_pop();
    range_pop();
    return active && range_built() ? 0 : 1;
}

static void is(size_t i, const char *what, int depth, int category, long payload,
               const char *name) {
    assert_true(i < n_lines);
    const struct line *l = &lines[i];
    assert_string_equal(l->what, what);
    assert_string_equal(l->domain, "bench");
    assert_int_equal(l->depth, depth);
    assert_int_equal(l->category, category);
    assert_true(l->payload == payload);
    assert_string_equal(l->name, name);
}

static void what_a_tool_sees(void **state) {
    (void)state;
    char record[100], self[] = "/proc/self/exe", word[] = "child";
    static const char *const categories[] = {"run", "visit", "sample", "phase", "step", "layer"};
    snprintf(record, sizeof record, "%s/record", folder);
    assert_int_equal(run(record, (char *[]){self, word, NULL}), 0);
    read_record(record);
    is(0, "domain", 0, 0, 0, "bench");
    for (size_t c = 0; c < 6; c++) is(1 + c, "category", 0, (int)c + 1, 0, categories[c]);
    is(7, "push", 0, RANGE_RUN, 0, "run");
    is(8, "push", 1, RANGE_VISIT, 1L << 40, "decode batch=16 0badcafe");
    is(9, "push", 0, RANGE_STEP, 3, "other thread"); /* nests in its own thread only */
    is(10, "pop", 0, 0, 0, "");
    assert_true(lines[9].tid != lines[8].tid);
    is(11, "push", 2, RANGE_LAYER, 0, "attention");
    is(12, "pop", 2, 0, 0, "");
    is(13, "push", 2, RANGE_LAYER, -1, "attention");
    is(14, "pop", 2, 0, 0, "");
    is(15, "pop", 1, 0, 0, "");
    is(16, "pop", 0, 0, 0, "");
    assert_int_equal(n_lines, 17);
}

/* The range that holds line i: the last push before it, one level up, of the same thread. */
static const struct line *parent(size_t i) {
    for (size_t k = i; k-- > 0;)
        if (lines[k].tid == lines[i].tid && !strcmp(lines[k].what, "push") &&
            lines[k].depth == lines[i].depth - 1)
            return &lines[k];
    return NULL;
}

/* One profiled run of the tiny model: every forward pass names its layers, inside its visit. */
static void a_profiled_run(void **state) {
    (void)state;
    enum { LAYERS_MOST = 64 };
    static const char protocol[] =
        "title = \"t\"\nquestion = \"q\"\n[workload]\nname = \"decode\"\n"
        "context = 8\n[model]\nshape = \"tiny\"\n[device]\nkind = \"ref\"\n"
        "[[sweep]]\nworkload.batch = [1, 2]\n[measure]\nbudget = \"20 s\"\n";
    const char *bench = getenv("BENCH");
    char path[100], record[100], out[100];
    char word_run[] = "run", word_profile[] = "--profile", word_o[] = "-o";
    if (!bench || !*bench) {
        print_message("no program to run: BENCH is not set\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/p.toml", folder);
    snprintf(record, sizeof record, "%s/record", folder);
    snprintf(out, sizeof out, "%s/o.h5", folder);
    assert_int_equal(file_write(path, protocol, strlen(protocol), NULL), 0);
    char *program = strdup(bench);
    assert_int_equal(
        run(record, (char *[]){program, word_run, path, word_profile, word_o, out, NULL}), 0);
    free(program);
    read_record(record);
    int visits = 0, samples = 0, steps = 0, layers = 0, attentions = 0, mlps = 0;
    int open[64] = {0};
    long tids[64];
    int n_tids = 0;
    for (size_t i = 0; i < n_lines; i++) {
        const struct line *l = &lines[i];
        int t = 0;
        assert_string_not_equal(l->what, "unbalanced");
        assert_string_equal(l->domain, "bench");
        while (t < n_tids && tids[t] != l->tid) t++;
        assert_true(t < 64);
        if (t == n_tids) tids[n_tids++] = l->tid;
        if (!strcmp(l->what, "pop")) open[t]--;
        if (strcmp(l->what, "push")) continue;
        const struct line *above = parent(i);
        open[t]++;
        if (l->category == RANGE_VISIT) {
            visits++;
            assert_non_null(strstr(l->name, "decode batch="));
            assert_true(l->payload == 0 || l->payload == 1); /* the point */
            assert_non_null(above);
            assert_int_equal(above->category, RANGE_RUN);
        } else if (l->category == RANGE_SAMPLE) {
            samples++;
            assert_string_equal(l->name, "sample");
            assert_int_equal(above->category, RANGE_VISIT);
        } else if (l->category == RANGE_STEP && !strcmp(l->name, "decode") &&
                   above->category == RANGE_PHASE) {
            steps++;
            assert_true(l->payload == 1 || l->payload == 2); /* rows of the step: the batch */
        } else if (l->category == RANGE_LAYER &&
                   (!strcmp(l->name, "attention") || !strcmp(l->name, "mlp"))) {
            assert_int_equal(above->category, RANGE_STEP);
            attentions += l->name[0] == 'a';
            mlps += l->name[0] == 'm';
            if (l->payload + 1 > layers) layers = (int)l->payload + 1;
        }
    }
    for (int t = 0; t < n_tids; t++) assert_int_equal(open[t], 0); /* all are closed */
    assert_int_equal(visits, 2);                                   /* one pass over two points */
    assert_int_equal(samples, 2);
    assert_true(steps >= 2);
    assert_in_range(layers, 1, LAYERS_MOST);
    assert_int_equal(attentions, mlps);
    assert_int_equal(attentions % layers, 0); /* each forward pass names all its layers */
    assert_true(attentions / layers >= steps);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "child")) return child_main();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_tool_sees, begin, end),
        cmocka_unit_test_setup_teardown(a_profiled_run, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) {
    printf("SKIPPED: built without NVTX headers (nvtx3/nvToolsExt.h)%s\n",
           range_built() ? ", though the ranges have them" : "");
    return range_built() ? 1 : 77;
}

#endif
