/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and checking frames; a reader believes no length before the bytes are there. */
#include "base/frame.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"

_Static_assert(sizeof(struct frame_head) == 24, "the head is a format, and has no padding");

static struct frame_head head_swap(struct frame_head h) /* host to little endian and back */
{
    return (struct frame_head){htole32(h.magic), htole32(h.kind), htole64(h.length),
                               htole64(h.hash)};
}

static void wait_for(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    poll(&p, 1, -1);
}

static int write_all(int fd, const char *p, size_t len, struct err *err) {
    bool socket = true; /* until told otherwise; a dead peer must be an error, not a SIGPIPE */
    while (len) {
        ssize_t n = socket ? send(fd, p, len, MSG_NOSIGNAL) : write(fd, p, len);
        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (socket && errno == ENOTSOCK) {
            socket = false;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            wait_for(fd, POLLOUT);
        } else if (errno != EINTR) {
            return err_system(err, errno, "cannot write a frame");
        }
    }
    return 0;
}

int frame_write(int fd, uint32_t kind, const void *body, size_t len, struct err *err) {
    if (!kind || len > FRAME_MOST)
        return err_set(err, ERR_INTERNAL, "a frame of kind %u with %zu bytes cannot be written",
                       (unsigned)kind, len);
    struct frame_head head = {FRAME_MAGIC, kind, len, hash_bytes(body, len, kind)};
    head = head_swap(head);
    int code = write_all(fd, (const char *)&head, sizeof head, err);
    return code ? code : write_all(fd, body, len, err);
}

#define NO_END INT64_MAX /* a deadline that never comes */

/* Whether there is something to read, or its end, before the deadline. */
static bool comes(int fd, int64_t deadline) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        const int64_t left = deadline - clock_ns();
        if (left <= 0) return false;
        if (poll(&p, 1, left > 1000000000 ? 1000 : (int)(left / 1000000) + 1) > 0) return true;
    }
}

/* Reads until len bytes or the end of input; *got says how many. */
static int read_some(int fd, int64_t deadline, char *p, size_t len, size_t *got, struct err *err) {
    *got = 0;
    while (*got < len) {
        if (deadline != NO_END && !comes(fd, deadline))
            return err_set(err, ERR_TIMEOUT, "a frame stops after %zu of %zu bytes", *got, len);
        ssize_t n = read(fd, p + *got, len - *got);
        if (n == 0) break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            wait_for(fd, POLLIN);
        else if (errno != EINTR)
            return err_system(err, errno, "cannot read a frame");
    }
    return 0;
}

static int head_check(const struct frame_head *head, struct err *err) {
    if (head->magic != FRAME_MAGIC || !head->kind)
        return err_set(err, ERR_INPUT, "no frame begins where one should");
    if (head->length > FRAME_MOST)
        return err_set(err, ERR_INPUT, "a frame claims %llu bytes, more than is allowed",
                       (unsigned long long)head->length);
    return 0;
}

static int body_check(const struct frame_head *head, const char *body, struct err *err) {
    if (hash_bytes(body, (size_t)head->length, head->kind) != head->hash)
        return err_set(err, ERR_INPUT, "a frame of %llu bytes is damaged: its hash differs",
                       (unsigned long long)head->length);
    return 0;
}

static int torn(struct err *err, uint64_t got, uint64_t want) {
    return err_set(err, ERR_INPUT, "a frame is torn: %llu of %llu bytes are there",
                   (unsigned long long)got, (unsigned long long)want);
}

/* The body in pieces that double as they fill: a false length costs no more than twice what
 * arrived. */
static int read_body(int fd, int64_t deadline, const struct frame_head *head, char **body,
                     struct err *err) {
    size_t length = (size_t)head->length, have = 0, cap = 0;
    char *data = NULL;
    int code = 0;
    do {
        size_t most = cap ? cap * 2 : 1 << 16, got;
        cap = length < most ? length : most;
        char *grown = realloc(data, cap + 1);
        if (!grown) {
            code = err_set(err, ERR_MEMORY, "no memory for a frame of %zu bytes", length);
            goto out;
        }
        data = grown;
        code = read_some(fd, deadline, data + have, cap - have, &got, err);
        if (code) goto out;
        have += got;
        if (have < cap) {
            code = torn(err, have, length);
            goto out;
        }
    } while (have < length);
    data[length] = 0;
    code = body_check(head, data, err);
out:
    if (code) {
        free(data);
        data = NULL;
    }
    *body = data;
    return code;
}

static int read_frame(int fd, int64_t deadline, uint32_t *kind, char **body, size_t *len,
                      struct err *err) {
    *kind = 0;
    *body = NULL;
    *len = 0;
    struct frame_head head;
    size_t got;
    int code = read_some(fd, deadline, (char *)&head, sizeof head, &got, err);
    if (code || !got) return code;
    if (got < sizeof head) return torn(err, got, sizeof head);
    head = head_swap(head);
    code = head_check(&head, err);
    if (!code) code = read_body(fd, deadline, &head, body, err);
    if (code) return code;
    *kind = head.kind;
    *len = (size_t)head.length;
    return 0;
}

int frame_read(int fd, uint32_t *kind, char **body, size_t *len, struct err *err) {
    return read_frame(fd, NO_END, kind, body, len, err);
}

int frame_read_within(int fd, int64_t patience_ns, uint32_t *kind, char **body, size_t *len,
                      struct err *err) {
    const int64_t now = clock_ns();
    return read_frame(fd, patience_ns < NO_END - now ? now + patience_ns : NO_END, kind, body, len,
                      err);
}

int frame_next(const char *data, size_t size, size_t *at, uint32_t *kind, const char **body,
               size_t *len, bool *end, struct err *err) {
    *kind = 0;
    *body = NULL;
    *len = 0;
    *end = *at >= size;
    if (*end) return 0;
    size_t left = size - *at;
    struct frame_head head;
    if (left < sizeof head) return torn(err, left, sizeof head);
    memcpy(&head, data + *at, sizeof head);
    head = head_swap(head);
    int code = head_check(&head, err);
    if (code) return code;
    if (head.length > left - sizeof head) return torn(err, left - sizeof head, head.length);
    code = body_check(&head, data + *at + sizeof head, err);
    if (code) return code;
    *kind = head.kind;
    *body = data + *at + sizeof head;
    *len = (size_t)head.length;
    *at += sizeof head + *len;
    return 0;
}
