/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as packed tables: what unpacks can be judged, shown, fitted, exported and packed again.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "plots/plot.h"
#include "results/analysis.h"
#include "results/export.h"
#include "results/show.h"
#include "results/summary.h"
#include "results/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct tables *tables = tables_create();
    struct text out = {0};
    struct err err = {0};
    struct show_options options = {.facts = true};
    if (tables_unpack(tables, (const char *)data, size, &err) == 0) {
        summary_compute(tables, &err);
        analyses_run(tables, &err);
        show_tables(tables, &options, &out);
        summary_exit(tables);
        for (int i = 0; all_exporters[i]; i++) {
            exporter_write(all_exporters[i], tables, NULL, &out, &out, &err);
            for (const char *const *as = all_exporters[i]->as; as && *as; as++)
                exporter_write(all_exporters[i], tables, *as, &out, &out, &err);
        }
        const char *const *kinds = plot_kinds(tables);
        for (int i = 0; kinds[i]; i++) plot_ascii(tables, kinds[i], 80, 12, &out, &err);
        tables_pack(tables, &out);
    }
    tables_close(&tables);
    text_free(&out);
    return 0;
}
