/* SPDX-License-Identifier: Apache-2.0 */
/* Files: limits, refusals, and that a write that fails leaves the old file and nothing beside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int folder_make(void **state) {
    (void)state;
    (void)state;
    strcpy(folder, "/tmp/bench-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static void remove_below(const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char below[512];
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (unlink(below)) remove_below(below);
    }
    if (dir) closedir(dir);
    rmdir(path);
}

static int folder_remove(void **state) {
    (void)state;
    (void)state;
    remove_below(folder);
    return 0;
}

static int entries(void) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static void assert_file(const char *path, const char *bytes, size_t n) {
    struct err err = {0};
    char *data;
    size_t len;
    assert_int_equal(file_read(path, 1 << 20, &data, &len, &err), 0);
    assert_int_equal(len, n);
    assert_memory_equal(data, bytes, n);
    assert_int_equal(data[n], 0);
    free(data);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    struct err err = {0};
    assert_false(file_exists(in_folder("a")));
    assert_int_equal(file_write(in_folder("a"), "one\0two", 7, &err), 0);
    assert_true(file_exists(in_folder("a")));
    assert_file(in_folder("a"), "one\0two", 7);
    assert_int_equal(file_write(in_folder("a"), NULL, 0, &err), 0); /* replaces */
    assert_file(in_folder("a"), "", 0);
    assert_int_equal(entries(), 1);
    size_t n = 300001; /* several reads */
    char *large = malloc(n);
    assert_non_null(large);
    for (size_t i = 0; i < n; i++) large[i] = (char)(i * 31 >> 3);
    assert_int_equal(file_write(in_folder("b"), large, n, &err), 0);
    assert_file(in_folder("b"), large, n);
    free(large);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(file_write("relative", "x", 1, &err), 0); /* its folder is "." */
    assert_file("relative", "x", 1);
    assert_int_equal(chdir("/"), 0);
}

static void limits_hold(void **state) {
    (void)state;
    struct err err = {0};
    char *data;
    size_t len = 0;
    assert_int_equal(file_write(in_folder("a"), "12345", 5, &err), 0);
    assert_int_equal(file_read(in_folder("a"), 5, &data, &len, &err), 0);
    assert_int_equal(len, 5);
    free(data);
    assert_int_equal(file_read(in_folder("a"), 4, &data, &len, &err), ERR_INPUT);
    assert_null(data);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.text, "more than 4 bytes"));
    assert_int_equal(file_read("/dev/zero", 1 << 20, &data, &len, &err), ERR_INPUT); /* ends */
    assert_null(data);
}

static void what_cannot_be_read_is_named(void **state) {
    (void)state;
    struct err err = {0};
    char *data = folder;
    assert_int_equal(file_read(in_folder("none"), 10, &data, NULL, &err), ERR_INPUT);
    assert_null(data);
    assert_int_equal(err.code, ERR_INPUT);
    assert_non_null(strstr(err.text, "/none': No such file"));
    assert_int_equal(file_read(folder, 10, &data, NULL, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "Is a directory"));
    assert_int_equal(file_read(folder, 10, &data, NULL, NULL), ERR_INPUT);
}

static void a_failed_write_leaves_nothing(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(file_write(in_folder("none/a"), "x", 1, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "none/a': No such file"));
    assert_int_equal(mkdir(in_folder("taken"), 0777), 0);
    assert_int_equal(file_write(in_folder("taken"), "x", 1, &err), ERR_SYSTEM); /* rename refuses */
    assert_int_equal(entries(), 1);
}

static void a_full_disk_keeps_the_old_file(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(file_write(in_folder("a"), "old", 3, &err), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        struct rlimit limit = {1000, 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        static char much[5000];
        _exit(file_write(in_folder("a"), much, sizeof much, &err) == ERR_SYSTEM ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_file(in_folder("a"), "old", 3);
    assert_int_equal(entries(), 1);
}

static void makes_folders_on_the_way(void **state) {
    (void)state;
    struct err err = {0};
    struct stat st;
    assert_int_equal(make_dirs(in_folder("x/y//z/"), &err), 0);
    assert_int_equal(stat(in_folder("x/y/z"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(make_dirs(in_folder("long/name"), &err), 0);
    assert_true(file_exists(in_folder("long/name")));
    assert_int_equal(entries(), 2);                           /* x, long, and nothing between */
    assert_int_equal(make_dirs(in_folder("x/y/z"), &err), 0); /* there already */
    assert_int_equal(make_dirs("/", &err), 0);
    assert_int_equal(file_write(in_folder("f"), "", 0, &err), 0);
    assert_int_equal(make_dirs(in_folder("f"), &err), ERR_SYSTEM); /* a file is no folder */
    assert_non_null(strstr(err.text, "Not a directory"));
    assert_int_equal(make_dirs(in_folder("f/g"), &err), ERR_SYSTEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(limits_hold, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_named, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_nothing, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_full_disk_keeps_the_old_file, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(makes_folders_on_the_way, folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
