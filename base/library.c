/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

/* dlsym gives an object pointer; POSIX promises that it holds a function's address. */
bool library_find(void *library, const char *name, void *function) {
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}
