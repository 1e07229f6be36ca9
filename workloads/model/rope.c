/* SPDX-License-Identifier: Apache-2.0 */
/* Stretched rotary angles as factors of each pair: pair i, which turns base^(-2i/d) a position,
 * then turns factor[i] times slower. Linear: Chen et al. 2023, arXiv:2306.15595. YaRN: Peng et al.
 * 2023, arXiv:2309.00071. llama3: the models' own code (apply_scaling in llama_models), without a
 * paper. */
#include "workloads/model/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/problems.h"
#include "base/text.h"
#include "kernels/rope.h"

static const double circle = 6.283185307179586;

void rope_check(const struct model_config *config, struct problems *problems) {
    const struct model_shape *s = &config->shape;
    const bool ramp = s->rope_scaling == ROPE_LLAMA3 || s->rope_scaling == ROPE_YARN;
    if (ramp && !(s->rope_low < s->rope_high))
        problem(problems, "shape.rope_low", "shape.rope_high",
                "%g turns are not below %g: between them angles go over from stretched to plain",
                s->rope_low, s->rope_high);
    if (s->rope_scaling == ROPE_YARN && !(s->rope_base > 1))
        problem(problems, "shape.rope_base", "shape.rope_scaling",
                "with base 1 all pairs turn alike, and yarn cannot tell them apart");
    if (s->rope_scaling == ROPE_FILE && !model_from_file(&config->params))
        problem(problems, "shape.rope_scaling", "model.file",
                "'file' is for models of a file, which has the factors");
    if (s->rope_magnify != 1 && s->rope_scaling != ROPE_YARN)
        problem(problems, "shape.rope_magnify", "shape.rope_scaling",
                "only yarn multiplies cosine and sine");
    if (s->rope_factor != 1 && (s->rope_scaling == ROPE_NONE || s->rope_scaling == ROPE_FILE))
        problem(problems, "shape.rope_factor", "shape.rope_scaling",
                "a factor is for linear, llama3 and yarn");
}

uint64_t rope_hash(const struct model_shape *s) {
    const double v[] = {s->rope_base, s->rope_scaling, s->rope_factor,         s->rope_low,
                        s->rope_high, s->rope_magnify, (double)s->rope_context};
    return hash_bytes(v, sizeof v, 0);
}

const char *rope_words_of(const struct model_shape *s, char *buf, size_t size) {
    if (s->rope_scaling == ROPE_NONE)
        *buf = 0;
    else if (s->rope_scaling == ROPE_FILE)
        snprintf(buf, size, "by the file's factors");
    else if (s->rope_scaling == ROPE_LINEAR)
        snprintf(buf, size, "linear, %g times", s->rope_factor);
    else
        snprintf(buf, size, "%s, %g times beyond %lld", rope_scaling_names[s->rope_scaling],
                 s->rope_factor, (long long)s->rope_context);
    return buf;
}

/* Between plain (1) and stretched (0), by how often a pair turns in the context. */
static double llama3_plain(const struct model_shape *s, double turn) {
    const double turns = (double)s->rope_context * turn / circle;
    if (turns < s->rope_low) return 0;
    if (turns > s->rope_high) return 1;
    return (turns - s->rope_low) / (s->rope_high - s->rope_low);
}

/* The pair, not whole, that turns so often in the context. */
static double yarn_pair(const struct model_shape *s, double turns) {
    return (double)s->d_h * log((double)s->rope_context / (turns * circle)) /
           (2 * log(s->rope_base));
}

static double yarn_plain(const struct model_shape *s, int64_t i) {
    const double begin = fmax(floor(yarn_pair(s, s->rope_high)), 0);
    double end = fmin(ceil(yarn_pair(s, s->rope_low)), (double)s->d_h - 1);
    if (end == begin) end += 0.001; /* as its authors' code has it: no division by zero */
    return 1 - fmin(fmax(((double)i - begin) / (end - begin), 0), 1);
}

struct rope rope_of(const struct model_shape *s, const float *given, float *factors) {
    struct rope rope = {.base = (float)s->rope_base, .style = (enum rope_style)s->rope_style};
    const struct rope plain = rope;
    if (s->rope_scaling == ROPE_NONE || (s->rope_scaling == ROPE_FILE && !given)) return rope;
    for (int64_t i = 0; i < s->d_h / 2; i++) {
        double share = 0; /* of the plain angle; the rest turns rope_factor times slower */
        if (s->rope_scaling == ROPE_LLAMA3)
            share = llama3_plain(s, rope_turn(&plain, (int32_t)i, (int32_t)s->d_h));
        if (s->rope_scaling == ROPE_YARN) share = yarn_plain(s, i);
        factors[i] = s->rope_scaling == ROPE_FILE
                         ? given[i]
                         : (float)(1 / (share + (1 - share) / s->rope_factor));
    }
    rope.factor = factors;
    if (s->rope_scaling == ROPE_YARN) rope.magnify = (float)s->rope_magnify;
    return rope;
}
