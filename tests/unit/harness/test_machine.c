/* SPDX-License-Identifier: Apache-2.0 */
/* Machine facts over made-up trees: what is there is read, what is absent or odd is 'unknown',
 * never a number and never 'ok'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "harness/machine.h"
#include "tests/support/made_up.h"

#define CPU "sys/devices/system/cpu/"
static struct made_up m;
static struct facts facts;

static int begin(void **state) {
    (void)state;
    made_up_open(&m);
    return 0;
}
static int end(void **state) {
    (void)state;
    facts_free(&facts);
    made_up_close(&m);
    return 0;
}

static void look(void) {
    facts_free(&facts);
    machine_facts(&facts, m.root);
}

static void is(const char *key, const char *value) {
    const char *found = facts_get(&facts, key, "(no such fact)");
    if (strcmp(found, value)) fail_msg("%s is '%s', not '%s'", key, found, value);
}

static void unknown(const char *key) { is(key, "unknown"); }

/* Everything that is read from the tree. */
static const char *const read_keys[] = {"cpu.model",
                                        "cpu.cores",
                                        "cpu.physical_cores",
                                        "cpu.sockets",
                                        "cpu.l1_bytes",
                                        "cpu.l2_bytes",
                                        "cpu.l3_bytes",
                                        "cpu.isa",
                                        "cpu.smt",
                                        "cpu.governor",
                                        "cpu.turbo",
                                        "numa.nodes",
                                        "memory.total_bytes",
                                        "memory.free_bytes",
                                        "memory.limit_bytes",
                                        "memory.huge_pages",
                                        "cgroup.cpu_quota",
                                        "moment.throttles",
                                        "moment.temperature",
                                        "moment.quota_throttled",
                                        "load.1min",
                                        "clock.source",
                                        "virtual.hypervisor",
                                        "aslr"};

static void an_empty_tree_is_unknown(void **state) {
    (void)state;
    look();
    for (size_t i = 0; i < sizeof read_keys / sizeof *read_keys; i++) unknown(read_keys[i]);
}

/* Each file is there, and nothing in it is as it should be. */
static void an_odd_tree_is_unknown(void **state) {
    (void)state;
    static const char *const files[] = {
        "proc/cpuinfo",
        "proc/meminfo",
        "proc/loadavg",
        "proc/sys/kernel/randomize_va_space",
        CPU "online",
        CPU "cpu0/cpufreq/scaling_governor",
        CPU "intel_pstate/no_turbo",
        CPU "cpufreq/boost",
        CPU "smt/active",
        CPU "cpu0/cache/index0/level",
        CPU "cpu0/cache/index0/size",
        CPU "cpu0/thermal_throttle/core_throttle_count",
        "sys/devices/system/node/online",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "sys/fs/cgroup/cpu.max",
        "sys/fs/cgroup/memory.max",
        "sys/fs/cgroup/cpu.stat",
        "sys/class/thermal/thermal_zone0/type",
        "sys/class/thermal/thermal_zone0/temp",
    };
    static const char *const odd[] = {"",     "\n",     "???\n",
                                      "-1\n", "none\n", "12 parsecs\n",
                                      "1.5",  "[",      "99999999999999999999999\n",
                                      "[x]\n"};
    for (size_t o = 0; o < sizeof odd / sizeof *odd; o++) {
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            made_up_file(&m, files[i], odd[o]);
        look();
        for (size_t i = 0; i < sizeof read_keys / sizeof *read_keys; i++) {
            bool load = !strcmp(read_keys[i], "load.1min") && odd[o][0] == '1'; /* "1.5", "12" */
            bool nines = !strcmp(read_keys[i], "load.1min") && odd[o][0] == '9';
            if (!load && !nines) unknown(read_keys[i]);
        }
    }
}

static void a_server(void **state) {
    (void)state;
    made_up_file(&m, "proc/cpuinfo",
                 "processor\t: 0\nmodel name\t: Example 9000 @ 2.5 GHz\n"
                 "flags\t\t: fpu sse4_2 avx avx2 fma avx512fx f16c\n");
    made_up_file(&m, CPU "online", "0-3\n");
    for (int i = 0; i < 4; i++) { /* two sockets of one core with two threads */
        char path[120];
        snprintf(path, sizeof path, CPU "cpu%d/topology/core_id", i);
        made_up_file(&m, path, "0\n");
        snprintf(path, sizeof path, CPU "cpu%d/topology/physical_package_id", i);
        made_up_file(&m, path, i < 2 ? "0\n" : "1\n");
        snprintf(path, sizeof path, CPU "cpu%d/topology/thread_siblings_list", i);
        made_up_file(&m, path, i < 2 ? "0-1\n" : "2-3\n");
        snprintf(path, sizeof path, CPU "cpu%d/cpufreq/scaling_governor", i);
        made_up_file(&m, path, "performance\n");
    }
    made_up_file(&m, CPU "intel_pstate/no_turbo", "1\n");
    made_up_file(&m, CPU "cpu0/cache/index0/level", "1\n");
    made_up_file(&m, CPU "cpu0/cache/index0/type", "Data\n");
    made_up_file(&m, CPU "cpu0/cache/index0/size", "48K\n");
    made_up_file(&m, CPU "cpu0/cache/index1/level", "1\n");
    made_up_file(&m, CPU "cpu0/cache/index1/type", "Instruction\n");
    made_up_file(&m, CPU "cpu0/cache/index1/size", "32K\n");
    made_up_file(&m, CPU "cpu0/cache/index2/level", "2\n");
    made_up_file(&m, CPU "cpu0/cache/index2/type", "Unified\n");
    made_up_file(&m, CPU "cpu0/cache/index2/size", "2M\n");
    made_up_file(&m, CPU "cpu0/cache/index3/level", "3\n");
    made_up_file(&m, CPU "cpu0/cache/index3/type", "Unified\n");
    made_up_file(&m, CPU "cpu0/cache/index3/size", "32Q\n");
    made_up_file(&m, "sys/devices/system/node/online", "0-1\n");
    made_up_file(&m, "proc/meminfo", "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n");
    made_up_file(&m, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    made_up_file(&m, "proc/loadavg", "0.52 0.40 0.30 1/200 4000\n");
    made_up_file(&m, "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    made_up_file(&m, "proc/sys/kernel/randomize_va_space", "2\n");
    made_up_file(&m, "sys/class/hwmon/hwmon1/name", "k10temp\n");
    made_up_file(&m, "sys/class/hwmon/hwmon1/temp1_input", "61500\n");
    made_up_file(&m, "sys/class/hwmon/hwmon2/name", "nvme\n"); /* hotter, but no CPU */
    made_up_file(&m, "sys/class/hwmon/hwmon2/temp1_input", "90000\n");
    look();
    is("cpu.model", "Example 9000 @ 2.5 GHz");
    is("cpu.cores", "4");
    is("cpu.physical_cores", "2");
    is("cpu.sockets", "2");
    is("cpu.smt", "on");
    is("cpu.governor", "performance");
    is("cpu.turbo", "off");
    is("cpu.isa", "sse4_2 avx avx2 fma f16c"); /* avx512fx is not avx512f */
    is("cpu.l1_bytes", "49152");
    is("cpu.l2_bytes", "2097152");
    unknown("cpu.l3_bytes");
    is("numa.nodes", "2");
    is("memory.total_bytes", "16777216");
    is("memory.free_bytes", "8388608");
    is("memory.huge_pages", "madvise");
    is("load.1min", "0.52");
    is("clock.source", "tsc");
    is("aslr", "on");
    is("virtual.hypervisor", "none");
    is("moment.temperature", "62");
    unknown("moment.throttles");
    unknown("cgroup.cpu_quota");
    made_up_file(&m, CPU "cpu2/cpufreq/scaling_governor", "powersave\n");
    look();
    is("cpu.governor", "mixed");
    made_up_remove(&m, CPU "cpu3/cpufreq/scaling_governor");
    made_up_remove(&m, CPU "cpu1/topology/core_id");
    look();
    unknown("cpu.governor"); /* of one CPU nothing is known */
    unknown("cpu.sockets");
    is("cpu.cores", "4");
    made_up_file(&m, CPU "smt/active", "0\n");
    look();
    is("cpu.smt", "off"); /* the kernel's own word goes first */
}

static void hypervisors(void **state) {
    (void)state;
    made_up_file(&m, "sys/devices/virtual/dmi/id/sys_vendor", "Example Computers\n");
    look();
    unknown("virtual.hypervisor"); /* a maker alone says nothing */
    made_up_file(&m, "proc/cpuinfo", "flags\t: fpu hypervisor\n");
    look();
    is("virtual.hypervisor", "Example Computers");
    made_up_file(&m, "proc/cpuinfo", "flags\t: fpu nohypervisor\n");
    look();
    is("virtual.hypervisor", "none");
    made_up_file(&m, "proc/cpuinfo", "flags\t: fpu hypervisor\n");
    made_up_remove(&m, "sys/devices/virtual/dmi/id/sys_vendor");
    look();
    is("virtual.hypervisor", "yes, of an unknown kind");
    made_up_file(&m, "proc/cpuinfo",
                 "Features\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
    look();
    unknown("virtual.hypervisor");
    is("cpu.isa", "asimd");
    is("cpu.model", "Arm implementer 0x41, part 0xd0c");
}

static void groups_of_version_2(void **state) {
    (void)state;
    made_up_file(&m, "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    look();
    is("cgroup.cpu_quota", "none"); /* the topmost group has no file */
    is("memory.limit_bytes", "none");
    made_up_file(&m, "proc/self/cgroup", "0::/a/b\n");
    made_up_file(&m, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    made_up_file(&m, "sys/fs/cgroup/a/cpu.max", "150000 100000\n"); /* the group above binds */
    made_up_file(&m, "sys/fs/cgroup/a/b/memory.max", "4096\n");
    made_up_file(&m, "sys/fs/cgroup/a/memory.max", "8192\n");
    made_up_file(&m, "sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 3\n");
    look();
    is("cgroup.cpu_quota", "1.50");
    is("memory.limit_bytes", "4096");
    is("moment.quota_throttled", "3");
    made_up_file(&m, "sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    made_up_file(&m, "sys/fs/cgroup/a/b/memory.max", "max\n");
    look();
    is("cgroup.cpu_quota", "0.50");
    is("memory.limit_bytes", "8192");
    made_up_file(&m, "sys/fs/cgroup/a/b/cpu.max", "0 0\n"); /* never divided by */
    look();
    is("cgroup.cpu_quota", "1.50");
}

static void groups_of_version_1(void **state) {
    (void)state;
    made_up_file(&m, "proc/self/cgroup",
                 "4:memory:/box/7\n3:cpuset:/other\n2:cpu,cpuacct:/box\n1:name=systemd:/cpu\n");
    made_up_file(&m, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "25000\n");
    made_up_file(&m, "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    made_up_file(&m, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    made_up_file(&m, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    made_up_file(&m, "sys/fs/cgroup/cpu/box/cpu.stat", "nr_throttled 0\n");
    made_up_file(&m, "sys/fs/cgroup/memory/box/7/memory.limit_in_bytes", "9223372036854771712\n");
    look();
    is("cgroup.cpu_quota", "0.25");
    is("memory.limit_bytes", "none");
    is("moment.quota_throttled", "0");
    made_up_file(&m, "sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
    made_up_file(&m, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    look();
    is("cgroup.cpu_quota", "none");
    is("memory.limit_bytes", "1048576");
}

static void the_build(void **state) {
    (void)state;
    static const char *const keys[] = {"build.version",  "build.revision",     "build.compiler",
                                       "build.digest",   "library.hdf5",       "library.cjson",
                                       "library.xxhash", "library.libc",       "kernel.release",
                                       "cpu.allowed",    "clock.resolution_ns"};
    struct facts real = {0};
    char hash[17];
    machine_facts(&real, "/");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!facts_find(&real, keys[i])) fail_msg("no fact %s", keys[i]);
    char *data = NULL;
    size_t n = 0;
    assert_int_equal(file_read("/proc/self/exe", (size_t)1 << 30, &data, &n, NULL), 0);
    assert_string_equal(facts_get(&real, "build.digest", ""),
                        hash_text(hash, hash_bytes(data, n, 0)));
    free(data);
    facts_free(&real);
}

/* Files are shared: no fact may name who ran it or where. */
static void nobody_is_named(void **state) {
    (void)state;
    char host[256] = "";
    struct facts real = {0};
    const struct passwd *user = getpwuid(getuid());
    gethostname(host, sizeof host - 1);
    machine_facts(&real, "/");
    for (size_t i = 0; i < real.n; i++) {
        if (strlen(host) > 3) assert_null(strstr(real.items[i].value, host));
        if (user && strlen(user->pw_name) > 4)
            assert_null(strstr(real.items[i].value, user->pw_name));
    }
    facts_free(&real);
}

static void load_moves_on(void **state) {
    (void)state;
    struct machine_load a, b;
    machine_load(&a);
    if (a.total_ticks < 0) skip();
    for (int i = 0; i < 200; i++) {
        usleep(10000);
        machine_load(&b);
        if (b.total_ticks > a.total_ticks) break;
    }
    assert_true(b.total_ticks > a.total_ticks);
    assert_true(b.busy_ticks >= a.busy_ticks);
    assert_true(b.busy_ticks + b.steal_ticks <= b.total_ticks);
}

static void one_at_a_time(void **state) {
    (void)state;
    char path[100];
    int pid = 7, status, ready[2], stop[2];
    snprintf(path, sizeof path, "%s/lock", m.root);
    int fd = machine_lock_at(path, &pid);
    assert_true(fd >= 0);
    assert_int_equal(pid, 0);
    close(fd);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(stop), 0);
    pid_t child = fork();
    if (!child) {
        char c;
        close(stop[1]);
        int held = machine_lock_at(path, &pid);
        if (write(ready[1], held >= 0 ? "y" : "n", 1) != 1) _exit(2);
        _exit(read(stop[0], &c, 1) == 0 ? 0 : 1);
    }
    char c = 0;
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    assert_int_equal(machine_lock_at(path, &pid), -1);
    assert_int_equal(pid, child);
    close(stop[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    fd = machine_lock_at(path, &pid); /* it goes with its process */
    assert_true(fd >= 0);
    close(fd);
    close(stop[0]);
    close(ready[0]);
    close(ready[1]);
    snprintf(path, sizeof path, "%s/no/such/folder/lock", m.root);
    assert_int_equal(machine_lock_at(path, &pid), -1);
    assert_int_equal(pid, 0); /* nobody holds it */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_tree_is_unknown, begin, end),
        cmocka_unit_test_setup_teardown(an_odd_tree_is_unknown, begin, end),
        cmocka_unit_test_setup_teardown(a_server, begin, end),
        cmocka_unit_test_setup_teardown(hypervisors, begin, end),
        cmocka_unit_test_setup_teardown(groups_of_version_2, begin, end),
        cmocka_unit_test_setup_teardown(groups_of_version_1, begin, end),
        cmocka_unit_test(the_build),
        cmocka_unit_test(nobody_is_named),
        cmocka_unit_test(load_moves_on),
        cmocka_unit_test_setup_teardown(one_at_a_time, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
