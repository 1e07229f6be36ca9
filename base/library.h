/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of libraries that are loaded while the program runs. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H
#include <stdbool.h>

/* Stores the address of the function of that name at `function`, a pointer to a function pointer;
 * NULL and false where the library has none. */
bool library_find(void *library, const char *name, void *function);

#endif
