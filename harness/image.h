/* SPDX-License-Identifier: Apache-2.0 */
/* A program's file in memory: an ELF file of 64 bits whose sections may be read. */
#ifndef HARNESS_IMAGE_H
#define HARNESS_IMAGE_H
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
    char *data;
    size_t n;
    Elf64_Ehdr head;
};
/* Reads the file (NULL: this program's). False: it cannot be read, or is no such file; its bytes,
   where there are any, stay until image_close all the same. */
bool image_open(struct image *, const char *path);
void image_close(struct image *);
/* Whether the file has these bytes; nothing in it is believed before. */
bool image_within(const struct image *, uint64_t offset, uint64_t size);
/* Header of section i < head.e_shnum. */
Elf64_Shdr image_section(const struct image *, unsigned i);
/* Whether bytes are the same, save words of as many hexadecimal digits as a git revision has, in
   both. */
bool image_same_bytes(const char *a, const char *b, size_t n);
/* Where NULL stands for this program. */
const char *image_path(const char *program);

#endif
