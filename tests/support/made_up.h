/* SPDX-License-Identifier: Apache-2.0 */
/* A made-up /proc and /sys in a temporary folder. */
#ifndef TESTS_SUPPORT_MADE_UP_H
#define TESTS_SUPPORT_MADE_UP_H

struct made_up {
    char root[64];
};
void made_up_open(struct made_up *);
void made_up_close(struct made_up *); /* removes it with all that is in it */
/* Writes root/path with exactly this text, making the folders before it. */
void made_up_file(const struct made_up *, const char *path, const char *text);
void made_up_remove(const struct made_up *, const char *path);

#endif
