/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's lines as functions of made-up trees and measurements: states, what mends them, and
 * that what is unknown is not called well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/doctor.h"
#include "harness/machine.h"
#include "harness/page.h"
#include "tests/support/made_up.h"
#include "tests/support/near.h"

#define CPU "sys/devices/system/cpu/"
enum { NAME, STATE, WHAT, MATTERS, MEND };
static struct made_up m;
static struct facts facts;
static struct page page;
static struct doctor_measured measured;
static const struct doctor_measured nothing = {.clock_ghz = {NAN, NAN, NAN, 0},
                                               .read_gbs = {NAN, NAN, NAN, 0},
                                               .wait_share = NAN,
                                               .steal_share = NAN,
                                               .foreign_share = NAN,
                                               .top = {.pid = -1}};

static int begin(void **state) {
    (void)state;
    made_up_open(&m);
    measured = nothing;
    return 0;
}
static int end(void **state) {
    (void)state;
    facts_free(&facts);
    page_free(&page);
    memset(&page, 0, sizeof page);
    made_up_close(&m);
    return 0;
}

static void look(void) {
    facts_free(&facts);
    page_free(&page);
    memset(&page, 0, sizeof page);
    machine_facts(&facts, m.root);
    doctor_columns(&page);
    doctor_lines(&page, &facts, &measured, m.root);
}

static const char *cell(const char *name, int column) {
    for (size_t r = 0; r < page.n_rows; r++)
        if (!strcmp(page.cells[r * page.n_columns], name))
            return page.cells[r * page.n_columns + (size_t)column];
    fail_msg("no line '%s'", name);
    return "";
}

static void has(const char *name, int column, const char *word) {
    if (!strstr(cell(name, column), word))
        fail_msg("%s: '%s' lacks '%s'", name, cell(name, column), word);
}

static void unknown_is_never_ok(void **state) {
    (void)state;
    static const char *const names[] = {"turbo", "governor",   "SMT",    "load",        "steal",
                                        "quota", "huge pages", "memory", "memory read", "NUMA",
                                        "timer", "ASLR",       "thermal"};
    look();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_string_equal(cell(names[i], STATE), "unknown");
        if (!strncmp(cell(names[i], WHAT), "ok", 2)) fail_msg("%s is called ok", names[i]);
        assert_string_equal(cell(names[i], MATTERS), "");
        assert_string_equal(cell(names[i], MEND), "");
    }
}

static void a_quiet_machine(void **state) {
    (void)state;
    static const char *const well[] = {"governor", "SMT", "quota", "huge pages", "NUMA", "thermal"};
    made_up_file(&m, CPU "online", "0\n");
    made_up_file(&m, CPU "cpu0/cpufreq/scaling_governor", "performance\n");
    made_up_file(&m, CPU "intel_pstate/no_turbo", "1\n");
    made_up_file(&m, CPU "smt/active", "0\n");
    made_up_file(&m, CPU "cpu0/thermal_throttle/core_throttle_count", "0\n");
    made_up_file(&m, "sys/fs/cgroup/cgroup.controllers", "cpu\n");
    made_up_file(&m, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    made_up_file(&m, "sys/devices/system/node/online", "0\n");
    made_up_file(&m, "proc/cpuinfo", "flags\t: fpu\n");
    made_up_file(&m, "proc/loadavg", "0.01 0 0 1/1 1\n");
    measured.wait_share = 0.0001;
    measured.steal_share = 0;
    measured.foreign_share = 0.001;
    measured.top = (struct doctor_top){.pid = 0};
    look();
    for (size_t i = 0; i < sizeof well / sizeof *well; i++) {
        if (strncmp(cell(well[i], WHAT), "ok", 2)) fail_msg("%s: %s", well[i], cell(well[i], WHAT));
        assert_string_equal(cell(well[i], MEND), "");
    }
    assert_string_equal(cell("turbo", STATE), "off");
    assert_string_equal(cell("turbo", MEND), "");
    assert_string_equal(cell("load", MATTERS), "0 %");
    assert_string_equal(cell("load", MEND), "");
    assert_string_equal(cell("steal", STATE), "0.0 %");
    assert_string_equal(cell("steal", WHAT), "no hypervisor");
}

static void a_noisy_machine(void **state) {
    (void)state;
    made_up_file(&m, CPU "online", "0\n");
    made_up_file(&m, CPU "cpu0/cpufreq/scaling_governor", "powersave\n");
    made_up_file(&m, CPU "intel_pstate/no_turbo", "0\n");
    made_up_file(&m, CPU "smt/active", "1\n");
    made_up_file(&m, CPU "cpu0/thermal_throttle/core_throttle_count", "12\n");
    made_up_file(&m, "sys/class/thermal/thermal_zone3/type", "x86_pkg_temp\n");
    made_up_file(&m, "sys/class/thermal/thermal_zone3/temp", "97000\n");
    made_up_file(&m, "proc/self/cgroup", "0::/\n");
    made_up_file(&m, "sys/fs/cgroup/cpu.max", "250000 100000\n");
    made_up_file(&m, "sys/fs/cgroup/cpu.stat", "nr_throttled 9\n");
    made_up_file(&m, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    made_up_file(&m, "sys/devices/system/node/online", "0-1\n");
    made_up_file(&m, "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    made_up_file(&m, "proc/cpuinfo", "flags\t: fpu hypervisor\n");
    made_up_file(&m, "proc/meminfo", "MemTotal: 2000000 kB\nMemAvailable: 1000000 kB\n");
    made_up_file(&m, "proc/loadavg", "3.10 0 0 1/1 1\n");
    made_up_file(&m, "proc/sys/kernel/randomize_va_space", "2\n");
    measured.clock_ghz = (struct doctor_spread){2.9, 3.0, 3.5, 0.7};
    measured.read_gbs = (struct doctor_spread){9.8, 10, 10.2, 0.25};
    measured.wait_share = 0.31;
    measured.steal_share = 0.0123;
    measured.foreign_share = 0.25;
    measured.top = (struct doctor_top){.pid = 4211, .cpu = 1, .cores = 0.5, .name = "cc1plus"};
    look();
    assert_string_equal(cell("turbo", STATE), "on");
    has("turbo", WHAT, "2.90-3.50 GHz");
    assert_string_equal(cell("turbo", MATTERS), "±10 %");
    has("turbo", MEND, "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo");
    has("governor", MEND, "cpupower frequency-set -g performance");
    has("SMT", MEND, "smt/control");
    assert_string_equal(cell("load", STATE), "3.10");
    assert_string_equal(cell("load", MATTERS), "-31 %");
    has("load", WHAT, "core 1");
    has("load", MEND, "pid 4211 (cc1plus)");
    assert_string_equal(cell("steal", STATE), "1.2 %");
    assert_string_equal(cell("steal", MATTERS), "-1.2 %");
    has("steal", WHAT, "virtual machine");
    assert_string_equal(cell("quota", STATE), "2.50 cores");
    has("quota", WHAT, "it happened");
    assert_string_equal(cell("quota", MEND), "--set device.threads=2");
    has("huge pages", MEND, "echo madvise");
    assert_string_equal(cell("memory", STATE), "1.024 GB free");
    assert_string_equal(cell("memory read", MATTERS), "±2 %");
    assert_string_equal(cell("NUMA", STATE), "2 nodes");
    has("NUMA", MEND, "numactl");
    has("timer", MEND, "clocksource");
    assert_string_equal(cell("thermal", STATE), "97 °C");
    has("thermal", WHAT, "throttled 12 times");
    assert_true(*cell("thermal", MEND));
    made_up_remove(&m, CPU "intel_pstate/no_turbo");
    made_up_file(&m, CPU "cpufreq/boost", "1\n");
    made_up_file(&m, "sys/fs/cgroup/cpu.max", "50000 100000\n");
    look();
    has("turbo", MEND, "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
    assert_string_equal(cell("quota", MEND), "--set device.threads=1");
}

static void a_page_of_100_columns(void **state) {
    (void)state;
    char model[400] = "model name\t: ";
    struct text out = {0};
    for (int i = 0; i < 30; i++) strcat(model, "very long ");
    strcat(model, "\nflags\t: fpu hypervisor\n");
    made_up_file(&m, "proc/cpuinfo", model);
    a_noisy_machine(state);
    made_up_file(&m, "proc/cpuinfo", model);
    look();
    doctor_own_lines(&page);
    doctor_text(&page, &facts, &out);
    int lines = 0;
    for (char *line = out.data, *next; line && *line; line = next, lines++) {
        next = strchr(line, '\n');
        assert_non_null(next); /* the last one ends too */
        *next++ = 0;
        if (utf8_width(line) > 100) fail_msg("%zu columns: %s", utf8_width(line), line);
        size_t n = strlen(line);
        assert_true(n == 0 || line[n - 1] != ' ');
    }
    assert_true(lines > (int)page.n_rows);
    assert_non_null(strstr(out.data, "What disturbs"));
    text_free(&out);
    static const char *const own[] = {"lock", "GPU"};
    for (size_t i = 0; i < 2; i++) assert_true(*cell(own[i], STATE));
}

static void stat_file(int pid, const char *name, long ticks, int cpu) {
    char path[64], line[512];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    /* fields 4-13, user and system time, 16-38 (a limit beyond int64 among them), the processor */
    snprintf(line, sizeof line,
             "%d (%s) R 1 1 1 0 -1 4194560 100 0 0 0 %ld %ld 0 0 20 0 1 0 500 1000 200 "
             "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 0 0\n",
             pid, name, ticks - ticks / 4, ticks / 4, cpu);
    made_up_file(&m, path, line);
}

static void finds_who_uses_the_cores(void **state) {
    (void)state;
    struct doctor_top top;
    long per_second = sysconf(_SC_CLK_TCK);
    assert_null(doctor_look(m.root)); /* no /proc */
    stat_file(10, "idle", 100000, 0);
    stat_file(11, "a) R 1 (b)", 1000, 3);
    stat_file(12, "self", 1000, 1);
    made_up_file(&m, "proc/13/stat", "13 (broken\n");
    made_up_file(&m, "proc/14/stat", "14 (short) R 1 2 3\n");
    made_up_file(&m, "proc/uptime", "1 1\n");
    struct doctor_look *before = doctor_look(m.root);
    assert_non_null(before);
    stat_file(10, "idle", 100001, 0);
    stat_file(11, "a) R 1 (b)", 1000 + per_second, 3);
    stat_file(12, "self", 1000 + 10 * per_second, 1);
    stat_file(15, "new\x1b[2J", per_second / 2, 2);
    struct doctor_look *after = doctor_look(m.root);
    doctor_compare(before, after, 12, 2, &top);
    assert_int_equal(top.pid, 11);
    assert_int_equal(top.cpu, 3);
    assert_string_equal(top.name, "a) R 1 (b)");
    assert_near(top.cores, 0.5, 1e-9);
    doctor_compare(before, after, 11, 2, &top); /* another is ourselves: then it is 12 */
    assert_int_equal(top.pid, 12);
    doctor_compare(before, before, 0, 2, &top);
    assert_int_equal(top.pid, 0);
    doctor_compare(NULL, after, 0, 2, &top);
    assert_int_equal(top.pid, -1);
    made_up_remove(&m, "proc/11/stat");
    made_up_remove(&m, "proc/12/stat");
    doctor_look_free(&after);
    after = doctor_look(m.root);
    doctor_compare(before, after, 0, 1, &top);
    assert_int_equal(top.pid, 15);     /* began meanwhile */
    assert_null(strchr(top.name, 27)); /* a name must not steer a terminal */
    doctor_look_free(&before);
    doctor_look_free(&after);
}

/* For real: what comes out is possible, and soon. */
static void measures_this_machine(void **state) {
    (void)state;
    struct doctor_measured d;
    int64_t t = clock_ns();
    doctor_measure(&d);
    double seconds = 1e-9 * (double)(clock_ns() - t);
    assert_true(seconds > 1.2 && seconds < 20); /* 1.6 on a quiet machine */
    assert_true(d.clock_ghz.low > 0.05 && d.clock_ghz.high < 20);
    assert_true(d.clock_ghz.low <= d.clock_ghz.middle && d.clock_ghz.middle <= d.clock_ghz.high);
    assert_true(d.read_gbs.low > 0.05 && d.read_gbs.high < 2000);
    assert_true(d.wait_share >= 0 && d.wait_share <= 1);
    assert_true(isnan(d.steal_share) || (d.steal_share >= 0 && d.steal_share <= 1));
    assert_true(isnan(d.foreign_share) || (d.foreign_share >= 0 && d.foreign_share <= 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unknown_is_never_ok, begin, end),
        cmocka_unit_test_setup_teardown(a_quiet_machine, begin, end),
        cmocka_unit_test_setup_teardown(a_noisy_machine, begin, end),
        cmocka_unit_test_setup_teardown(a_page_of_100_columns, begin, end),
        cmocka_unit_test_setup_teardown(finds_who_uses_the_cores, begin, end),
        cmocka_unit_test(measures_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
