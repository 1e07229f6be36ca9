/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: timeout 300 */
/* Vocabularies trained at test time, as tokenizer.json and as GGUF: ours gives the ids that the
 * library `tokenizers` gives, for 2,000 texts each, and the text back; so does the vocabulary of
 * the fetched model, or of the GGUF file that BENCH_TOKENIZER_MODEL names. */
#include "tests/golden/tokenizer_cases.h"

static int make_files(void **state) {
    (void)state;
    return cases_make("--peer");
}

static void ids_are_the_same(void **state) {
    (void)state;
    cases_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids_are_the_same)};
    return cmocka_run_group_tests(tests, make_files, cases_remove);
}
