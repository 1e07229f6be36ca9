/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor: starts workers, orders visits, keeps what comes back or what a dead worker left.
 */
#include "harness/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/frame.h"
#include "base/text.h"
#include "harness/progress.h"
#include "harness/sample_log.h"
#include "harness/schedule.h"
#include "harness/snapshot.h"
#include "harness/worker.h"
#include "results/table.h"

#define SLOW_CLOCK 0.9       /* of the run's best: the visit is throttled */
enum { DEATH_CHECKS = 300 }; /* of 10 ms */
#define WAKE_MS  500         /* never more often: the supervisor must not disturb a sample */
#define START_NS 20000000000 /* a worker that says nothing for so long will not come */
#define END_NS   10000000000 /* one that does not end in that time after its last visit is ended */

struct child { /* a worker, or the one in this process */
    pid_t pid;
    int fd;
    int64_t number;        /* of workers started so far */
    bool last;             /* it answered for the last time */
    struct worker *inside; /* --no-isolate */
};
struct supervisor {
    struct supervision *s;
    const struct protocol *protocol;
    struct sample_log log;
    int log_fd, snapshot_fd;
    struct child child;
    int64_t started; /* workers */
    struct budget budget;
    struct progress progress;
    double best_clock;
    double earlier_s; /* what a resumed run had taken before */
    int64_t began_ns;
    bool virtual_clock; /* all points on one: their time is the budget's time */
};

static volatile sig_atomic_t asked_to_stop;
static void on_signal(int signal) {
    (void)signal;
    asked_to_stop = 1;
}

/* Waits until the worker has closed its end of the socket: a driver may hang while it is left. */
static bool ends_alone(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t until = clock_ns() + END_NS;
    shutdown(fd, SHUT_WR);
    while (clock_ns() < until && !asked_to_stop)
        if (poll(&p, 1, WAKE_MS) > 0) return true;
    return false;
}

static void child_end(struct supervisor *v, bool kill_it) {
    struct child *c = &v->child;
    worker_close(&c->inside);
    if (c->pid > 0) {
        if (kill_it || !ends_alone(c->fd)) kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (c->fd >= 0) close(c->fd);
    c->pid = 0;
    c->fd = -1;
    c->last = false;
}

/* In the child between fork and exec: only calls that are safe there. */
static void become_worker(int fd, int log_fd, int snapshot_fd, char *number) {
    enum { FD = 10, LOG = 11, SNAPSHOT = 12 };
    static char *const argv[] = {"bench", "worker",        "--fd", "10", "--log-fd",
                                 "11",    "--snapshot-fd", "12",   NULL};
    int high = fcntl(fd, F_DUPFD, 20), high_log = fcntl(log_fd, F_DUPFD, 20),
        high_snapshot = fcntl(snapshot_fd, F_DUPFD, 20);
    if (high < 0 || high_log < 0 || high_snapshot < 0) _exit(127);
    if (dup2(high, FD) < 0 || dup2(high_log, LOG) < 0 || dup2(high_snapshot, SNAPSHOT) < 0)
        _exit(127);
    close(high), close(high_log), close(high_snapshot);
    setenv("BENCH_FAKE_WORKER", number, 1);
    execv("/proc/self/exe", argv);
    _exit(127);
}

static int child_start(struct supervisor *v, struct err *err) {
    struct child *c = &v->child;
    c->number = v->started++;
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, c->number);
    if (v->s->no_isolate) {
        setenv("BENCH_FAKE_WORKER", number, 1);
        return worker_open(&c->inside, v->snapshot_fd, &v->log, err);
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_system(err, errno, "cannot make a socket");
    c->pid = fork();
    if (c->pid == 0) become_worker(pair[1], v->log_fd, v->snapshot_fd, number);
    close(pair[1]);
    c->fd = pair[0];
    if (c->pid < 0) return err_system(err, errno, "cannot start a worker");
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int64_t until = clock_ns() + START_NS;
    while (clock_ns() < until && !asked_to_stop) {
        if (poll(&p, 1, WAKE_MS) <= 0) continue;
        uint32_t kind = 0;
        char *body = NULL;
        size_t len;
        int code = frame_read(c->fd, &kind, &body, &len, err);
        free(body);
        if (code || kind != MESSAGE_HELLO) break;
        return 0;
    }
    child_end(v, true);
    return err_set(err, asked_to_stop ? ERR_INTERRUPTED : ERR_INTERNAL, "a worker did not start");
}

/* What a dead worker left: its visit with a reason; the samples in shared memory stay. */
static void died(struct supervisor *v, const struct scheduled *at, const char *state,
                 const char *reason, int64_t began_ns, struct tables *out) {
    struct table *t = tables_get(out, "visits");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", at->visit);
    table_set_i64(t, row, "point", at->point);
    table_set_i64(t, row, "round", at->round);
    table_set_i64(t, row, "position", at->position);
    table_set_i64(t, row, "control", at->control);
    table_set_i64(t, row, "worker", v->child.number);
    table_set_f64(t, row, "seconds", (double)(clock_ns() - began_ns) * 1e-9);
    table_set_i64(t, row, "warmups", v->log.head->warmups);
    table_set_i64(t, row, "samples", v->log.head->samples);
    table_set_i64(t, row, "batch", 1);
    table_set_text(t, row, "steady", "no");
    table_set_text(t, row, "why_stopped", reason);
    table_set_text(t, row, "state", state);
    table_set_text(t, row, "reason", reason);
}

static void describe_death(struct supervisor *v, char *out, size_t size) {
    int status = 0;
    pid_t pid = v->child.pid;
    v->child.pid = 0;
    /* It is dead or dying; one that only talks nonsense is ended after a grace. */
    for (int i = 0; i < DEATH_CHECKS; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) break;
        if (i == DEATH_CHECKS - 1) {
            kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        }
        usleep(10000);
    }
    int64_t stage = v->log.head->stage;
    const char *where = stage >= 0 && stage <= STAGE_WITNESS ? visit_stage_names[stage] : "?";
    if (WIFSIGNALED(status)) {
        int signal = WTERMSIG(status);
        snprintf(out, size,
                 "the worker was ended by signal %d (%s%s) at stage '%s'; %" PRId64
                 " samples are kept",
                 signal, strsignal(signal),
                 signal == SIGKILL ? ", perhaps by the kernel for want of memory" : "", where,
                 (int64_t)v->log.head->samples);
    } else {
        snprintf(out, size, "the worker exited with %d at stage '%s'; %" PRId64 " samples are kept",
                 WEXITSTATUS(status), where, (int64_t)v->log.head->samples);
    }
}

static double fraction_of(const struct supervisor *v, int64_t now_extra_ns) {
    return (double)(v->budget.elapsed_ns + now_extra_ns) /
           (double)(v->budget.budget_ns > 0 ? v->budget.budget_ns : 1);
}

/* Waits for the answer. 0: *body is the answer; 1: the worker died or was ended (its visit is in
 * out); code in err. */
static int await(struct supervisor *v, const struct scheduled *at, const struct point *point,
                 int64_t began_ns, char **body, size_t *len, struct tables *out) {
    struct pollfd p = {.fd = v->child.fd, .events = POLLIN};
    char reason[300];
    for (;;) {
        int n = poll(&p, 1, WAKE_MS);
        int64_t waited = clock_ns() - began_ns;
        if (asked_to_stop) {
            child_end(v, true);
            return 1;
        }
        if (n > 0) break;
        double left = (double)(v->budget.budget_ns - v->budget.elapsed_ns - waited) * 1e-9;
        progress_show(&v->progress, at->round, v->budget.rounds, point->label,
                      fraction_of(v, waited), left > 0 ? left : 0);
        if (waited > v->protocol->measure.timeout_ns) {
            kill(v->child.pid, SIGKILL);
            snprintf(
                reason, sizeof reason,
                "no answer within measure.timeout = %g s (stage '%s'); %" PRId64
                " samples are kept",
                (double)v->protocol->measure.timeout_ns * 1e-9,
                visit_stage_names[v->log.head->stage <= STAGE_WITNESS ? v->log.head->stage : 0],
                (int64_t)v->log.head->samples);
            died(v, at, "timeout", reason, began_ns, out);
            child_end(v, true);
            return 1;
        }
    }
    uint32_t kind = 0;
    struct err err = {0};
    if (frame_read(v->child.fd, &kind, body, len, &err) == 0 && *body &&
        (kind == MESSAGE_DONE || kind == MESSAGE_LAST)) {
        v->child.last = kind == MESSAGE_LAST;
        return 0;
    }
    free(*body);
    *body = NULL;
    describe_death(v, reason, sizeof reason);
    died(v, at, "failed", reason, began_ns, out);
    child_end(v, true);
    return 1;
}

static void add_word(struct table *t, int64_t row, const char *column, const char *separator,
                     const char *word) {
    struct text all = {0};
    const char *before = table_text(t, row, column);
    text_printf(&all, "%s%s%s", before, *before ? separator : "", word);
    table_set_text(t, row, column, all.data);
    text_free(&all);
}

static double value_named(const struct table *values, const char *metric) {
    double v = NAN;
    for (int64_t i = 0; i < table_rows(values); i++)
        if (!strcmp(table_text(values, i, "metric"), metric)) v = table_real(values, i, "value");
    return v;
}

static void throttled(struct sample_log *log, struct table *visits, const char *reason) {
    for (int64_t i = 0; i < table_rows(visits); i++) {
        add_word(visits, i, "flags", " ", "throttled");
        add_word(visits, i, "reason", "; ", reason);
    }
    for (int64_t i = 0; i < log->head->samples; i++) log->sample[i].labels |= LABEL_THROTTLED;
}

void supervisor_note_clock(double *best, struct sample_log *log, struct tables *out) {
    struct table *values = tables_get(out, "values"), *visits = tables_get(out, "visits");
    const double rate = value_named(values, "clock_rate"),
                 slowed = value_named(values, "nvml.slowed");
    char reason[120] = "";
    if (rate > *best) *best = rate;
    const double ratio = rate / *best;
    for (int64_t i = 0; rate > 0 && i < table_rows(visits); i++)
        table_set_f64(visits, i, "clock_ratio", ratio);
    if (slowed > 0)
        snprintf(reason, sizeof reason,
                 "throttled: the GPU named a power or heat limit during the samples");
    else if (ratio < SLOW_CLOCK)
        snprintf(reason, sizeof reason, "throttled: the clock is at %.0f %% of the run's best",
                 100 * ratio);
    if (*reason) throttled(log, visits, reason);
}

/* Seconds since the run began; a resumed run goes on where its journal ends, a virtual clock is the
 * sum of its visits. */
static double seconds_of_run(const struct supervisor *v) {
    return v->earlier_s +
           1e-9 * (double)(v->virtual_clock ? v->budget.elapsed_ns : clock_ns() - v->began_ns);
}

static double end_of_visits(const struct tables *earlier) {
    const struct table *t = earlier ? tables_peek(earlier, "visits") : NULL;
    double end = 0;
    for (int64_t i = 0; t && i < table_rows(t); i++) {
        double at = table_real(t, i, "t0") + table_real(t, i, "seconds");
        if (at > end) end = at; /* not where it is no number */
    }
    return end;
}

static int visit(struct supervisor *v, const struct scheduled *at, int64_t visits_left,
                 struct err *err) {
    const struct point *point = &v->protocol->points[at->point];
    if (!v->child.inside && v->child.fd < 0) {
        int code = child_start(v, err);
        if (code) return code;
    }
    struct visit_order order = {.visit = at->visit,
                                .round = at->round,
                                .position = at->position,
                                .control = at->control,
                                .worker = v->child.number,
                                .share_ns = budget_share(&v->budget, visits_left)};
    struct facts request = {0};
    struct text body = {0};
    struct tables *out = tables_create();
    char *answer = NULL;
    size_t len = 0;
    int code = 0;
    int64_t began_ns = clock_ns();
    double t0 = seconds_of_run(v);
    visit_pack(&request, &order, &v->protocol->measure, point);
    progress_show(&v->progress, at->round, v->budget.rounds, point->label, fraction_of(v, 0),
                  (double)(v->budget.budget_ns - v->budget.elapsed_ns) * 1e-9);
    if (v->child.inside) {
        code = worker_visit(v->child.inside, &request, out, err);
    } else {
        struct err trouble = {0};
        sample_log_begin(
            &v->log,
            at->visit); /* so that a worker that dies at once leaves nothing of the visit before */
        facts_pack(&body, &request);
        frame_write(v->child.fd, MESSAGE_VISIT, body.data, body.len,
                    &trouble); /* a failure shows as the worker's end */
        if (await(v, at, point, began_ns, &answer, &len, out) == 0)
            code = tables_unpack(out, answer, len, err);
        if (v->child.last) child_end(v, false); /* the next visit has a fresh one */
    }
    if (asked_to_stop && table_rows(tables_get(out, "visits")) == 0)
        goto out; /* given up: resume measures it again */
    if (!code) {
        struct table *visits = tables_get(out, "visits");
        for (int64_t i = 0; i < table_rows(visits); i++) table_set_f64(visits, i, "t0", t0);
        supervisor_note_clock(&v->best_clock, &v->log, out);
        sample_log_tables(&v->log, at->visit, out);
        code = journal_append(v->s->journal, JOURNAL_VISIT, out, err);
        double seconds = table_real(visits, 0, "seconds");
        int64_t took =
            v->virtual_clock && seconds >= 0 ? (int64_t)(seconds * 1e9) : clock_ns() - began_ns;
        budget_spent(&v->budget, took, v->log.head->spent_ns);
    }
out:
    free(answer);
    text_free(&body);
    facts_free(&request);
    tables_close(&out);
    return code;
}

/* Which visits a resumed journal holds (n flags), or NULL. */
static bool *visits_done(const struct tables *earlier, int64_t n) {
    if (!earlier) return NULL;
    const struct table *t = tables_peek(earlier, "visits");
    const int64_t *visit = table_see_i64(t, "visit");
    bool *done = must_alloc((size_t)n);
    for (int64_t i = 0; i < table_rows(t); i++) {
        if (visit[i] >= 0 && visit[i] < n) done[visit[i]] = true;
    }
    return done;
}

/* Whether everything planned was measured, counting what a resumed journal holds. */
static int rounds(struct supervisor *v, struct err *err) {
    int64_t most = v->budget.rounds * ((int64_t)v->protocol->n_points + 1);
    bool *held = visits_done(v->s->earlier, most);
    int code = 0;
    for (int64_t r = 0; r < v->budget.rounds && !asked_to_stop; r++) {
        int64_t n, before_ns = v->budget.elapsed_ns;
        struct scheduled *visits = schedule_round(v->protocol, r, &n);
        bool any = false;
        for (int64_t i = 0; i < n && !code && !asked_to_stop; i++) {
            if (held && held[visits[i].visit]) continue;
            any = true;
            code = visit(v, &visits[i], (n - i) + (v->budget.rounds - r - 1) * n, err);
        }
        free(visits);
        if (code) break;
        if (v->protocol->measure.fresh == FRESH_ROUND) child_end(v, false);
        if (asked_to_stop) break;
        int64_t round_ns = v->budget.elapsed_ns - before_ns;
        if (any && !v->progress.terminal)
            progress_line(&v->progress,
                          "  round %" PRId64 "/%" PRId64 " done: %" PRId64 " visits in %.1f s",
                          r + 1, v->budget.rounds, n, (double)round_ns * 1e-9);
        if (any && !budget_another(&v->budget, r + 1, round_ns)) break;
    }
    free(held);
    v->s->complete = !asked_to_stop && !code;
    snprintf(v->s->why_ended, sizeof v->s->why_ended, "%s",
             asked_to_stop       ? "interrupted"
             : v->budget.note[0] ? v->budget.note
                                 : "all planned rounds");
    return code;
}

int supervise(struct supervision *s, struct err *err) {
    struct supervisor v = {
        .s = s, .protocol = s->protocol, .log_fd = -1, .snapshot_fd = -1, .child = {.fd = -1}};
    struct sigaction action = {.sa_handler = on_signal}, old_int, old_term, old_hup, old_pipe,
                     ignore = {.sa_handler = SIG_IGN};
    int64_t room = memory_limit() / 4;
    asked_to_stop = 0;
    v.virtual_clock = true;
    for (size_t i = 0; i < s->protocol->n_points; i++) {
        if (!(s->protocol->points[i].device->has & DEV_VIRTUAL_CLOCK)) v.virtual_clock = false;
    }
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    sigaction(SIGHUP, NULL, &old_hup);
    if (old_hup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL); /* nohup is respected */
    sigaction(SIGPIPE, &ignore, &old_pipe);
    budget_begin(&v.budget, s->protocol);
    v.began_ns = clock_ns();
    v.earlier_s = end_of_visits(s->earlier);
    progress_begin(&v.progress, s->quiet);
    int code = sample_log_create(&v.log_fd, &v.log, err);
    if (!code)
        code = snapshot_create(&v.snapshot_fd, room > 0 ? (size_t)room : (size_t)1 << 30, err);
    if (!code) code = rounds(&v, err);
    child_end(&v, code != 0 || asked_to_stop);
    progress_end(&v.progress);
    s->interrupted = asked_to_stop;
    if (asked_to_stop && code == ERR_INTERRUPTED) code = 0;
    sample_log_unmap(&v.log);
    if (v.log_fd >= 0) close(v.log_fd);
    if (v.snapshot_fd >= 0) close(v.snapshot_fd);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    sigaction(SIGHUP, &old_hup, NULL);
    sigaction(SIGPIPE, &old_pipe, NULL);
    return code;
}
