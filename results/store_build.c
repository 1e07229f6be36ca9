/* SPDX-License-Identifier: Apache-2.0 */
/* Journal to file: the one way in which run, resume and replay end. */
#include "base/err.h"
#include "results/analysis.h"
#include "results/journal.h"
#include "results/store.h"
#include "results/summary.h"

int store_build(const char *journal, const char *path, struct err *err) {
    struct tables *ts = tables_create();
    int64_t visits = 0;
    int torn = 0;
    int code = journal_read(journal, ts, &visits, &torn, err);
    if (!code && !*tables_meta(ts, "complete")) { /* the run ended without a word */
        struct table *meta = tables_get(ts, "meta");
        int64_t row = table_add(meta, 1);
        table_set_text(meta, row, "key", "complete");
        table_set_text(meta, row, "value", "no");
    }
    if (!code) code = summary_compute(ts, err);
    if (!code) code = analyses_run(ts, err);
    if (!code) code = store_write(ts, path, err);
    tables_close(&ts);
    return code;
}
