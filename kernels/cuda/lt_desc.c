/* SPDX-License-Identifier: Apache-2.0 */
/* Finds cuBLASLt, and writes its descriptors. */
#include "kernels/cuda/lt_desc.h"

#ifdef CUDA_LT_HEADER
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/library.h"

#ifndef CUDA_TOOLKIT /* the folder that this was built with */
#define CUDA_TOOLKIT "/usr/local/cuda"
#endif

/* Of the header's own major version: its structs and attributes are what is used here. */
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)
#define LIBRARY  "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

static void *open_library(void) {
    static const char *const places[] = {LIBRARY, CUDA_TOOLKIT "/lib64/" LIBRARY,
                                         CUDA_TOOLKIT "/lib/" LIBRARY, NULL};
    const char *named = getenv("BENCH_CUBLASLT");
    if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    void *library = NULL;
    for (int i = 0; !library && places[i]; i++) library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

struct symbol {
    size_t offset;
    const char *name;
};
#define SYMBOL(field, function)                                                                    \
    { offsetof(struct lt_api, field), #function }
static const struct symbol symbols[] = {
    SYMBOL(create, cublasLtCreate),
    SYMBOL(destroy, cublasLtDestroy),
    SYMBOL(version, cublasLtGetVersion),
    SYMBOL(matmul, cublasLtMatmul),
    SYMBOL(desc_create, cublasLtMatmulDescCreate),
    SYMBOL(desc_destroy, cublasLtMatmulDescDestroy),
    SYMBOL(desc_set, cublasLtMatmulDescSetAttribute),
    SYMBOL(desc_get, cublasLtMatmulDescGetAttribute),
    SYMBOL(layout_create, cublasLtMatrixLayoutCreate),
    SYMBOL(layout_destroy, cublasLtMatrixLayoutDestroy),
    SYMBOL(layout_get, cublasLtMatrixLayoutGetAttribute),
    SYMBOL(preference_create, cublasLtMatmulPreferenceCreate),
    SYMBOL(preference_destroy, cublasLtMatmulPreferenceDestroy),
    SYMBOL(preference_set, cublasLtMatmulPreferenceSetAttribute),
    SYMBOL(preference_get, cublasLtMatmulPreferenceGetAttribute),
    SYMBOL(heuristic, cublasLtMatmulAlgoGetHeuristic),
    SYMBOL(algo_get, cublasLtMatmulAlgoConfigGetAttribute),
};

int lt_load(struct lt_api *api, struct err *err) {
    void *library = open_library();
    if (!library) {
        const char *why = dlerror();
        return err_set(err, ERR_UNSUPPORTED,
                       "cuda: cuBLASLt was not found (%s); BENCH_CUBLASLT may name its file",
                       why ? why : "no reason given");
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (library_find(library, symbols[i].name, (char *)api + symbols[i].offset)) continue;
        dlclose(library);
        return err_set(err, ERR_UNSUPPORTED, "cuda: this cuBLASLt has no %s", symbols[i].name);
    }
    return 0;
}

static cudaDataType_t type_of(enum dtype type) {
    return type == DT_BF16 ? CUDA_R_16BF : type == DT_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static cublasStatus_t set_desc(const struct lt_api *api, cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t which, int32_t value) {
    return api->desc_set(desc, which, &value, sizeof value);
}

static cublasStatus_t prefer(const struct lt_api *api, cublasLtMatmulPreference_t preference,
                             cublasLtMatmulPreferenceAttributes_t which, uint32_t value) {
    return api->preference_set(preference, which, &value, sizeof value);
}

uint32_t lt_alignment(const void *p) {
    uint32_t align = LT_ALIGN;
    while ((uintptr_t)p % align) align /= 2;
    return align;
}

bool lt_problem_open(const struct lt_api *api, struct lt_problem *p, const struct lt_shape *s) {
    *p = (struct lt_problem){0};
    const cudaDataType_t in = type_of(s->in), out = type_of(s->out);
    const uint64_t room = (uint64_t)s->room_bytes;
    /* COMPUTE_32F on f32 is full f32: TF32 would be COMPUTE_32F_FAST_TF32. */
    cublasStatus_t e = api->desc_create(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!e) e = set_desc(api, p->desc, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (!e) e = api->layout_create(&p->w, in, (uint64_t)s->k, (uint64_t)s->n, s->ldw);
    if (!e) e = api->layout_create(&p->x, in, (uint64_t)s->k, (uint64_t)s->m, s->ldx);
    if (!e) e = api->layout_create(&p->y, out, (uint64_t)s->n, (uint64_t)s->m, s->ldy);
    if (!e) e = api->preference_create(&p->preference);
    if (!e)
        e = api->preference_set(p->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                sizeof room);
    /* Unless told otherwise it takes all addresses to be multiples of 256. */
    if (!e) e = prefer(api, p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s->x_align);
    if (!e) e = prefer(api, p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s->y_align);
    if (!e) e = prefer(api, p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s->y_align);
    if (e) lt_problem_close(api, p);
    return !e;
}

void lt_problem_close(const struct lt_api *api, struct lt_problem *p) {
    if (p->preference) api->preference_destroy(p->preference);
    if (p->y) api->layout_destroy(p->y);
    if (p->x) api->layout_destroy(p->x);
    if (p->w) api->layout_destroy(p->w);
    if (p->desc) api->desc_destroy(p->desc);
    *p = (struct lt_problem){0};
}
#else
typedef int lt_desc_empty;
#endif
