/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as other tools' formats see them: tests of a language model, their executions, their facts;
 * and what a format leaves out. */
#ifndef RESULTS_FOREIGN_H
#define RESULTS_FOREIGN_H
#include "base/text.h"
#include "results/summary_parts.h"

struct err;

struct foreign { /* one export */
    const struct tables *ts;
    const struct table *points;
    const char *format; /* its name, for what is said */
    struct summary_index x;
    int64_t n_points;
    int64_t *first, *n; /* (n_points): the point's facts in the table `protocol` */
    struct foreign_left {
        const char *why; /* static: "without a time" */
        struct text names;
        int64_t n;
    } left[16];
    size_t n_left;
    struct series times; /* of foreign_times */
};
void foreign_open(struct foreign *, const struct tables *, const char *format);
/* Says what was left out, one sentence a reason, and frees. rows: how many were written; ERR_INPUT if
 * none of a result was. */
int foreign_close(struct foreign *, size_t rows, struct text *lost, struct err *);
/* "it leaves out 2 rows WHY", and which. */
void foreign_leave(struct foreign *, int64_t point, const char *why);
/* Case and label, as show names a row. */
void foreign_name(const struct foreign *, int64_t point, struct text *);

/* A fact of the point; NULL if there is none. */
const char *foreign_fact(const struct foreign *, int64_t point, const char *key);
/* The same as a whole number; I64_NONE if it is none. */
int64_t foreign_int(const struct foreign *, int64_t point, const char *key);

/* false: the row's state lets it have no numbers; it is left out and said. */
bool foreign_usable(struct foreign *, int64_t point);

/* A row that reads n_prompt tokens and then generates n_gen tokens, one step each, in each of
   `batch` sequences that hold n_depth tokens before. */
struct foreign_test {
    int64_t n_prompt, n_gen, n_depth, batch;
    const char *odd; /* why the work is not that of these lengths; NULL if it is */
};
/* false: the row is no such test, or has no numbers; it is left out and said. */
bool foreign_test(struct foreign *, int64_t point, struct foreign_test *);
/* Whether the row ran on that kind of device. */
bool foreign_ran(const struct foreign *, int64_t point, const char *kind);
/* ns of the row's executions in order: f->times; the number of them. */
size_t foreign_times(struct foreign *, int64_t point);

/* Whether samples of the row hold several executions, of which the mean is known only. */
bool foreign_batched(const struct foreign *, int64_t point);

/* A row as requests that come together, `batch` an execution; zero-initialise. */
struct foreign_requests {
    struct series tokens[N_TOKEN_METRICS]; /* ms, tokens: values of all requests */
    size_t n;                              /* requests that were answered */
    int64_t failed, n_prompt;              /* requests; tokens of a prompt */
    double seconds;                        /* of all executions, one after another */
};
/* false: the row has no such requests; it is left out and said. */
bool foreign_requests(struct foreign *, int64_t point, struct foreign_requests *);
void foreign_requests_free(struct foreign_requests *);

/* JSON: a number, null where there is none. */
void foreign_number(struct text *, double);
void foreign_whole(struct text *, int64_t); /* null for I64_NONE */
/* Type 7; NAN where too few values stand behind it (as in the summary, and the same at both ends).
   Reorders x. */
double foreign_quantile(double *x, size_t n, double q);

#endif
