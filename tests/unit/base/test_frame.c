/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: the bytes, the clean end, every way to be torn or rotten, and that no length is believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/frame.h"

/* A file that holds these bytes, to be read from its start. */
static int file_of(const void *bytes, size_t n) {
    int fd = memfd_create("frames", 0);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

/* Three frames, the second without a body. From tests/golden/base_values.py: the first 29 bytes. */
static const unsigned char hello[29] = {0x42, 0x4d, 0x52, 0x46, 5,   0,   0,    0,    5,    0,
                                        0,    0,    0,    0,    0,   0,   0x24, 0xbf, 0xf0, 0x37,
                                        0xc2, 0xc3, 0x8c, 0x4d, 'h', 'e', 'l',  'l',  'o'};

static size_t three_frames(char bytes[96]) {
    struct err err = {0};
    int fd = memfd_create("frames", 0);
    assert_int_equal(frame_write(fd, 5, "hello", 5, &err), 0);
    assert_int_equal(frame_write(fd, 0xffffffff, NULL, 0, &err), 0);
    assert_int_equal(frame_write(fd, 7, "body", 4, &err), 0);
    ssize_t n = pread(fd, bytes, 96, 0);
    close(fd);
    assert_int_equal(n, 81);
    return (size_t)n;
}

static void bytes_are_as_specified(void **state) {
    (void)state;
    char bytes[96];
    three_frames(bytes);
    assert_memory_equal(bytes, hello, sizeof hello);
}

static void reads_what_was_written(void **state) {
    (void)state;
    char bytes[96];
    size_t n = three_frames(bytes);
    int fd = file_of(bytes, n);
    struct err err = {0};
    uint32_t kind;
    char *body;
    size_t len;
    assert_int_equal(frame_read(fd, &kind, &body, &len, &err), 0);
    assert_int_equal(kind, 5);
    assert_int_equal(len, 5);
    assert_string_equal(body, "hello"); /* terminated */
    free(body);
    assert_int_equal(frame_read(fd, &kind, &body, &len, &err), 0);
    assert_int_equal(kind, 0xffffffff);
    assert_int_equal(len, 0);
    assert_string_equal(body, "");
    free(body);
    assert_int_equal(frame_read(fd, &kind, &body, &len, &err), 0);
    assert_int_equal(kind, 7);
    assert_string_equal(body, "body");
    free(body);
    for (int i = 0; i < 2; i++) { /* the end stays the end */
        assert_int_equal(frame_read(fd, &kind, &body, &len, &err), 0);
        assert_int_equal(kind, 0);
        assert_null(body);
        assert_int_equal(len, 0);
    }
    close(fd);

    size_t at = 0;
    bool end = true;
    const char *inside;
    assert_int_equal(frame_next(bytes, n, &at, &kind, &inside, &len, &end, &err), 0);
    assert_int_equal(at, 29);
    assert_false(end);
    assert_int_equal(kind, 5);
    assert_int_equal(len, 5);
    assert_ptr_equal(inside, bytes + 24);
    assert_int_equal(frame_next(bytes, n, &at, &kind, &inside, &len, &end, &err), 0);
    assert_int_equal(at, 53);
    assert_int_equal(kind, 0xffffffff);
    assert_int_equal(frame_next(bytes, n, &at, &kind, &inside, &len, &end, &err), 0);
    assert_int_equal(at, n);
    assert_int_equal(kind, 7);
    assert_int_equal(len, 4);
    assert_ptr_equal(inside, bytes + 53 + 24);
    assert_int_equal(frame_next(bytes, n, &at, &kind, &inside, &len, &end, &err), 0);
    assert_true(end);
    assert_null(inside);
}

/* What both readers say about the first n bytes: number of good frames, then the code. */
static int read_all(const char *bytes, size_t n, int *good) {
    char *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read behind the end */
    assert_non_null(exact);
    memcpy(exact, bytes, n);
    int fd = file_of(exact, n), code;
    struct err err = {0};
    uint32_t kind;
    char *body;
    size_t len, at = 0;
    *good = 0;
    while (!(code = frame_read(fd, &kind, &body, &len, &err)) && kind) {
        ++*good;
        free(body);
    }
    assert_null(body);
    assert_int_equal(err.code, code);
    assert_int_equal(!*err.text, !code);
    close(fd);

    int code_memory, good_memory = 0;
    bool end;
    const char *inside;
    size_t before = 0;
    for (;;) {
        before = at;
        code_memory = frame_next(exact, n, &at, &kind, &inside, &len, &end, &err);
        if (code_memory || end) break;
        good_memory++;
    }
    assert_int_equal(at, before); /* what could not be read is where the journal is cut */
    assert_int_equal(code_memory, code);
    assert_int_equal(kind, 0);
    assert_null(inside);
    assert_int_equal(len, 0);
    assert_int_equal(good_memory, *good);
    free(exact);
    return code;
}

static void every_cut_is_torn(void **state) {
    (void)state;
    char bytes[96];
    size_t n = three_frames(bytes);
    for (size_t cut = 0; cut <= n; cut++) {
        int good;
        int code = read_all(bytes, cut, &good);
        bool clean = cut == 0 || cut == 29 || cut == 53 || cut == 81;
        if (code != (clean ? 0 : ERR_INPUT) || good != (cut >= 29) + (cut >= 53) + (cut >= 81))
            fail_msg("cut at %zu: code %d, %d frames", cut, code, good);
    }
}

static void every_flipped_bit_is_seen(void **state) {
    (void)state;
    char bytes[96];
    size_t n = three_frames(bytes);
    for (size_t bit = 0; bit < n * 8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        int good;
        int code = read_all(bytes, n, &good);
        if (code != ERR_INPUT || good != (bit >= 29 * 8) + (bit >= 53 * 8))
            fail_msg("bit %zu: code %d, %d frames", bit, code, good);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
}

static void no_length_is_believed(void **state) {
    (void)state;
    unsigned char bytes[sizeof hello];
    memcpy(bytes, hello, sizeof hello);
    bytes[12] = 8; /* 2^35 bytes are claimed */
    int fd = file_of(bytes, sizeof bytes);
    struct err err = {0};
    uint32_t kind;
    char *body;
    size_t len;
    struct rusage usage;
    assert_int_equal(frame_read(fd, &kind, &body, &len, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "torn"));
    assert_null(body);
    close(fd);
    getrusage(RUSAGE_SELF, &usage);
    assert_true(usage.ru_maxrss < 1 << 20); /* KiB */
    bytes[12] = 17;                         /* 2^36 and more: refused at sight */
    fd = file_of(bytes, sizeof bytes);
    assert_int_equal(frame_read(fd, &kind, &body, &len, &err), ERR_INPUT);
    assert_non_null(strstr(err.text, "claims"));
    close(fd);
}

static void what_cannot_be_a_frame_is_not_written(void **state) {
    (void)state;
    struct err err = {0};
    int fd = memfd_create("frames", 0);
    assert_int_equal(frame_write(fd, 0, "x", 1, &err), ERR_INTERNAL); /* kind 0 is the end */
    assert_int_equal(frame_write(fd, 1, "x", (size_t)FRAME_MOST + 1, &err), ERR_INTERNAL);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
    close(fd);
    assert_int_equal(frame_write(-1, 1, "x", 1, &err), ERR_SYSTEM);
    uint32_t kind;
    char *body;
    size_t len;
    assert_int_equal(frame_read(-1, &kind, &body, &len, &err), ERR_SYSTEM);
    int sealed = open("/dev/full", O_WRONLY);
    assert_int_equal(frame_write(sealed, 1, "x", 1, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "No space"));
    close(sealed);
}

enum { LARGE = 3000001 };

static void *write_large(void *fd) {
    char *body = malloc(LARGE);
    for (size_t i = 0; body && i < LARGE; i++) body[i] = (char)(i * 7 >> 2);
    struct err err = {0};
    int code = frame_write(*(int *)fd, 9, body, LARGE, &err);
    free(body);
    return code ? fd : NULL;
}

/* Through sockets, small pieces and a writer that would block. */
static void large_frames_pass_sockets(void **state) {
    (void)state;
    for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends), 0);
        pthread_t writer;
        assert_int_equal(pthread_create(&writer, NULL, write_large, &ends[0]), 0);
        struct err err = {0};
        uint32_t kind;
        char *body;
        size_t len;
        assert_int_equal(frame_read(ends[1], &kind, &body, &len, &err), 0);
        void *failed;
        pthread_join(writer, &failed);
        assert_null(failed);
        assert_int_equal(kind, 9);
        assert_int_equal(len, LARGE);
        for (size_t i = 0; i < LARGE; i++)
            if (body[i] != (char)(i * 7 >> 2)) fail_msg("byte %zu", i);
        assert_int_equal(body[LARGE], 0);
        free(body);
        close(ends[0]);
        close(ends[1]);
    }
}

static void a_dead_peer_is_an_error_and_no_signal(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
    struct err err = {0};
    assert_int_equal(frame_write(ends[0], 1, "x", 1, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "Broken pipe"));
    close(ends[0]);
}

/* Half a frame, and a writer that lives on: an error when patience ends, not a wait without end. */
static void a_hanging_writer_is_not_waited_for(void **state) {
    (void)state;
    int ends[2], memory[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, memory), 0);
    assert_int_equal(frame_write(memory[0], 3, "0123456789", 10, NULL), 0);
    char bytes[100];
    const ssize_t n = read(memory[1], bytes, sizeof bytes);
    assert_int_equal(n, 34);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    static const size_t kept[] = {0, 1, 23, 24, 33, 34};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        struct err err = {0};
        uint32_t kind;
        char *body;
        size_t len;
        assert_int_equal(write(ends[0], bytes, kept[i]), kept[i]);
        const int code = frame_read_within(ends[1], 30000000, &kind, &body, &len, &err);
        assert_int_equal(code, kept[i] == 34 ? 0 : ERR_TIMEOUT);
        free(body);
        if (kept[i] == 34) assert_int_equal(kind, 3);
        /* the rest was read: the next one begins anew */
    }
    assert_int_equal(write(ends[0], bytes, 34), 34);
    struct err err = {0};
    uint32_t kind;
    char *body;
    size_t len;
    assert_int_equal(frame_read_within(ends[1], INT64_MAX, &kind, &body, &len, &err), 0);
    assert_string_equal(body, "0123456789");
    free(body);
    for (int i = 0; i < 2; i++) close(ends[i]), close(memory[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_specified),
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(every_cut_is_torn),
        cmocka_unit_test(every_flipped_bit_is_seen),
        cmocka_unit_test(no_length_is_believed),
        cmocka_unit_test(what_cannot_be_a_frame_is_not_written),
        cmocka_unit_test(large_frames_pass_sockets),
        cmocka_unit_test(a_dead_peer_is_an_error_and_no_signal),
        cmocka_unit_test(a_hanging_writer_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
