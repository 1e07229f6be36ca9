/* SPDX-License-Identifier: Apache-2.0 */
/* One run of gnuplot over files in a folder of its own. */
#ifndef PLOTS_GNUPLOT_H
#define PLOTS_GNUPLOT_H
#include <stddef.h>

struct err;
struct gnuplot; /* a temporary folder */

int gnuplot_open(struct gnuplot **, struct err *);
void gnuplot_close(struct gnuplot **); /* removes the folder and all in it */
int gnuplot_file(struct gnuplot *, const char *name, const char *data, size_t len, struct err *);
/* Runs `gnuplot script` inside the folder, without the user's own settings; ERR_UNSUPPORTED if
   there is no gnuplot, ERR_SYSTEM with its first line if it fails, ERR_TIMEOUT after 20 s. */
int gnuplot_run(struct gnuplot *, const char *script, struct err *);
/* Copies a file that was made to its final name, never half-written; ERR_SYSTEM if it is not there
 * or empty. */
int gnuplot_take(struct gnuplot *, const char *name, const char *path, struct err *);

#endif
