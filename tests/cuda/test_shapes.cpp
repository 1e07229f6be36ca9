/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of the CUDA device at the sizes of production, where 32 bits do not hold an index: 13B, 7B
   and smaller models at 32k tokens, caches, activations and logits of up to 50 GB, over sparse
   memory (simt/sparse.h). Only the first, the last and some random blocks run; what they wrote is
   compared with a plain computation from the places of the values, and nothing may be written
   anywhere else. Two kernels and a form of attention with indices of 32 bits (shapes/wrapped.cpp)
   must be found. */
/* ctest: timeout 120 */
#include <stdio.h>

#ifndef BENCH_SIMT
int main(void) {
    fprintf(stderr, "skipped: this build has no cuda-emu (-DBENCH_CUDA=emu)\n");
    return 77;
}
#else
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda/shapes/rig.h"
#include "tests/cuda/shapes/wrapped.h"

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"embed", embeds},
    {"add_norm", add_norms},
    {"gather_rows", gathers},
    {"linear, streamed", streamed_products},
    {"linear, of models", products_of_models},
    {"linear, many rows", products_of_many_rows},
    {"linear, by slabs", products_by_slabs},
    {"linear, with ends", products_with_ends},
    {"rope_append", appends},
    {"attention, decode", decodes},
    {"attention, plain", plain_attention},
    {"attention, prefill", prefills},
    {"kv_copy_block", copies_of_units},
    {"too many sequences", too_many_sequences},
    {"select", selects},
    {"ceilings", ceilings},
    {"synthetic weights", synthetic_weights},
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

/* Another kernel in the place of the one that is launched. */
static cudaError_t (*take)(const launch_record &, cudaStream_t);
static cudaError_t take_wrapped(const launch_record &l, cudaStream_t stream) {
    launch_record other = l;
    if (wrapped_kernel(l.name)) other.kernel = wrapped_kernel(l.name);
    return take(other, stream);
}
/* Whether a case fails with the kernels whose indices have 32 bits: in a process of its own, as
   they may touch what there is not. */
static bool is_found(void (*run)(void)) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(0);
        take = simt::hooks.take;
        simt::hooks.take = take_wrapped;
        open_device();
        n_wrong = 0;
        run();
        _exit(n_wrong ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0); /* wrong values, or an access to what there is not */
    return WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 97);
}

int main(int argc, char **argv) {
    setenv("SIMT_SMS", "132", 1);
    /* First: what used a device before it forked may not use it in both. */
    static const struct {
        const char *name;
        void (*run)(void);
    } planted[] = {{"embed", embeds}, {"rope_append", appends}, {"attention", plain_attention}};
    for (const auto &p : planted)
        if (!is_found(p.run)) {
            printf("%s with indices of 32 bits was not found\n", p.name);
            n_wrong++;
        }
    open_device();
    for (const auto &c : cases) {
        if (argc > 1 && !strstr(c.name, argv[1])) continue;
        const double since = seconds();
        case_now = c.name;
        n_written = 0;
        worst = 0;
        c.run();
        printf("%-18s %8lld values, errors up to %2.0f %% of what may be, %4.1f s\n", c.name,
               (long long)n_written, 100 * worst, seconds() - since);
        fflush(stdout);
    }
    device_close(&device);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%d wrong; %ld MB resident at most\n", n_wrong, usage.ru_maxrss >> 10);
    return n_wrong ? 1 : 0;
}
#endif
