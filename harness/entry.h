/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the collection of published results: which protocols rebuild one. */
#ifndef HARNESS_ENTRY_H
#define HARNESS_ENTRY_H
#include <stdbool.h>

struct text;

/* "E19": the number of an entry, in either case; 0: another word. */
int entry_number(const char *word);
/* Whether an opening comment of a protocol (its first lines that begin with '#') names the entry,
   alone or within "E25-E28" or "E25 to E28". */
bool entry_named(const char *protocol, int number);
/* The protocols that name it, with question and command, and where the index lies. False: none
   does; then the text says so. */
bool entry_page(int number, struct text *);

#endif
