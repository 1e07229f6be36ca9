/* SPDX-License-Identifier: Apache-2.0 */
/* Finding an exporter by its name, and its form. */
#include "results/export.h"

#include <string.h>

#include "base/err.h"
#include "base/text.h"

const struct exporter *exporter_find(const char *name) {
    for (const struct exporter *const *e = all_exporters; *e; e++)
        if (!strcmp((*e)->name, name)) return *e;
    return NULL;
}

static int no_form(const struct exporter *e, const char *as, struct err *err) {
    struct text list = {0};
    size_t n = 0;
    for (; e->as && e->as[n]; n++) text_printf(&list, "%s%s", n ? ", " : "", e->as[n]);
    const char *near = n ? text_nearest(as, e->as, n) : NULL;
    int code =
        n ? err_set(err, ERR_INPUT, "%s has no form '%.60s'%s%s%s (it has %s)", e->name, as,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list.data)
          : err_set(err, ERR_INPUT, "%s has one form only: --as '%.60s' does not apply", e->name,
                    as);
    text_free(&list);
    return code;
}

int exporter_write(const struct exporter *e, const struct tables *ts, const char *as,
                   struct text *out, struct text *lost, struct err *err) {
    const char *form = e->as ? e->as[0] : NULL;
    for (size_t i = 0; as && e->as && e->as[i]; i++)
        if (!strcmp(e->as[i], as)) form = e->as[i];
    if (as && (!form || strcmp(form, as))) return no_form(e, as, err);
    return e->write(ts, form, out, lost, err);
}
