/* SPDX-License-Identifier: Apache-2.0 */
/* Finding an exporter by its name. */
#include "results/export.h"

#include <string.h>

const struct exporter *exporter_find(const char *name) {
    for (const struct exporter *const *e = all_exporters; *e; e++)
        if (!strcmp((*e)->name, name)) return *e;
    return NULL;
}
