/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `gemm`: one product of a layer, rows by the hundred or a few. */
#include "base/option.h"
#include "workloads/common/product.h"

static const struct option params[] = {
    {.key = "m",
     .type = OPT_INT,
     PRODUCT_OPTION(m),
     .def = "128",
     .min = 1,
     .max = 1 << 24,
     .unit = "rows",
     .help = "M: rows of the input: tokens of a prompt, or sequences of a batch."},
    PRODUCT_OPTIONS,
};
static const struct phase phases[] = {{"product", "FLOP"}, {0}};

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    product_plan(params_, config, false, plan);
}

const struct workload workload_gemm = {
    .name = "gemm",
    .brief = "one product of a layer on its own: its place under the roofline",
    .help =
        "Question: how close does a product of M rows come to the roof above it, and does any M "
        "fall off? (seeds E25-E27)\n\n"
        "Inside the timing: y (M, N) = x (M, K) W^T by the device's own linear, on a host one "
        "product an execution, each time with the next of several copies of W; on a GPU one with "
        "each copy, since a launch and a wait would be most of the time.\n\n"
        "Outside: making matrices and inputs, seeded and different everywhere; the copies are "
        "alike.\n\n"
        "N, K and the format come from [model] (model.shape, model.type, model.activation), or N "
        "and K are given.\n\n"
        "Ledger of one product: 2 M N K FLOPs (gate_up: 4 M N K; mlp: 6 M N K); W once, with its "
        "scales, in its format; x and y once, in the activations' type; of mlp also the values "
        "between, out and in. The seeds' formulas with 2-byte elements stand beside it as "
        "formula_*.\n\n"
        "Expect: the rate rises with M until M reaches the ridge point; the time of a row never "
        "rises with M.\n\n"
        "Witness: first and last row equal those computed alone (exact where the device computes "
        "rows independently of the batch, else close), and 16 outputs of three rows agree with "
        "a slow computation in double from the same weights, within six deviations of the "
        "roundings that the types allow.\n",
    .flags = WORK_MODEL,
    .params = params,
    .params_size = sizeof(struct product_params),
    .self_size = sizeof(struct product_self),
    .metrics = product_metrics,
    .phases = phases,
    .check = product_check,
    .plan = plan,
    .adapt = product_adapt,
    .prepare = product_prepare,
    .execute = product_execute,
    .witness = product_witness,
    .report = product_report,
    .dispose = product_dispose,
};
