/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, on stderr. */
#include "harness/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

void progress_begin(struct progress *p, bool quiet) {
    const char *term = getenv("TERM");
    *p = (struct progress){.quiet = quiet,
                           .begin_ns = clock_ns(),
                           .terminal = isatty(2) && (!term || strcmp(term, "dumb"))};
}

static void wipe(struct progress *p) {
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}

void progress_show(struct progress *p, int64_t round, int64_t rounds, const char *what,
                   double fraction, double eta_s) {
    if (p->quiet || !p->terminal) return;
    enum { CELLS = 20 };
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    int filled = (int)(fraction * CELLS * 8);
    char bar[CELLS * 3 + 8] = "";
    for (int i = 0; i < filled / 8; i++) strcat(bar, "█");
    strcat(bar, eighths[filled % 8]);
    int blank = CELLS - filled / 8 - (filled % 8 ? 1 : 0);
    wipe(p);
    fprintf(
        stderr,
        "  round %lld/%lld  %-24.24s ▕%s%*s▏ %3.0f %%  ETA %d:%02d  (Ctrl-C keeps what is measured)",
        (long long)round + 1, (long long)rounds, what, bar, blank, "", 100 * fraction,
        (int)(eta_s / 60), (int)eta_s % 60);
    fflush(stderr);
    p->drawn = true;
}

void progress_line(struct progress *p, const char *fmt, ...) {
    if (p->quiet) return;
    wipe(p);
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    fflush(stderr);
}

void progress_end(struct progress *p) {
    wipe(p);
    fflush(stderr);
}
