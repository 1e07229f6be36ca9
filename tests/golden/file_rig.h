/* SPDX-License-Identifier: Apache-2.0 */
/* A model's file on a device: what the tests share that hold its logits against other programs'. */
#ifndef TESTS_GOLDEN_FILE_RIG_H
#define TESTS_GOLDEN_FILE_RIG_H
#include "tests/golden/made_files.h"
#include "tests/unit/workloads/drive.h"

#include "workloads/model/file.h"
#include "workloads/model/file_shape.h"

static inline char *rig_content(const char *path, size_t *len) {
    char *data;
    struct err err = {0};
    if (file_read(path, 1 << 26, &data, len, &err)) fail_msg("%s", err.text);
    return data;
}

/* In f32 as far as it can be, with the window that the file names. */
static inline struct model_config rig_config(const char *path, struct arena *arena) {
    struct model_config config = drive_config("tiny", arena);
    struct model_file *file;
    struct file_shape shape;
    struct err err = {0};
    if (model_file_open(&file, path, &err)) fail_msg("%s", err.text);
    if (model_file_shape(file, arena, &shape, &err)) fail_msg("%s", err.text);
    config.shape = shape.shape;
    config.params.window = shape.window;
    drive_model(&config, "type", "f32", arena);
    drive_model(&config, "kv_type", "f32", arena);
    drive_model(&config, "file", path, arena);
    drive_model(&config, "digest", model_file_digest(file), arena);
    model_file_close(&file);
    return config;
}

struct rig {
    struct device *device;
    struct model *model;
    struct session *session;
    struct inputs *inputs;
    int32_t n; /* tokens of the prompt */
};

/* Runs a prompt; false: there is no such device. */
static inline bool rig_open(struct rig *rig, const char *device, const struct model_config *config,
                            const int32_t *tokens, int32_t n, int32_t more, struct arena *arena) {
    struct err err = {0};
    *rig = (struct rig){.device = drive_open(device, arena), .n = n};
    if (!rig->device) return false;
    const struct session_spec spec = {
        .cache = {.n_seq = 1, .capacity = n + more, .most_q = n}, .most_rows = n, .most_out = n};
    if (model_create(&rig->model, rig->device, config, &err) ||
        session_create(&rig->session, rig->model, config, &spec, &err) ||
        inputs_create(&rig->inputs, rig->session, 1, n, n, &err) ||
        inputs_prompt(rig->inputs, tokens, n, 0, n, 0, true, &err))
        fail_msg("%s on %s: %s", config->params.file, device, err.text);
    inputs_upload(rig->inputs);
    if (session_run(rig->session, rig->inputs, 0, &err)) fail_msg("%s", err.text);
    return true;
}

/* Logits (rows, vocab) of what ran last, malloc'ed. */
static inline float *rig_logits(struct rig *rig, const struct step *step, int32_t rows) {
    const size_t n = (size_t)rows * (size_t)rig->session->config.shape.vocab;
    struct tensor logits = session_logits(rig->session, step);
    float *got = must_alloc(sizeof *got * n);
    assert_int_equal(logits.rows, rows);
    rig->device->kind->download(rig->device, got, logits.data, sizeof *got * n);
    return got;
}
static inline float *rig_prompt_logits(struct rig *rig) {
    return rig_logits(rig, inputs_step(rig->inputs, 0), rig->n);
}
/* The logits after one more token. */
static inline float *rig_next_logits(struct rig *rig, int32_t token) {
    struct err err = {0};
    session_start(rig->session, &token);
    if (session_decode(rig->session, &err)) fail_msg("%s", err.text);
    return rig_logits(rig, &rig->session->decode, 1);
}

static inline void rig_close(struct rig *rig) {
    inputs_close(&rig->inputs);
    session_close(&rig->session);
    model_close(&rig->model);
    device_close(&rig->device);
}

#endif
