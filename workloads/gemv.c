/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `gemv`: the products of decode: few rows over weights that come from memory. */
#include "base/option.h"
#include "workloads/common/product.h"

static const struct option params[] = {
    {.key = "m",
     .type = OPT_INT,
     PRODUCT_OPTION(m),
     .def = "1",
     .min = 1,
     .max = 64,
     .unit = "rows",
     .help = "M: sequences that decode together; beyond 64 it is a gemm."},
    PRODUCT_OPTIONS,
};
static const struct phase phases[] = {{"product", "byte"}, {0}};

static void plan(const void *params_, const struct model_config *config, struct plan *plan) {
    product_plan(params_, config, true, plan);
}

const struct workload workload_gemv = {
    .name = "gemv",
    .brief = "a product of decode: few rows over weights that come from memory",
    .help =
        "Question: does a product of few rows stream its weights as fast as memory gives them, "
        "whatever their format?\n\n"
        "The same as `gemm` with M from 1 to 64, and its rate counts bytes: weights, scales, "
        "inputs and outputs, each once a product. As in decode, where layer follows layer, no "
        "product finds its weights in a cache: copies take turns until `rotate` bytes have "
        "passed, as many as the read ceiling walks over.\n\n"
        "Inside the timing: on a host one product an execution, on a GPU one with each copy.\n\n"
        "Outside: making matrices and inputs.\n\n"
        "Witness: as of `gemm`. weight_bits, format_error and kernel_error stand beside the "
        "speed: what a format saves, what it loses, and what the kernel adds to that.\n",
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
