/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of llama-bench's output, in its order. */
#include "results/llama_fields.h"

#include <string.h>

const struct llama_field llama_fields[] = {
    {"build_commit", LLAMA_TEXT, LLAMA_FACT, "unknown"},
    {"build_number", LLAMA_INT, LLAMA_FACT, "0"},
    {"cpu_info", LLAMA_TEXT, LLAMA_FACT, ""},
    {"gpu_info", LLAMA_TEXT, LLAMA_FACT, ""},
    {"backends", LLAMA_TEXT, LLAMA_IDENTITY, NULL},
    {"model_filename", LLAMA_TEXT, LLAMA_IDENTITY, ""},
    {"model_type", LLAMA_TEXT, LLAMA_IDENTITY, NULL},
    {"model_size", LLAMA_INT, LLAMA_FACT, NULL},
    {"model_n_params", LLAMA_INT, LLAMA_FACT, NULL},
    {"n_batch", LLAMA_INT, LLAMA_SETTING, "2048"},
    {"n_ubatch", LLAMA_INT, LLAMA_SETTING, "512"},
    {"n_threads", LLAMA_INT, LLAMA_IDENTITY, NULL},
    {"cpu_mask", LLAMA_TEXT, LLAMA_SETTING, "0x0"},
    {"cpu_strict", LLAMA_BOOL, LLAMA_SETTING, "false"},
    {"poll", LLAMA_INT, LLAMA_SETTING, "50"},
    {"type_k", LLAMA_TEXT, LLAMA_SETTING, "f16"},
    {"type_v", LLAMA_TEXT, LLAMA_SETTING, "f16"},
    {"n_gpu_layers", LLAMA_INT, LLAMA_IDENTITY, NULL},
    {"n_cpu_moe", LLAMA_INT, LLAMA_SETTING, "0"},
    {"split_mode", LLAMA_TEXT, LLAMA_SETTING, "layer"},
    {"main_gpu", LLAMA_INT, LLAMA_SETTING, "0"},
    {"no_kv_offload", LLAMA_BOOL, LLAMA_SETTING, "false"},
    {"flash_attn", LLAMA_INT, LLAMA_SETTING, "-1"},
    {"devices", LLAMA_TEXT, LLAMA_SETTING, "auto"},
    {"tensor_split", LLAMA_TEXT, LLAMA_SETTING, "0.00"},
    {"tensor_buft_overrides", LLAMA_TEXT, LLAMA_SETTING, "none"},
    {"load_mode", LLAMA_TEXT, LLAMA_SETTING, "mmap"},
    {"embeddings", LLAMA_BOOL, LLAMA_SETTING, "false"},
    {"no_op_offload", LLAMA_INT, LLAMA_SETTING, "0"},
    {"no_host", LLAMA_BOOL, LLAMA_SETTING, "false"},
    {"fit_target", LLAMA_INT, LLAMA_SETTING, "0"},
    {"fit_min_ctx", LLAMA_INT, LLAMA_SETTING, "0"},
    {"n_prompt", LLAMA_INT, LLAMA_IDENTITY, NULL},
    {"n_gen", LLAMA_INT, LLAMA_IDENTITY, NULL},
    {"n_depth", LLAMA_INT, LLAMA_SETTING, "0"},
    {"test_time", LLAMA_TEXT, LLAMA_RESULT, NULL},
    {"avg_ns", LLAMA_INT, LLAMA_RESULT, NULL},
    {"stddev_ns", LLAMA_INT, LLAMA_RESULT, NULL},
    {"avg_ts", LLAMA_REAL, LLAMA_RESULT, NULL},
    {"stddev_ts", LLAMA_REAL, LLAMA_RESULT, NULL},
    {"use_mmap", LLAMA_BOOL, LLAMA_SETTING, "true"},
    {NULL, LLAMA_TEXT, LLAMA_FACT, NULL},
};

const struct llama_field *llama_field_find(const char *name) {
    for (const struct llama_field *f = llama_fields; f->name; f++)
        if (!strcmp(f->name, name)) return f;
    return NULL;
}
