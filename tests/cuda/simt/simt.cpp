// SPDX-License-Identifier: Apache-2.0
// The scheduler: runs a launch block by block, each thread a fiber that goes on until it must wait.
// Never compiled with ThreadSanitizer, which is to see the kernels' accesses only.
#include "tests/cuda/simt/simt.h"

#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/simt/fiber.h"
#include "tests/cuda/simt/record.h"

#ifdef __SANITIZE_THREAD__
#error "the emulator needs -fno-sanitize=thread -DSIMT_TSAN: it is no part of what is watched"
#endif
#ifdef SIMT_TSAN
extern "C" {
void __tsan_acquire(void *);
void __tsan_release(void *);
}
#else
static void __tsan_acquire(void *) {}
static void __tsan_release(void *) {}
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif
#ifdef __clang__
extern "C" __attribute__((weak)) unsigned char __start_simt_shared[], __stop_simt_shared[];
#endif

namespace simt {

enum state { READY, AT_BARRIER, AT_WARP_OPERATION, AT_GRID_WAIT, EXITED };

struct waiting { // what the scheduler knows of a lane
    enum state state;
    unsigned mask;
    struct site site;
    operation *op;
    void *arg;
    bool ordered;
    unsigned token;
    struct fiber fiber;
};
struct warp { // bit l: lane l
    unsigned present, ready, at_operation;
    unsigned char order[WARP];
};

struct lane *current;
uint3 block_now;
dim3 block_size, grid_size;
unsigned char *dynamic_memory;
bool copies_land_late = true;
struct counters counters;
struct runtime_hooks hooks;

static struct lane lanes[MOST_THREADS];
static struct waiting waits[MOST_THREADS];
static struct warp warps[MOST_THREADS / WARP];
static unsigned warp_order[MOST_THREADS / WARP];
static unsigned n_lanes, n_warps, n_exited, n_at_barrier, n_at_grid_wait;
static struct fiber host;
static const struct launch_record *running;
static size_t dynamic_bytes;
static bool in_prologue; // of a pdl launch: before pdl_wait
static bool has_waited;  // some thread of the launch called pdl_wait
static unsigned the_seed, random_state = 1;

/* ---- seeds ---- */

static bool seed_is_known;

void set_seed(unsigned s) {
    the_seed = s;
    seed_is_known = true;
}
unsigned seed(void) {
    if (!seed_is_known) {
        const char *text = getenv("SIMT_SEED");
        set_seed(text ? unsigned(strtoul(text, nullptr, 10)) : 0);
    }
    return the_seed;
}
static unsigned random_below(unsigned n) { // xorshift
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}
// In order for seed 0, reversed for 1, else shuffled.
template <class T> static void arrange(T *order, unsigned n) {
    for (unsigned i = 0; i < n; i++) order[i] = T(the_seed == 1 ? n - 1 - i : i);
    if (the_seed < 2) return;
    for (unsigned i = n; i-- > 1;) std::swap(order[i], order[random_below(i + 1)]);
}

/* ---- failures ---- */

const char *where(void) {
    static char text[256];
    if (!running) return "host code";
    snprintf(text, sizeof text, "kernel %s block (%u, %u, %u) thread %d of %u, seed %u",
             running->name, block_now.x, block_now.y, block_now.z,
             current ? int(current->index) : -1, n_lanes, the_seed);
    return text;
}
bool in_kernel(void) { return running != nullptr; }
static const char *state_name(enum state s) {
    switch (s) {
    case READY: return "running";
    case AT_BARRIER: return "in __syncthreads";
    case AT_WARP_OPERATION: return "in a warp operation";
    case AT_GRID_WAIT: return "in pdl_wait";
    case EXITED: return "exited";
    }
    return "?";
}
void fail(struct site s, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("simt: ", stderr);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, " at %s:%d (%s)\n", s.file ? s.file : "?", s.line, where());
    int told = 0;
    for (unsigned i = 0; running && i < n_lanes && told < 8; i++) {
        const struct waiting &w = waits[i], &before = waits[i ? i - 1 : 0];
        if (i && w.state == before.state && w.site.line == before.site.line &&
            w.mask == before.mask)
            continue;
        fprintf(stderr, "simt:   from thread %u: %s", i, state_name(w.state));
        if (w.state != READY && w.state != EXITED)
            fprintf(stderr, " at %s:%d", w.site.file, w.site.line);
        if (w.state == AT_WARP_OPERATION) fprintf(stderr, ", mask %08x", w.mask);
        fputc('\n', stderr);
        told++;
    }
    fflush(stdout);
    _exit(97);
}

void expect_global(const void *p, size_t bytes, struct site s, const char *who) {
    const uintptr_t a = uintptr_t(p), d = uintptr_t(dynamic_memory);
    if (a % bytes) fail(s, "%s: address %p is not a multiple of %zu", who, p, bytes);
    if (a >= d && a < d + dynamic_bytes) fail(s, "%s: %p is shared memory", who, p);
}
void expect_shared(const void *p, size_t bytes, struct site s, const char *who) {
    const uintptr_t a = uintptr_t(p), d = uintptr_t(dynamic_memory);
    if (a % bytes) fail(s, "%s: address %p is not a multiple of %zu", who, p, bytes);
    if (a >= d && a + bytes <= d + dynamic_bytes) return;
#ifdef __clang__
    if (a >= uintptr_t(__start_simt_shared) && a + bytes <= uintptr_t(__stop_simt_shared)) return;
    fail(s, "%s: %p is not in the %zu bytes of dynamic shared memory, nor static shared", who, p,
         dynamic_bytes);
#else // where static shared memory lies is not known
    if ((a >= d && a < d + dynamic_bytes + 4096) ||
        (hooks.is_device_memory && hooks.is_device_memory(p, bytes)))
        fail(s, "%s: %p is not in the %zu bytes of dynamic shared memory", who, p, dynamic_bytes);
#endif
}

/* A sample of the reads, compared when the kernel ends. */
struct constant {
    const void *at;
    unsigned char value[16];
    struct site site;
};
static struct constant constants[1 << 14];
static size_t n_constants; // reads, of which the table holds the latest that fell on each slot

void expect_constant(const void *p, struct site s) {
    if (running->pdl && hooks.may_change && hooks.may_change(p))
        fail(s, "load_stream_16: %p is written by a kernel that may not have ended when this began",
             p);
    struct constant &c = constants[(uintptr_t(p) / 16 * 2654435761u >> 8) % (1 << 14)];
    n_constants++;
    c.at = p;
    memcpy(c.value, p, sizeof c.value);
    c.site = s;
}
static void check_constants(void) {
    if (!n_constants) return;
    n_constants = 0;
    for (struct constant &c : constants) {
        if (c.at && memcmp(c.at, c.value, sizeof c.value) != 0)
            fail(c.site, "load_stream_16: what it read at %p was written in the same kernel", c.at);
        c.at = nullptr;
    }
}

/* ---- happens-before, for ThreadSanitizer ---- */

/* A token for each instance of a barrier: with one for all, a lane that runs ahead would order a
   lane that is behind. */
static char tokens[8 * 4096];
enum { TOKEN_BEGIN, TOKEN_END, FIRST_TOKEN };
static unsigned next_token = FIRST_TOKEN, barrier_token;

static char *token_address(unsigned token) { return tokens + 8 * token; }
static unsigned fresh_token(void) {
    next_token = next_token + 1 < sizeof tokens / 8 ? next_token + 1 : unsigned(FIRST_TOKEN);
    return next_token;
}
// The token of those of the mask that wait already, or a fresh one.
static unsigned warp_token(unsigned index, unsigned mask) {
    const unsigned first = index & ~31u;
    const unsigned others = warps[index / WARP].at_operation & mask;
    for (unsigned l = 0; l < WARP; l++)
        if (others >> l & 1 && waits[first + l].mask == mask) return waits[first + l].token;
    return fresh_token();
}

/* ---- waiting: on the lane's own stack ---- */

static void leave(struct waiting &w) { fiber_switch(&w.fiber, &host); }
void warp_operation(unsigned mask, struct site s, operation *op, void *arg, bool ordered) {
    const unsigned i = current->index;
    struct waiting &w = waits[i];
    w.site = s;
    if (!(mask >> (i & 31) & 1)) fail(s, "thread is not in its own mask %08x", mask);
    w.mask = mask;
    w.op = op;
    w.arg = arg;
    w.state = AT_WARP_OPERATION;
    if (ordered) {
        w.token = warp_token(i, mask);
        __tsan_release(token_address(w.token));
    }
    leave(w);
    if (ordered) __tsan_acquire(token_address(w.token));
}
void block_operation(struct site s, operation *op, void *arg) {
    struct waiting &w = waits[current->index];
    if (!n_at_barrier) barrier_token = fresh_token();
    w.site = s;
    w.op = op;
    w.arg = arg;
    w.token = barrier_token;
    w.state = AT_BARRIER;
    __tsan_release(token_address(w.token));
    leave(w);
    __tsan_acquire(token_address(w.token));
}
void grid_wait(struct site s) {
    has_waited = true;
    if (!in_prologue) return;
    struct waiting &w = waits[current->index];
    w.site = s;
    w.state = AT_GRID_WAIT;
    leave(w);
}

static void lane_main(void) { // a fiber serves every block of every launch
    fiber_entered();
    for (;;) {
        __tsan_acquire(token_address(TOKEN_BEGIN));
        running->call(running->kernel, running->args.data());
        __tsan_release(token_address(TOKEN_END));
        struct waiting &w = waits[current->index];
        w.state = EXITED;
        leave(w);
    }
}

/* ---- scheduling: on the host's stack ---- */

static void make_ready(unsigned index) {
    waits[index].state = READY;
    warps[index / WARP].ready |= 1u << (index & 31);
}

// Runs the operation that lane `index` waits in if all others of its mask wait too.
static void try_warp_operation(unsigned index) {
    struct warp &v = warps[index / WARP];
    const struct waiting &w = waits[index];
    const unsigned first = index & ~31u, mask = w.mask;
    if (mask & ~v.present) fail(w.site, "mask %08x names a thread that exited or never was", mask);
    if ((v.at_operation & mask) != mask) return;
    void *args[WARP] = {};
    for (unsigned l = 0; l < WARP; l++) {
        if (!(mask >> l & 1)) continue;
        const struct waiting &other = waits[first + l];
        if (other.op != w.op || other.mask != mask)
            fail(w.site,
                 "threads of mask %08x meet in another operation or mask (thread %u at %s:%d)",
                 mask, first + l, other.site.file, other.site.line);
        args[l] = other.arg;
    }
    if (w.op) w.op(args, mask);
    counters.warp_operations++;
    v.at_operation &= ~mask;
    for (unsigned l = 0; l < WARP; l++)
        if (mask >> l & 1) make_ready(first + l);
}

static void lane_exited(unsigned index) {
    struct warp &v = warps[index / WARP];
    v.present &= ~(1u << (index & 31));
    n_exited++;
    for (unsigned l = 0; l < WARP; l++) {
        const struct waiting &w = waits[(index & ~31u) + l];
        if (v.at_operation >> l & 1 && w.mask >> (index & 31) & 1)
            fail(w.site, "mask %08x names thread %u, which has exited", w.mask, index);
    }
}

static void resume(unsigned index) {
    struct warp &v = warps[index / WARP];
    const unsigned bit = 1u << (index & 31);
    v.ready &= ~bit;
    current = &lanes[index];
    counters.switches++;
    fiber_switch(&host, &waits[index].fiber);
    switch (waits[index].state) {
    case AT_WARP_OPERATION:
        v.at_operation |= bit;
        try_warp_operation(index);
        break;
    case AT_BARRIER: n_at_barrier++; break;
    case AT_GRID_WAIT: n_at_grid_wait++; break;
    case EXITED: lane_exited(index); break;
    case READY: fail(waits[index].site, "emulator: a lane left without a reason");
    }
}

static void new_order(void) {
    arrange(warp_order, n_warps);
    for (unsigned w = 0; w < n_warps; w++) {
        unsigned n = std::min<unsigned>(WARP, n_lanes - w * WARP);
        arrange(warps[w].order, n);
    }
}

// Each warp runs as far as it can before the next one starts: the adverse case for what a missing
// barrier leaves open.
static bool run_ready_warps(void) {
    bool moved = false;
    for (unsigned k = 0; k < n_warps; k++) {
        const unsigned w = warp_order[k], n = std::min<unsigned>(WARP, n_lanes - w * WARP);
        while (warps[w].ready) {
            moved = true;
            for (unsigned j = 0; j < n; j++) {
                const unsigned l = warps[w].order[j];
                if (warps[w].ready >> l & 1) resume(w * WARP + l);
            }
        }
    }
    return moved;
}

static void release_barrier(void) {
    const struct waiting *first = nullptr;
    static void *args[MOST_THREADS];
    for (unsigned i = 0; i < n_lanes; i++) {
        const struct waiting &w = waits[i];
        if (w.state != AT_BARRIER) continue;
        if (!first) first = &w;
        if (w.site.line != first->site.line || strcmp(w.site.file, first->site.file) != 0)
            fail(w.site, "threads of one block meet in different __syncthreads");
        args[i] = w.arg;
    }
    if (n_exited) fail(first->site, "some threads have exited while others wait in __syncthreads");
    if (first->op) first->op(args, n_lanes);
    for (unsigned i = 0; i < n_lanes; i++) make_ready(i);
    n_at_barrier = 0;
    counters.barriers++;
    new_order();
}

static void end_prologue(void) {
    if (!in_prologue) return;
    in_prologue = false;
    if (hooks.prologue_end) hooks.prologue_end();
    for (unsigned i = 0; i < n_lanes; i++)
        if (waits[i].state == AT_GRID_WAIT) make_ready(i);
    n_at_grid_wait = 0;
}

static void start_block(void) {
    n_exited = n_at_barrier = n_at_grid_wait = 0;
    for (unsigned i = 0; i < n_lanes; i++) {
        struct lane &l = lanes[i];
        const unsigned x = block_size.x, y = block_size.y;
        l.thread = make_uint3(i % x, i / x % y, i / (x * y));
        l.index = i;
        l.n_copies = l.copy_group = 0;
        waits[i].site = {nullptr, 0};
        waits[i].mask = 0;
        waits[i].state = READY;
        if (!waits[i].fiber.stack) fiber_create(&waits[i].fiber, lane_main);
    }
    for (unsigned w = 0; w < n_warps; w++) {
        const unsigned n = std::min<unsigned>(WARP, n_lanes - w * WARP);
        warps[w].present = warps[w].ready = n == WARP ? ~0u : (1u << n) - 1;
        warps[w].at_operation = 0;
    }
    new_order();
}

static void run_block(void) {
    memset(dynamic_memory, 0xff, dynamic_bytes); // NaN in f32, f16 and bf16
#ifdef __clang__
    if (__start_simt_shared)
        memset(__start_simt_shared, 0xff, size_t(__stop_simt_shared - __start_simt_shared));
#endif
    start_block();
    in_prologue = running->pdl;
    if (in_prologue && hooks.prologue_begin) hooks.prologue_begin(*running);
    __tsan_release(token_address(TOKEN_BEGIN));
    while (n_exited < n_lanes) {
        const bool moved = run_ready_warps();
        current = nullptr;
        if (n_exited == n_lanes) break;
        if (n_at_barrier + n_exited == n_lanes)
            release_barrier();
        else if (in_prologue && n_at_grid_wait)
            end_prologue();
        else if (!moved) {
            unsigned i = 0;
            while (waits[i].state == EXITED) i++;
            fail(waits[i].site, "deadlock: no thread can go on");
        }
    }
    end_prologue();
    __tsan_acquire(token_address(TOKEN_END));
    counters.blocks++;
    counters.threads += n_lanes;
}

/* Dynamic shared memory ends where a page ends that nobody may touch; it begins 128-aligned, so
   that up to 112 bytes lie between: these are checked. */
enum { PAGE = 4096 };
static unsigned char *shared_map;
static const size_t shared_map_bytes = (MOST_SHARED + PAGE - 1) / PAGE * PAGE;
static const unsigned char CANARY = 0xc5;

static unsigned char *place_shared(size_t bytes) {
    if (!shared_map) {
        void *map = mmap(nullptr, shared_map_bytes + 2 * PAGE, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        shared_map = static_cast<unsigned char *>(map) + PAGE;
        if (map == MAP_FAILED ||
            mprotect(shared_map, shared_map_bytes, PROT_READ | PROT_WRITE) != 0)
            fail({__FILE__, __LINE__}, "no memory for shared memory");
    }
    ASAN_UNPOISON_MEMORY_REGION(shared_map, shared_map_bytes);
    const size_t room = (bytes + 127) / 128 * 128;
    unsigned char *begin = shared_map + shared_map_bytes - room;
    memset(begin + bytes, CANARY, room - bytes);
    ASAN_POISON_MEMORY_REGION(begin + bytes, room - bytes);
    ASAN_POISON_MEMORY_REGION(shared_map, shared_map_bytes - room);
    return begin;
}
static void check_canary(void) {
    unsigned char *end = dynamic_memory + dynamic_bytes;
    ASAN_UNPOISON_MEMORY_REGION(end, size_t(shared_map + shared_map_bytes - end));
    for (unsigned char *p = end; p < shared_map + shared_map_bytes; p++)
        if (*p != CANARY)
            fail({__FILE__, __LINE__}, "write %zu bytes past the end of dynamic shared memory",
                 size_t(p - end));
}

static std::vector<size_t> blocks_to_run(size_t n) {
    std::vector<size_t> blocks(n);
    arrange(blocks.data(), unsigned(n));
    const char *text = getenv("SIMT_BLOCKS");
    const size_t most = text ? strtoul(text, nullptr, 10) : n;
    if (most >= n || most < 2) return blocks;
    std::vector<size_t> some = {0, n - 1};
    while (some.size() < most) some.push_back(random_below(unsigned(n)));
    return some;
}

static void note_statistics(const struct counters &before);

void run(const struct launch_record &l) {
    const struct counters before = counters;
    running = &l;
    grid_size = l.grid;
    block_size = l.block;
    n_lanes = l.block.x * l.block.y * l.block.z;
    n_warps = (n_lanes + WARP - 1) / WARP;
    random_state = seed() * 2654435761u + 1;
    copies_land_late = !(the_seed & 1);
    dynamic_bytes = l.shared_bytes;
    dynamic_memory = place_shared(dynamic_bytes);
    fiber_adopt(&host);
    has_waited = false;
    record_before(l);
    const size_t gx = l.grid.x, gy = l.grid.y;
    const size_t n_blocks = gx * gy * l.grid.z;
    for (size_t b : hooks.choose ? hooks.choose(l, n_blocks) : blocks_to_run(n_blocks)) {
        block_now = make_uint3(unsigned(b % gx), unsigned(b / gx % gy), unsigned(b / (gx * gy)));
        run_block();
    }
    check_canary();
    check_constants();
    // Else a later kernel's wait for this one would not cover what came before this one.
    if (l.pdl && !has_waited)
        fail({__FILE__, __LINE__}, "kernel launched with pdl never called pdl_wait");
    record_after(l);
    counters.launches++;
    note_statistics(before);
    running = nullptr;
    dynamic_bytes = 0;
}

/* ---- launches ---- */

static std::map<void (*)(), int32_t> loaded; // shared memory allowed

bool kernel_is_loaded(void (*kernel)()) { return loaded.count(kernel) > 0; }

cudaError_t load(const char *, void (*kernel)(), int32_t shared_bytes) {
    if (shared_bytes > MOST_SHARED) return cudaErrorInvalidValue;
    loaded[kernel] = std::max<int32_t>(shared_bytes, SHARED_WITHOUT_LEAVE);
    return cudaSuccess;
}

cudaError_t submit(const struct launch_record &l, cudaStream_t stream) {
    const uint64_t threads = uint64_t(l.block.x) * l.block.y * l.block.z;
    if (threads < 1 || threads > MOST_THREADS || l.block.z > 64 || l.grid.x < 1 || l.grid.y < 1 ||
        l.grid.z < 1 || l.grid.x > 0x7fffffffu || l.grid.y > 65535 || l.grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    const auto known = loaded.find(l.kernel);
    const size_t leave =
        known == loaded.end() ? size_t(SHARED_WITHOUT_LEAVE) : size_t(known->second);
    if (l.shared_bytes > leave) return cudaErrorInvalidValue;
    if (l.args.size() > 4096) return cudaErrorInvalidValue; // what all architectures take
    if (hooks.take) return hooks.take(l, stream);
    run(l);
    return cudaSuccess;
}

/* ---- statistics ---- */

static std::map<std::string, struct counters> &statistics(void) {
    static auto *map = new std::map<std::string, struct counters>;
    return *map;
}

// A line for each kernel: name, launches, blocks, threads, barriers, warp operations, cycles that
// shared memory needs at least and takes for its ldmatrix.
static void stats_write(void) {
    FILE *f = fopen(getenv("SIMT_STATS"), "a");
    if (!f) return;
    for (const auto &[name, c] : statistics())
        fprintf(f, "%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\n", name.c_str(),
                (unsigned long long)c.launches, (unsigned long long)c.blocks,
                (unsigned long long)c.threads, (unsigned long long)c.barriers,
                (unsigned long long)c.warp_operations, (unsigned long long)c.ldmatrix_ideal,
                (unsigned long long)c.ldmatrix_actual);
    fclose(f);
}
static void note_statistics(const struct counters &before) {
    static const bool wanted = getenv("SIMT_STATS") && atexit(stats_write) == 0;
    if (!wanted) return;
    struct counters &c = statistics()[running->name];
    c.launches++;
    c.blocks += counters.blocks - before.blocks;
    c.threads += counters.threads - before.threads;
    c.barriers += counters.barriers - before.barriers;
    c.warp_operations += counters.warp_operations - before.warp_operations;
    c.ldmatrix_ideal += counters.ldmatrix_ideal - before.ldmatrix_ideal;
    c.ldmatrix_actual += counters.ldmatrix_actual - before.ldmatrix_actual;
}

} // namespace simt
