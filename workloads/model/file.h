/* SPDX-License-Identifier: Apache-2.0 */
/* A file of weights that somebody else made: its metadata by key, its tensors by name, and their
   rows as floats. Such files come from strangers: every count, length and place is held against the
   file's size before it is used, and reading is by pread, so that a file which shrinks meanwhile
   ends in a sentence. */
#ifndef WORKLOADS_MODEL_FILE_H
#define WORKLOADS_MODEL_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct model_file; /* opaque; immutable once open: several threads may read rows */

enum file_kind { FILE_INT, FILE_REAL, FILE_FLAG, FILE_TEXT, FILE_ARRAY };
struct file_value { /* one metadata entry; of nested JSON objects with a dotted key */
    const char *key;
    enum file_kind kind;
    int64_t integer;  /* FILE_INT, FILE_FLAG */
    double real;      /* FILE_REAL, and FILE_INT too */
    const char *text; /* FILE_TEXT; texts beyond FILE_MOST_TEXT bytes are empty here */
    int64_t count;    /* FILE_ARRAY: elements; FILE_TEXT: bytes */
    int64_t begin;    /* GGUF: where in the file the text's bytes or the array's elements begin */
    uint32_t element; /* GGUF, FILE_ARRAY: type number of the elements */
};
enum { FILE_MOST_TEXT = 4096 };

struct file_tensor {
    const char *name;
    int stored;         /* enum stored */
    int n_dims;         /* 1 ... 4 */
    int64_t rows, cols; /* cols: what lies side by side; rows: all other dimensions together */
    int part;           /* which of the model's files it lies in */
    int64_t begin, bytes;
};

/* path: a GGUF file, a .safetensors file, or a folder with config.json and *.safetensors; a word
   without slash and dot that names nothing there is a model that `bench model` has brought. ERR_INPUT
   with a sentence that names the file. */
int model_file_open(struct model_file **, const char *path, struct err *);
void model_file_close(struct model_file **); /* NULL inside is safe */
/* Where `bench model` lays a model of that name: below XDG_CACHE_HOME, or else ~/.cache. */
int model_file_place(const char *name, char *path, size_t size, struct err *);
bool model_file_is_gguf(const struct model_file *);
const char *model_file_path(const struct model_file *);
/* "Qwen 0.5B.gguf" is "Qwen_0.5B": the last part of the path, as a word. */
const char *model_file_name(const struct model_file *);
/* 16 hex digits that tell files with other tensors apart: XXH64 of names, types and shapes, and of
   the first, middle and last 4 KiB of each tensor (not of every byte: it is read at every start). */
const char *model_file_digest(const struct model_file *);

/* NULL if there is none. */
const struct file_value *model_file_value(const struct model_file *, const char *key);
const struct file_tensor *model_file_tensor(const struct model_file *, const char *name);
size_t model_file_tensors(const struct model_file *, const struct file_tensor **); /* by name */

/* Row r as cols floats, of any thread. ERR_INPUT if the file has lost its end meanwhile. */
int model_file_row(const struct model_file *, const struct file_tensor *, int64_t r, float *out,
                   struct err *);
/* The row's bytes as they are stored. */
int model_file_row_bytes(const struct model_file *, const struct file_tensor *, int64_t r,
                         void *out, struct err *);
/* ERR_INPUT if size or time of change of any of its files are others than when it was opened. */
int model_file_unchanged(const struct model_file *, struct err *);

#endif
