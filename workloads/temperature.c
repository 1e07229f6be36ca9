/* SPDX-License-Identifier: Apache-2.0 */
/* Workload `temperature`: what dividing logits does to ratios of probabilities. */
#include <math.h>
#include <string.h>

#include "base/option.h"
#include "base/problems.h"
#include "base/text.h"
#include "workloads/model/theory.h"
#include "workloads/workload.h"

enum { MOST = 64 };
struct temperature_params {
    const char *probabilities;
    double temperature;
    int64_t first, second;
};

#define PARAM(field)                                                                               \
    .offset = offsetof(struct temperature_params, field), .flags = OPT_SWEEP | OPT_IDENTITY
static const struct option params[] = {
    {.key = "probabilities",
     .type = OPT_TEXT,
     PARAM(probabilities),
     .def = "0.1355, 0.1051, 0.0605, 0.0380, 0.0360",
     .unit = "",
     .help = "Of the likeliest tokens at temperature 1, in falling order, at most 64; what is left "
             "of 1 is others'."},
    {.key = "temperature",
     .type = OPT_REAL,
     PARAM(temperature),
     .def = "1",
     .min = 0.01,
     .max = 1000,
     .unit = "",
     .help = "T: what logits are divided by."},
    {.key = "first",
     .type = OPT_INT,
     PARAM(first),
     .def = "1",
     .min = 1,
     .max = MOST,
     .unit = "",
     .help = "Whose probability stands above: 1 is the likeliest."},
    {.key = "second",
     .type = OPT_INT,
     PARAM(second),
     .def = "3",
     .min = 1,
     .max = MOST,
     .unit = "",
     .help = "Whose probability stands below."},
    {0},
};
static const struct phase phases[] = {{"softmax", "token"}, {0}};
static const struct metric metrics[] = {
    {"ratio", "", "First over second after softmax(ln p / T).", BETTER_NONE, true},
    {"power", "", "(p first / p second)^(1 / T): must be equal (E48).", BETTER_NONE, true},
    {"mass", "", "Sum of the probabilities that are given.", BETTER_NONE, true},
    {"top_share", "", "The likeliest one's share among these at T.", BETTER_NONE, true},
    {"entropy", "bit", "Of these alone at T.", BETTER_NONE, true},
    {"order_kept", "", "1: no two of them change places.", BETTER_HIGHER, true},
    {0},
};

/* The numbers of the list; 0: something else stands in it, or too much. */
static int read_list(const char *text, double *p) {
    int n = 0;
    while (*text) {
        char word[40];
        size_t len = strcspn(text, ",");
        while (len && *text == ' ') text++, len--;
        size_t used = len;
        while (used && text[used - 1] == ' ') used--;
        if (n == MOST || !used || used >= sizeof word) return 0;
        memcpy(word, text, used);
        word[used] = 0;
        if (!parse_f64(word, &p[n++])) return 0;
        text += len;
        if (*text == ',' && !*++text) return 0;
    }
    return n;
}

static void check(const void *params_, const struct model_config *config,
                  struct problems *problems) {
    const struct temperature_params *p = params_;
    double list[MOST], sum = 0;
    const int n = read_list(p->probabilities, list);
    bool good = n > 0;
    (void)config;
    for (int i = 0; i < n; i++) {
        good = good && list[i] > 0 && list[i] <= 1 && (!i || list[i] <= list[i - 1]);
        sum += list[i];
    }
    if (!good || sum > 1 + 1e-9)
        problem(
            problems, "workload.probabilities", NULL,
            "'%.60s' is no list of 1 to %d falling probabilities above 0, of 1 together at most, "
            "with commas between them",
            p->probabilities, MOST);
    else if (p->first > n || p->second > n)
        problem(problems, p->first > n ? "workload.first" : "workload.second",
                "workload.probabilities", "there are only %d probabilities", n);
}

static void compute(const void *params_, const struct model_config *config, struct values *v) {
    const struct temperature_params *p = params_;
    double given[MOST], at[MOST], mass = 0, entropy = 0;
    const int n = read_list(p->probabilities, given);
    bool kept = true;
    (void)config;
    if (p->first > n || p->second > n) return;
    temperature_apply(given, n, p->temperature, at);
    for (int i = 0; i < n; i++) {
        mass += given[i];
        if (at[i] > 0) entropy -= at[i] * log2(at[i]);
        kept = kept && (!i || at[i] <= at[i - 1]);
    }
    /* At low temperatures the lower one may vanish. */
    values_set(v, "ratio",
               at[p->second - 1] > 0 ? at[p->first - 1] / at[p->second - 1] : (double)NAN);
    values_set(v, "power", pow(given[p->first - 1] / given[p->second - 1], 1 / p->temperature));
    values_set(v, "mass", mass);
    values_set(v, "top_share", at[0]);
    values_set(v, "entropy", entropy);
    values_set(v, "order_kept", kept);
}

const struct workload workload_temperature = {
    .name = "temperature",
    .brief = "what dividing logits does to the ratios of probabilities: theory",
    .help =
        "Question: what does a student see of its teacher's near misses at a higher temperature? "
        "(seed E48)\n\n"
        "Theory: nothing runs. softmax(z / T) turns a ratio r of two probabilities into r^(1 / T): "
        "the order is kept, near misses weigh more. The softmax is computed as such, from ln p, "
        "and its ratio stands beside the power.\n\n"
        "Left out: the tokens that are not listed; they change shares, not ratios.\n",
    .flags = WORK_ONCE,
    .params = params,
    .params_size = sizeof(struct temperature_params),
    .metrics = metrics,
    .phases = phases,
    .check = check,
    .compute = compute,
};
