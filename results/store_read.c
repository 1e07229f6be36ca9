/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 to tables, in a child with limits: the library dies of some broken files, we do not. */
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "results/store.h"
#include "results/store_child.h"

enum {
    CPU_SECONDS = 20,
    WALL_SECONDS = 120, /* a file system may be slow; nothing may take for ever */
    BLOCK_BYTES = 512 * 1024,
    TEXT_MOST = 64 * 1024 * 1024, /* bytes of one cell */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0 /* sanitizers reserve terabytes of addresses: no limit on those */
#endif

/* ---- in the child */

static char *name_unescape(const char *name) {
    char *out = must_text(name), *to = out;
    for (const char *s = name; *s; s++) {
        unsigned c;
        if (*s == '%' && sscanf(s + 1, "%2X", &c) == 1 && c && s[1] && s[2]) {
            *to++ = (char)c;
            s += 2;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
    return out;
}

/* A scalar fixed-length text attribute as malloc'ed, zero-terminated text; NULL if it is none. */
static char *attribute_read(hid_t attr) {
    char *value = NULL;
    hid_t type = H5Aget_type(attr), space = H5Aget_space(attr);
    size_t size = type >= 0 ? H5Tget_size(type) : 0;
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
        H5Sget_simple_extent_npoints(space) == 1 && size < 1 << 20) {
        value = must_alloc(size + 1);
        if (H5Aread(attr, type, value) < 0) {
            free(value);
            value = NULL;
        }
    }
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return value;
}

static char *attribute_text(hid_t object, const char *name) {
    if (H5Aexists(object, name) <= 0) return NULL;
    hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
    char *value = attr >= 0 ? attribute_read(attr) : NULL;
    if (attr >= 0) H5Aclose(attr);
    return value;
}

struct set_shape {
    hid_t set, type; /* type: in memory */
    enum column_type column;
    int64_t rows;
    size_t size; /* bytes a row */
};

static int set_open(struct set_shape *s, hid_t group, const char *name, struct err *err) {
    *s = (struct set_shape){.set = H5Dopen2(group, name, H5P_DEFAULT), .type = -1};
    if (s->set < 0) return err_set(err, ERR_INPUT, "it cannot be opened");
    hid_t type = H5Dget_type(s->set), space = H5Dget_space(s->set);
    H5T_class_t class = H5Tget_class(type);
    s->size = H5Tget_size(type);
    int ranks = H5Sget_simple_extent_ndims(space);
    s->rows = ranks == 1 ? (int64_t)H5Sget_simple_extent_npoints(space) : -1;
    int code = 0;
    if (s->rows < 0 || s->rows > (int64_t)1 << 40)
        code = err_set(err, ERR_INPUT, "it is no column");
    else if (class == H5T_INTEGER && s->size == 8 && H5Tget_sign(type) == H5T_SGN_2)
        s->column = COL_I64, s->type = H5Tcopy(H5T_NATIVE_INT64);
    else if (class == H5T_FLOAT && s->size == 8)
        s->column = COL_F64, s->type = H5Tcopy(H5T_NATIVE_DOUBLE);
    else if (class == H5T_STRING && H5Tis_variable_str(type) == 0 && s->size && s->size < TEXT_MOST)
        s->column = COL_TEXT, s->type = H5Tcopy(type);
    else
        code = err_set(err, ERR_INPUT, "its type is none of this format");
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return code;
}

static void set_close(struct set_shape *s) {
    if (s->type >= 0) H5Tclose(s->type);
    if (s->set >= 0) H5Dclose(s->set);
}

static int cells_from(struct table *t, const char *name, const struct set_shape *s, int64_t first,
                      int64_t n, const char *bytes, struct err *err) {
    if (s->column == COL_I64) memcpy(table_i64(t, name) + first, bytes, (size_t)n * 8);
    if (s->column == COL_F64) memcpy(table_f64(t, name) + first, bytes, (size_t)n * 8);
    if (s->column != COL_TEXT) return 0;
    char *cell = must_alloc(s->size + 1);
    for (int64_t r = 0; r < n; r++) {
        memcpy(cell, bytes + (size_t)r * s->size, s->size);
        if (!utf8_valid(cell, strlen(cell))) {
            free(cell);
            return err_set(err, ERR_INPUT, "a text in it is not UTF-8");
        }
        table_set_text(t, first + r, name, cell);
    }
    free(cell);
    return 0;
}

static int rows_read(struct table *t, const char *name, const struct set_shape *s,
                     struct err *err) {
    int code = 0;
    int64_t block = (int64_t)(BLOCK_BYTES / s->size);
    if (block < 1) block = 1;
    if (block > s->rows) block = s->rows ? s->rows : 1;
    char *bytes = must_alloc((size_t)block * s->size), hex[17];
    hid_t space = H5Dget_space(s->set);
    XXH64_state_t *state = XXH64_createState();
    if (!state || XXH64_reset(state, 0) == XXH_ERROR)
        code = err_set(err, ERR_INPUT, "there is no memory to hash it");
    for (int64_t first = 0; !code && first < s->rows; first += block) {
        hsize_t start = (hsize_t)first;
        hsize_t n = (hsize_t)(s->rows - first < block ? s->rows - first : block);
        hid_t memory = H5Screate_simple(1, &n, NULL);
        if (H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &n, NULL) < 0 ||
            H5Dread(s->set, s->type, memory, space, H5P_DEFAULT, bytes) < 0)
            code = err_set(err, ERR_INPUT, "its bytes cannot be read");
        H5Sclose(memory);
        if (code) break;
        XXH64_update(state, bytes, (size_t)n * s->size);
        code = cells_from(t, name, s, first, (int64_t)n, bytes, err);
    }
    char *stored = attribute_text(s->set, "xxh64");
    if (!code && (!stored || strcmp(stored, hash_text(hex, XXH64_digest(state)))))
        code = err_set(err, ERR_INPUT, "its xxh64 does not fit its content: edited or rotten");
    free(stored);
    XXH64_freeState(state);
    H5Sclose(space);
    free(bytes);
    return code;
}

static int column_read(struct table *t, hid_t group, const char *link, bool first_column,
                       struct err *err) {
    struct set_shape s;
    char *name = name_unescape(link);
    int code = set_open(&s, group, link, err);
    if (!code && table_find(t, name) < 0) {
        char *unit = attribute_text(s.set, "unit"), *help = attribute_text(s.set, "help");
        table_column(t, name, s.column, unit ? unit : "", help ? help : "");
        free(unit);
        free(help);
    }
    if (!code && table_column_at(t, (size_t)table_find(t, name))->type != s.column)
        code = err_set(err, ERR_INPUT, "its type is not the one of this format");
    if (!code && first_column) table_add(t, s.rows);
    if (!code && s.rows != table_rows(t))
        code = err_set(err, ERR_INPUT, "it has %" PRId64 " rows, the others %" PRId64, s.rows,
                       table_rows(t));
    if (!code) code = rows_read(t, name, &s, err);
    set_close(&s);
    free(name);
    return code;
}

/* How many columns the file says a table has: 0 where it lists others, -1 where it has no list (a
 * file of an older bench). */
static int columns_listed(const char *contents, const char *name) {
    size_t n = strlen(name);
    for (const char *at = contents; at && *at; at = strstr(at, ", ") ? strstr(at, ", ") + 2 : "")
        if (!strncmp(at, name, n) && at[n] == ' ') return atoi(at + n);
    return contents ? 0 : -1;
}

static int table_read(struct table *t, hid_t file, const char *name, const char *contents,
                      struct err *err) {
    int listed = columns_listed(contents, name);
    htri_t there = H5Lexists(file, name, H5P_DEFAULT);
    if (there < 0 || (!there && listed > 0))
        return err_set(err, ERR_INPUT, "its table /%s is missing: edited or damaged", name);
    if (!there) return 0; /* an older file without that table */
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    if (group < 0) return err_set(err, ERR_INPUT, "/%s is no group", name);
    unsigned order = 0;
    hid_t plist = H5Gget_create_plist(group);
    H5Pget_link_creation_order(plist, &order);
    H5Pclose(plist);
    H5_index_t index = order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
    H5G_info_t info = {.nlinks = 0};
    int code = 0;
    if (H5Gget_info(group, &info) < 0 || info.nlinks > 4096)
        code = err_set(err, ERR_INPUT, "/%s cannot be listed", name);
    else if (listed >= 0 && info.nlinks != (hsize_t)listed)
        code = err_set(err, ERR_INPUT, "/%s has %d columns and was written with %d: edited", name,
                       (int)info.nlinks, listed);
    for (hsize_t i = 0; !code && i < info.nlinks; i++) {
        char link[1024] = "";
        ssize_t n =
            H5Lget_name_by_idx(group, ".", index, H5_ITER_INC, i, link, sizeof link, H5P_DEFAULT);
        if (n <= 0 || n >= (ssize_t)sizeof link || !utf8_valid(link, (size_t)n))
            code = err_set(err, ERR_INPUT, "/%s has a column without a proper name", name);
        else if ((code = column_read(t, group, link, i == 0, err)))
            err_prefix(err, "/%s/%s", name, link);
    }
    H5Gclose(group);
    return code;
}

struct meta_reader {
    struct table *table;
    uint64_t sum;
    char *contents; /* attribute "tables", or NULL */
};

static herr_t meta_one(hid_t file, const char *name, const H5A_info_t *info, void *context) {
    (void)info;
    struct meta_reader *in = context;
    if (!strcmp(name, "format") || !strcmp(name, "xxh64")) return 0;
    char *value = attribute_text(file, name);
    if (!value || !utf8_valid(value, strlen(value)) || !utf8_valid(name, strlen(name))) {
        free(value);
        return -1;
    }
    in->sum += hash_bytes(value, strlen(value), hash_bytes(name, strlen(name), 0));
    if (!strcmp(name, "tables")) {
        in->contents = value;
        return 0;
    }
    int64_t row = table_add(in->table, 1);
    table_set_text(in->table, row, "key", name);
    table_set_text(in->table, row, "value", value);
    free(value);
    return 0;
}

/* *contents: malloc'ed list of tables, NULL in files of an older bench. */
static int meta_read(struct tables *ts, hid_t file, char **contents, struct err *err) {
    int64_t format = 0;
    hid_t attr = H5Aexists(file, "format") > 0 ? H5Aopen(file, "format", H5P_DEFAULT) : -1;
    hid_t type = attr >= 0 ? H5Aget_type(attr) : -1, space = attr >= 0 ? H5Aget_space(attr) : -1;
    bool ours = type >= 0 && H5Tget_class(type) == H5T_INTEGER &&
                H5Sget_simple_extent_npoints(space) == 1 &&
                H5Aread(attr, H5T_NATIVE_INT64, &format) >= 0 && format > 0;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (attr >= 0) H5Aclose(attr);
    if (!ours) return err_set(err, ERR_INPUT, "an HDF5 file, but not one that bench wrote");
    if (format > STORE_FORMAT)
        return err_set(err, ERR_INPUT, "its format is %" PRId64 "; this bench reads up to %d",
                       format, STORE_FORMAT);
    struct meta_reader in = {.table = tables_get(ts, "meta")};
    char hex[17], *stored = attribute_text(file, "xxh64");
    bool whole = H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, meta_one, &in) >= 0 &&
                 stored && !strcmp(stored, hash_text(hex, in.sum));
    free(stored);
    *contents = in.contents;
    return whole ? 0
                 : err_set(err, ERR_INPUT,
                           "the attributes of its root do not fit their xxh64: "
                           "edited or rotten");
}

static bool wanted(const char *const *what, const char *name) {
    if (!what) return true;
    for (; *what; what++)
        if (!strcmp(*what, name)) return true;
    return false;
}

static int file_to_tables(struct tables *ts, const char *path, const char *const *what,
                          struct err *err) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) return err_set(err, ERR_INPUT, "HDF5 cannot open it: truncated or damaged");
    char *contents = NULL;
    int code = meta_read(ts, file, &contents, err);
    size_t n;
    const char *const *names = tables_names(&n);
    for (size_t i = 0; !code && i < n; i++)
        if (strcmp(names[i], "meta") && wanted(what, names[i]))
            code = table_read(tables_get(ts, names[i]), file, names[i], contents, err);
    free(contents);
    return code; /* the child ends now: closing a damaged file is one more chance to die */
}

/* Addresses that this process holds already do not count. */
static void limit_memory(int64_t file_bytes) {
    if (SANITIZED) return;
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%lu", &pages) != 1) pages = 0;
        fclose(f);
    }
    rlim_t most =
        ((rlim_t)4 << 30) + (rlim_t)file_bytes * 4 + (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    struct rlimit now;
    if (getrlimit(RLIMIT_AS, &now)) return;
    if (now.rlim_max != RLIM_INFINITY && most > now.rlim_max) most = now.rlim_max;
    setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
}

struct reading {
    const char *path, *const *what;
    int64_t bytes; /* of the file */
};

/* Answer: 'T' and packed tables, or 'E' and a sentence. */
static void read_work(void *ctx, struct text *out) {
    const struct reading *r = ctx;
    struct err err = {0};
    struct tables *ts = tables_create();
    setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS + 1});
    limit_memory(r->bytes);
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1); /* we only read; read-only disks have no locks */
    store_watch_memory();
    if (!file_to_tables(ts, r->path, r->what, &err)) {
        text_add(out, "T", 1);
        tables_pack(ts, out);
    } else if (store_lacked_memory()) { /* a file is not accused of it */
        text_puts(out, "Ethere is not enough memory to read it");
    } else {
        text_printf(out, "E%s", err.text);
    }
}

/* ---- in the parent */

static int child_verdict(int status, const char *path, struct err *err) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return err_set(
            err, ERR_INPUT,
            "%s: the HDF5 library did not end within %d s of CPU time: the file is damaged", path,
            (int)CPU_SECONDS);
    if (WIFSIGNALED(status))
        return err_set(err, ERR_INPUT,
                       "%s: the HDF5 library died reading it (signal %d): the file is damaged, or "
                       "memory ran out",
                       path, WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status))
        return err_set(err, ERR_INPUT,
                       "%s: reading it takes more memory than there is or is allowed, or failed "
                       "inside the HDF5 library: the file is damaged, or memory ran out",
                       path);
    return 0;
}

static int answer_use(struct tables **out, const struct text *answer, const char *path,
                      struct err *err) {
    if (answer->len && answer->data[0] == 'E')
        return err_set(err, ERR_INPUT, "%s: %s", path, answer->data + 1);
    if (!answer->len || answer->data[0] != 'T')
        return err_set(err, ERR_INPUT, "%s: nothing could be read", path);
    struct tables *ts = tables_create();
    struct err why = {0};
    if (tables_unpack(ts, answer->data + 1, answer->len - 1, &why)) {
        tables_close(&ts);
        return err_set(err, ERR_INPUT, "%s: %s", path, why.text);
    }
    *out = ts;
    return 0;
}

/* A foreign file is told without the library. */
static int look(const char *path, int64_t *bytes, struct err *err) {
    static const char signature[8] = "\x89HDF\r\n\x1a\n";
    char head[8] = "";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        err_system(err, errno, "cannot open %s", path);
        return err ? (err->code = ERR_INPUT) : ERR_INPUT;
    }
    bool file = !fstat(fd, &st) && S_ISREG(st.st_mode);
    ssize_t n = file ? read(fd, head, sizeof head) : 0;
    close(fd);
    if (!file) return err_set(err, ERR_INPUT, "%s is no file", path);
    *bytes = st.st_size;
    if (n == sizeof head && !memcmp(head, signature, sizeof head)) return 0;
    size_t len = strlen(path);
    bool journal = len > 8 && !strcmp(path + len - 8, ".journal");
    return err_set(err, ERR_INPUT, "%s is no HDF5 file%s", path,
                   journal ? ": bench resume makes a result of a journal" : "");
}

int store_read(struct tables **out, const char *path, const char *const *what, struct err *err) {
    *out = NULL;
    struct reading job = {.path = path, .what = what};
    struct text answer = {0};
    int status = 0, code = look(path, &job.bytes, err);
    if (code) return code;
    code = store_child(read_work, &job, WALL_SECONDS, "read", path, &answer, &status, err);
    if (!code) code = child_verdict(status, path, err);
    if (!code) code = answer_use(out, &answer, path, err);
    text_free(&answer);
    return code;
}
