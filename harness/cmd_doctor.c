/* SPDX-License-Identifier: Apache-2.0 */
/* `bench doctor`: what is known about this machine's noise, and what would quieten it. */
#include <stdio.h>
#include <string.h>

#include "harness/command.h"
#include "harness/doctor.h"
#include "harness/machine.h"
#include "harness/page.h"

static const struct flag flags[] = {
    {"--format", NULL, "FORMAT", "Output", "text (default), tsv or json", false},
    {0},
};

static int doctor_main(int argc, char **argv) {
    struct arguments a;
    int code = command_parse(&command_doctor, argc, argv, &a);
    if (code) return code < 0 ? EXIT_OK : code;
    const char *format = argument(&a, "--format");
    int f = 0;
    while (format && page_format_names[f] && strcmp(page_format_names[f], format)) f++;
    if (!page_format_names[f]) {
        fprintf(stderr, "bench doctor: '%.100s' is no format; text, tsv, json\n", format);
        return EXIT_USAGE;
    }
    if (a.n_words) {
        fprintf(stderr, "bench doctor: it takes no words; '%.100s' is one\n", a.words[0]);
        return EXIT_USAGE;
    }
    struct facts facts = {0};
    struct doctor_measured measured;
    struct page page = {0};
    struct text out = {0};
    machine_facts(&facts, "/");
    doctor_measure(&measured);
    doctor_columns(&page);
    doctor_lines(&page, &facts, &measured, "/");
    doctor_own_lines(&page);
    if (f == PAGE_TEXT)
        doctor_text(&page, &facts, &out);
    else
        page_write(&page, (enum page_format)f, &out);
    fwrite(out.data, 1, out.len, stdout);
    text_free(&out);
    page_free(&page);
    facts_free(&facts);
    return EXIT_OK;
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "[--format text|tsv|json]",
    .brief = "what is known about this machine's noise: state, what it matters here, what mends it "
             "(listens for two seconds)",
    .group = "Find out",
    .flags = flags,
    .main = doctor_main,
};
