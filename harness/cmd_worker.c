/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden command `worker`: what the supervisor starts. */
#include <stdio.h>

#include "base/text.h"
#include "harness/command.h"
#include "harness/worker.h"

static const struct flag flags[] = {
    {"--fd", NULL, "N", "Descriptors", "socket to the supervisor", false},
    {"--log-fd", NULL, "N", "Descriptors", "memory of samples", false},
    {"--snapshot-fd", NULL, "N", "Descriptors", "memory of snapshots", false},
    {"--weights-fd", NULL, "N", "Descriptors", "memory of weights that two workers share", false},
    {0},
};

static int number(const struct arguments *a, const char *flag) {
    int64_t v;
    const char *text = argument(a, flag);
    return text && parse_i64(text, &v) && v >= 0 && v < 1 << 20 ? (int)v : -1;
}

static int run(int argc, char **argv) {
    struct arguments a;
    int code = command_parse(&command_worker, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    int fd = number(&a, "--fd"), log = number(&a, "--log-fd"),
        snapshot = number(&a, "--snapshot-fd"), weights = number(&a, "--weights-fd");
    if (fd < 0 || log < 0) {
        fprintf(stderr, "bench worker: started by `bench run`, never by hand\n");
        return EXIT_USAGE;
    }
    return worker_main(fd, log, snapshot, weights);
}

const struct command command_worker = {
    .name = "worker",
    .usage = "bench worker --fd N --log-fd N --snapshot-fd N --weights-fd N",
    .brief = "measures what a supervisor orders",
    .flags = flags,
    .main = run,
};
