// SPDX-License-Identifier: Apache-2.0
// Pages that are made when they are touched: see sparse.h.
#include "tests/cuda/simt/sparse.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cuda/simt/simt.h"

namespace simt {

enum { PAGE = 4096 };
/* Where the farthest wrapped index of elements of 16 bytes leads to. */
static const size_t GUARD = size_t(1) << 35;

static std::vector<sparse_array *> &all(void) {
    static auto *list = new std::vector<sparse_array *>;
    return *list;
}
static bool fault_of_all(uintptr_t a) {
    for (sparse_array *s : all())
        if (s->fault(a)) return true;
    return false;
}

sparse_array::sparse_array(const char *called, int64_t elements, int bytes, element_bits *make,
                           uint64_t salt_of_bits)
    : name(called), n(elements), element_bytes(bytes), bits(make), salt(salt_of_bits),
      pages((elements * bytes + PAGE - 1) / PAGE), touched(size_t(pages)) {
    void *m = mmap(nullptr, 2 * GUARD + size_t(pages) * PAGE, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) fail({__FILE__, __LINE__}, "no addresses for %s", name);
    map = static_cast<unsigned char *>(m);
    begin = map + GUARD;
    all().push_back(this);
    hooks.fault = fault_of_all;
}
sparse_array::~sparse_array() {
    munmap(map, 2 * GUARD + size_t(pages) * PAGE);
    for (size_t i = 0; i < all().size(); i++)
        if (all()[i] == this) all().erase(all().begin() + long(i--));
}

uint64_t sparse_array::made(int64_t i) const {
    return bits(salt, i) & (~uint64_t(0) >> (64 - 8 * element_bytes));
}
uint64_t sparse_array::now(int64_t i) const {
    const int64_t at = i * element_bytes;
    if (!touched[size_t(at / PAGE)]) return made(i);
    uint64_t v = 0;
    memcpy(&v, begin + at, size_t(element_bytes));
    return v;
}
std::vector<int64_t> sparse_array::written() const {
    std::vector<int64_t> list;
    for (int64_t p = 0; p < pages; p++) {
        if (!touched[size_t(p)]) continue;
        const int64_t first = p * (PAGE / element_bytes);
        for (int64_t i = first; i < first + PAGE / element_bytes; i++)
            if (now(i) != made(i)) list.push_back(i);
    }
    return list;
}
int64_t sparse_array::touched_pages() const {
    int64_t sum = 0;
    for (bool t : touched) sum += t;
    return sum;
}

void sparse_array::fill(int64_t page) {
    unsigned char *to = begin + page * PAGE;
    const int64_t first = page * (PAGE / element_bytes);
    mprotect(to, PAGE, PROT_READ | PROT_WRITE);
    for (int64_t i = 0; i < PAGE / element_bytes; i++) {
        const uint64_t v = bits(salt, first + i);
        memcpy(to + i * element_bytes, &v, size_t(element_bytes));
    }
    touched[size_t(page)] = true;
}
bool sparse_array::fault(uintptr_t a) {
    const uintptr_t from = uintptr_t(map), data_at = uintptr_t(begin);
    if (a < from || a >= data_at + uintptr_t(pages) * PAGE + GUARD) return false;
    if (a >= data_at && a < data_at + uintptr_t(pages) * PAGE) {
        const int64_t page = int64_t(a - data_at) / PAGE;
        if (touched[size_t(page)]) return false;
        fill(page);
        return true;
    }
    fprintf(stderr, "simt: access to element %lld of %s, which has %lld (%s)\n",
            (long long)(int64_t(a - data_at) / element_bytes), name, (long long)n, where());
    _exit(97);
}

} // namespace simt
