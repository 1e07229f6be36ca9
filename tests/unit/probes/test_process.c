/* SPDX-License-Identifier: Apache-2.0 */
/* The probe of this process: what it counts happens, and what cannot be read is NAN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "probes/common/tree.h"
#include "probes/probe.h"
#include "tests/support/made_up.h"
#include "tests/support/near.h"

extern const struct probe probe_process;
static union {
    struct tree tree;
    char bytes[4096];
    long double align;
} self;
static double before[16], after[16];

static int channel(const char *name) {
    for (int c = 0; probe_process.channels[c].name; c++)
        if (!strcmp(probe_process.channels[c].name, name)) return c;
    fail_msg("no channel %s", name);
    return -1;
}

static double moved(const char *name) { return after[channel(name)] - before[channel(name)]; }

static void open_at(const char *root) {
    struct err err = {0};
    assert_true(probe_process.self_size <= sizeof self);
    memset(&self, 0, sizeof self);
    self.tree.root = root;
    assert_int_equal(probe_process.open(&self, &err), 0);
}

static void counts_faults(void **state) {
    (void)state;
    enum { PAGES = 1000 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    open_at(NULL);
    char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    madvise(p, PAGES * page, MADV_NOHUGEPAGE);
    probe_process.read(&self, before);
    for (size_t i = 0; i < PAGES; i++) p[i * page] = 1;
    probe_process.read(&self, after);
    assert_in_range((int64_t)moved("minor_faults"), PAGES, PAGES + 200);
    assert_true(after[channel("rss_peak")] >= (double)(PAGES * page));
    munmap(p, PAGES * page);
    probe_process.close(&self);
}

static void counts_time_and_switches(void **state) {
    (void)state;
    struct timespec nap = {0, 2000000};
    open_at(NULL);
    probe_process.read(&self, before);
    int64_t begin = clock_ns();
    for (int i = 0; i < 5; i++) nanosleep(&nap, NULL);
    probe_process.read(&self, after);
    double wall = 1e-9 * (double)(clock_ns() - begin);
    assert_true(moved("voluntary_switches") >= 5);
    assert_true(moved("user_s") + moved("system_s") < wall); /* it slept */
    probe_process.read(&self, before);
    struct timespec used, start;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while ((double)(used.tv_sec - start.tv_sec) + 1e-9 * (double)(used.tv_nsec - start.tv_nsec) <
           0.05);
    probe_process.read(&self, after);
    assert_true(moved("user_s") + moved("system_s") > 0.03);
    assert_true(moved("user_s") + moved("system_s") < 0.5);
    probe_process.close(&self);
}

/* Threads come and go; the sum only grows, and a number used again is another thread. */
static void waiting_adds_up(void **state) {
    (void)state;
    struct made_up m;
    made_up_open(&m);
    made_up_file(&m, "proc/self/status", "VmPeak:\t  999 kB\nVmHWM:\t  100 kB\n");
    made_up_file(&m, "proc/self/task/10/schedstat", "500 1000000000 7\n");
    made_up_file(&m, "proc/self/task/11/schedstat", "500 2000000000 7\n");
    made_up_file(&m, "proc/self/task/odd/schedstat", "500 9000000000 7\n");
    open_at(m.root);
    probe_process.read(&self, before);
    assert_near(before[channel("waited_s")], 3, 1e-9);
    assert_near(before[channel("rss_peak")], 102400, 0);
    made_up_file(&m, "proc/self/task/10/schedstat", "600 1500000000 8\n");
    made_up_remove(&m, "proc/self/task/11/schedstat");                  /* ended: nothing is lost */
    made_up_file(&m, "proc/self/task/12/schedstat", "9 250000000 1\n"); /* new */
    probe_process.read(&self, after);
    assert_near(moved("waited_s"), 0.75, 1e-9);
    made_up_file(&m, "proc/self/task/10/schedstat", "5 100000000 1\n"); /* another thread now */
    made_up_file(&m, "proc/self/task/12/schedstat", "garbage\n");
    probe_process.read(&self, before);
    assert_near(before[channel("waited_s")] - after[channel("waited_s")], 0.1, 1e-9);
    probe_process.close(&self);
    made_up_close(&m);
}

static void without_proc(void **state) {
    (void)state;
    struct made_up m;
    made_up_open(&m);
    open_at(m.root);
    probe_process.read(&self, after);
    assert_true(isnan(after[channel("waited_s")]));
    assert_true(isnan(after[channel("rss_peak")]));
    assert_true(after[channel("minor_faults")] > 0); /* getrusage needs no /proc */
    made_up_file(&m, "proc/self/status", "VmHWM:\t  12 MB\n");
    made_up_file(&m, "proc/self/task/10/schedstat", "500\n");
    probe_process.read(&self, after);
    assert_true(isnan(after[channel("waited_s")]));
    assert_true(isnan(after[channel("rss_peak")]));
    probe_process.close(&self);
    made_up_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_faults),
        cmocka_unit_test(counts_time_and_switches),
        cmocka_unit_test(waiting_adds_up),
        cmocka_unit_test(without_proc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
