/* SPDX-License-Identifier: Apache-2.0 */
/* Weights whose recipe is known are made on the device, by all its threads: the host neither
   computes nor copies, and there is no memory but the weight's own. */
#include "kernels/cuda/engine.h"
#include "kernels/cuda/launches.h"
#include "kernels/cuda/synth.h"

#include "base/synthetic.h"

bool cuda_synth_knows(int n, const struct row_source *sources) {
    for (int i = 0; i < n; i++)
        if (!sources[i].recipe) return false;
    return n <= SYNTH_PARTS;
}

static void run(struct cuda *c, enum synth_task task, const struct synth_args *args) {
    struct launch l;
    synth_plan(&c->gpu, task, args, &l);
    if (l.card) cuda_launched(c, &l, synth_launch(&l, c->stream, false, args));
}

int cuda_synth(struct cuda *c, const struct cuda_weight *w, const struct weight_spec *parts, int n,
               const struct row_source *sources, struct err *err) {
    const cudaError_t failed = synth_load();
    if (failed) {
        cudaGetLastError();
        return err_set(err, ERR_DEVICE, "cuda: the kernels of synthetic weights do not load: %s",
                       cudaGetErrorName(failed));
    }
    const enum scale scale = w->head.scale;
    struct synth_args args = {.data = w->data,
                              .scales = w->scales,
                              .rows = (int32_t)w->padded_rows,
                              .cols = (int32_t)w->padded_cols,
                              .real_cols = (int32_t)w->head.cols,
                              .type = (int32_t)w->head.type,
                              .group = scale == SCALE_GROUP ? w->head.group : 0,
                              .groups = (int32_t)w->groups,
                              .interleaved = w->interleaved,
                              .whole = scale == SCALE_TENSOR};
    for (int i = 0; i < n; i++) {
        const struct synth_matrix *m = sources[i].recipe;
        args.part[i] = (struct synth_part){
            .key = m->key, .unit = m->unit, .tail = m->tail, .rows = (int32_t)parts[i].rows};
    }
    if (scale == SCALE_NONE) {
        run(c, TASK_FLOATS, &args);
        return 0;
    }
    if (scale != SCALE_GROUP) run(c, TASK_MAXIMA, &args);
    if (scale == SCALE_TENSOR) run(c, TASK_SPREAD, &args);
    run(c, TASK_CODES, &args);
    return 0;
}
