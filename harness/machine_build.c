/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about this build and the libraries it runs with. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/range.h"
#include "base/text.h"
#include "gen/build_info.h"
#include "harness/machine.h"

/* The binary itself: two runs with one digest ran the same code. */
static void digest(struct facts *facts) {
    char *data = NULL, hash[17] = "unknown";
    size_t n = 0;
    if (file_read("/proc/self/exe", (size_t)1 << 30, &data, &n, NULL) == 0)
        hash_text(hash, hash_bytes(data, n, 0));
    facts_set(facts, "build.digest", hash, "", "xxh64 of the binary");
    free(data);
}

/* Asked of what the loader has mapped already: nothing is loaded or started for it, and no header
 * of a library is needed. */
static void libraries(struct facts *facts) {
    static const char origin[] = "the loaded library";
    const char *(*text)(void);
    unsigned (*number)(void);
    void *symbol = dlsym(RTLD_DEFAULT, "H5_lib_vers_info_g");
    const char *hdf5 = symbol, *word = "HDF5 library version: ";
    if (hdf5 && !strncmp(hdf5, word, strlen(word))) hdf5 += strlen(word);
    facts_set(facts, "library.hdf5", hdf5 && *hdf5 ? hdf5 : "unused", "", origin);
    symbol = dlsym(RTLD_DEFAULT, "cJSON_Version");
    memcpy(&text, &symbol, sizeof text); /* C has no cast from data to code */
    facts_set(facts, "library.cjson", symbol ? text() : "unused", "", origin);
    symbol = dlsym(RTLD_DEFAULT, "hwloc_get_api_version");
    memcpy(&number, &symbol, sizeof number);
    unsigned v = symbol ? number() : 0;
    if (symbol)
        facts_printf(facts, "library.hwloc", "", origin, "%u.%u.%u", v >> 16, (v >> 8) & 255,
                     v & 255);
    else
        facts_set(facts, "library.hwloc", "unused", "", "build");
    symbol = dlsym(RTLD_DEFAULT, "XXH_versionNumber");
    memcpy(&number, &symbol, sizeof number);
    v = symbol ? number() : 0;
    if (symbol)
        facts_printf(facts, "library.xxhash", "", origin, "%u.%u.%u", v / 10000, v / 100 % 100,
                     v % 100);
    else
        facts_set(facts, "library.xxhash", "unused", "", "build");
    facts_set(facts, "library.libc", gnu_get_libc_version(), "", origin);
}

void machine_build_facts(struct facts *facts) {
    facts_set(facts, "build.version", BENCH_VERSION, "", "build");
    facts_set(facts, "build.revision", BUILD_REVISION, "", "build");
    facts_set(facts, "build.dirty", BUILD_DIRTY ? "yes" : "no", "", "build");
    facts_set(facts, "build.compiler", BUILD_COMPILER, "", "build");
    facts_set(facts, "build.flags", BUILD_FLAGS, "", "build");
    facts_set(facts, "build.type", BUILD_TYPE, "", "build");
    facts_set(facts, "build.command", BUILD_COMMAND, "", "build");
    facts_set(facts, "build.nvtx", range_built() ? "yes" : "no", "", "build");
    digest(facts);
    libraries(facts);
}
