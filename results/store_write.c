/* SPDX-License-Identifier: Apache-2.0 */
/* Tables to HDF5: the file is made whole in memory, then written by us, so that no failure of a
 * disk reaches the library. */
#include <hdf5.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <xxhash.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/store.h"
#include "results/store_child.h"

enum {
    CONTIGUOUS_BELOW = 64 * 1024, /* bytes of a column; larger ones are chunked and deflated */
    CHUNK_BYTES = 512 * 1024,
    IMAGE_STEP = 4 * 1024 * 1024,
    ATTRIBUTE_MOST = 60 * 1000, /* HDF5's limit is 64 KiB with its own head */
};

/* '/' separates groups and '.' is the group itself: in names they are %2F and %2E, and % is %25. */
static char *name_escape(const char *name) {
    struct text out = {0};
    for (const char *s = name; *s; s++)
        if (*s == '/' || *s == '%' || (*s == '.' && !name[1]))
            text_printf(&out, "%%%02X", (unsigned)(unsigned char)*s);
        else
            text_add(&out, s, 1);
    return text_take(&out);
}

/* Fixed length, zero-padded, UTF-8. */
static hid_t text_type(size_t size) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size ? size : 1);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static bool attribute_text(hid_t object, const char *name, const char *value) {
    size_t n = strlen(value);
    if (n > ATTRIBUTE_MOST)
        for (n = ATTRIBUTE_MOST; n && ((unsigned char)value[n] & 0xc0) == 0x80; n--) {}
    hid_t type = text_type(n), space = H5Screate(H5S_SCALAR);
    hid_t attr = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attr >= 0 && H5Awrite(attr, type, value) >= 0; /* n = 0 writes the zero at the end */
    if (attr >= 0) H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
    return ok;
}

static bool attribute_int(hid_t object, const char *name, int64_t value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attr = H5Acreate2(object, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    bool ok = attr >= 0 && H5Awrite(attr, H5T_NATIVE_INT64, &value) >= 0;
    if (attr >= 0) H5Aclose(attr);
    H5Sclose(space);
    return ok;
}

struct column_source { /* one column, as rows of `size` bytes */
    const struct table *table;
    const struct column *def;
    const char *numbers; /* NULL for text */
    int64_t rows;
    size_t size;
};

static struct column_source source_of(const struct table *t, const struct column *def) {
    struct column_source s = {.table = t, .def = def, .rows = table_rows(t), .size = 8};
    if (def->type == COL_I64) s.numbers = (const char *)table_see_i64(t, def->name);
    if (def->type == COL_F64) s.numbers = (const char *)table_see_f64(t, def->name);
    if (def->type != COL_TEXT) return s;
    s.size = 1;
    for (int64_t r = 0; r < s.rows; r++) {
        size_t n = strlen(table_text(t, r, def->name));
        if (n > s.size) s.size = n;
    }
    return s;
}

/* Rows first ... first + n - 1, in place or copied into scratch (n * size bytes). */
static const char *source_rows(const struct column_source *s, int64_t first, int64_t n,
                               char *scratch) {
    if (s->numbers) return s->numbers + first * 8;
    memset(scratch, 0, (size_t)n * s->size);
    for (int64_t r = 0; r < n; r++) {
        const char *text = table_text(s->table, first + r, s->def->name);
        memcpy(scratch + (size_t)r * s->size, text, strlen(text));
    }
    return scratch;
}

/* Writes the rows a chunk at a time (a long text column is never in memory whole) and hashes them
 * on the way. */
static bool rows_write(hid_t set, hid_t memory_type, const struct column_source *s,
                       int64_t per_chunk, uint64_t *hash) {
    bool ok = true;
    XXH64_state_t *state = XXH64_createState();
    if (!state) return false;
    XXH64_reset(state, 0);
    char *scratch = s->numbers ? NULL : must_alloc((size_t)per_chunk * s->size);
    hid_t file_space = H5Dget_space(set);
    for (int64_t first = 0; ok && first < s->rows; first += per_chunk) {
        hsize_t n = (hsize_t)(s->rows - first < per_chunk ? s->rows - first : per_chunk);
        hsize_t start = (hsize_t)first;
        const char *bytes = source_rows(s, first, (int64_t)n, scratch);
        XXH64_update(state, bytes, (size_t)n * s->size);
        hid_t memory_space = H5Screate_simple(1, &n, NULL);
        ok = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &n, NULL) >= 0 &&
             H5Dwrite(set, memory_type, memory_space, file_space, H5P_DEFAULT, bytes) >= 0;
        H5Sclose(memory_space);
    }
    H5Sclose(file_space);
    *hash = XXH64_digest(state);
    XXH64_freeState(state);
    free(scratch);
    return ok;
}

static hid_t set_create(hid_t group, const char *name, hid_t type, const struct column_source *s,
                        int64_t per_chunk) {
    hsize_t rows = (hsize_t)s->rows, chunk = (hsize_t)per_chunk;
    hid_t space = H5Screate_simple(1, &rows, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(plist, false); /* equal tables make equal bytes */
    if (s->rows && (size_t)s->rows * s->size >= CONTIGUOUS_BELOW) {
        H5Pset_chunk(plist, 1, &chunk);
        if (s->numbers) H5Pset_shuffle(plist);
        H5Pset_deflate(plist, 1);
    }
    hid_t set = H5Dcreate2(group, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Pclose(plist);
    H5Sclose(space);
    return set;
}

static bool column_write(hid_t group, const struct table *t, const struct column *def) {
    struct column_source s = source_of(t, def);
    int64_t per_chunk = (int64_t)(CHUNK_BYTES / s.size);
    if (per_chunk > s.rows) per_chunk = s.rows;
    if (per_chunk < 1) per_chunk = 1;
    hid_t file_type = def->type == COL_I64   ? H5Tcopy(H5T_STD_I64LE)
                      : def->type == COL_F64 ? H5Tcopy(H5T_IEEE_F64LE)
                                             : text_type(s.size);
    char *name = name_escape(def->name), hex[17];
    uint64_t hash = 0;
    hid_t set = set_create(group, name, file_type, &s, per_chunk);
    bool ok = set >= 0 && rows_write(set, file_type, &s, per_chunk, &hash) &&
              attribute_text(set, "unit", def->unit) && attribute_text(set, "help", def->help) &&
              attribute_text(set, "xxh64", hash_text(hex, hash));
    if (set >= 0 && H5Dclose(set) < 0) ok = false;
    H5Tclose(file_type);
    free(name);
    return ok;
}

static bool table_write(hid_t file, const struct table *t, const char *name) {
    hid_t plist = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_link_creation_order(plist, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, plist, H5P_DEFAULT);
    H5Pclose(plist);
    bool ok = group >= 0;
    for (size_t k = 0; ok && k < table_columns(t); k++)
        ok = column_write(group, t, table_column_at(t, k));
    if (group >= 0) H5Gclose(group);
    return ok;
}

/* "ceilings 10, environment 4, ...": tables and how many columns each has, so that a missing one is
 * noticed. */
static void contents_text(const struct tables *ts, struct text *out) {
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], "meta"))
            text_printf(out, "%s%s %zu", out->len ? ", " : "", names[i],
                        table_columns(tables_peek(ts, names[i])));
}

/* Attributes have no order: their hashes are added. */
static bool meta_write(hid_t file, const struct table *t, const char *contents) {
    bool ok =
        attribute_int(file, "format", STORE_FORMAT) && attribute_text(file, "tables", contents);
    uint64_t sum = hash_bytes(contents, strlen(contents), hash_bytes("tables", 6, 0));
    for (int64_t r = 0; ok && r < table_rows(t); r++) {
        const char *key = table_text(t, r, "key"), *value = table_text(t, r, "value");
        if (!*key || !strcmp(key, "format") || !strcmp(key, "xxh64") || !strcmp(key, "tables"))
            continue;
        bool later = false; /* the last value of a key counts */
        for (int64_t s = r + 1; s < table_rows(t); s++)
            later = later || !strcmp(table_text(t, s, "key"), key);
        if (later) continue;
        ok = attribute_text(file, key, value);
        size_t n = strlen(value);
        sum += hash_bytes(value, n < ATTRIBUTE_MOST ? n : ATTRIBUTE_MOST,
                          hash_bytes(key, strlen(key), 0));
    }
    char hex[17];
    return ok && attribute_text(file, "xxh64", hash_text(hex, sum));
}

/* The whole file as bytes (malloc'ed), or NULL. */
static char *image_create(const struct tables *ts, size_t *size) {
    char *image = NULL;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_fapl_core(access, IMAGE_STEP, false);
    H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_obj_track_times(create, false);
    hid_t file = H5Fcreate("bench", H5F_ACC_TRUNC, create, access); /* a name only: in memory */
    struct text contents = {0};
    contents_text(ts, &contents);
    bool ok = file >= 0 && meta_write(file, tables_peek(ts, "meta"), contents.data);
    text_free(&contents);
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; ok && i < n; i++)
        if (strcmp(names[i], "meta")) ok = table_write(file, tables_peek(ts, names[i]), names[i]);
    ssize_t bytes = -1;
    if (ok && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0) bytes = H5Fget_file_image(file, NULL, 0);
    if (bytes > 0) {
        image = must_alloc((size_t)bytes);
        if (H5Fget_file_image(file, image, (size_t)bytes) != bytes) {
            free(image);
            image = NULL;
        }
        *size = (size_t)bytes;
    }
    if (file >= 0) H5Fclose(file);
    H5Pclose(create);
    H5Pclose(access);
    return image;
}

struct writing {
    const struct tables *tables;
    const char *path;
};

/* In the child; answer: nothing, or the error's code as a letter and its sentence. */
static void write_work(void *ctx, struct text *out) {
    const struct writing *w = ctx;
    struct err err = {0};
    size_t size = 0;
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group: what is nearly done is finished */
    store_watch_memory();
    char *image = image_create(w->tables, &size);
    if (!image)
        err_set(&err, ERR_INTERNAL, "%s: %s", w->path,
                store_lacked_memory() ? "there is not enough memory to build the file"
                                      : "the HDF5 library could not build the file");
    else
        file_write(w->path, image, size, &err);
    if (err.code) text_printf(out, "%c%s", 'A' + err.code, err.text);
}

int store_write(const struct tables *ts, const char *path, struct err *err) {
    struct writing job = {.tables = ts, .path = path};
    struct text answer = {0};
    int status = 0;
    int code = store_child(write_work, &job, 0, "write", path, &answer, &status, err);
    if (!code && answer.len)
        code = err_set(err, answer.data[0] - 'A', "%s", answer.data + 1);
    else if (!code && WIFSIGNALED(status))
        code = err_set(err, ERR_INTERNAL,
                       "%s: the HDF5 library died building the file (signal %d): memory ran out?",
                       path, WTERMSIG(status));
    else if (!code && WEXITSTATUS(status))
        code = err_set(err, ERR_INTERNAL, "%s: there is not enough memory to build the file", path);
    text_free(&answer);
    return code;
}
