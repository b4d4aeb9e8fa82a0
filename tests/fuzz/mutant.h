/* tests/fuzz/mutant.h - a safetensors file while it is mutated. mutant.c changes its parsed
 * contents, mutator.c the text of its header and its bytes. */
#ifndef WEFT_TESTS_FUZZ_MUTANT_H
#define WEFT_TESTS_FUZZ_MUTANT_H

#include "core/base/random.h"
#include "core/file.h"

enum { MUTANT_TENSORS = 400, MUTANT_PAIRS = 200 };

typedef struct tensor {
    const char *name, *dtype;
    int ndim;
    int64_t shape[WF_MAX_DIMS];
    const uint8_t *data;
    size_t bytes;
} tensor;

/* Memory for edits is taken from the pool, and is not freed before all of the pool is. */
typedef struct mutant {
    uint64_t state;
    tensor tensors[MUTANT_TENSORS];
    wf_meta meta[MUTANT_PAIRS];
    int n, n_meta;
    char *pool;
    size_t used;
} mutant;

enum { MUTANT_POOL = 2 << 20 };

static inline uint64_t draw(mutant *m) {
    return wf_mix64(m->state += 0x9E3779B97F4A7C15u);
}

/* 0..n-1; 0 of none. */
static inline int below(mutant *m, size_t n) {
    return n ? (int)(draw(m) % n) : 0;
}

static inline bool one_in(mutant *m, int n) {
    return below(m, (size_t)n) == 0;
}

#define PICK(m, list) list[below(m, sizeof(list) / sizeof *(list))]
const char *any_number(mutant *m); /* most of them at the edge of a type or of a limit */
const char *any_word(mutant *m);   /* names, values, and what breaks them */

/* A copy in the pool, ended by '\0'; "" if there is no room. */
char *mutant_keep(mutant *m, const void *bytes, size_t n);
const char *mutant_say(mutant *m, const char *format, ...) WF_PRINTF(2, 3);

/* Makes one edit of the parsed contents. */
void mutant_edit(mutant *m);

#endif
