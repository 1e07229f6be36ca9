// SPDX-License-Identifier: Apache-2.0
// Pages of device memory, and what a fault on them means.
#include "tests/cuda/simt/memory.h"

#include <map>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/cuda/simt/simt.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

namespace simt {

enum access { CLOSED = PROT_NONE, READABLE = PROT_READ, OPEN = PROT_READ | PROT_WRITE };
enum { PAGE = 4096, GUARD = 64 << 10, ALIGN = 256, HUGE_PAGE = 2 << 20 };
// Of larger ones only so much at each end is filled: the rest stays sparse, since protection costs
// time for every page that is there.
static const size_t FILL_MOST = 2 << 20;

struct pages {
    unsigned char *map; // a guard, the span, a guard
    size_t span;
    unsigned char *data; // ends less than ALIGN before the second guard
    size_t bytes;
    enum access access;
    uint64_t written_by; // chain of kernels that last wrote here
    bool live;
    bool is_listed; // among `opened`
    struct pages *next;
};
// By the address of the second guard's end, so that upper_bound finds the map an address lies in.
static std::map<uintptr_t, struct pages> all;
static struct pages *opened; // and such as were closed since; a list, as faults may not allocate
static size_t used;
static int device_depth;
static uint64_t chain;
static bool early, in_prologue;

[[noreturn]] static void refuse(const struct pages *p, uintptr_t a, const char *what) {
    const intptr_t offset = intptr_t(a - uintptr_t(p->data));
    fprintf(stderr, "simt: %s: byte %td of a%s allocation of %zu bytes at %p (%s)\n", what, offset,
            p->live ? "n" : " freed", p->bytes, static_cast<void *>(p->data), where());
    _exit(97);
}

static void enlist(struct pages *p) {
    if (p->is_listed) return;
    p->is_listed = true;
    p->next = opened;
    opened = p;
}
static void set_access(struct pages *p, enum access a) {
    if (p->access == a) return;
    mprotect(p->map + GUARD, p->span, a);
    p->access = a;
    enlist(p);
}
// What lies behind an allocation, up to the page's end, must be as it was filled.
__attribute__((no_sanitize("address"))) static void check_slack(const struct pages *p) {
    if (p->access == CLOSED || !p->live) return; // checked when it was closed
    const unsigned char *end = p->map + GUARD + p->span;
    for (const unsigned char *q = p->data + p->bytes; q < end; q++)
        if (*q != 0xff) refuse(p, uintptr_t(q), "something was written past the end");
}
static void close_all(void) {
    for (struct pages *p = opened; p; p = p->next) {
        check_slack(p);
        set_access(p, CLOSED);
        p->is_listed = false;
    }
    opened = nullptr;
}
// Writes fault again; reads as before.
static void close_writes(void) {
    for (struct pages *p = opened; p; p = p->next)
        if (p->access == OPEN) set_access(p, READABLE);
}

static struct pages *pages_at(uintptr_t a) {
    const auto i = all.upper_bound(a);
    return i != all.end() && uintptr_t(i->second.map) <= a ? &i->second : nullptr;
}

/* ---- faults ---- */

// Returns whether the access may be tried again.
static bool resolve(struct pages *p, uintptr_t a, bool write) {
    if (device_depth == 0) refuse(p, a, "host code touched device memory");
    if (!p->live) refuse(p, a, "freed device memory was touched");
    if (a < uintptr_t(p->map) + GUARD || a >= uintptr_t(p->map) + GUARD + p->span)
        refuse(p, a, "access outside an allocation");
    if (in_prologue) {
        if (early && chain && p->written_by == chain)
            refuse(p, a, "memory that an earlier kernel writes was touched before pdl_wait");
        if (early && write) refuse(p, a, "memory was written before pdl_wait");
    }
    if (!write && (chain || in_prologue)) {
        if (p->access != CLOSED) return false;
        set_access(p, READABLE);
        return true;
    }
    if (p->access == OPEN) return false;
    if (write && chain) p->written_by = chain;
    set_access(p, OPEN);
    return true;
}

static struct sigaction before[2];

static void on_fault(int number, siginfo_t *info, void *context) {
    const uintptr_t a = uintptr_t(info->si_addr);
    struct pages *p = pages_at(a);
    bool write = p && p->access == READABLE; // nothing else faults there
#if defined(__x86_64__)
    write = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
#endif
    if (p && resolve(p, a, write)) return;
    if (!p && hooks.fault && hooks.fault(a)) return;
    if (in_kernel())
        fprintf(stderr, "simt: access to %p, which is no device memory (%s)\n", info->si_addr,
                where());
    sigaction(number, &before[number == SIGBUS], nullptr); // the next try ends as without us
}
// Test frameworks put handlers of their own in place, before every test again.
static void install(void) {
    static const int numbers[] = {SIGSEGV, SIGBUS};
    struct sigaction s = {};
    s.sa_sigaction = on_fault;
    s.sa_flags = SA_SIGINFO | SA_NODEFER;
    for (int i = 0; i < 2; i++) {
        struct sigaction now = {};
        sigaction(numbers[i], nullptr, &now);
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) continue;
        before[i] = now;
        sigaction(numbers[i], &s, nullptr);
    }
}

/* ---- allocations ---- */

size_t memory_limit(void) {
    const char *text = getenv("SIMT_MEMORY");
    return text ? size_t(strtoull(text, nullptr, 10)) : size_t(64) << 30;
}
size_t memory_used(void) { return used; }

// Large spans lie on huge pages where there are such: changing protection costs time for each page.
static unsigned char *reserve(size_t span) {
    const size_t room = span < 2 * HUGE_PAGE ? 0 : size_t(HUGE_PAGE);
    void *map = mmap(nullptr, span + 2 * GUARD + room, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return nullptr;
    unsigned char *start = static_cast<unsigned char *>(map);
    if (!room) return start;
    const uintptr_t data = (uintptr_t(map) + GUARD + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    const size_t head = data - GUARD - uintptr_t(map);
    if (head) munmap(map, head);
    if (head < room) munmap(start + head + span + 2 * GUARD, room - head);
    madvise(reinterpret_cast<void *>(data), span, MADV_HUGEPAGE);
    return start + head;
}

void *memory_allocate(size_t bytes) {
    install();
    if (bytes == 0 || bytes > memory_limit() - std::min(used, memory_limit())) return nullptr;
    struct pages p = {};
    p.span = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    p.span = (p.span + PAGE - 1) / PAGE * PAGE;
    p.map = reserve(p.span);
    if (!p.map) return nullptr;
    p.data = p.map + GUARD + p.span - (bytes + ALIGN - 1) / ALIGN * ALIGN;
    p.bytes = bytes;
    p.live = true;
    p.access = OPEN;
    mprotect(p.map + GUARD, p.span, OPEN);
    unsigned char *end = p.map + GUARD + p.span;
    const size_t filled = std::min(p.span, FILL_MOST);
    memset(p.map + GUARD, 0xff, filled);
    memset(end - filled, 0xff, filled);
    ASAN_POISON_MEMORY_REGION(p.data + bytes, size_t(end - p.data) - bytes);
    enlist(&all.emplace(uintptr_t(end) + GUARD, p).first->second);
    if (device_depth == 0) close_all();
    used += bytes;
    return p.data;
}

static struct pages *starts_at(const void *q) {
    struct pages *p = pages_at(uintptr_t(q));
    return p && p->live && p->data == q ? p : nullptr;
}

// Freed pages stay reserved, so that a later use is told as one; but not for ever.
bool memory_free(void *q) {
    struct pages *p = starts_at(q);
    if (!p) return false;
    check_slack(p);
    set_access(p, CLOSED);
    ASAN_UNPOISON_MEMORY_REGION(p->map, p->span + 2 * GUARD);
    madvise(p->map + GUARD, p->span, MADV_DONTNEED);
    used -= p->bytes;
    p->live = false;
    static std::vector<uintptr_t> graves;
    graves.push_back(uintptr_t(p->map) + p->span + 2 * GUARD);
    if (graves.size() <= 256) return true;
    const auto oldest = all.find(graves.front());
    graves.erase(graves.begin());
    struct pages **link = &opened;
    while (*link && *link != &oldest->second) link = &(*link)->next;
    if (*link) *link = oldest->second.next;
    munmap(oldest->second.map, oldest->second.span + 2 * GUARD);
    all.erase(oldest);
    return true;
}

bool memory_find(const void *q, struct allocation *found) {
    const struct pages *p = pages_at(uintptr_t(q));
    if (!p || !p->live || q < p->data || q >= p->data + p->bytes) return false;
    if (found) *found = {p->data, p->bytes};
    return true;
}
bool memory_holds(const void *q, size_t bytes) {
    struct allocation a;
    return memory_find(q, &a) &&
           bytes <= a.bytes - size_t(static_cast<const unsigned char *>(q) - a.data);
}
std::vector<struct allocation> memory_all(void) {
    std::vector<struct allocation> list;
    for (const auto &i : all)
        if (i.second.live) list.push_back({i.second.data, i.second.bytes});
    return list;
}

/* ---- who may touch it ---- */

void memory_device_begin(void) {
    if (device_depth++ == 0) install();
}
void memory_device_end(void) {
    if (--device_depth == 0) close_all();
}

void memory_kernel_begin(uint64_t now, bool may_start_early) {
    if (now && now != chain) close_writes();
    chain = now;
    early = may_start_early;
}
void memory_kernel_end(void) { in_prologue = early = false; }

void memory_prologue_begin(void) {
    in_prologue = true;
    if (!early) return;
    for (struct pages *p = opened; p; p = p->next) {
        if (p->written_by == chain)
            set_access(p, CLOSED);
        else if (p->access == OPEN)
            set_access(p, READABLE);
    }
}
void memory_prologue_end(void) { in_prologue = false; }
bool memory_may_change(const void *q) {
    const struct pages *p = pages_at(uintptr_t(q));
    return early && chain && p && p->written_by == chain;
}

} // namespace simt
