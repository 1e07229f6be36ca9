/* SPDX-License-Identifier: Apache-2.0 */
/* A management library with one made-up GPU, loaded by cuda/test_nvml.c. FAKE_NVML: "no_driver"
   happens: "no_driver" refuses to start, "no_gpu" knows none, "old" lacks energy and the newer name
   of the reasons' function (then it must be dlopened with that name absent, which a weak build
   cannot show: it returns 'not supported' instead). */
#include <stdlib.h>
#include <string.h>

enum { OK, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };
int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int);
int nvmlDeviceGetHandleByPciBusId_v2(const char *, void **);
int nvmlDeviceGetHandleByIndex_v2(unsigned, void **);
int nvmlDeviceGetClockInfo(void *, int, unsigned *);
int nvmlDeviceGetTemperature(void *, int, unsigned *);
int nvmlDeviceGetPowerUsage(void *, unsigned *);
int nvmlDeviceGetTotalEnergyConsumption(void *, unsigned long long *);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *, unsigned long long *);

static int gpu, reads, started;

static int is(const char *what) {
    const char *mode = getenv("FAKE_NVML");
    return mode && !strcmp(mode, what);
}

int nvmlInit_v2(void) {
    if (is("no_driver")) return DRIVER_NOT_LOADED;
    reads = 0;
    started++;
    return OK;
}
int nvmlShutdown(void) {
    if (--started < 0) abort(); /* shut down more often than started */
    return OK;
}
const char *nvmlErrorString(int code) {
    return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : code == NOT_FOUND ? "Not Found" : "?";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **handle) {
    *handle = &gpu;
    return is("no_gpu") || strcmp(bus, "0000:3b:00.0") != 0 ? NOT_FOUND : OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    *handle = &gpu;
    return is("no_gpu") || index ? NOT_FOUND : OK;
}
int nvmlDeviceGetClockInfo(void *handle, int which, unsigned *mhz) {
    static const unsigned sm[] = {1980, 1500, 1700};
    if (handle != &gpu) return NOT_FOUND;
    if (which == 1) *mhz = sm[reads % 3];
    if (which == 2) *mhz = 2619;
    return which == 1 || which == 2 ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius) {
    *celsius = 41;
    return handle == &gpu && sensor == 0 ? OK : NOT_FOUND;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts) {
    *milliwatts = 350500;
    return handle == &gpu ? OK : NOT_FOUND;
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *millijoules) {
    if (is("old")) return NOT_SUPPORTED;
    *millijoules = 9000000000000ull + 2500ull * (unsigned)++reads; /* 2.5 J a reading, past 2^32 */
    return handle == &gpu ? OK : NOT_FOUND;
}
/* Only the old name: the probe must fall back to it. The second reading is slowed by heat (0x40),
 * the first merely idle (0x1). */
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons) {
    *reasons = reads == 1 ? 0x40 : 0x1;
    return handle == &gpu ? OK : NOT_FOUND;
}
