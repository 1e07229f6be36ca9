/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gpu_name.h"

#include <stdio.h>

static char name[32];

const char *gpu_name(void) { return name; }

void gpu_name_set(const char *pci_bus_id) { snprintf(name, sizeof name, "%s", pci_bus_id); }
