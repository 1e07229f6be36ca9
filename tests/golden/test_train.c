/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps against values that an independent program made (train_golden.py), and gradients
   against differences of the loss. */
#include "tests/unit/workloads/drive.h"

#include "kernels/lab.h"
#include "kernels/lab_train.h"
#include "workloads/common/trainer.h"

enum { STEPS = 4, SAMPLES = 7 };

static char *lines, *cursor;
static struct arena *arena;

static void find(const char *variant, const char *what, const char *name) {
    char head[100];
    snprintf(head, sizeof head, "\n%s\t%s\t%s\t", variant, what, name);
    char *at = strstr(lines, head);
    if (!at) fail_msg("no golden line %s %s %s", variant, what, name);
    cursor = at + strlen(head);
}
static double next_number(void) {
    char *end;
    const double v = strtod(cursor, &end);
    assert_ptr_not_equal(cursor, end);
    cursor = *end == ' ' ? end + 1 : end;
    return v;
}

struct variant {
    const char *name;
    int64_t batch, tokens;
};
static const struct variant variants[] = {{"tiny", 2, 7}, {"odd", 1, 9}, {"thin", 3, 5}};

static struct model_config config_of(const char *name) {
    struct model_config config = drive_config("tiny", arena);
    if (!strcmp(name, "odd")) {
        config.shape = (struct model_shape){.n_layers = 3,
                                            .d_model = 50,
                                            .n_q = 6,
                                            .n_kv = 3,
                                            .d_h = 6,
                                            .d_ff = 101,
                                            .vocab = 97,
                                            .rope_base = 500,
                                            .eps = 1e-6,
                                            .rope_style = ROPE_PAIRS};
        config.params.seed = 2026;
    } else if (!strcmp(name, "thin")) {
        config.shape = (struct model_shape){.n_layers = 4,
                                            .d_model = 12,
                                            .n_q = 2,
                                            .n_kv = 1,
                                            .d_h = 4,
                                            .d_ff = 9,
                                            .vocab = 13,
                                            .qkv_bias = true,
                                            .rope_base = 100,
                                            .eps = 1e-5};
        config.params.seed = 5;
    }
    return config;
}

static struct trainer *open_trainer(struct device *device, const struct variant *v) {
    const struct model_config config = config_of(v->name);
    struct trainer_spec spec = {.shape = config.shape,
                                .seed = (uint64_t)config.params.seed,
                                .batch = v->batch,
                                .tokens = v->tokens};
    struct trainer *trainer;
    struct err err = {0};
    int32_t tokens[64];
    trainer_defaults(&spec);
    spec.eps = 1e-4f; /* so that an update is no matter of a tiny gradient's sign */
    find(v->name, "tokens", "all");
    for (int i = 0; i < v->batch * (v->tokens + 1); i++) tokens[i] = (int32_t)next_number();
    if (trainer_open(&trainer, device, &spec, tokens, &err)) fail_msg("%s", err.text);
    return trainer;
}

static const char *name_of(const struct trainer_tensor *t, char out[60]) {
    if (t->layer < 0)
        snprintf(out, 60, "%s", t->what);
    else
        snprintf(out, 60, "%s %lld", t->what, (long long)t->layer);
    return out;
}

/* Sum, root of the sum of squares and samples of a tensor; errors relative to its deviation. */
static void expect(const char *variant, const char *what, const struct trainer_tensor *t,
                   const float *x, double tolerance) {
    const int64_t n = t->rows * t->cols;
    double sum = 0, squares = 0;
    char name[60];
    find(variant, what, name_of(t, name));
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
    }
    const double want_sum = next_number(), length = next_number();
    const double each = length / sqrt((double)n) * tolerance;
    if (fabs(sqrt(squares) - length) > tolerance * length)
        fail_msg("%s %s %s: length %.9g, not %.9g", variant, what, name, sqrt(squares), length);
    if (fabs(sum - want_sum) > each * (double)n)
        fail_msg("%s %s %s: sum %.9g, not %.9g", variant, what, name, sum, want_sum);
    for (int i = 0; i < SAMPLES; i++) {
        const double want = next_number(), got = (double)x[i * (n - 1) / (SAMPLES - 1)];
        if (!(fabs(got - want) <= each * 4 + tolerance * fabs(want)))
            fail_msg("%s %s %s: sample %d is %.9g, not %.9g", variant, what, name, i, got, want);
    }
}

static void steps_on(struct device *device, const struct variant *v) {
    const struct model_config config = config_of(v->name);
    struct trainer_tensor *tensors = arena_alloc(
        arena, sizeof *tensors * (size_t)(TRAINER_LAYER_TENSORS * config.shape.n_layers + 3));
    const int n = trainer_tensors(&config.shape, tensors);
    struct trainer *trainer = open_trainer(device, v);
    struct err err = {0};
    double before = INFINITY;
    for (int step = 0; step < STEPS; step++) {
        if (trainer_step(trainer, NULL, NULL, &err)) fail_msg("%s", err.text);
        find(v->name, "loss", "steps");
        double want = 0;
        for (int i = 0; i <= step; i++) want = next_number();
        if (!(fabs(trainer_loss(trainer) - want) <= 2e-6 * want))
            fail_msg("%s: loss %d is %.9g, not %.9g", v->name, step, trainer_loss(trainer), want);
        assert_true(trainer_loss(trainer) < before);
        before = trainer_loss(trainer);
        for (int i = 0; step == 0 && i < n; i++)
            expect(v->name, "gradient", &tensors[i], trainer_gradients(trainer) + tensors[i].offset,
                   5e-5);
    }
    for (int i = 0; i < n; i++)
        expect(v->name, "weight", &tensors[i], trainer_weights(trainer) + tensors[i].offset, 1e-5);
    trainer_close(&trainer);
    assert_int_equal(tracker_live(device->tracker, -1), 0);
}

static void on_device(const char *name) {
    struct device *device = drive_open(name, arena);
    if (!device) return;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) steps_on(device, &variants[i]);
    device_close(&device);
}
static void ref_agrees(void **state) {
    (void)state;
    on_device("ref");
}
static void cpu_agrees(void **state) {
    (void)state;
    on_device("cpu");
}

/* w, m and v after three updates of four parameters, one of which has no gradient. 1 - beta2 in f32
 * is 5e-5 off. */
static void update_alone(void **state) {
    static const float g[3][4] = {{0.1f, -3, 0, 1e-6f}, {0.2f, 3, 0, -1e-6f}, {-0.4f, 1, 0, 2e-6f}};
    static const char *const names[] = {"w", "m", "v"}, *const devices[] = {"ref", "cpu"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct device *device = drive_open(devices[d], arena);
        if (!device) continue;
        float at[3][4] = {{1, -2, 0.5f, 0}};
        for (int t = 0; t < 3; t++)
            device->lab->train->adamw(device, &(struct lab_adamw){.w = at[0],
                                                                  .m = at[1],
                                                                  .v = at[2],
                                                                  .g = g[t],
                                                                  .n = 4,
                                                                  .step = t + 1,
                                                                  .rate = 1e-3f,
                                                                  .beta1 = 0.9f,
                                                                  .beta2 = 0.999f,
                                                                  .eps = 1e-8f,
                                                                  .decay = 0.1f});
        for (int k = 0; k < 3; k++) {
            find("adamw", "weight", names[k]);
            for (int i = 0; i < 4; i++) {
                const double want = next_number();
                assert_true(fabs((double)at[k][i] - want) <= 1e-4 * fabs(want) + 1e-12);
            }
        }
        device_close(&device);
    }
}

static double loss_at(struct trainer *trainer, float *w, const float *from, const float *direction,
                      int64_t n, double by) {
    struct err err = {0};
    for (int64_t i = 0; i < n; i++) w[i] = (float)((double)from[i] + by * (double)direction[i]);
    float *logits = must_alloc(sizeof *logits * 3 * 5 * 13);
    if (trainer_logits(trainer, logits, &err)) fail_msg("%s", err.text);
    double sum = 0;
    find("thin", "tokens", "all");
    for (int s = 0; s < 3; s++) {
        int32_t token[6];
        for (int i = 0; i < 6; i++) token[i] = (int32_t)next_number();
        for (int t = 0; t < 5; t++) {
            const float *row = logits + (s * 5 + t) * 13;
            double total = 0;
            for (int c = 0; c < 13; c++) total += exp((double)row[c]);
            sum += log(total) - (double)row[token[t + 1]];
        }
    }
    free(logits);
    return sum / 15;
}

/* Along its gradient the loss grows by the gradient's length, of each tensor alone; the loss in
   double from the logits. */
static void differences(void **state) {
    const struct model_config config = config_of("thin");
    struct trainer_tensor tensors[TRAINER_LAYER_TENSORS * 4 + 3];
    struct device *ref = drive_open("ref", arena);
    struct trainer *trainer = open_trainer(ref, &variants[2]);
    const int n = trainer_tensors(&config.shape, tensors);
    struct err err = {0};
    (void)state;
    if (trainer_step(trainer, NULL, NULL, &err)) fail_msg("%s", err.text);
    trainer_restart(trainer);
    for (int i = 0; i < n; i++) {
        const int64_t size = tensors[i].rows * tensors[i].cols;
        const float *g = trainer_gradients(trainer) + tensors[i].offset;
        float *w = trainer_weights(trainer) + tensors[i].offset;
        float *from = must_alloc(sizeof *from * (size_t)size);
        double squares = 0;
        memcpy(from, w, sizeof *from * (size_t)size);
        for (int64_t k = 0; k < size; k++) squares += (double)g[k] * (double)g[k];
        const double length = sqrt(squares), by = 3e-3 / length;
        const double up = loss_at(trainer, w, from, g, size, by);
        const double down = loss_at(trainer, w, from, g, size, -by);
        const double slope = (up - down) / (2 * by * squares);
        if (!(fabs(slope - 1) < 2e-3))
            fail_msg("%s %lld: the loss grows %.6g times as its gradient says", tensors[i].what,
                     (long long)tensors[i].layer, slope);
        memcpy(w, from, sizeof *from * (size_t)size);
        free(from);
    }
    trainer_close(&trainer);
    device_close(&ref);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ref_agrees), cmocka_unit_test(cpu_agrees),
                                       cmocka_unit_test(update_alone),
                                       cmocka_unit_test(differences)};
    const char *root = getenv("SOURCE_DIR");
    char path[1000];
    size_t len;
    struct err err = {0};
    arena = arena_create();
    snprintf(path, sizeof path, "%s/tests/golden/train_golden.tsv", root ? root : ".");
    if (file_read(path, 1 << 24, &lines, &len, &err)) {
        print_message("%s\n", err.text);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(lines);
    arena_close(&arena);
    return failed;
}
