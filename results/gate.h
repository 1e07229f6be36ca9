/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: rows of an old and a new side become verdicts with a ratio, an interval and a reason,
 * and all of them one exit code (measurement.md section 4). Nothing here measures or reads files.
 */
#ifndef RESULTS_GATE_H
#define RESULTS_GATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metric.h"
#include "base/option.h"

struct arena;
struct err;
struct text;

enum { GATE_AUTO, GATE_LOWER, GATE_HIGHER }; /* which way is better */
struct gate_settings {                       /* section [gate]; all optional */
    const char *metric;                      /* "" is time */
    const char *rows;                        /* condition "workload.batch=1"; "": all rows */
    int direction;                           /* GATE_AUTO: as the metric declares */
    double tolerance;                        /* change below which nobody cares: 0.01 */
    double detect;                           /* change that must be seen: 0.05; above tolerance */
    double max_blind;   /* share of blind rows beyond which the gate is undecided: 0.25 */
    double between_run; /* relative standard deviation between runs, as stated; 0: unknown */
    double alpha;       /* chance of a false alarm of a gate, all its attempts together: 0.005 */
    int64_t rounds;     /* at most: 40 */
    bool strict;        /* undecided rows end in exit 5 */
};
extern const struct option gate_options[];
/* What an attempt may spend of alpha: alpha / 2^k for the k-th one, k = repeats + 1, so that all
   attempts together spend alpha at most. */
double gate_alpha(const struct gate_settings *, int repeats);
/* What contradicts another: tolerance >= detect, more rows than `rounds` rounds of this attempt can
   judge. rows: how many will be judged; 0: not known yet. 0 or ERR_INPUT with one sentence. */
int gate_check(const struct gate_settings *, size_t rows, int repeats, struct err *);

enum gate_kind {
    GATE_LIVE,    /* rounds of both sides in one sitting: the always-valid test on their y */
    GATE_STORED,  /* files: an interval that includes the spread between runs */
    GATE_COMPARE, /* files: 95 % intervals of what is there; nothing is promised */
};
enum gate_verdict {
    GATE_PASS,         /* no slower than `detect` */
    GATE_FASTER,       /* (better) */
    GATE_SLOWER,       /* (worse) beyond tolerance: confirmed */
    GATE_UNDECIDED,    /* the interval allows both */
    GATE_BLIND,        /* undecided, and a change of `detect` could not be seen */
    GATE_INCOMPARABLE, /* facts differ */
    GATE_MISSING,      /* the new side has no such row */
    GATE_NEW,          /* the old side has none */
    GATE_STATE,        /* no numbers: the state is the verdict */
    N_GATE_VERDICTS
};
extern const char *const gate_verdict_names[N_GATE_VERDICTS];

struct gate_side {   /* GATE_STORED, GATE_COMPARE: logarithms of what the rounds of one side gave */
    double mean;     /* of the means of the runs */
    double variance; /* of that mean, from the rounds within runs */
    double df;       /* of that variance; 0: none known */
    size_t rounds, runs;
    double between; /* standard deviation of the runs' means; NAN below 2 runs */
};
/* One run's rounds (values, not logarithms) join a side; NAN and values <= 0 do not. */
void gate_side_add(struct gate_side *, const double *values, size_t n);

struct gate_row {
    /* Set by the caller; texts are copied by gate_add. */
    const char *name;            /* "decode b=1" */
    const char *cell;            /* identity, for machines */
    const char *metric;          /* "time" */
    const char *unit;            /* "ms" */
    enum better better;          /* BETTER_NONE: any change of an exact metric is worse */
    bool exact;                  /* judged by equality, no interval */
    bool in_old, in_new;         /* both, else missing or new */
    const char *state;           /* "" or ok; else "failed", "unit changed": instead of a verdict */
    const char *flags;           /* of both sides */
    const char *incomparable;    /* names of facts that differ; "" none */
    const char *why;             /* sentence of the caller, joined to the reason; "" none */
    double old_value, new_value; /* the metric's numbers, in unit; NAN where there are none */
    struct gate_side old_side, new_side;
    double between, between_df; /* from history: standard deviation of ln of a run's mean; 0 none */
    /* GATE_LIVE: by round, NAN where the row took no part; ln(new/old) of the metric. */
    double *y;     /* (n) trimmed means of quadruples: the only ones that are tested */
    double *means; /* (n) plain means */
    size_t n, cap;
    /* Set by gate_judge. */
    enum gate_verdict verdict;
    double ratio, lo, hi; /* new/old and its interval; NAN or infinite where there is none */
    size_t rounds;        /* that the verdict rests on */
    double s;             /* standard deviation of y */
    double detectable;    /* relative change, at the round limit; NAN unknown */
    size_t would_take;    /* rounds in all until a decision, if all stays as it is; 0 unknown */
    bool shape_changed;   /* the mean leaves the trimmed mean */
    bool no_change;       /* undecided: what was found lies between two equal programs */
    bool between_unknown; /* undecided because nobody knows the spread between runs */
    const char *reason;   /* one sentence; "" for a plain pass */
};

struct gate {
    struct arena *arena; /* owns all texts */
    enum gate_kind kind;
    struct gate_settings settings;
    int repeats;    /* this gate was run before so often (gate_alpha) */
    bool same_code; /* GATE_LIVE: both sides are the same machine code with the same settings */
    const char *title, *question, *old_name, *new_name; /* shown; may be NULL */
    struct gate_row *rows;                              /* (n_rows) in the order of gate_add */
    size_t n_rows, cap;
    size_t n_equal;      /* exact numbers that are equal on both sides: counted, not listed */
    struct gate_row all; /* the trimmed mean over the rows of each round; name "all rows" */
    bool has_all;
    double geometric; /* geometric mean of the ratios of rows ok on both sides */
    size_t n_geometric;
    const char **notes; /* (n_notes) sentences below the table */
    size_t n_notes, cap_notes;
    double factor, factor_bound; /* what gate_judge found last, and for which bound: it is dear */
};
struct gate *gate_create(enum gate_kind, const struct gate_settings *, int repeats);
void gate_close(struct gate **);
/* A row as the caller describes it (y is not taken: gate_round adds it); returns its index. */
size_t gate_add(struct gate *, const struct gate_row *);
/* What one round gave for a row: y and the plain mean of its quadruples; rounds count from 0. */
void gate_round(struct gate *, size_t row, size_t round, double y, double mean);
void gate_note(struct gate *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All verdicts from what is there now; call it after every round, as often as wanted. */
void gate_judge(struct gate *);
/* Whether a row needs further rounds: it is undecided, it passes and a few more would show that it
   is faster, or the line over all rows is undecided, which needs all of them. Ask after gate_judge.
 */
bool gate_open(const struct gate *, size_t row);
bool gate_done(const struct gate *); /* no row is open, or all have `rounds` rounds */
/* 0, 1 (a regression), 3 (incomplete), 4 (incomparable) or 5 (undecided), in this order of weight;
   never a count. A comparison has no regressions: it only says them. */
int gate_exit(const struct gate *);
/* How many rows have that verdict; the line over all rows is not among them. */
size_t gate_count(const struct gate *, enum gate_verdict);
/* "slower"; for exact metrics "worse" and "better"; for GATE_STATE the state. */
const char *gate_word(const struct gate_row *);
/* ln of the bound of evidence of this gate: ln(M / (2 gate_alpha)). */
double gate_ln_bound(const struct gate *);
/* Two-sided level of the shown intervals: 0.9995, or 0.95 for a comparison. */
double gate_level(const struct gate *);

/* What people and machines read. text: at most 100 columns; md: a GitHub table; json: strict;
   junit: XML of the common schema, undecided rows skipped. name: one of gate_formats. */
extern const char *const gate_formats[]; /* text, md, json, junit, NULL */
void gate_write(const struct gate *, const char *format, struct text *);
void gate_text(const struct gate *, struct text *);
void gate_markdown(const struct gate *, struct text *);
void gate_json(const struct gate *, struct text *);
void gate_junit(const struct gate *, struct text *);
/* "1 row slower, 2 missing"; "all rows pass". */
void gate_verdict_line(const struct gate *, struct text *);

#endif
