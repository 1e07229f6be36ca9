/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's clocks, temperature, power, energy and reasons to slow down, by NVIDIA's management
 * library where it is present. Its interface is stable and small, so that no header is needed. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/gpu_name.h"
#include "base/library.h"
#include "probes/probe.h"

enum { SM_CLOCK, LOWEST_SM_CLOCK, MEMORY_CLOCK, TEMPERATURE, POWER, ENERGY, SLOWED };
static const struct channel channels[] = {
    {"sm_clock", "MHz", "clock of the multiprocessors", 0},
    {"lowest_sm_clock", "MHz", "lowest sm_clock from before the samples on", 0},
    {"memory_clock", "MHz", "clock of the device memory", 0},
    {"temperature", "C", "of the GPU's chip", 0},
    {"power", "W", "of the whole board", 0},
    {"energy", "J",
     "of the whole board over the samples of a visit, what lies between them included", 1},
    {"slowed", "", "readings that named a power or heat limit as the reason of the clock", 1},
    {0},
};

/* Of nvml.h: NVML_SUCCESS, NVML_CLOCK_SM and NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU; reasons: power
 * cap, hardware slowdown, heat by software and by hardware, power brake. */
enum { OK = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };
#define SLOWING (0x4ull | 0x8ull | 0x20ull | 0x40ull | 0x80ull)

struct self {
    void *library, *gpu;
    double lowest, slowed;
    int (*shut_down)(void);
    int (*clock)(void *, int, unsigned *);
    int (*temperature)(void *, int, unsigned *);
    int (*power)(void *, unsigned *);             /* milliwatts */
    int (*energy)(void *, unsigned long long *);  /* millijoules since the driver was loaded */
    int (*reasons)(void *, unsigned long long *); /* of the current clock, a bit each */
};

static int refuse(struct self *s, struct err *err, const char *what, int code) {
    const char *(*text)(int) = NULL;
    library_find(s->library, "nvmlErrorString", &text);
    const int result =
        err_set(err, ERR_UNSUPPORTED, "%s: %s", what, text ? text(code) : "an error");
    dlclose(s->library);
    return result;
}

static int nvml_open(void *self, struct err *err) {
    struct self *s = self;
    int (*init)(void) = NULL, (*by_bus)(const char *, void **) = NULL,
        (*by_index)(unsigned, void **) = NULL;
    const char *name = getenv("BENCH_NVML"), *bus = gpu_name();
    if (!name || !*name) name = "libnvidia-ml.so.1";
    s->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return err_set(err, ERR_UNSUPPORTED, "NVIDIA's management library (%s) is not here", name);
    library_find(s->library, "nvmlInit_v2", &init);
    library_find(s->library, "nvmlShutdown", &s->shut_down);
    library_find(s->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus);
    library_find(s->library, "nvmlDeviceGetHandleByIndex_v2", &by_index);
    library_find(s->library, "nvmlDeviceGetClockInfo", &s->clock);
    library_find(s->library, "nvmlDeviceGetTemperature", &s->temperature);
    library_find(s->library, "nvmlDeviceGetPowerUsage", &s->power);
    library_find(s->library, "nvmlDeviceGetTotalEnergyConsumption", &s->energy);
    library_find(s->library, "nvmlDeviceGetCurrentClocksEventReasons", &s->reasons);
    if (!s->reasons) /* its name before driver 535 */
        library_find(s->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &s->reasons);
    if (!init || !s->shut_down || !by_bus || !by_index) {
        dlclose(s->library);
        return err_set(err, ERR_UNSUPPORTED, "%s lacks functions that this probe needs", name);
    }
    int code = init();
    if (code != OK) return refuse(s, err, "NVIDIA's management library does not start", code);
    code = *bus ? by_bus(bus, &s->gpu) : by_index(0, &s->gpu);
    if (code != OK) {
        s->shut_down();
        return refuse(s, err, "NVIDIA's management library does not know the GPU", code);
    }
    s->lowest = (double)NAN;
    return 0;
}

static double number(int (*get)(void *, int, unsigned *), void *gpu, int what) {
    unsigned v = 0;
    return get && get(gpu, what, &v) == OK ? (double)v : (double)NAN;
}

static double thousandths(int (*get)(void *, unsigned long long *), void *gpu) {
    unsigned long long v = 0;
    return get && get(gpu, &v) == OK ? (double)v / 1000 : (double)NAN;
}

static void nvml_read(void *self, double *values) {
    struct self *s = self;
    unsigned milliwatts = 0;
    unsigned long long reasons = 0;
    const double clock = number(s->clock, s->gpu, CLOCK_SM);
    const bool knows = s->reasons && s->reasons(s->gpu, &reasons) == OK;
    s->lowest = fmin(s->lowest, clock); /* of NAN and a number fmin takes the number */
    if (reasons & SLOWING) s->slowed++;
    values[SM_CLOCK] = clock;
    values[LOWEST_SM_CLOCK] = s->lowest;
    values[MEMORY_CLOCK] = number(s->clock, s->gpu, CLOCK_MEMORY);
    values[TEMPERATURE] = number(s->temperature, s->gpu, TEMPERATURE_GPU);
    values[POWER] =
        s->power && s->power(s->gpu, &milliwatts) == OK ? milliwatts / 1000.0 : (double)NAN;
    values[ENERGY] = thousandths(s->energy, s->gpu);
    values[SLOWED] = knows ? s->slowed : (double)NAN;
}

static void nvml_close(void *self) {
    struct self *s = self;
    s->shut_down();
    dlclose(s->library);
}

const struct probe probe_nvml = {
    .name = "nvml",
    .brief = "clocks, temperature, power and energy of the NVIDIA GPU",
    .when = PROBE_BLOCK,
    .channels = channels,
    .self_size = sizeof(struct self),
    .open = nvml_open,
    .read = nvml_read,
    .close = nvml_close,
};
