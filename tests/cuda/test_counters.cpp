/* SPDX-License-Identifier: Apache-2.0 */
/* The counters that docs/nsight.md names exist: asked of the real CUPTI's host interface, which
 * needs no GPU. A wrong name must be refused, so that the test can fail. */
#include <ctype.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern "C" {
#include <cmocka.h>
}

#ifndef BENCH_CUPTI_BUILT
int main(void) {
    fprintf(stderr, "skipped: built without CUPTI's headers\n");
    return 77;
}
#else
#include <cupti.h>
#include <cupti_profiler_host.h>

static struct {
    CUptiResult (*initialize)(CUpti_Profiler_Host_Initialize_Params *);
    CUptiResult (*deinitialize)(CUpti_Profiler_Host_Deinitialize_Params *);
    CUptiResult (*add)(CUpti_Profiler_Host_ConfigAddMetrics_Params *);
} host;

static void find(void *library, const char *name, void *function) {
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    assert_non_null(at);
}

static CUptiResult known(const char *chip, const char *metric) {
    CUpti_Profiler_Host_Initialize_Params open = {};
    open.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    open.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    open.pChipName = chip;
    assert_int_equal(host.initialize(&open), CUPTI_SUCCESS);
    CUpti_Profiler_Host_ConfigAddMetrics_Params add = {};
    add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    add.pHostObject = open.pHostObject;
    add.ppMetricNames = &metric;
    add.numMetrics = 1;
    const CUptiResult result = host.add(&add);
    CUpti_Profiler_Host_Deinitialize_Params close = {};
    close.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    close.pHostObject = open.pHostObject;
    host.deinitialize(&close);
    return result;
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* Words with a double underscore and a dot, as counters are written: `dram__bytes_read.sum`. */
static void named_counters_exist(void **state) {
    (void)state;
    char path[512], word[128];
    snprintf(path, sizeof path, "%s/docs/nsight.md", getenv("SOURCE_DIR"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int c, n = 0, found = 0;
    while ((c = fgetc(f)) != EOF) {
        if (is_name((char)c) && n < (int)sizeof word - 1) {
            word[n++] = (char)c;
            continue;
        }
        word[n] = 0;
        n = 0;
        if (!strstr(word, "__") || !strchr(word, '.')) continue;
        found++;
        if (known("GH100", word) || known("GA100", word))
            fail_msg("docs/nsight.md names %s, which this CUPTI does not know", word);
    }
    fclose(f);
    assert_in_range(found, 4, 100);
}

static void a_wrong_name_is_refused(void **state) {
    (void)state;
    assert_int_equal(known("GH100", "dram__bytes_read.sum"), CUPTI_SUCCESS);
    assert_int_not_equal(known("GH100", "dram__bytes_reed.sum"), CUPTI_SUCCESS);
}

int main(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    fprintf(stderr, "skipped: what CUPTI loads cannot be loaded beside a sanitizer\n");
    return 77;
#endif
    void *library =
        dlopen(getenv("BENCH_CUPTI") ? getenv("BENCH_CUPTI") : "libcupti.so.13", RTLD_NOW);
    if (!library) library = dlopen(CUPTI_LIBRARY, RTLD_NOW);
    if (!library) {
        fprintf(stderr, "skipped: libcupti.so.13 is not here\n");
        return 77;
    }
    find(library, "cuptiProfilerHostInitialize", &host.initialize);
    find(library, "cuptiProfilerHostDeinitialize", &host.deinitialize);
    find(library, "cuptiProfilerHostConfigAddMetrics", &host.add);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_name_is_refused),
        cmocka_unit_test(named_counters_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
