/* SPDX-License-Identifier: Apache-2.0 */
/* The fake device: a virtual clock with scripted costs, noise and failures, so that the harness is
 * tested to the nanosecond. */
#include "kernels/fake/fake.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/option.h"
#include "base/random.h"

static const char *const noise_words[] = {"normal", "lognormal", "bimodal", "ar1", NULL};
enum { NOISE_NORMAL, NOISE_LOGNORMAL, NOISE_BIMODAL, NOISE_AR1 };

#define P(field) offsetof(struct fake_params, field)
static const struct option params[] = {
    {.key = "time",
     .type = OPT_TIME,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(time_ns),
     .def = "1 ms",
     .max = 1e15,
     .help = "Virtual time of one execution, besides what its ops cost."},
    {.key = "noise",
     .type = OPT_REAL,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(noise),
     .def = "0",
     .max = 10,
     .help = "Relative standard deviation of that time."},
    {.key = "noise_kind",
     .type = OPT_WORD,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(noise_kind),
     .def = "normal",
     .words = noise_words,
     .help =
         "Shape of the noise: bimodal is two values one noise apart either way, ar1 has lag-1 0.8."},
    {.key = "round_noise",
     .type = OPT_REAL,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(round_noise),
     .def = "0",
     .max = 10,
     .help =
         "Relative standard deviation between workers: one factor for all executions of a worker."},
    {.key = "slow_first",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(slow_first),
     .def = "0",
     .max = 1e9,
     .unit = "executions",
     .help = "Executions after opening that take slow_factor times as long."},
    {.key = "slow_for",
     .type = OPT_TIME,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(slow_for_ns),
     .def = "0",
     .max = 1e15,
     .help = "Virtual time after opening during which everything takes slow_factor times as long."},
    {.key = "slow_factor",
     .type = OPT_REAL,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(slow_factor),
     .def = "3",
     .min = 0,
     .max = 1e6,
     .help = "How much slower that is."},
    {.key = "drift",
     .type = OPT_REAL,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(drift),
     .def = "0",
     .min = -1,
     .max = 1,
     .help = "Relative change of the time per execution since opening."},
    {.key = "changed",
     .type = OPT_REAL,
     .flags = 0,
     .offset = P(changed),
     .def = "1",
     .min = 1e-6,
     .max = 1e6,
     .help = "Factor on that time which is no part of a row's identity: what another version of a "
             "program would take."},
    {.key = "resolution",
     .type = OPT_TIME,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(resolution_ns),
     .def = "1 ns",
     .max = 1e12,
     .help = "Step of the clock; 0: it stands still."},
    {.key = "reset_time",
     .type = OPT_TIME,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(reset_ns),
     .def = "0",
     .max = 1e12,
     .help = "Virtual time that each eviction of caches takes: it must not enter a sample."},
    {.key = "fail_at",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(fail_at),
     .def = "-1",
     .min = -1,
     .max = 1e12,
     .unit = "executions",
     .help = "This execution reports a failure (0-based, since opening)."},
    {.key = "die_at",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(die_at),
     .def = "-1",
     .min = -1,
     .max = 1e12,
     .unit = "executions",
     .help = "This execution ends the process by a signal, as a bug would."},
    {.key = "hang_at",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(hang_at),
     .def = "-1",
     .min = -1,
     .max = 1e12,
     .unit = "executions",
     .help = "This execution never returns."},
    {.key = "real_time",
     .type = OPT_FLAG,
     .flags = 0,
     .offset = P(real_time),
     .def = "false",
     .help =
         "Also sleeps the time of each execution, so that a run can be interrupted in the middle."},
    {.key = "memory",
     .type = OPT_BYTES,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(memory),
     .def = "1 TB",
     .max = 1e18,
     .help = "Memory of the device: allocations beyond it fail."},
    {.key = "bandwidth",
     .type = OPT_REAL,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(bandwidth),
     .def = "100e9",
     .min = 1,
     .max = 1e18,
     .unit = "byte/s",
     .help = "Of the memory: an op takes the longer of its bytes and its arithmetic, plus launch."},
    {.key = "flops",
     .type = OPT_REAL,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(flops),
     .def = "1e12",
     .min = 1,
     .max = 1e18,
     .unit = "FLOP/s",
     .help = "Peak of the arithmetic."},
    {.key = "launch",
     .type = OPT_TIME,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(launch_ns),
     .def = "0",
     .max = 1e12,
     .help = "Cost of starting an op."},
    {.key = "queued",
     .type = OPT_FLAG,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(queued),
     .def = "false",
     .help = "Ops return as soon as they are started, as on a GPU; whoever waits for the device "
             "waits for their end."},
    {.key = "end_at",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(end_at),
     .def = "-1",
     .min = -1,
     .max = 1e9,
     .unit = "tokens",
     .help = "The position whose sampled token is the end token."},
    {.key = "seed",
     .type = OPT_INT,
     .flags = OPT_SWEEP | OPT_IDENTITY,
     .offset = P(seed),
     .def = "1",
     .min = 0,
     .max = 9e15,
     .help = "Of the noise."},
    {0},
};

static int fake_open(struct device **device, const void *p, struct err *err) {
    (void)err;
    struct fake *fake = must_alloc(sizeof *fake);
    fake->params = *(const struct fake_params *)p;
    fake->base.ops = &fake_ops;
    /* One stream of noise a worker: processes differ, a repeated test does not (BENCH_FAKE_WORKER
     * is set by the harness). */
    const char *worker = getenv("BENCH_FAKE_WORKER");
    fake->key =
        random_key((uint64_t)fake->params.seed, worker ? (uint64_t)strtoull(worker, NULL, 10) : 0);
    fake->factor = 1 + fake->params.round_noise * random_normal(fake->key, UINT64_MAX / 2);
    if (fake->factor < 0.01) fake->factor = 0.01;
    *device = &fake->base;
    return 0;
}

static void fake_close(struct device **device) {
    free(*device);
    *device = NULL;
}

static void fake_describe(struct device *device, struct facts *facts) {
    struct fake *fake = (struct fake *)device;
    facts_set(facts, "device.isa", "virtual", "", "");
    facts_set(facts, "device.threads", "1", "", "");
    facts_printf(facts, "device.bandwidth_declared", "byte/s", "", "%.17g", fake->params.bandwidth);
}

static bool fake_supports(struct device *device, enum op op, const struct op_case *c,
                          const char **why) {
    (void)device, (void)op, (void)c;
    *why = "virtual";
    return true;
}

static int fake_plan(struct device *device, const struct step_bounds *bounds, struct err *err) {
    (void)device, (void)bounds, (void)err;
    return 0;
}

static void *fake_alloc(struct device *device, size_t bytes) {
    struct fake *fake = (struct fake *)device;
    if ((double)bytes > (double)fake->params.memory - (double)tracker_live(device->tracker, -1))
        return NULL;
    size_t rounded = (bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, rounded ? rounded : 64);
    (void)fake;
    return p ? memset(p, 0, rounded ? rounded : 64) : NULL;
}

static void fake_free(struct device *device, void *p, size_t bytes) {
    (void)device, (void)bytes;
    free(p);
}

/* What was queued is done. */
static void drain(struct fake *fake) {
    if (fake->now_ns < fake->busy_ns) fake->now_ns = fake->busy_ns;
}

static void fake_upload(struct device *device, void *to, const void *from, size_t bytes) {
    (void)device;
    memcpy(to, from, bytes);
}

static void fake_download(struct device *device, void *to, const void *from, size_t bytes) {
    drain((struct fake *)device);
    memcpy(to, from, bytes);
}

/* Weights are sizes only: the tracker sees the bytes, nobody reads them. */
static int fake_pack(struct device *device, struct weight **out, const struct weight_spec *parts,
                     int n, const struct row_source *sources, struct err *err) {
    (void)sources;
    struct weight *w = must_alloc(sizeof *w);
    *w = (struct weight){.cols = parts[0].cols,
                         .type = parts[0].type,
                         .scale = parts[0].scale,
                         .group = parts[0].group};
    for (int i = 0; i < n; i++) {
        w->rows += parts[i].rows;
        w->bytes += quant_payload_bytes(&parts[i]);
        w->scale_bytes += quant_scale_bytes(&parts[i]);
    }
    struct fake *fake = (struct fake *)device;
    if ((double)(w->bytes + w->scale_bytes) >
        (double)fake->params.memory - (double)tracker_live(device->tracker, -1)) {
        free(w);
        return err_set(err, ERR_MEMORY, "out of memory: %s", parts[0].what);
    }
    tracker_add(device->tracker, w, (size_t)w->bytes, MEM_WEIGHT, parts[0].what);
    if (w->scale_bytes)
        tracker_add(device->tracker, (char *)w + 1, (size_t)w->scale_bytes, MEM_SCALE,
                    parts[0].what);
    *out = w;
    return 0;
}

static void fake_unpack(struct device *device, struct weight **w) {
    if (!*w) return;
    tracker_remove(device->tracker, *w);
    if ((*w)->scale_bytes) tracker_remove(device->tracker, (char *)*w + 1);
    free(*w);
    *w = NULL;
}

static int64_t fake_now(struct device *device) {
    struct fake *fake = (struct fake *)device;
    int64_t step = fake->params.resolution_ns, now = (int64_t)fake->now_ns;
    return step == 0 ? 0 : now / step * step;
}

static double noise_of(struct fake *fake) {
    double z = random_normal(fake->key, fake->n_noise++);
    switch (fake->params.noise_kind) {
    case NOISE_LOGNORMAL: {
        double s2 = log1p(fake->params.noise * fake->params.noise);
        return exp(sqrt(s2) * z - s2 / 2);
    }
    case NOISE_BIMODAL: return 1 + (z < 0 ? -1 : 1) * fake->params.noise;
    case NOISE_AR1:
        fake->ar1 = 0.8 * fake->ar1 + 0.6 * z;
        return 1 + fake->params.noise * fake->ar1;
    default: return 1 + fake->params.noise * z;
    }
}

/* One execution is about to begin: its scripted time falls due at the next sync. */
static void fake_expect(struct device *device, double flops, double bytes) {
    struct fake *fake = (struct fake *)device;
    (void)flops, (void)bytes;
    fake->pending = true;
}

static void settle(struct fake *fake) {
    const struct fake_params *p = &fake->params;
    int64_t i = fake->executions++;
    fake->pending = false;
    if (i == p->die_at) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would make an exit of it */
        raise(SIGSEGV);
    }
    while (i == p->hang_at) pause();
    if (i == p->fail_at)
        err_set(&fake->failed, ERR_DEVICE, "fake: execution %lld fails as scripted", (long long)i);
    double t = (double)p->time_ns * p->changed * fake->factor * (1 + p->drift * (double)i);
    if (p->noise > 0) t *= noise_of(fake);
    if (i < p->slow_first || fake->now_ns < (double)p->slow_for_ns) t *= p->slow_factor;
    fake->now_ns += t > 0 ? t : 0;
    if (p->real_time && t > 0) usleep((useconds_t)(t / 1000));
}

static int fake_sync(struct device *device, struct err *err) {
    struct fake *fake = (struct fake *)device;
    drain(fake);
    if (fake->pending) settle(fake);
    if (!fake->failed.code) return 0;
    int code = err_set(err, fake->failed.code, "%s", fake->failed.text);
    fake->failed = (struct err){0};
    return code;
}

static void fake_wait(struct device *device, int64_t until_ns) {
    struct fake *fake = (struct fake *)device;
    if (fake->now_ns < (double)until_ns) fake->now_ns = (double)until_ns;
}

static void fake_evict(struct device *device) {
    struct fake *fake = (struct fake *)device;
    fake->now_ns += (double)fake->params.reset_ns;
}

const struct device_kind device_fake = {
    .name = "fake",
    .brief = "a virtual clock with scripted costs, noise and failures: tests the harness itself",
    .has = DEV_VIRTUAL_CLOCK | DEV_BATCH_INVARIANT | DEV_HOST_MEMORY,
    .params = params,
    .params_size = sizeof(struct fake_params),
    .open = fake_open,
    .close = fake_close,
    .describe = fake_describe,
    .supports = fake_supports,
    .plan = fake_plan,
    .alloc = fake_alloc,
    .free = fake_free,
    .pack = fake_pack,
    .unpack = fake_unpack,
    .upload = fake_upload,
    .download = fake_download,
    .now = fake_now,
    .evict = fake_evict,
    .sync = fake_sync,
    .expect = fake_expect,
    .wait = fake_wait,
};
