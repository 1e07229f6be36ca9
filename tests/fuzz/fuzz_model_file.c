/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a GGUF file, a safetensors file or a config.json: refused with a sentence, or a
 * shape and rows that can be read. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "workloads/model/file.h"
#include "workloads/model/file_shape.h"
#include "workloads/model/rope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/bench-fuzz-XXXXXX";
enum { A_GGUF, A_CONFIG, SOME_TENSORS, N_NAMES };
static char paths[N_NAMES][60];

static void remove_folder(void) {
    for (int i = 0; i < N_NAMES; i++) unlink(paths[i]);
    rmdir(folder);
}

static void put(int name, const void *data, size_t size) {
    FILE *file = fopen(paths[name], "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) || fclose(file)) abort();
}

static void make_folder(void) {
    static const char *const names[N_NAMES] = {"a.gguf", "config.json", "a.safetensors"};
    if (paths[0][0]) return;
    if (!mkdtemp(folder)) abort();
    for (int i = 0; i < N_NAMES; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    atexit(remove_folder);
}

/* Whatever was taken stretches angles by numbers. */
static void turn(const struct model_shape *s) {
    float *factors = must_alloc(((size_t)s->d_h / 2 + 1) * sizeof *factors);
    const struct rope rope = rope_of(s, NULL, factors);
    for (int64_t i = 0; rope.factor && i < s->d_h / 2; i++)
        if (!(factors[i] > 0) || !isfinite(factors[i])) abort();
    if (!isfinite(rope.magnify)) abort();
    free(factors);
}

static void use(const char *path) {
    struct arena *arena = arena_create();
    struct model_file *file = NULL;
    struct file_shape shape;
    struct err err = {0};
    int code = model_file_open(&file, path, &err);
    if (code && !err.text[0]) abort(); /* a refusal without a sentence */
    const struct file_tensor *tensors;
    for (size_t i = 0; file && i < model_file_tensors(file, &tensors); i++) {
        float *row = must_alloc((size_t)tensors[i].cols * sizeof *row);
        for (int64_t r = 0; r < tensors[i].rows; r++)
            if (model_file_row(file, &tensors[i], r, row, &err)) abort(); /* it was checked */
        free(row);
    }
    err = (struct err){0};
    if (file && !model_file_shape(file, arena, &shape, &err))
        turn(&shape.shape);
    else if (file && !err.text[0])
        abort();
    model_file_close(&file);
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char config[] =
        "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8, "
        "\"intermediate_size\": 8, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
        "\"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": true}";
    static const char header[] =
        "\x46\0\0\0\0\0\0\0{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"
        "1234";
    make_folder();
    put(A_GGUF, data, size);
    use(paths[A_GGUF]);
    put(A_CONFIG, config, sizeof config - 1);
    put(SOME_TENSORS, data, size);
    use(paths[SOME_TENSORS]);
    put(A_CONFIG, data, size);
    put(SOME_TENSORS, header, sizeof header - 1);
    use(folder);
    return 0;
}
