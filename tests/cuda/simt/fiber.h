/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that are switched by hand: one for each CUDA thread of a block. On x86-64 a switch is 14
   instructions; elsewhere (or with SIMT_UCONTEXT) ucontext, ten times slower, does it. */
#ifndef TESTS_CUDA_SIMT_FIBER_H
#define TESTS_CUDA_SIMT_FIBER_H
#include <stddef.h>

#if !defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_UCONTEXT
#endif
#ifdef SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace simt {

struct fiber {
    void *stack; // lowest usable address; nullptr for the host's own stack
    size_t stack_bytes;
    void *tsan; // what ThreadSanitizer knows it by
    void *asan; // frames that AddressSanitizer keeps aside while it is switched away
#ifdef SIMT_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
};

// The running stack becomes a fiber that others can switch back to.
void fiber_adopt(struct fiber *);
// A new stack with a guard page below it; `entry` starts at the first switch and never returns.
void fiber_create(struct fiber *, void (*entry)(void));
// To ThreadSanitizer a switch orders nothing: only barriers do.
void fiber_switch(struct fiber *from, struct fiber *to);
// To be called first by every `entry`.
void fiber_entered(void);

} // namespace simt
#endif
