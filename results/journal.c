/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: frames of packed tables, appended and synced one per visit, read back as far as they
 * are whole. */
#include "results/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/frame.h"
#include "base/text.h"

struct journal {
    int fd;
    int64_t whole; /* bytes of whole frames: where a failed append is cut off again */
    char *path;
};

enum tail { TAIL_FRAME, TAIL_END, TAIL_TORN, TAIL_ROTTEN };

/* What stands at `at`: a frame that fits (its hash is not looked at), the end, what a crash leaves,
 * or damage. */
static enum tail tail_at(int fd, int64_t at, int64_t size) {
    int64_t left = size - at;
    if (!left) return TAIL_END;
    struct frame_head head;
    if (left < (int64_t)sizeof head) return TAIL_TORN;
    if (pread(fd, &head, sizeof head, at) != (ssize_t)sizeof head) return TAIL_ROTTEN;
    if (head.magic == FRAME_MAGIC)
        return head.length > (uint64_t)(left - (int64_t)sizeof head) ? TAIL_TORN : TAIL_FRAME;
    /* After a power cut a file may be as long as it should be, and zero. */
    char block[4096];
    for (ssize_t n; at < size; at += n) {
        n = pread(fd, block, sizeof block, at);
        if (n <= 0) return TAIL_ROTTEN;
        for (ssize_t i = 0; i < n; i++)
            if (block[i]) return TAIL_ROTTEN;
    }
    return TAIL_TORN;
}

/* Updates of points, and of phases: later rows of the same index overwrite what they carry, and
 * only that. second: a further key, or NULL. */
static void rows_merge(struct table *t, int64_t first, const char *second) {
    int64_t n = table_rows(t);
    for (int64_t r = first; r < n; r++) {
        int64_t point = table_int(t, r, "point"), to = 0;
        while (to < first && (table_int(t, to, "point") != point ||
                              (second && table_int(t, to, second) != table_int(t, r, second))))
            to++;
        if (to == first) continue; /* an update of a row that was never declared says nothing */
        for (size_t k = 0; k < table_columns(t); k++) {
            const struct column *c = table_column_at(t, k);
            int64_t i = table_int(t, r, c->name);
            const char *s = table_text(t, r, c->name);
            if (c->type == COL_I64 && i != I64_NONE) table_set_i64(t, to, c->name, i);
            if (c->type == COL_TEXT && *s) table_set_text(t, to, c->name, s);
            if (c->type == COL_F64 && !isnan(table_real(t, r, c->name)))
                table_set_f64(t, to, c->name, table_real(t, r, c->name));
        }
    }
    table_cut(t, first);
}

/* Several frames carry meta: one row a key, the last value. */
static void meta_merge(struct table *t) {
    int64_t kept = 0;
    for (int64_t r = 0; r < table_rows(t); r++) {
        const char *key = table_text(t, r, "key"), *value = table_text(t, r, "value");
        int64_t to = 0;
        while (to < kept && strcmp(table_text(t, to, "key"), key)) to++;
        table_set_text(t, to, "key", key);
        table_set_text(t, to, "value", value);
        if (to == kept) kept++;
    }
    table_cut(t, kept);
}

static int frame_apply(struct tables *ts, uint32_t kind, const char *body, size_t len,
                       int64_t frames, struct err *err) {
    if (kind < JOURNAL_HEAD || kind > JOURNAL_END)
        return err_set(err, ERR_INPUT,
                       "a frame of unknown kind %" PRIu32 ": written by a newer version", kind);
    if ((frames == 0) != (kind == JOURNAL_HEAD))
        return err_set(err, ERR_INPUT, "it is no journal: the head is not its first frame");
    struct table *points = tables_get(ts, "points"), *phases = tables_get(ts, "phases");
    int64_t first = table_rows(points), first_phase = table_rows(phases);
    if (tables_unpack(ts, body, len, err)) return err ? err->code : ERR_INPUT;
    if (kind == JOURNAL_HEAD) return 0;
    rows_merge(points, first, NULL);
    rows_merge(phases, first_phase, "phase");
    return 0;
}

/* Walks over the whole frames of fd; ts may be NULL. *whole: where the first torn byte lies, or the
 * end. */
static int journal_walk(int fd, const char *path, struct tables *ts, int64_t *visits, int *torn,
                        int64_t *whole, struct err *err) {
    struct stat st;
    if (fstat(fd, &st)) return err_system(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode)) return err_set(err, ERR_INPUT, "%s is no file", path);
    int64_t frames = 0;
    *visits = *whole = 0;
    *torn = 0;
    for (;; frames++) {
        enum tail tail = tail_at(fd, *whole, st.st_size);
        if (tail == TAIL_END) break;
        if (tail == TAIL_TORN) {
            *torn = 1;
            break;
        }
        char *body = NULL;
        size_t len = 0;
        uint32_t kind = 0;
        if (lseek(fd, *whole, SEEK_SET) < 0) return err_system(err, errno, "%s", path);
        struct err why = {0};
        bool bad = tail == TAIL_ROTTEN || frame_read(fd, &kind, &body, &len, &why);
        int64_t next = lseek(fd, 0, SEEK_CUR);
        if (bad && tail == TAIL_FRAME && frames && next >= st.st_size) {
            free(body);
            *torn = 1; /* the last frame, of the right length but not all written */
            break;
        }
        if (bad) {
            free(body);
            if (!frames) return err_set(err, ERR_INPUT, "%s is no journal", path);
            return err_set(err, ERR_INPUT, "%s is damaged at byte %" PRId64, path, *whole);
        }
        int code = 0;
        if (ts && (code = frame_apply(ts, kind, body, len, frames, &why)))
            err_set(err, code, "%s, byte %" PRId64 ": %s", path, *whole, why.text);
        free(body);
        if (code) return code;
        *visits += kind == JOURNAL_VISIT;
        *whole = next;
    }
    if (!frames) return err_set(err, ERR_INPUT, "%s is no journal, or holds nothing yet", path);
    if (ts) meta_merge(tables_get(ts, "meta"));
    return 0;
}

/* So that the name survives a crash too. Failure is harmless: the content is synced anyway. */
static void sync_folder(const char *path) {
    char *folder = must_text(path), *slash = strrchr(folder, '/');
    if (slash == folder)
        slash[1] = 0;
    else if (slash)
        *slash = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

static struct journal *journal_of(int fd, const char *path) {
    struct journal *j = must_alloc(sizeof *j);
    j->fd = fd;
    j->path = must_text(path);
    return j;
}

int journal_create(struct journal **out, const char *path, struct err *err) {
    *out = NULL;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return err_system(err, errno, "cannot write %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        err_system(err, errno, "cannot lock %s", path);
        close(fd);
        unlink(path);
        return ERR_SYSTEM;
    }
    sync_folder(path);
    *out = journal_of(fd, path);
    return 0;
}

int journal_resume(struct journal **out, const char *path, struct err *err) {
    *out = NULL;
    int64_t visits, whole = 0;
    int torn, code = 0;
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return err_system(err, errno, "cannot open %s", path);
    if (flock(fd, LOCK_EX | LOCK_NB))
        code = errno == EWOULDBLOCK
                   ? err_set(err, ERR_INPUT, "%s: another process is writing it", path)
                   : err_system(err, errno, "cannot lock %s", path);
    if (!code) code = journal_walk(fd, path, NULL, &visits, &torn, &whole, err);
    if (!code && torn && (ftruncate(fd, whole) || fdatasync(fd)))
        code = err_system(err, errno, "cannot cut the torn end off %s", path);
    if (code) {
        close(fd);
        return code;
    }
    *out = journal_of(fd, path);
    (*out)->whole = whole;
    return 0;
}

int journal_append(struct journal *j, enum journal_kind kind, const struct tables *ts,
                   struct err *err) {
    struct text body = {0};
    tables_pack(ts, &body);
    int code = frame_write(j->fd, (uint32_t)kind, body.data, body.len, err);
    if (!code && fdatasync(j->fd)) code = err_system(err, errno, "cannot sync");
    if (code) {
        /* A full disk: what is there stays readable, and a later append can follow. */
        if (ftruncate(j->fd, j->whole)) err_prefix(err, "and its torn end could not be cut off");
        err_prefix(err, "%s", j->path);
    } else {
        j->whole += (int64_t)(sizeof(struct frame_head) + body.len);
    }
    text_free(&body);
    return code;
}

void journal_close(struct journal **journal) {
    if (!*journal) return;
    close((*journal)->fd);
    free((*journal)->path);
    free(*journal);
    *journal = NULL;
}

int journal_read(const char *path, struct tables *ts, int64_t *visits, int *torn, struct err *err) {
    int64_t whole, count = 0;
    int cut = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang us */
    if (fd < 0) return err_system(err, errno, "cannot open %s", path);
    int code = journal_walk(fd, path, ts, &count, &cut, &whole, err);
    close(fd);
    if (visits) *visits = count;
    if (torn) *torn = cut;
    return code;
}

bool journal_holds_visits(const char *path) {
    int64_t visits = 0;
    return !journal_read(path, NULL, &visits, NULL, NULL) && visits > 0;
}
