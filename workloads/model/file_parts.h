/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the formats share. */
#ifndef WORKLOADS_MODEL_FILE_PARTS_H
#define WORKLOADS_MODEL_FILE_PARTS_H
#include "workloads/model/file.h"

struct arena;

enum {
    FILE_MOST_VALUES = 1 << 16,
    FILE_MOST_TENSORS = 1 << 16,
    FILE_MOST_NAME = 255,
    FILE_MOST_PARTS = 1000,
};
struct file_part {
    const char *path; /* as it is opened */
    const char *name; /* its last part: what sentences name */
    int fd;
    int64_t size, mtime_s, mtime_ns;
};
struct model_file {
    struct arena *arena;
    const char *path, *name;
    char digest[17];
    bool gguf;
    struct file_part *parts;
    size_t n_parts, cap_parts;
    struct file_value *values; /* by key */
    size_t n_values, cap_values;
    struct file_tensor *tensors; /* by name */
    size_t n_tensors, cap_tensors;
};

/* Opens a regular file as a further part; *part: its index. */
int file_add_part(struct model_file *, const char *path, int *part, struct err *);
/* Exactly n bytes from a place that lies within the file's size. */
int file_read_at(const struct file_part *, int64_t at, void *to, int64_t n, struct err *);

struct file_scan { /* reads on and on, through a window; zeroed but for part and at */
    const struct file_part *part;
    int64_t at;         /* of the next byte, in the file */
    int64_t begin, end; /* of the window, in the file */
    char window[1 << 16];
};
/* The next n bytes, which lie within the file's size. */
int file_scan(struct file_scan *, void *to, int64_t n, struct err *);
/* One more, zeroed. More than FILE_MOST_...: NULL, with the sentence. */
struct file_value *file_add_value(struct model_file *, struct err *);
/* Completes and keeps a tensor of which name, stored, n_dims and part are set: dims[0] lies side by
   side, `offset` counts from `base` in the part. Overflow, zero, places beyond the end: ERR_INPUT. */
int file_add_tensor(struct model_file *, struct file_tensor, const uint64_t *dims, int64_t base,
                    uint64_t offset, struct err *);

int file_open_gguf(struct model_file *, struct err *);                       /* of parts[0] */
int file_open_safetensors(struct model_file *, int part, struct err *);      /* its tensors */
int file_open_folder(struct model_file *, const char *path, struct err *);   /* config and tensors */
int file_read_config(struct model_file *, const char *path, struct err *);   /* config.json */

#endif
