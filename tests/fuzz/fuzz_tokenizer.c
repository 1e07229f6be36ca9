/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file's tokenizer, and as a text: refused with a sentence, or ids that are tokens
 * and whose pieces can be read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "tests/fuzz/folder.h"
#include "workloads/model/file.h"
#include "workloads/model/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { A_GGUF, A_CONFIG, SOME_TENSORS, A_TOKENIZER, N_NAMES };

static void make_folder(void) {
    static const char *const names[N_NAMES] = {"a.gguf", "config.json", "a.safetensors",
                                               "tokenizer.json"};
    static const char tensors[] =
        "\x36\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}1234";
    if (!folder_make(names, N_NAMES)) return;
    put(A_CONFIG, "{}", 2);
    put(SOME_TENSORS, tensors, sizeof tensors - 1);
}

static void tokenize(const struct tokenizer *t, const char *text, size_t size) {
    for (unsigned flags = 0; flags < 4; flags++) {
        struct err err = {0};
        struct text back = {0};
        int32_t *ids = NULL;
        size_t n = 0;
        if (tokenizer_encode(t, text, size, flags, &ids, &n, &err)) {
            if (!err.text[0]) abort(); /* a refusal without a sentence */
            continue;
        }
        for (size_t i = 0; i < n; i++)
            if (ids[i] < 0 || ids[i] >= tokenizer_vocab(t)) abort();
        tokenizer_decode(t, ids, n, &back);
        text_free(&back);
        free(ids);
    }
}

static void use(const char *path, const uint8_t *data, size_t size) {
    static const char some[] = "Hello  w\xc3\xb6rld <s>\xff\xe2\x96\x81"
                               "12 e\xcc\x81\r\n\t<|end|>a";
    struct model_file *file = NULL;
    struct tokenizer *t = NULL;
    struct err err = {0};
    if (!model_file_open(&file, path, &err)) {
        int code = tokenizer_open(&t, file, &err);
        if (code && !err.text[0]) abort();
        if (!code && tokenizer_bos(t) >= tokenizer_vocab(t)) abort();
    }
    if (t) {
        tokenize(t, some, sizeof some - 1);
        tokenize(t, (const char *)data, size);
    }
    tokenizer_close(&t);
    model_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    make_folder();
    if (size >= 4 && !memcmp(data, "GGUF", 4)) {
        put(A_GGUF, data, size);
        use(paths[A_GGUF], data, size);
    } else {
        put(A_TOKENIZER, data, size);
        use(folder, data, size);
    }
    return 0;
}
