/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: alignment, zeroes, growth, large pieces; and the exit when there is no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "tests/support/german.h"

static void pieces_are_aligned_zeroed_and_apart(void **state) {
    (void)state;
    enum { N = 3000 };
    static unsigned char *piece[N];
    static size_t size[N];
    struct arena *arena = arena_create();
    for (int i = 0; i < N; i++) {
        size[i] = (size_t)(i * 37 % 501);
        if (i % 500 == 7) size[i] = 100000; /* a block of its own */
        piece[i] = arena_alloc(arena, size[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        for (size_t b = 0; b < size[i]; b++) assert_int_equal(piece[i][b], 0);
        memset(piece[i], i & 0xff, size[i]);
    }
    for (int i = 0; i < N; i++) /* nobody wrote over a neighbour */
        for (size_t b = 0; b < size[i]; b++) assert_int_equal(piece[i][b], i & 0xff);
    arena_close(&arena);
    assert_null(arena);
    arena_close(&arena); /* NULL inside is safe */
}

static void a_large_first_piece_works(void **state) {
    (void)state;
    struct arena *arena = arena_create();
    char *large = arena_alloc(arena, 1 << 20), *small = arena_alloc(arena, 1);
    memset(large, 1, 1 << 20);
    assert_int_equal(*small, 0);
    arena_close(&arena);
}

static void texts_are_copies(void **state) {
    (void)state;
    struct arena *arena = arena_create();
    char text[] = "tokens";
    char *copy = arena_text(arena, text), *part = arena_textn(arena, text, 3);
    text[0] = 'X';
    assert_string_equal(copy, "tokens");
    assert_string_equal(part, "tok");
    assert_null(arena_text(arena, NULL));
    assert_string_equal(arena_textn(arena, NULL, 0), "");
    assert_string_equal(arena_printf(arena, "%s-%d", "b", 16), "b-16");
    assert_string_equal(arena_printf(arena, "%s", ""), "");
    char *big = arena_printf(arena, "%0*d", 50000, 1);
    assert_int_equal(strlen(big), 50000);
    if (german_begin()) {
        char *number = arena_printf(arena, "%.1f", 0.5);
        german_end();
        assert_string_equal(number, "0.5");
    }
    arena_close(&arena);
}

static void must_functions_give_memory(void **state) {
    (void)state;
    char *p = must_alloc(0);
    assert_non_null(p);
    p = must_realloc(p, 100);
    strcpy(p, "kept");
    p = must_realloc(p, 100000);
    assert_string_equal(p, "kept");
    free(p);
    p = must_text("copy");
    assert_string_equal(p, "copy");
    free(p);
    unsigned char *zero = must_alloc(1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(zero[i], 0);
    free(zero);
}

/* Runs f in a child; returns its wait status and what it wrote to stderr. */
static int in_child(void (*f)(void), char *said, size_t size) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        dup2(pipes[1], STDERR_FILENO);
        f();
        _exit(0);
    }
    close(pipes[1]);
    size_t len = 0;
    for (ssize_t n; (n = read(pipes[0], said + len, size - 1 - len)) > 0;) len += (size_t)n;
    said[len] = 0;
    close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void ask_arena(void) {
    struct arena *arena = arena_create();
    arena_alloc(arena, SIZE_MAX - 3);
}

static void ask_arena_textn(void) {
    struct arena *arena = arena_create();
    arena_textn(arena, "", SIZE_MAX);
}

static void no_memory_is_one_sentence_and_exit_2(void **state) {
    (void)state;
    void (*ask[])(void) = {ask_arena, ask_arena_textn};
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        char said[400];
        int status = in_child(ask[i], said, sizeof said);
        assert_true(WIFEXITED(status)); /* no signal */
        assert_int_equal(WEXITSTATUS(status), 2);
        assert_string_equal(said, "bench: the host has no memory left\n");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(a_large_first_piece_works),
        cmocka_unit_test(texts_are_copies),
        cmocka_unit_test(must_functions_give_memory),
        cmocka_unit_test(no_memory_is_one_sentence_and_exit_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
