/* weft/core/emit.h - plans as one C file, which computes the same bits without weft. */
#ifndef WEFT_CORE_EMIT_H
#define WEFT_CORE_EMIT_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values of the leaves as the bytes of a second file, little-endian. */
typedef struct wf_emit_weights {
    unsigned char *bytes; /* malloc'ed */
    size_t n;
} wf_emit_weights;

typedef struct wf_emit_options {
    /* an identifier of C: the prefix of the names by which a program uses the file; NULL:
     * "model" */
    const char *name;
    /* for each plan its name, called RUN below: the function model_RUN runs it; NULL: "run", for a
     * single plan */
    const char *const *runs;
    /* the number of positions that the KV caches have room for, at least 4; 0, or more than the
     * extent "P" allows: as many as it allows */
    int64_t positions;
    /* at most this many attention layers cache the int8 input of their key and value projection,
     * and compute keys and values from it in every run: less memory, more time. The others cache
     * keys and values. An attention layer can do so if it runs one token at a time, has no mask,
     * and has one int8 product for keys and values. Its plan must be the only one with a state */
    int64_t recomputed;
    /* the name of an extent whose size each run of a plan without a state chooses; or NULL */
    const char *sized_by;
    /* pointers that receive model_ARENA in bytes, model_WEIGHTS in floats, and the number of int8
     * weights; each may be NULL */
    int64_t *arena_bytes, *n_weights, *n_int8;
    /* true: all plans use the same memory. A run destroys the results of the other plans, so no
     * plan may read what another one fetched */
    bool one_at_a_time;
    /* true: the program runs the plans in the order of the list, each as often as it wants. A run
     * destroys results and caches of later plans, because its own temporary values may lie in their
     * memory. If a result is row-major and has the same address in every run,
     * model_see_NAME(&m) returns this address, valid until the next run */
    bool in_order;
    /* with in_order: the number of runs of a plan without a state whose results are kept.
     * model_RUN_keep(&m, i) keeps the results of its last run as number i, from 0. A later plan
     * reads all kept results: its batch is divided into kept_runs equal parts, and the rows of part
     * i read number i. 0 or 1: later plans read the results of the last run */
    int64_t kept_runs;
    /* receives the values of the leaves, which model_start then takes as an argument; NULL: the
     * text has them as an array */
    wf_emit_weights *weights_file;
} wf_emit_options;

/* Plans of one graph, with the extents bound now, as the text of a C11 file that needs no library,
 * not even C's own, and allocates nothing. It holds one copy of the values that the leaves have
 * now. For a plan with the input `ids` and the fetch `logits` it declares `model`, a struct with a
 * member `ids` for the program to set; model_ARENA, the bytes of memory that a run needs, aligned
 * to 64; model_start(&m, arena); model_run(&m), which returns 0, or 1 for bad data, such as an id
 * out of range; and model_get_logits(&m, to), which copies the result. A run computes what wf_run
 * does, updates included, to the bit. If a plan updates leaves, model_start also takes `float
 * *weights`, memory for model_WEIGHTS floats, which it fills. If a plan draws random bits, the
 * struct has members RUN_step and RUN_micro_batch (see wf_random_step); model_start sets them to
 * the plan's current values, and each successful run increments RUN_step.
 *
 * A plan may be fed a node that an earlier plan fetches, as a decoder's steps are fed the encoder's
 * results. The value then stays in memory between the two plans, and its first axis may be 1 where
 * attention reads it for several rows. If several plans fetch `logits`, each has its own function,
 * model_RUN_get_logits. Plans with a state share the caches. Their functions have a parameter
 * `position`, the number of rows in the caches, at most model_RUN_LAST. So do functions that copy a
 * result whose shape or address depends on the position. If the batch has several rows,
 * model_RUN_copy(&m, from, to) copies one batch row of the caches to another.
 *
 * With `sized_by`, functions of plans without a state have a parameter `size`, the size of that
 * extent in this run: from 2 to model_RUN_MOST, the size bound now, which must be at least 5. Later
 * plans read the results at the bound size, with zeros beyond `size`.
 *
 * With `weights_file`, model_start(&m, arena, file, size) takes these bytes too, model_FILE of
 * them, which begin at a multiple of 4 and may be constant data, or mapped. It reads the bytes
 * once, and runs read them again; if plans update leaves, runs read only weights in int8 there. It
 * returns 0, or 1 if the address is not such a multiple, or the size or the checksum is wrong; each
 * run then returns 1.
 *
 * If an input's name is a keyword of C, or a name that the file itself uses, its member is that
 * name with '_' appended. Weights in int8 (wf_pack_weights) that products and embedding read stay
 * in int8: integers row by row, and the scales of rows among the floats.
 *
 * The text is malloc'ed. NULL with message[256]: for instance an op that has no form in C, extents
 * that are not bound, a graph of f64, weights in int8 that other ops read; an operand of 2^31
 * elements or more, memory or weights of 2^31 bytes or more, two inputs or fetches of one name, or
 * caches for fewer than 4 positions. */
WF_API char *wf_emit(wf_plan *const *plans, int n, const wf_emit_options *options, char *message);

#ifdef __cplusplus
}
#endif
#endif
