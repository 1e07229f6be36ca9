/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a GGUF file, a safetensors file or a config.json: refused with a sentence, or a
 * shape and rows that can be read. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "tests/fuzz/folder.h"
#include "workloads/model/file.h"
#include "workloads/model/file_shape.h"
#include "workloads/model/rope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { A_GGUF, A_CONFIG, SOME_TENSORS, N_NAMES };

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
    static const char *const names[N_NAMES] = {"a.gguf", "config.json", "a.safetensors"};
    static const char config[] =
        "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 8, "
        "\"intermediate_size\": 8, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
        "\"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": true}";
    static const char header[] =
        "\x46\0\0\0\0\0\0\0{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"
        "1234";
    folder_make(names, N_NAMES);
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
