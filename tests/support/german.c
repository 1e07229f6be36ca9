/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a minimal locale (glibc's LC_NUMERIC file) into a folder of its own and switches to it. */
#include "tests/support/german.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool decimal_comma(void) {
    char buf[16];
    snprintf(buf, sizeof buf, "%.1f", 1.5);
    return !strcmp(buf, "1,5");
}

/* What localedef writes for de_DE: magic, six offsets, then comma, point, grouping, the two as wide
 * words, charset. */
static bool write_numeric(const char *path) {
    static const uint32_t head[8] = {0x20031114, 6, 32, 34, 36, 40, 44, 48};
    static const char strings[8] = {',', 0, '.', 0, 3, 3, 0, 0};
    static const uint32_t wide[2] = {',', '.'};
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    bool ok = fwrite(head, sizeof head, 1, f) == 1 && fwrite(strings, sizeof strings, 1, f) == 1 &&
              fwrite(wide, sizeof wide, 1, f) == 1 && fwrite("UTF-8\0\0", 8, 1, f) == 1;
    return fclose(f) == 0 && ok;
}

bool german_begin(void) {
    static const char *const installed[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"};
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (setlocale(LC_ALL, installed[i]) && decimal_comma()) return true;
    char root[] = "/tmp/bench-locale-XXXXXX", folder[64], file[80];
    if (!mkdtemp(root)) return false;
    snprintf(folder, sizeof folder, "%s/bench_comma", root);
    snprintf(file, sizeof file, "%s/LC_NUMERIC", folder);
    bool ok = mkdir(folder, 0700) == 0 && write_numeric(file) && !setenv("LOCPATH", root, 1) &&
              setlocale(LC_NUMERIC, "bench_comma") && decimal_comma();
    unlink(file);
    rmdir(folder);
    rmdir(root);
    return ok;
}

void german_end(void) { setlocale(LC_ALL, "C"); }
