// SPDX-License-Identifier: Apache-2.0
// Switching stacks, and telling the sanitizers about it.
#include "tests/cuda/simt/fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef SIMT_TSAN
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
}
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

enum { STACK_BYTES = 256 << 10, GUARD_BYTES = 64 << 10 };

#ifndef SIMT_UCONTEXT
extern "C" void simt_switch_stack(void **save, void *to);
// Saves the registers that a callee must keep, swaps stack pointers, and restores (System V ABI).
asm(R"(
    .text
    .globl simt_switch_stack
    .type simt_switch_stack, @function
simt_switch_stack:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size simt_switch_stack, . - simt_switch_stack
)");
#endif

static struct fiber *left; // the fiber that the last switch came from

void fiber_adopt(struct fiber *f) {
    (void)f;
#ifdef SIMT_TSAN
    f->tsan = __tsan_get_current_fiber();
#endif
}

void fiber_create(struct fiber *f, void (*entry)(void)) {
    void *map = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED || mprotect(map, GUARD_BYTES, PROT_NONE) != 0) {
        fputs("simt: no memory for a thread's stack\n", stderr);
        _Exit(97);
    }
    f->stack = static_cast<char *>(map) + GUARD_BYTES;
    f->stack_bytes = STACK_BYTES;
#ifdef SIMT_UCONTEXT
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = nullptr;
    makecontext(&f->context, entry, 0);
#else
    void **top = reinterpret_cast<void **>(static_cast<char *>(f->stack) + STACK_BYTES);
    *--top = nullptr; // keeps the stack aligned as after a call
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    f->stack_pointer = top;
#endif
#ifdef SIMT_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
}

void fiber_switch(struct fiber *from, struct fiber *to) {
    left = from;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->asan, to->stack, to->stack_bytes);
#endif
#ifdef SIMT_TSAN
    __tsan_switch_to_fiber(to->tsan, 1);
#endif
#ifdef SIMT_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    simt_switch_stack(&from->stack_pointer, to->stack_pointer);
#endif
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(from->asan, &bottom, &bytes);
    if (!left->stack) {
        left->stack = const_cast<void *>(bottom);
        left->stack_bytes = bytes;
    }
#endif
}

void fiber_entered(void) {
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    if (!left->stack) { // the host's stack is known only once it was left
        left->stack = const_cast<void *>(bottom);
        left->stack_bytes = bytes;
    }
#endif
}

} // namespace simt
