/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the CPU device: zeroed, large pieces on 2 MiB boundaries as huge pages, first touched
 * by all threads. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "kernels/cpu/cpu.h"

enum { HUGE_PAGE = 2 << 20, LARGE = 1 << 20, PAGE = 4096, WORTH_A_LOOK = 16 << 20 };

struct touch {
    char *data;
    int64_t bytes;
};

static void touch_pages(void *ctx, int64_t begin, int64_t end, int thread) {
    const struct touch *t = ctx;
    (void)thread;
    for (int64_t at = begin * HUGE_PAGE; at < end * HUGE_PAGE && at < t->bytes; at += PAGE)
        ((volatile char *)t->data)[at] = 0;
}

static size_t mapped_size(size_t bytes) { return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; }

/* A mapping that starts on a 2 MiB boundary: maps more and gives the ends back. */
static char *map_aligned(size_t size) {
    char *whole =
        mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) return NULL;
    const size_t before = (HUGE_PAGE - (uintptr_t)whole % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0) munmap(whole, before);
    munmap(whole + before + size, HUGE_PAGE - before);
    return whole + before;
}

void *cpu_alloc(struct device *device, size_t bytes) {
    struct cpu *cpu = cpu_of(device);
    if (bytes > SIZE_MAX / 4) return NULL;
    if (bytes < LARGE) {
        const size_t size = (bytes + 63) / 64 * 64;
        void *p = aligned_alloc(64, size);
        return p != NULL ? memset(p, 0, size) : NULL;
    }
    /* The kernel promises more than there is and kills later; a benchmark wants to hear it now. */
    if (bytes >= WORTH_A_LOOK && (int64_t)bytes > memory_available("/")) return NULL;
    const size_t size = mapped_size(bytes);
    char *p = map_aligned(size);
    if (p == NULL) return NULL;
    madvise(p, size, cpu->params.huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* a wish */
    if (cpu->touch) {
        struct touch t = {.data = p, .bytes = (int64_t)bytes};
        pool_run(cpu->pool, (int64_t)(size / HUGE_PAGE), 4, 1, touch_pages, &t);
    }
    return p;
}

void cpu_free(struct device *device, void *p, size_t bytes) {
    (void)device;
    if (p == NULL) return;
    if (bytes < LARGE)
        free(p);
    else
        munmap(p, mapped_size(bytes));
}

/* Twice the last level of cache is written, then as much read: written lines alone would go back to
   memory within the sample that follows. The buffer belongs to nobody's account: it is there only
   where cold caches were asked for, from the first eviction, in warm-up, to the end. */
void cpu_evict(struct device *device) {
    struct cpu *cpu = cpu_of(device);
    const int64_t last = cpu->topology.l3_bytes > cpu->topology.l2_bytes ? cpu->topology.l3_bytes
                                                                         : cpu->topology.l2_bytes;
    const int64_t half = last > 0 ? (2 * last + PAGE - 1) / PAGE * PAGE : 64 << 20;
    float sink = 0;
    if (cpu->evicted == NULL) {
        cpu->evicted_bytes = (size_t)(2 * half);
        cpu->evicted = cpu_alloc(device, cpu->evicted_bytes);
    }
    if (!cpu_expects(cpu, cpu->evicted != NULL, "no memory to make caches cold with")) return;
    float *written = cpu->evicted;
    cpu_triad(device, written, written, written, 1.0f, half / (int64_t)sizeof *written);
    cpu_read(device, (const char *)cpu->evicted + half, half, &sink);
}
