/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of [measure] and [[published]], and what each section of a protocol is for. */
#include "harness/sections.h"

#include "harness/protocol.h"
#include "results/gate.h"
#include "workloads/model/model.h"

static const char *const order_names[] = {"shuffled", "declared", NULL};
static const char *const fresh_names[] = {"round", "run", NULL};
static const char *const stop_names[] = {"precision", "samples", NULL};

#define M(field) .offset = offsetof(struct measure_params, field)
const struct option measure_options[] = {
    {.key = "budget",
     .type = OPT_TIME,
     M(budget_ns),
     .def = "90 s",
     .min = 1e6,
     .max = 604800e9,
     .help = "Wall time of the whole run, set-up included."},
    {.key = "cold",
     .type = OPT_FLAG,
     M(cold),
     .def = "false",
     .help = "Empty the caches before each sample."},
    {.key = "disturbed",
     .type = OPT_REAL,
     M(disturbed),
     .def = "0.1",
     .min = 0,
     .max = 1,
     .help = "Share of disturbed samples beyond which a row is flagged."},
    {.key = "fresh",
     .type = OPT_WORD,
     M(fresh),
     .def = "round",
     .words = fresh_names,
     .help = "When a new worker process starts: placement of memory is part of the set-up."},
    {.key = "max_samples",
     .type = OPT_INT,
     M(max_samples),
     .def = "1000000",
     .min = 1,
     .max = 1e8,
     .unit = "samples",
     .help = "At most that many a visit."},
    {.key = "min_samples",
     .type = OPT_INT,
     M(min_samples),
     .def = "5",
     .min = 1,
     .max = 1e6,
     .unit = "samples",
     .help = "At least that many a visit (2 where one takes over 1 s)."},
    {.key = "order",
     .type = OPT_WORD,
     M(order),
     .def = "shuffled",
     .words = order_names,
     .help = "Order of the points within a round."},
    {.key = "precision",
     .type = OPT_REAL,
     M(precision),
     .def = "0.01",
     .min = 1e-6,
     .max = 1,
     .help =
         "A visit ends when its relative 95 % half width is this small (stop = \"precision\")."},
    {.key = "rounds",
     .type = OPT_INT,
     M(rounds),
     .def = "0",
     .min = 0,
     .max = 1000,
     .unit = "rounds",
     .help = "Visits of every point; 0: eight, or as few as five if time is short."},
    {.key = "sample_probes",
     .type = OPT_FLAG,
     M(sample_probes),
     .def = "false",
     .help = "Read the probes around every sample."},
    {.key = "samples",
     .type = OPT_INT,
     M(samples),
     .def = "20",
     .min = 1,
     .max = 1e8,
     .unit = "samples",
     .help = "Exactly that many a visit (stop = \"samples\")."},
    {.key = "seed",
     .type = OPT_INT,
     M(seed),
     .def = "1",
     .min = 0,
     .max = 0x1p53,
     .help = "Of the order of visits and of all inputs."},
    {.key = "stop",
     .type = OPT_WORD,
     M(stop),
     .def = "precision",
     .words = stop_names,
     .help = "What ends a visit before its share of the budget does."},
    {.key = "timeout",
     .type = OPT_TIME,
     M(timeout_ns),
     .def = "10 min",
     .min = 1e6,
     .max = 86400e9,
     .help = "Of one visit; then its worker is ended and the row says so."},
    {.key = "warmup_budget",
     .type = OPT_TIME,
     M(warmup_ns),
     .def = "5 s",
     .min = 0,
     .max = 3600e9,
     .help = "Time in which a visit must get steady."},
    {.key = "warmups",
     .type = OPT_INT,
     M(warmups),
     .def = "5",
     .min = 0,
     .max = 1e6,
     .unit = "executions",
     .help = "At least that many on a point's first visit of a worker."},
    {0},
};

const char *const published_kind_names[] = {"measured", "exact", "theory", "rebuilt", NULL};
#define P(field) .offset = offsetof(struct published_params, field)
const struct option published_options[] = {
    {.key = "what", .type = OPT_TEXT, P(what), .help = "The figure in words."},
    {.key = "metric", .type = OPT_TEXT, P(metric), .help = "Metric of ours that stands beside it."},
    {.key = "value",
     .type = OPT_REAL,
     P(value),
     .help = "The published number, in the metric's unit."},
    {.key = "kind",
     .type = OPT_WORD,
     P(kind),
     .words = published_kind_names,
     .help = "Only an exact one can fail a run."},
    {.key = "rounded",
     .type = OPT_REAL,
     P(rounded),
     .def = "0",
     .min = 0,
     .max = 1e18,
     .help =
         "Step to which an exact figure was rounded in print, where its decimals do not tell: 1 "
         "for 2689 of 2689.48, 1e6 for 67 MB."},
    {.key = "source", .type = OPT_TEXT, P(source), .help = "Where it was published."},
    {.key = "case",
     .type = OPT_TEXT,
     P(case_name),
     .def = "",
     .help = "Case whose rows are meant."},
    {0},
};

const struct section all_sections[] = {
    {.name = "protocol",
     .title = "A protocol",
     .brief = "one TOML file that asks a question",
     .help =
         "title and question say what is asked. [workload] says what is measured, [model] and [shape] on "
         "which transformer, [device] where, [[sweep]] for which values, [measure] how long and how "
         "exactly; [[analysis]] draws conclusions and [[published]] puts other people's figures beside ours.\n\n"
         "Mistakes are reported together, each with its place, before anything is measured. An unknown or "
         "unused key is a mistake. Values with units are text with the unit: budget = \"90 s\".\n\n"
         "`bench run --set KEY=VALUE` changes any key; `--set sweep.KEY=[1, 2, 4]` replaces an axis.",
     .example =
         "    title    = \"Decode knee\"\n    question = \"Where does batching stop paying here?\"\n"
         "    [workload]\n    name = \"decode\"\n    [model]\n    shape = \"seed-0.5b\"\n"
         "    [[sweep]]\n    workload.batch = [1, 2, 4, 8, 16, 32]\n"},
    {.name = "workload",
     .title = "[workload]",
     .brief = "what is measured",
     .help =
         "`name` chooses the workload (bench list workloads); the other keys are its own: bench help NAME."},
    {.name = "model",
     .title = "[model]",
     .brief = "the transformer, for workloads that take one",
     .options = model_options,
     .prefix = "model."},
    {.name = "shape",
     .title = "[shape]",
     .brief = "changes of the model's shape",
     .help =
         "model.shape names a file in protocols/models/ (or in models/ beside the protocol) with these keys; "
         "a key given here replaces the file's. The shape of a model.file is its own; one given by --set "
         "replaces those of the protocol, and what was said of shapes here is left out.",
     .options = shape_options,
     .prefix = "shape."},
    {.name = "device",
     .title = "[device]",
     .brief = "where it runs",
     .help =
         "`kind` is auto (cuda where it works, else cpu) or one of bench list devices; the other keys belong to "
         "the kind: bench help device cpu. `bench run --device KIND` replaces the section."},
    {.name = "measure",
     .title = "[measure]",
     .brief = "how long and how exactly; all keys are optional",
     .options = measure_options,
     .prefix = "measure."},
    {.name = "gate",
     .title = "[gate]",
     .brief = "what counts as a regression; all keys are optional",
     .help =
         "Read by bench ab, bench gate and bench compare. A row is slower when the evidence that it is "
         "slower by more than `tolerance` is there, passes when a change of `detect` is excluded, and is "
         "undecided until then.",
     .options = gate_options,
     .prefix = "gate."},
    {.name = "sweep",
     .title = "[[sweep]]",
     .brief = "an axis: the values that a key takes in turn",
     .help =
         "Keys of one [[sweep]] advance together and have equally many values. Several [[sweep]] multiply; the "
         "first is the slowest. At most 100,000 points. A file's axis over device.threads ends with "
         "all cores that the machine has; what lies beyond is left out, and said.",
     .example =
         "    [[sweep]]\n    model.type     = [\"bf16\", \"int8\"]\n    [[sweep]]\n    workload.batch = [1, 2, 4]\n"},
    {.name = "case",
     .title = "[[case]]",
     .brief = "one of several experiments in a protocol",
     .help =
         "Each has a name and, where they differ from the top of the file, its own workload, model, shape and "
         "device tables and its own [[case.sweep]]. It inherits the rest: a workload or device table of "
         "another name or kind replaces the inherited one, else key by key; without its own sweeps it takes "
         "those at the top whose keys it has.",
     .example =
         "    [[case]]\n    name = \"bandwidth\"\n    workload = { name = \"ceiling\", op = \"read\" }\n"
         "    [[case]]\n    name = \"decode\"\n    [[case.sweep]]\n    workload.batch = [1, 2, 4]\n"},
    {.name = "analysis",
     .title = "[[analysis]]",
     .brief = "a fit or a check across rows",
     .help =
         "`kind` chooses it (bench list analyses), `case` limits it to one case; the other keys are its own: "
         "bench help analysis knee. A check that does not hold ends the run with exit 3."},
    {.name = "published",
     .title = "[[published]]",
     .brief = "a figure from elsewhere, shown beside ours",
     .help =
         "`at` names the row by its swept keys: at = { workload.batch = 16 }. With `over` the figure is the "
         "ratio of two rows. Without `at` the case must have one row only.",
     .example =
         "    [[published]]\n    what = \"throughput, batch 16 over 1\"\n    metric = \"decode_rate\"\n"
         "    at = { workload.batch = 16 }\n    over = { workload.batch = 1 }\n    value = 6.0\n"
         "    kind = \"measured\"\n    source = \"seed E19\"\n",
     .options = published_options,
     .prefix = ""},
    {0},
};
