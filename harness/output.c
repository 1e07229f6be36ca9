/* SPDX-License-Identifier: Apache-2.0 */
/* Where a result goes: as asked, or a name of its own; never over something that is there. */
#include "harness/output.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/frame.h"
#include "base/text.h"

/* OUT.h5 -> OUT; anything else stays. */
static char *stem_of(const char *path) {
    size_t n = strlen(path);
    bool ours = n > 3 && !strcmp(path + n - 3, ".h5");
    char *stem = must_text(path);
    if (ours) stem[n - 3] = 0;
    return stem;
}

char *output_with(const char *stem, const char *ending) {
    struct text t = {0};
    text_printf(&t, "%s%s", stem, ending);
    return text_take(&t);
}

static bool taken(const char *stem) {
    char *h5 = output_with(stem, ".h5"), *journal = output_with(stem, ".journal");
    bool yes = file_exists(h5) || file_exists(journal);
    free(h5);
    free(journal);
    return yes;
}

int output_check_folder(const char *path, struct err *err) {
    struct stat st;
    const char *slash = strrchr(path, '/');
    char *folder = must_text(slash ? path : ".");
    if (slash) folder[slash - path + 1] = 0;
    const bool there = *path && stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
    free(folder);
    return there ? 0 : err_set(err, ERR_INPUT, "cannot write '%s': no such folder", path);
}

/* Before anything runs: "results/" or a folder's name would end in hidden files or beside it. */
static int check_output(const char *path, struct err *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat st;
    if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, ".h5"))
        return err_set(err, ERR_INPUT,
                       "-o '%s' names no file; a file's name is needed, as results/knee.h5", path);
    if (stat(path, &st)) return output_check_folder(path, err);
    if (S_ISREG(st.st_mode)) return 0;
    return err_set(err, ERR_INPUT, "-o '%s' is a %s; a file's name is needed, as %s%sknee.h5", path,
                   S_ISDIR(st.st_mode) ? "folder" : "device or pipe",
                   S_ISDIR(st.st_mode) ? path : "results", "/");
}

/* HDF5's signature or a journal's first frame: by content, since -o is where names are mixed up. */
static bool is_result(const char *path) {
    static const char hdf5[] = "\x89HDF\r\n\x1a\n";
    char start[8] = {0};
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(start, 1, sizeof start, f) : 0;
    uint32_t magic;
    if (f) fclose(f);
    memcpy(&magic, start, sizeof magic);
    return n == sizeof start && (!memcmp(start, hdf5, sizeof start) || magic == FRAME_MAGIC);
}

int output_check_document(const char *path, struct err *err) {
    struct stat st;
    if (!path || !strcmp(path, "-")) return 0;
    if (stat(path, &st)) return output_check_folder(path, err);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "cannot write '%s': it is a folder", path);
    if (S_ISREG(st.st_mode) && is_result(path))
        return err_set(err, ERR_INPUT,
                       "%s is a result or a journal, and these are never overwritten", path);
    return 0;
}

int output_check_pictures(const char *stem, struct err *err) {
    static const char *const endings[] = {".svg", ".png"};
    struct stat st;
    int code = 0;
    if (!stem) return 0;
    const char *slash = strrchr(stem, '/'), *name = slash ? slash + 1 : stem;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return err_set(err, ERR_INPUT, "-o '%s' names no file: STEM.svg and STEM.png are written",
                       stem);
    if (!stat(stem, &st) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_INPUT, "-o '%s' is a %s: STEM.svg and STEM.png are written", stem,
                       S_ISDIR(st.st_mode) ? "folder" : "device or pipe");
    for (int i = 0; i < 2 && !code; i++) {
        char *path = output_with(stem, endings[i]);
        code = output_check_document(path, err);
        if (!code && !stat(path, &st) && !S_ISREG(st.st_mode))
            code = err_set(err, ERR_INPUT, "cannot write '%s': it is no file", path);
        free(path);
    }
    return code;
}

int output_choose(const char *name, const char *asked, char **stem, struct err *err) {
    if (asked) {
        if (check_output(asked, err)) return err->code;
        *stem = stem_of(asked);
        if (!taken(*stem)) return 0;
        return err_set(
            err, ERR_INPUT,
            "%s: a result or journal of that name exists; results are never overwritten (bench resume goes on with a run)",
            asked);
    }
    int code = make_dirs("runs", err);
    if (code)
        return err_prefix(err, "cannot make the folder runs (-o FILE puts the result elsewhere)");
    char stamp[32];
    clock_stamp(stamp);
    for (int k = 1; k < 1000; k++) {
        struct text t = {0};
        text_printf(&t, "runs/%s-%s", name, stamp);
        if (k > 1) text_printf(&t, "-%d", k);
        *stem = text_take(&t);
        if (!taken(*stem)) return 0;
        free(*stem);
        *stem = NULL;
    }
    return err_set(err, ERR_SYSTEM, "runs/%s-%s: too many results of this second", name, stamp);
}
