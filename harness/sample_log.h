/* SPDX-License-Identifier: Apache-2.0 */
/* Samples on the way: memory of the supervisor that a worker writes, so that a dead worker's
 * partial visit is kept. */
#ifndef HARNESS_SAMPLE_LOG_H
#define HARNESS_SAMPLE_LOG_H
#include <stdatomic.h>
#include <stdint.h>

struct err;
struct tables;

enum { LABEL_OUTLIER = 1, LABEL_DISTURBED = 2, LABEL_THROTTLED = 4, LABEL_FAILED = 8 };
enum visit_stage { STAGE_IDLE, STAGE_PREPARE, STAGE_WARMUP, STAGE_SAMPLE, STAGE_WITNESS };
extern const char *const visit_stage_names[];

struct sample_head { /* counts are published after the records they count */
    _Atomic int64_t visit, stage, warmups, samples, marks, lost;
    _Atomic int64_t permille; /* of this visit's share, for the progress line */
    _Atomic int64_t spent_ns; /* in warm-up and samples: what of a visit is not set-up */
};
struct sample_record {
    int64_t wall_ns, device_ns, batch, labels;
};
struct sample_mark {
    int64_t t_ns;
    int32_t sample, mark, who, n;
};
#define LOG_MOST_WARMUPS ((int64_t)1 << 18)
#define LOG_MOST_SAMPLES ((int64_t)1 << 21)
#define LOG_MOST_MARKS   ((int64_t)1 << 23)

struct sample_log { /* a mapping; the memory behind it appears as it is touched */
    struct sample_head *head;
    int64_t *warmup;              /* (LOG_MOST_WARMUPS) wall_ns of one execution */
    struct sample_record *sample; /* (LOG_MOST_SAMPLES) */
    struct sample_mark *mark;     /* (LOG_MOST_MARKS) */
};
int sample_log_create(int *fd, struct sample_log *, struct err *); /* a sealed-size memfd, mapped */
int sample_log_map(int fd, struct sample_log *, struct err *);
void sample_log_unmap(struct sample_log *);
void sample_log_begin(struct sample_log *, int64_t visit); /* empties it and gives memory back */
/* Appends rows warmup, samples and marks for this visit. */
void sample_log_tables(const struct sample_log *, int64_t visit, struct tables *);

#endif
