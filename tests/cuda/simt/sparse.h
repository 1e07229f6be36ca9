/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the size that production has, of which only touched pages are there. Every element has
   a value of its place, made when its page is first touched: whatever a kernel reads, an index that
   wrapped gives another value, and what it wrote is found by comparing with that. On each side lie
   closed pages as far as a wrapped 32-bit index can reach. For kernels under simt.h; host code may
   touch them too. */
#ifndef TESTS_CUDA_SIMT_SPARSE_H
#define TESTS_CUDA_SIMT_SPARSE_H
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace simt {

/* The bits of element i, of which as many count as an element has. */
typedef uint64_t element_bits(uint64_t salt, int64_t i);

class sparse_array {
  public:
    sparse_array(const char *name, int64_t elements, int bytes, element_bits *, uint64_t salt);
    ~sparse_array();
    sparse_array(const sparse_array &) = delete;
    sparse_array &operator=(const sparse_array &) = delete;

    void *data() const { return begin; }
    int64_t size() const { return n; }
    uint64_t made(int64_t i) const; // what element i was made as
    uint64_t now(int64_t i) const;
    std::vector<int64_t> written() const; // elements that are not as they were made, ascending
    int64_t touched_pages() const;

    bool fault(uintptr_t); // hooks.fault, of one

  private:
    const char *name;
    int64_t n;
    int element_bytes;
    element_bits *bits;
    uint64_t salt;
    unsigned char *map, *begin;
    int64_t pages;
    std::vector<bool> touched;
    void fill(int64_t page);
};

} // namespace simt

#endif
