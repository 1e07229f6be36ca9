/* SPDX-License-Identifier: Apache-2.0 */
/* The document of the result file. */
#ifndef RESULTS_SCHEMA_MARKDOWN_H
#define RESULTS_SCHEMA_MARKDOWN_H

struct text;
/* Appends the whole of docs/format.md. */
void schema_markdown(struct text *out);

#endif
