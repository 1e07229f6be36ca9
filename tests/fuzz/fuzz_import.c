/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of another tool: refused with a sentence, or rows that can be judged, shown
 * and exported. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/text.h"
#include "results/analysis.h"
#include "results/export.h"
#include "results/import.h"
#include "results/show.h"
#include "results/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct import *im) {
    struct tables *tables = tables_create();
    struct show_options options = {.facts = true};
    struct text out = {0};
    struct err err = {0};
    import_tables(im, "0", tables);
    summary_compute(tables, &err);
    analyses_run(tables, &err);
    show_tables(tables, &options, &out);
    for (int i = 0; all_exporters[i]; i++)
        exporter_write(all_exporters[i], tables, NULL, &out, &out, &err);
    text_free(&out);
    tables_close(&tables);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* By its content, then as each format, whatever it looks like. */
    const struct importer *format = NULL;
    for (int i = 0;; format = all_importers[i++]) {
        struct import *im = import_create();
        struct text lost = {0};
        struct err err = {0};
        int code = import_document(im, "a", (const char *)data, size, format, &lost, &err);
        if (code && !err.text[0]) abort(); /* a refusal without a sentence */
        if (!code && import_rows(im, NULL)) use(im);
        import_close(&im);
        text_free(&lost);
        if (!all_importers[i]) return 0;
    }
}
