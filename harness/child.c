/* SPDX-License-Identifier: Apache-2.0 */
/* A worker as its supervisor holds it: from fork to the last sentence about it. */
#include "harness/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "base/facts.h"
#include "base/frame.h"
#include "base/text.h"
#include "harness/worker.h"
#include "results/table.h"

enum { DEATH_CHECKS = 300 }; /* of 10 ms */
#define START_NS 20000000000 /* a worker that says nothing for so long will not come */
#define REST_NS  20000000000 /* the rest of an answer that has begun comes in that time */
#define END_NS   10000000000 /* one that does not end in that time after its last visit is ended */

struct stop_watch {
    struct sigaction old_int, old_term, old_hup, old_pipe;
};
static volatile sig_atomic_t asked_to_stop;
static void on_signal(int signal) {
    (void)signal;
    asked_to_stop = 1;
}

bool stop_asked(void) { return asked_to_stop; }

struct stop_watch *stop_watch(void) {
    struct stop_watch *w = must_alloc(sizeof *w);
    struct sigaction action = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    asked_to_stop = 0;
    sigaction(SIGINT, &action, &w->old_int);
    sigaction(SIGTERM, &action, &w->old_term);
    sigaction(SIGHUP, NULL, &w->old_hup);
    if (w->old_hup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL); /* nohup is respected */
    sigaction(SIGPIPE, &ignore, &w->old_pipe);
    return w;
}

void stop_unwatch(struct stop_watch **watch) {
    struct stop_watch *w = *watch;
    sigaction(SIGINT, &w->old_int, NULL);
    sigaction(SIGTERM, &w->old_term, NULL);
    sigaction(SIGHUP, &w->old_hup, NULL);
    sigaction(SIGPIPE, &w->old_pipe, NULL);
    free(w);
    *watch = NULL;
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

bool child_runs(const struct child *c) { return c->inside || c->fd >= 0; }

void child_end(struct child *c, bool kill_it) {
    worker_close(&c->inside);
    if (c->pid > 0) {
        if (kill_it || !ends_alone(c->fd)) kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (c->fd >= 0) close(c->fd);
    c->pid = 0;
    c->fd = -1;
}

/* In the child between fork and exec: only calls that are safe there. */
static void become_worker(const struct child *c, int fd, char *number) {
    enum { FD = 10, LOG, SNAPSHOT, WEIGHTS, N = 4 };
    char *argv[] = {"bench",         "worker", "--fd",         "10", "--log-fd", "11",
                    "--snapshot-fd", "12",     "--weights-fd", "13", NULL};
    const int given[N] = {fd, c->memory->log_fd, c->memory->snapshot_fd, c->memory->weights_fd};
    int high[N];
    for (int i = 0; i < N; i++) /* clear of the numbers that they will have */
        if ((high[i] = given[i] < 0 ? -1 : fcntl(given[i], F_DUPFD, 20)) < 0 && given[i] >= 0)
            _exit(127);
    for (int i = 0; i < N; i++) {
        if (high[i] < 0) continue;
        if (dup2(high[i], FD + i) < 0) _exit(127);
        close(high[i]);
    }
    if (given[N - 1] < 0) argv[8] = NULL;
    /* Another program may be none of ours: what it prints belongs among no results. */
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    setenv("BENCH_FAKE_WORKER", number, 1);
    execv(c->binary ? c->binary : "/proc/self/exe", argv);
    _exit(127);
}

static const char *name_of(const struct child *c) {
    return c->binary ? c->binary : "this program's worker";
}

/* How a program ended that never spoke, within its brackets; it is no more to be waited for. */
static void how_it_ended(struct child *c, char *out, size_t size) {
    int status = 0;
    snprintf(out, size, "it said nothing");
    for (int i = 0; i < DEATH_CHECKS && c->pid > 0; i++) {
        if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
            c->pid = 0;
            if (WIFSIGNALED(status))
                snprintf(out, size, "it was ended by signal %d, %s", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
            else
                snprintf(out, size, "it exited with %d", WEXITSTATUS(status));
        } else {
            usleep(10000);
        }
    }
}

static int no_worker(struct child *c, const char *how, struct err *err) {
    if (!c->binary)
        return err_set(err, ERR_INTERNAL, "a worker of this program did not start (%s)", how);
    return err_set(err, ERR_INPUT,
                   "%s did not start as a worker (%s): it is no bench that takes part in turns",
                   c->binary, how);
}

static int greet(struct child *c, struct err *err) {
    uint32_t kind = 0;
    char *body = NULL;
    size_t len;
    struct facts hello = {0};
    int64_t version = 0;
    struct err trouble = {0};
    int code = frame_read_within(c->fd, START_NS, &kind, &body, &len, &trouble);
    if (code || kind != MESSAGE_HELLO) {
        char how[100];
        if (code || body)
            snprintf(how, sizeof how, "what it says is no greeting");
        else
            how_it_ended(c, how, sizeof how);
        free(body);
        return no_worker(c, how, err);
    }
    code = facts_unpack(&hello, body, len, err);
    if (!code && (!parse_i64(facts_get(&hello, "message.version", "0"), &version) ||
                  version != MESSAGE_VERSION))
        code = err_set(err, ERR_INPUT,
                       "%s (revision %.12s) speaks version %" PRId64
                       " of the workers' messages, this program version %d: rebuild the older one",
                       name_of(c), facts_get(&hello, "build.revision", "unknown"), version,
                       MESSAGE_VERSION);
    snprintf(c->revision, sizeof c->revision, "%s", facts_get(&hello, "build.revision", "unknown"));
    facts_free(&hello);
    free(body);
    return code;
}

int child_start(struct child *c, int64_t number, bool inside, struct err *err) {
    char text[24];
    c->number = number;
    snprintf(text, sizeof text, "%" PRId64, number);
    if (inside) {
        setenv("BENCH_FAKE_WORKER", text, 1);
        return worker_open(&c->inside, c->memory->snapshot_fd, c->memory->weights_fd,
                           &c->memory->log, err);
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_system(err, errno, "cannot make a socket");
    c->pid = fork();
    if (c->pid == 0) become_worker(c, pair[1], text);
    close(pair[1]);
    c->fd = pair[0];
    if (c->pid < 0) return err_system(err, errno, "cannot start a worker");
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int64_t until = clock_ns() + START_NS;
    while (clock_ns() < until && !asked_to_stop) {
        if (poll(&p, 1, WAKE_MS) <= 0) continue;
        int code = greet(c, err);
        if (code) child_end(c, true);
        return code;
    }
    child_end(c, true);
    if (asked_to_stop) return err_set(err, ERR_INTERRUPTED, "interrupted");
    return no_worker(c, "it said nothing in 20 s", err);
}

/* Of one that died or talks nonsense: ends it, and why and where, as a sentence. */
static void describe_death(struct child *c, char *out, size_t size) {
    int status = 0;
    const pid_t pid = c->pid;
    const struct sample_head *head = c->memory->log.head;
    c->pid = 0;
    /* It is dead or dying; one that only talks nonsense is ended after a grace. */
    for (int i = 0; i < DEATH_CHECKS; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid) break;
        if (i == DEATH_CHECKS - 1) {
            kill(pid, SIGKILL);
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        }
        usleep(10000);
    }
    int64_t stage = head->stage;
    const char *where = stage >= 0 && stage <= STAGE_WITNESS ? visit_stage_names[stage] : "?";
    if (WIFSIGNALED(status)) {
        int signal = WTERMSIG(status);
        snprintf(out, size,
                 "the worker was ended by signal %d (%s%s) at stage '%s'; %" PRId64
                 " samples are kept",
                 signal, strsignal(signal),
                 signal == SIGKILL ? ", perhaps by the kernel for want of memory" : "", where,
                 (int64_t)head->samples);
    } else {
        snprintf(out, size, "the worker exited with %d at stage '%s'; %" PRId64 " samples are kept",
                 WEXITSTATUS(status), where, (int64_t)head->samples);
    }
}

static void too_late(const struct child *c, const struct patience *patience, struct answer *a) {
    const struct sample_head *head = c->memory->log.head;
    const int64_t stage = head->stage;
    snprintf(a->state, sizeof a->state, "timeout");
    snprintf(a->reason, sizeof a->reason,
             "no answer within measure.timeout = %g s (stage '%s'); %" PRId64 " samples are kept",
             (double)patience->timeout_ns * 1e-9,
             visit_stage_names[stage <= STAGE_WITNESS ? stage : 0], (int64_t)head->samples);
}

/* Until the next look, at most WAKE_MS, and not beyond the end of patience. */
static int look_ms(const struct patience *patience, int64_t waited_ns) {
    const int64_t left_ns = patience->timeout_ns - waited_ns;
    if (left_ns >= WAKE_MS * INT64_C(1000000)) return WAKE_MS;
    return left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
}

/* Whether an answer can be read; else the worker was ended, and a->state says why. */
static bool await(struct child *c, const struct patience *patience, struct answer *a) {
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    const int64_t began_ns = clock_ns();
    for (a->seconds = 0;;) {
        int n = poll(&p, 1, look_ms(patience, (int64_t)(a->seconds * 1e9)));
        const int64_t waited = clock_ns() - began_ns;
        a->seconds = (double)waited * 1e-9;
        if (!asked_to_stop && n > 0) return true;
        if (!asked_to_stop && waited <= patience->timeout_ns) {
            if (patience->show) patience->show(patience->ctx, waited);
            continue;
        }
        if (!asked_to_stop) too_late(c, patience, a);
        child_end(c, true);
        return false;
    }
}

static int ask_inside(struct child *c, uint32_t message, const struct text *request,
                      struct answer *a, struct err *err) {
    struct text body = {0};
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, c->number);
    setenv("BENCH_FAKE_WORKER", number, 1); /* there may be two of them */
    int code = worker_answer(c->inside, message, request->data, request->len, &a->kind, &body, err);
    text_add(&body, "", 0);
    a->len = body.len;
    a->body = text_take(&body);
    return code;
}

int child_ask(struct child *c, uint32_t message, const struct facts *request,
              const struct patience *patience, struct answer *a, struct err *err) {
    struct text body = {0};
    struct err trouble = {0};
    int code = 0;
    *a = (struct answer){0};
    facts_pack(&body, request);
    if (c->inside) {
        code = ask_inside(c, message, &body, a, err);
    } else {
        /* A failure shows as the worker's end. */
        frame_write(c->fd, message, body.data, body.len, &trouble);
        const bool spoke = await(c, patience, a);
        const int torn =
            spoke ? frame_read_within(c->fd, REST_NS, &a->kind, &a->body, &a->len, &trouble) : 0;
        if (torn == ERR_TIMEOUT) {
            snprintf(a->state, sizeof a->state, "timeout");
            snprintf(a->reason, sizeof a->reason, "the worker stopped in the middle of an answer");
            child_end(c, true);
        } else if (spoke && (torn || !a->body)) {
            free(a->body);
            a->body = NULL;
            snprintf(a->state, sizeof a->state, "failed");
            describe_death(c, a->reason, sizeof a->reason);
            child_end(c, true);
        }
    }
    text_free(&body);
    return code;
}

void child_row(const struct child *c, const struct visit_order *order, int64_t point,
               const struct answer *a, struct tables *out) {
    const struct sample_head *head = c->memory->log.head;
    struct table *t = tables_get(out, "visits");
    int64_t row = table_add(t, 1);
    table_set_i64(t, row, "visit", order->visit);
    table_set_i64(t, row, "point", point);
    table_set_i64(t, row, "round", order->round);
    table_set_i64(t, row, "position", order->position);
    table_set_i64(t, row, "control", order->control);
    table_set_i64(t, row, "worker", order->worker);
    table_set_f64(t, row, "seconds", a->seconds);
    table_set_i64(t, row, "warmups", head->warmups);
    table_set_i64(t, row, "samples", head->samples);
    table_set_i64(t, row, "batch", 1);
    table_set_text(t, row, "steady", "no");
    table_set_text(t, row, "why_stopped", a->reason);
    table_set_text(t, row, "state", a->state);
    table_set_text(t, row, "reason", a->reason);
}
