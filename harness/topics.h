/* SPDX-License-Identifier: Apache-2.0 */
/* What can be explained besides commands: workloads, sections, devices, analyses, metrics; for help
 * and for the documents. */
#ifndef HARNESS_TOPICS_H
#define HARNESS_TOPICS_H
#include <stdbool.h>

struct names;
struct text;

/* kind: "", "workload", "device", "analysis", "metric", "section". False if nothing is called so.
 */
bool topic_page(const char *kind, const char *word, struct text *);
void topic_names(struct names *);
/* The documents in docs/, made whole from the tables. */
void topic_protocol_document(struct text *);
void topic_metrics_document(struct text *);

#endif
