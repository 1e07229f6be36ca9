/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a model's files, and what holds for all formats: places within the file, nothing twice,
 * nothing over another, rows as floats. */
#include "workloads/model/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/model/file_parts.h"
#include "workloads/model/stored.h"

/* ---- parts ------------------------------------------------------------------------------------
 */

static void *grow(struct arena *arena, void *items, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return items;
    *cap = *cap ? 2 * *cap : 16;
    void *made = arena_alloc(arena, *cap * size);
    if (n) memcpy(made, items, n * size);
    return made;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

int file_add_part(struct model_file *file, const char *path, int *part, struct err *err) {
    struct stat st;
    if (file->n_parts >= FILE_MOST_PARTS)
        return err_set(err, ERR_INPUT, "more than %d files of weights", FILE_MOST_PARTS);
    /* Without O_NONBLOCK a pipe of that name would wait for a writer for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return err_system(err, errno, "%s", path);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(err, ERR_INPUT, "%s is not a regular file", path);
    }
    file->parts =
        grow(file->arena, file->parts, file->n_parts, &file->cap_parts, sizeof *file->parts);
    *part = (int)file->n_parts;
    file->parts[file->n_parts++] =
        (struct file_part){.path = arena_text(file->arena, path),
                           .name = arena_text(file->arena, last_part(path)),
                           .fd = fd,
                           .size = st.st_size,
                           .mtime_s = st.st_mtim.tv_sec,
                           .mtime_ns = st.st_mtim.tv_nsec};
    return 0;
}

int file_read_at(const struct file_part *part, int64_t at, void *to, int64_t n, struct err *err) {
    char *out = to;
    while (n > 0) {
        const ssize_t got = pread(part->fd, out, (size_t)(n < 1 << 30 ? n : 1 << 30), at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_system(err, errno, "%s: byte %lld", part->name, (long long)at);
        if (got == 0)
            return err_set(err, ERR_INPUT,
                           "%s ends at byte %lld of %lld: it shrank while it was read", part->name,
                           (long long)at, (long long)part->size);
        out += got;
        at += got;
        n -= got;
    }
    return 0;
}

int file_scan(struct file_scan *s, void *to, int64_t n, struct err *err) {
    char *out = to;
    while (n > 0) {
        if (s->at < s->begin || s->at >= s->end) {
            const int64_t left = s->part->size - s->at;
            const int64_t got = left < (int64_t)sizeof s->window ? left : (int64_t)sizeof s->window;
            const int code = file_read_at(s->part, s->at, s->window, got, err);
            if (code) return code;
            s->begin = s->at;
            s->end = s->at + got;
        }
        const int64_t here = s->end - s->at < n ? s->end - s->at : n;
        memcpy(out, s->window + (s->at - s->begin), (size_t)here);
        s->at += here;
        out += here;
        n -= here;
    }
    return 0;
}

int model_file_unchanged(const struct model_file *file, struct err *err) {
    for (size_t i = 0; i < file->n_parts; i++) {
        const struct file_part *part = &file->parts[i];
        struct stat st;
        if (fstat(part->fd, &st)) return err_system(err, errno, "%s", part->name);
        if (st.st_size != part->size || st.st_mtim.tv_sec != part->mtime_s ||
            st.st_mtim.tv_nsec != part->mtime_ns)
            return err_set(err, ERR_INPUT, "%s changed while it was read", part->name);
    }
    return 0;
}

/* ---- values and tensors -----------------------------------------------------------------------
 */

struct file_value *file_add_value(struct model_file *file, struct err *err) {
    if (file->n_values >= FILE_MOST_VALUES) {
        err_set(err, ERR_INPUT, "more than %d metadata entries", FILE_MOST_VALUES);
        return NULL;
    }
    file->values =
        grow(file->arena, file->values, file->n_values, &file->cap_values, sizeof *file->values);
    file->values[file->n_values] = (struct file_value){0};
    return &file->values[file->n_values++];
}

int file_add_tensor(struct model_file *file, struct file_tensor t, const uint64_t *dims,
                    int64_t base, uint64_t offset, struct err *err) {
    const struct stored_type *type = &stored_types[t.stored];
    const struct file_part *part = &file->parts[t.part];
    int64_t end;
    if (file->n_tensors >= FILE_MOST_TENSORS)
        return err_set(err, ERR_INPUT, "%s: more than %d tensors", part->name, FILE_MOST_TENSORS);
    t.rows = 1;
    for (int i = 0; i < t.n_dims; i++)
        if (dims[i] < 1 || dims[i] > INT32_MAX)
            return err_set(err, ERR_INPUT,
                           "%s: tensor '%.80s' has a dimension of %llu: 1 ... 2^31 - 1", part->name,
                           t.name, (unsigned long long)dims[i]);
    t.cols = (int64_t)dims[0];
    if (t.cols % type->block != 0)
        return err_set(err, ERR_INPUT,
                       "%s: tensor '%.80s': rows of %lld are not whole blocks of %s (%d)",
                       part->name, t.name, (long long)t.cols, type->name, type->block);
    bool wide = __builtin_mul_overflow(t.cols / type->block, (int64_t)type->bytes, &t.bytes);
    for (int i = 1; i < t.n_dims; i++) {
        wide |= __builtin_mul_overflow(t.rows, (int64_t)dims[i], &t.rows);
        wide |= __builtin_mul_overflow(t.bytes, (int64_t)dims[i], &t.bytes);
    }
    wide |= offset > INT64_MAX || __builtin_add_overflow(base, (int64_t)offset, &t.begin);
    wide |= __builtin_add_overflow(t.begin, t.bytes, &end);
    if (wide || end > part->size)
        return err_set(err, ERR_INPUT, "%s: tensor '%.80s' lies beyond the file's end (%lld bytes)",
                       part->name, t.name, (long long)part->size);
    file->tensors = grow(file->arena, file->tensors, file->n_tensors, &file->cap_tensors,
                         sizeof *file->tensors);
    file->tensors[file->n_tensors++] = t;
    return 0;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct file_value *)a)->key, ((const struct file_value *)b)->key);
}
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct file_tensor *)a)->name, ((const struct file_tensor *)b)->name);
}
static int by_place(const void *a, const void *b) {
    const struct file_tensor *x = *(const struct file_tensor *const *)a,
                             *y = *(const struct file_tensor *const *)b;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int check_overlap(const struct model_file *file, struct err *err) {
    const struct file_tensor **sorted = must_alloc((file->n_tensors + 1) * sizeof *sorted);
    int code = 0;
    for (size_t i = 0; i < file->n_tensors; i++) sorted[i] = &file->tensors[i];
    qsort(sorted, file->n_tensors, sizeof *sorted, by_place);
    for (size_t i = 1; i < file->n_tensors && !code; i++) {
        const struct file_tensor *a = sorted[i - 1], *b = sorted[i];
        if (a->part == b->part && b->begin < a->begin + a->bytes)
            code = err_set(err, ERR_INPUT, "%s: tensors '%.80s' and '%.80s' lie over each other",
                           file->parts[a->part].name, a->name, b->name);
    }
    free(sorted);
    return code;
}

static int sort_and_check(struct model_file *file, struct err *err) {
    if (file->n_values) qsort(file->values, file->n_values, sizeof *file->values, by_key);
    if (file->n_tensors) qsort(file->tensors, file->n_tensors, sizeof *file->tensors, by_name);
    for (size_t i = 1; i < file->n_values; i++)
        if (!strcmp(file->values[i - 1].key, file->values[i].key))
            return err_set(err, ERR_INPUT, "%s: metadata '%.80s' is there twice", file->name,
                           file->values[i].key);
    for (size_t i = 1; i < file->n_tensors; i++)
        if (!strcmp(file->tensors[i - 1].name, file->tensors[i].name))
            return err_set(err, ERR_INPUT, "%s: tensor '%.80s' is there twice", file->name,
                           file->tensors[i].name);
    if (!file->n_tensors) return err_set(err, ERR_INPUT, "%s has no tensors", file->name);
    return check_overlap(file, err);
}

static int make_digest(struct model_file *file, struct err *err) {
    enum { SAMPLE = 4096 };
    char sample[SAMPLE];
    uint64_t hash = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct file_tensor *t = &file->tensors[i];
        const int64_t shape[] = {t->stored, t->rows, t->cols};
        const int64_t n = t->bytes < SAMPLE ? t->bytes : SAMPLE, last = t->bytes - n;
        const int64_t places[] = {0, last / 2, last};
        hash = hash_bytes(t->name, strlen(t->name), hash);
        hash = hash_bytes(shape, sizeof shape, hash);
        for (int k = 0; k < (last ? 3 : 1); k++) {
            int code = file_read_at(&file->parts[t->part], t->begin + places[k], sample, n, err);
            if (code) return code;
            hash = hash_bytes(sample, (size_t)n, hash);
        }
    }
    hash_text(file->digest, hash);
    return 0;
}

/* ---- the file ---------------------------------------------------------------------------------
 */

static const char *word_of(struct arena *arena, const char *path) {
    char *name = arena_text(arena, path);
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/') name[--n] = 0;
    name = arena_text(arena, last_part(name));
    char *dot = strrchr(name, '.');
    if (dot && dot > name && (!strcmp(dot, ".gguf") || !strcmp(dot, ".safetensors"))) *dot = 0;
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '_';
    if (strlen(name) > 64) name[64] = 0;
    return name;
}

/* A single .safetensors file has its config.json beside it. */
static int open_alone(struct model_file *file, const char *path, struct err *err) {
    char config[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int part, n = snprintf(config, sizeof config, "%.*sconfig.json",
                           slash ? (int)(slash - path) + 1 : 0, path);
    if (n < 0 || (size_t)n >= sizeof config)
        return err_set(err, ERR_INPUT, "the path is longer than %d bytes", PATH_MAX);
    int code = file_read_config(file, config, err);
    if (!code) code = file_add_part(file, path, &part, err);
    if (!code) code = file_open_safetensors(file, part, err);
    return code;
}

int model_file_place(const char *name, char *path, size_t size, struct err *err) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    /* A relative XDG_CACHE_HOME is to be ignored: XDG Base Directory Specification. */
    if (cache && *cache == '/')
        n = snprintf(path, size, "%s/bench/models/%s.gguf", cache, name);
    else if (home && *home)
        n = snprintf(path, size, "%s/.cache/bench/models/%s.gguf", home, name);
    else
        return err_set(err, ERR_INPUT,
                       "neither XDG_CACHE_HOME nor HOME is set: where models lie is not known");
    if (n < 0 || (size_t)n >= size)
        return err_set(err, ERR_INPUT, "the path is longer than %zu bytes", size);
    return 0;
}

/* A word alone that is no file here may be a model that was brought. */
static int find_named(const char *path, char *place, size_t size, struct stat *st,
                      struct err *err) {
    if (*path == 0 || strpbrk(path, "/.")) return err_system(err, ENOENT, "%s", path);
    int code = model_file_place(path, place, size, err);
    if (!code && stat(place, st))
        code = err_set(err, ERR_INPUT,
                       "%s is neither a file here nor a model that was brought: `./bench model %s` "
                       "brings it, if `./bench model` knows it",
                       path, path);
    return code;
}

static int open_any(struct model_file *file, const char *path, struct err *err) {
    struct stat st;
    char magic[4] = "", place[PATH_MAX];
    int part;
    if (stat(path, &st)) {
        int code = errno == ENOENT ? find_named(path, place, sizeof place, &st, err)
                                   : err_system(err, errno, "%s", path);
        if (code) return code;
        path = place;
    }
    if (S_ISDIR(st.st_mode)) return file_open_folder(file, path, err);
    const size_t len = strlen(path);
    if (len > 12 && !strcmp(path + len - 12, ".safetensors")) return open_alone(file, path, err);
    int code = file_add_part(file, path, &part, err);
    if (code) return code;
    if (file->parts[0].size >= 4) code = file_read_at(&file->parts[0], 0, magic, 4, err);
    if (!code && memcmp(magic, "GGUF", 4) != 0)
        return err_set(
            err, ERR_INPUT,
            "%s is no GGUF file; read are GGUF, *.safetensors with config.json beside it, "
            "and folders that have these",
            path);
    file->gguf = true;
    return code ? code : file_open_gguf(file, err);
}

int model_file_open(struct model_file **out, const char *path, struct err *err) {
    struct arena *arena = arena_create();
    struct model_file *file = arena_alloc(arena, sizeof *file);
    *file = (struct model_file){
        .arena = arena, .path = arena_text(arena, path), .name = word_of(arena, path)};
    int code = open_any(file, path, err);
    if (!code) code = sort_and_check(file, err);
    if (!code) code = make_digest(file, err);
    *out = file;
    if (code) model_file_close(out);
    return code;
}

void model_file_close(struct model_file **out) {
    struct model_file *file = *out;
    if (!file) return;
    for (size_t i = 0; i < file->n_parts; i++) close(file->parts[i].fd);
    struct arena *arena = file->arena;
    arena_close(&arena);
    *out = NULL;
}

bool model_file_is_gguf(const struct model_file *file) { return file->gguf; }
const char *model_file_path(const struct model_file *file) { return file->path; }
const char *model_file_name(const struct model_file *file) { return file->name; }
const char *model_file_digest(const struct model_file *file) { return file->digest; }

const struct file_value *model_file_value(const struct model_file *file, const char *key) {
    const struct file_value wanted = {.key = key};
    if (!file->n_values) return NULL;
    return bsearch(&wanted, file->values, file->n_values, sizeof wanted, by_key);
}

const struct file_tensor *model_file_tensor(const struct model_file *file, const char *name) {
    const struct file_tensor wanted = {.name = name};
    return bsearch(&wanted, file->tensors, file->n_tensors, sizeof wanted, by_name);
}

size_t model_file_tensors(const struct model_file *file, const struct file_tensor **tensors) {
    *tensors = file->tensors;
    return file->n_tensors;
}

int model_file_row_bytes(const struct model_file *file, const struct file_tensor *t, int64_t r,
                         void *out, struct err *err) {
    const int64_t bytes = t->bytes / t->rows;
    return file_read_at(&file->parts[t->part], t->begin + r * bytes, out, bytes, err);
}

int model_file_row(const struct model_file *file, const struct file_tensor *t, int64_t r,
                   float *out, struct err *err) {
    if (t->stored == STORED_F32) return model_file_row_bytes(file, t, r, out, err);
    enum { ROOM = 16384 };
    uint8_t bytes[ROOM];
    const struct stored_type *type = &stored_types[t->stored];
    const int64_t most = ROOM / type->bytes;
    int64_t left = t->cols / type->block;
    int64_t at = t->begin + r * (t->bytes / t->rows);
    while (left > 0) {
        const int64_t n = left < most ? left : most;
        int code = file_read_at(&file->parts[t->part], at, bytes, n * type->bytes, err);
        if (code) return code;
        type->decode(bytes, n, out);
        out += n * type->block;
        at += n * type->bytes;
        left -= n;
    }
    return 0;
}
