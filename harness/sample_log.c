/* SPDX-License-Identifier: Apache-2.0 */
/* Samples on the way: one shared mapping, written by the worker and read by the supervisor. */
#include "harness/sample_log.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "results/table.h"

const char *const visit_stage_names[] = {"idle", "prepare", "warm-up", "sample", "witness"};

#define HEAD_BYTES   4096
#define WARMUP_BYTES ((size_t)LOG_MOST_WARMUPS * sizeof(int64_t))
#define SAMPLE_BYTES ((size_t)LOG_MOST_SAMPLES * sizeof(struct sample_record))
#define MARK_BYTES   ((size_t)LOG_MOST_MARKS * sizeof(struct sample_mark))
#define LOG_BYTES    (HEAD_BYTES + WARMUP_BYTES + SAMPLE_BYTES + MARK_BYTES)

int sample_log_map(int fd, struct sample_log *log, struct err *err) {
    char *at = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return err_system(err, errno, "cannot map the sample memory");
    log->head = (struct sample_head *)(void *)at;
    log->warmup = (int64_t *)(void *)(at + HEAD_BYTES);
    log->sample = (struct sample_record *)(void *)(at + HEAD_BYTES + WARMUP_BYTES);
    log->mark = (struct sample_mark *)(void *)(at + HEAD_BYTES + WARMUP_BYTES + SAMPLE_BYTES);
    return 0;
}

int sample_log_create(int *fd, struct sample_log *log, struct err *err) {
    *fd = memfd_create("bench-samples", MFD_CLOEXEC);
    if (*fd < 0) return err_system(err, errno, "cannot create the sample memory");
    if (ftruncate(*fd, (off_t)LOG_BYTES))
        return err_system(err, errno, "cannot size the sample memory");
    return sample_log_map(*fd, log, err);
}

void sample_log_unmap(struct sample_log *log) {
    if (log->head) munmap(log->head, LOG_BYTES);
    *log = (struct sample_log){0};
}

void sample_log_begin(struct sample_log *log, int64_t visit) {
    struct sample_head *head = log->head;
    /* Keep what a short visit touches; give back what a long one left behind. */
    if (head->samples > 4096 || head->marks > 4096) {
        madvise(log->warmup, WARMUP_BYTES + SAMPLE_BYTES + MARK_BYTES, MADV_REMOVE);
    }
    head->warmups = head->samples = head->marks = head->lost = head->permille = head->spent_ns = 0;
    head->stage = STAGE_IDLE;
    head->visit = visit;
}

void sample_log_tables(const struct sample_log *log, int64_t visit, struct tables *tables) {
    int64_t n_warm = log->head->warmups, n = log->head->samples, n_marks = log->head->marks;
    struct table *t = tables_get(tables, "warmup");
    int64_t at = table_add(t, n_warm);
    int64_t *of = table_i64(t, "visit") + at, *order = table_i64(t, "order") + at,
            *wall = table_i64(t, "wall_ns") + at;
    for (int64_t i = 0; i < n_warm; i++) {
        of[i] = visit;
        order[i] = i;
        wall[i] = log->warmup[i];
    }
    t = tables_get(tables, "samples");
    at = table_add(t, n);
    of = table_i64(t, "visit") + at, order = table_i64(t, "order") + at,
    wall = table_i64(t, "wall_ns") + at;
    int64_t *batch = table_i64(t, "batch") + at, *device = table_i64(t, "device_ns") + at;
    int64_t *labels = table_i64(t, "labels") + at;
    for (int64_t i = 0; i < n; i++) {
        const struct sample_record *s = &log->sample[i];
        of[i] = visit;
        order[i] = i;
        batch[i] = s->batch;
        wall[i] = s->wall_ns;
        device[i] = s->device_ns;
        labels[i] = s->labels;
    }
    t = tables_get(tables, "marks");
    at = table_add(t, n_marks);
    of = table_i64(t, "visit") + at;
    int64_t *sample = table_i64(t, "sample") + at, *mark = table_i64(t, "mark") + at,
            *who = table_i64(t, "who") + at;
    int64_t *count = table_i64(t, "n") + at, *t_ns = table_i64(t, "t_ns") + at;
    for (int64_t i = 0; i < n_marks; i++) {
        const struct sample_mark *m = &log->mark[i];
        of[i] = visit;
        sample[i] = m->sample;
        mark[i] = m->mark;
        who[i] = m->who;
        count[i] = m->n;
        t_ns[i] = m->t_ns;
    }
}
