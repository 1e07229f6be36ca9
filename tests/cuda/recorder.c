/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for a profiler: loaded by NVTX where NVTX_INJECTION64_PATH names it, it writes every
 * range as a line to the file that NVTX_RECORD names, so that tests see what a tool would see. */
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DOMAINS = 16 };
static char domains[DOMAINS][32]; /* a handle is the address of its name */
static int n_domains, fd = -1;
static _Thread_local int depth;

/* One write a line: lines of several threads and processes do not mix. */
static void say(const char *what, int level, const char *domain, unsigned category,
                long long payload, const char *name) {
    char line[512];
    int n = snprintf(line, sizeof line, "%d\t%ld\t%s\t%d\t%s\t%u\t%lld\t%.200s\n", (int)getpid(),
                     (long)syscall(SYS_gettid), what, level, domain, category, payload, name);
    if (fd >= 0 && n > 0 && write(fd, line, (size_t)n) != n) abort();
}

static const char *domain_name(nvtxDomainHandle_t d) { return d ? (const char *)d : "-"; }

static const char *message(const nvtxEventAttributes_t *a) {
    return a->messageType == NVTX_MESSAGE_TYPE_ASCII ? a->message.ascii : "(not a text)";
}

static nvtxDomainHandle_t NVTX_API create_domain(const char *name) {
    if (n_domains == DOMAINS) return NULL;
    char *copy = domains[n_domains++];
    snprintf(copy, sizeof domains[0], "%s", name);
    say("domain", 0, copy, 0, 0, name);
    return (nvtxDomainHandle_t)copy;
}

static void NVTX_API name_category(nvtxDomainHandle_t d, uint32_t category, const char *name) {
    say("category", 0, domain_name(d), category, 0, name);
}

static int NVTX_API push(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a) {
    long long payload =
        a->payloadType == NVTX_PAYLOAD_TYPE_INT64 ? (long long)a->payload.llValue : -999999;
    say("push", depth, domain_name(d), a->category, payload, message(a));
    return depth++;
}

static int NVTX_API pop(nvtxDomainHandle_t d) {
    if (!depth) {
        say("unbalanced", 0, domain_name(d), 0, 0, "");
        return -1;
    }
    say("pop", --depth, domain_name(d), 0, 0, "");
    return depth;
}

/* Calls outside any domain are none of ours. */
static int NVTX_API push_plain(const char *name) {
    say("push", depth, "-", 0, 0, name);
    return depth++;
}
static int NVTX_API pop_plain(void) { return pop(NULL); }

static int replace(NvtxFunctionTable table, unsigned size, unsigned id, NvtxFunctionPointer by) {
    if (id >= size || !table[id]) return 0;
    *table[id] = by;
    return 1;
}
#define TAKE(id, f) replace(table, size, id, (NvtxFunctionPointer)(f))

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const NvtxExportTableCallbacks *tables = get(NVTX_ETID_CALLBACKS);
    const char *path = getenv("NVTX_RECORD");
    NvtxFunctionTable table;
    unsigned size = 0;
    if (!tables || !path) return 0;
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
    int taken = TAKE(NVTX_CBID_CORE2_DomainCreateA, create_domain) +
                TAKE(NVTX_CBID_CORE2_DomainNameCategoryA, name_category) +
                TAKE(NVTX_CBID_CORE2_DomainRangePushEx, push) +
                TAKE(NVTX_CBID_CORE2_DomainRangePop, pop);
    if (taken != 4 || !tables->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
    return TAKE(NVTX_CBID_CORE_RangePushA, push_plain) + TAKE(NVTX_CBID_CORE_RangePop, pop_plain) ==
           2;
}
