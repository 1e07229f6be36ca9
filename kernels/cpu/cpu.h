/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: its state, its packed weights, and what its files share. */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H
#include <stdbool.h>

#include "base/err.h"
#include "kernels/cpu/code_kernels.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/numa.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/topology.h"
#include "kernels/device.h"

struct lab_flash;
struct lab_latent;
struct lab_train;

enum {
    BLOCK_ROWS = 288, /* most rows of x in one piece of a matrix product */
    BLOCK_K = 1024,   /* most columns in one, about */
    GROUP_PANELS = 4, /* panels done together */
    MOST_GROUP = 16, /* the same of products in tiles of pairs or codes, whose rows come from far */
    CHUNK =
        64, /* positions of a cache that attention handles at once; chunks start at its multiples */
    QUERY_ROWS = 96,        /* query rows (rows x grouped heads) of one piece of attention, about */
    SELECT_SEGMENT = 16384, /* ids that one piece of select looks through, at least */
    SELECT_PIECES = 512,    /* pieces at a time */
};

struct cpu_params {
    int isa; /* word: auto, scalar, avx2, avx512, amx, neon */
    int64_t threads;
    bool pin, huge_pages;
};

struct cpu_weight {
    struct weight head;
    char *data;   /* (n_panels, panel_bytes) panels of kernels.h */
    void *scales; /* tensor: f32 of each part; row: f32 (n_panels, 16); group: f16 (n_panels,
                     groups, 16); NULL of floats */
    int64_t panel_bytes;
    int64_t span, n_groups; /* columns that share a scale; all, and 1, but for groups */
    int64_t n_panels;
    int n_parts;
    int64_t *part_row;   /* (n_parts + 1) first row of each part */
    int64_t *part_panel; /* (n_parts + 1) its first panel: every part starts a new one */
};

struct rope_table {       /* cosine and sine of positions 0 ... filled-1 */
    float *cosine, *sine; /* (capacity, half) */
    int32_t capacity, filled, half;
    uint64_t key;            /* rope_key of what they are for */
    const struct rope *rope; /* while it is filled */
};

struct inputs {     /* rows of x as codes: there while weights are whose input is int8 */
    char *words;    /* (BLOCK_ROWS, row_bytes) */
    int32_t *start; /* (BLOCK_ROWS, groups) what sums of such codes begin with */
    float *scales;  /* (BLOCK_ROWS) */
    int64_t bytes;
    int n_weights;
};

struct cpu {
    struct device base;
    void *evicted; /* what makes caches cold; NULL until asked for */
    size_t evicted_bytes;
    const struct cpu_kernels *kernels;
    const struct cpu_code_kernels *codes;
    struct inputs inputs;
    struct pool *pool;
    struct topology topology;
    int node[TOPOLOGY_MOST_CPUS]; /* of each thread's CPU */
    int n_nodes;                  /* of pinned threads; 1: pages may lie anywhere */
    struct numa_pages pages;      /* of weights */
    struct cpu_params params;
    struct err failed; /* the first failure since the last sync */
    bool touch;        /* alloc writes every page at once, by all threads */
    /* A piece of x: as much as stays in the second-level cache beside panels that were widened. */
    int32_t block_rows;
    int64_t block_k;

    /* workspace, from plan() */
    struct step_bounds bounds;
    float *scratch; /* (threads, scratch_floats) */
    int64_t scratch_floats;
    float *parts; /* partial results of attention split over one sequence */
    int64_t parts_floats;
    float *wide; /* rows of activations of other types as f32: what linear multiplies */
    int64_t wide_floats;
    double best[SELECT_PIECES]; /* of select's pieces */
    int32_t best_id[SELECT_PIECES];
    struct rope_table rope;
};

extern const struct ops cpu_ops;
extern const struct lab_ops cpu_lab;
extern const struct lab_train cpu_lab_train; /* lab_train.c */
extern const struct lab_flash cpu_lab_flash; /* lab_flash.c */
extern const struct lab_latent cpu_lab_latent;
/* lab.c: sixteen sums side by side, which a compiler may keep in registers. */
float cpu_dot(const float *a, const float *b, int32_t n);
extern const struct device_kind device_cpu;

static inline struct cpu *cpu_of(struct device *device) { return (struct cpu *)device; }

/* Types that activations may have. */
static inline bool cpu_is_float(enum dtype type) {
    return type == DT_F32 || type == DT_F16 || type == DT_BF16;
}

/* Element (r, 0) of a tensor. */
static inline void *cpu_row(const struct tensor *t, int64_t r) {
    return (char *)t->data + r * t->stride * (dtype_bits(t->type) / 8);
}

static inline float *cpu_scratch(struct cpu *cpu, int thread) {
    return cpu->scratch + thread * cpu->scratch_floats;
}

/* NULL: this build has no such level (whether the machine has it is isa_best's answer). */
const struct cpu_kernels *cpu_kernels_of(enum isa);

/* Keeps the first failure for sync; returns whether `holds`. */
bool cpu_expects(struct cpu *, bool holds, const char *sentence);

/* memory.c */
void *cpu_alloc(struct device *, size_t bytes);
void cpu_free(struct device *, void *, size_t bytes);
void cpu_evict(struct device *);

/* weights.c */
int cpu_pack(struct device *, struct weight **, const struct weight_spec *, int n,
             const struct row_source *, struct err *);
void cpu_unpack(struct device *, struct weight **);
/* Row r of the stack as a place among the panels: 16 * panel + lane. */
int64_t cpu_weight_place(const struct cpu_weight *, int64_t row);
void cpu_weight_row(const struct cpu *, const struct cpu_weight *, int64_t row, float *out);
int cpu_part_of_panel(const struct cpu_weight *, int64_t panel);
/* Why a device cannot have such weights, or NULL. */
const char *cpu_weight_refused(const struct weight_spec *);

/* codes.c: quantized weights */
struct codes_room { /* for one row */
    int8_t *codes;  /* (cols) */
    float *scales;  /* (n_groups) */
};
/* Quantizes a row into its lane of a panel. */
void cpu_pack_codes(const struct cpu *, const struct cpu_weight *, const struct weight_spec *,
                    int64_t panel, int64_t lane, const float *row, float tensor_absmax,
                    const struct codes_room *);
float cpu_absmax(struct cpu *, const struct weight_spec *, const struct row_source *);
void cpu_codes_row(const struct cpu *, const struct cpu_weight *, int64_t place, float *out);
/* Where there is one scale a row: those of the rows of n panels. out (n, 16) */
void cpu_weight_scales(const struct cpu_weight *, int64_t panel, int n, float *out);

/* Chooses block_rows and block_k for a second-level cache of so many bytes (0: unknown). No bit of
   a result depends on them. */
void cpu_linear_blocks(struct cpu *, int64_t l2_bytes);

/* linear_codes.c: room for rows of x as this weight wants them; false: no memory. */
bool cpu_inputs_open(struct cpu *, const struct cpu_weight *);
void cpu_inputs_close(struct cpu *);

/* Floats of scratch that one thread needs for an op under these bounds. */
int64_t cpu_linear_scratch(void);
int64_t cpu_linear_wide(const struct step_bounds *);
int64_t cpu_attention_scratch(const struct step_bounds *);
int64_t cpu_attention_parts(const struct cpu *, const struct step_bounds *);
int64_t cpu_rows_scratch(const struct step_bounds *);

/* rows.c: (half) each, of position p. */
void cpu_angles(float *cosine, float *sine, int32_t p, int32_t half, const struct rope *);

/* linear.c, attention.c, rows.c, select.c, ceilings.c */
void cpu_embed(struct device *, struct tensor *, const struct weight *, const struct step *);
void cpu_add_norm(struct device *, struct tensor *, struct tensor *, const struct tensor *,
                  const float *, float);
void cpu_linear(struct device *, struct tensor *, const struct tensor *, const struct weight *,
                const float *, enum epilogue);
void cpu_rope_append(struct device *, struct tensor *, const struct kv *, const struct tensor *,
                     const struct step *, const struct rope *);
void cpu_attention(struct device *, struct tensor *, const struct tensor *, const struct kv *,
                   const struct step *, float);
void cpu_gather_rows(struct device *, struct tensor *, const struct tensor *, const struct step *);
void cpu_select(struct device *, struct step *, const struct tensor *, const struct sampler *);
void cpu_advance(struct device *, const struct step *, struct step *, const struct sampler *);
void cpu_kv_copy_block(struct device *, const struct kv *, int32_t, int32_t);
void cpu_copy(struct device *, void *, const void *, int64_t);
void cpu_read(struct device *, const void *, int64_t, float *);
void cpu_triad(struct device *, float *, const float *, const float *, float, int64_t);
void cpu_fma_peak(struct device *, enum dtype, int64_t);

/* Columns of a panel in one piece of memory: a pair of bf16, a word of 4-bit codes. */
static inline int64_t cpu_word_columns(enum dtype type) {
    return dtype_bits(type) == 4 ? WORD_CODES : type == DT_BF16 ? 2 : 1;
}

/* The same of a weight, whose input may make words of it (code_kernels.h). */
static inline int64_t cpu_weight_word(const struct weight *w) {
    return w->input == DT_I8 && w->type == DT_I8 ? WORD_INT8 : cpu_word_columns(w->type);
}

/* Bytes of n columns of a panel from the beginning of a group on. */
static inline int64_t cpu_words_bytes(enum dtype type, int64_t word_k, int64_t n) {
    return (n + word_k - 1) / word_k * (word_k * PANEL * dtype_bits(type) / 8);
}

static inline int64_t cpu_columns_bytes(enum dtype type, int64_t n) {
    return cpu_words_bytes(type, cpu_word_columns(type), n);
}

/* Where column k of a panel lies, in bytes; k begins a word. */
static inline int64_t cpu_weight_column(const struct cpu_weight *w, int64_t k) {
    const int64_t word_k = cpu_weight_word(&w->head);
    return k / w->span * cpu_words_bytes(w->head.type, word_k, w->span) +
           cpu_words_bytes(w->head.type, word_k, k % w->span);
}

/* Where column k of lane 0 lies where one has a byte of a word. */
static inline int64_t cpu_weight_byte(const struct cpu_weight *w, int64_t k) {
    const int64_t in_group = k % w->span;
    return cpu_weight_column(w, k - in_group % WORD_INT8) + in_group % WORD_INT8;
}

/* Where tile i of n begins: all about as high, save that one or two rows too many make a last tile
   of two, since tiles of two are quick (they take two panels at once) and those of three and four
   keep too few sums going to hide their latency. */
static inline int32_t cpu_tile_row(int32_t m, int i, int n, const struct cpu_kernels *kernels) {
    const int32_t rest = m % kernels->rows;
    if (kernels->even || n == 1 || rest < 1 || rest > 2) return m * i / n;
    return i == n ? m : (m - 2) * i / (n - 1);
}

/* Where the cache keeps (sequence s, head, position p): index of its int8 scale, and of its first
 * value / d_h. */
static inline int64_t cpu_kv_place(const struct kv *kv, int32_t s, int32_t head, int32_t p) {
    const int64_t unit =
        kv->table != NULL ? kv->table[(int64_t)s * kv->table_stride + p / kv->block] : s;
    return (unit * kv->n_kv + head) * kv->block + p % kv->block;
}

#endif
