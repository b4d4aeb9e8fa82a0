/* core/emit/emit_weights.c - the values of the leaves: arrays in the text, or a second file of
 * bytes, which has the same numbers in the same order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "writer.h"

/* ---- values ---------------------------------------------------------------------------------- */

static int64_t room_of(const wf_tensor *t) {
    return (wf_count(t) + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
}

static bool is_all_zeros(int64_t n, const float *values) {
    for (int64_t i = 0; i < n; i++)
        if (values[i] != 0 || signbit(values[i])) return false;
    return true;
}

static bool read_leaf(wf_emitter *e, const wf_tensor *t, float *values) {
    if (!wf_read(t, values, (size_t)wf_count(t) * sizeof *values))
        return wf_emitter_fail(e, "'%s' cannot be read", called(t));
    return e->panel_uses[t->id] != IN_PANELS || wf_pack_panels(t, values) || wf_emitter_lacks(e);
}

/* Zeros at the end, such as those of an optimizer's moments, are no first values. */
static bool read_leaves(wf_emitter *e) {
    const wf_graph *g = e->parts[0].plan->graph;
    int64_t at = 0;
    e->values = calloc((size_t)e->n_weights + 1, sizeof *e->values);
    if (!e->values) return wf_emitter_lacks(e);
    for (int k = 0; k < e->n_leaves; k++) {
        const wf_tensor *t = g->nodes[e->leaves[k]];
        float *values = e->values + at;
        if (!read_leaf(e, t, values)) return false;
        at += room_of(t);
        if (!is_all_zeros(wf_count(t), values)) e->n_first = at;
    }
    return true;
}

int64_t wf_first_weights(const wf_emitter *e) {
    return e->updates ? e->n_first : e->n_weights;
}

/* ---- a file of bytes ------------------------------------------------------------------------- */

/* A program that reads the words in another order of bytes computes another checksum. */
static void put_word(unsigned char *to, uint32_t word, uint64_t *checksum) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(word >> 8 * i);
    *checksum = wf_mix_word(*checksum, word);
}

static uint32_t word_at(const unsigned char *from) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) word |= (uint32_t)from[i] << 8 * i;
    return word;
}

static bool write_bytes(wf_emitter *e) {
    int64_t n = wf_first_weights(e);
    unsigned char head[FILE_HEAD] = "weft: weights of a program in C\n";
    e->file_bytes = FILE_HEAD + n * 4;
    unsigned char *to = malloc((size_t)e->file_bytes);
    if (!to) return wf_emitter_lacks(e);
    for (int i = 0; i < FILE_HEAD; i += 4) put_word(to + i, word_at(head + i), &e->checksum);
    for (int64_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, &e->values[i], sizeof word);
        put_word(to + FILE_HEAD + i * 4, word, &e->checksum);
    }
    *e->file = (wf_emit_weights){ to, (size_t)e->file_bytes };
    return true;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool write_array(wf_emitter *e) {
    const wf_graph *g = e->parts[0].plan->graph;
    int64_t at = 0;
    for (int k = 0; k < e->n_leaves && at < e->n_first; k++) {
        const wf_tensor *t = g->nodes[e->leaves[k]];
        bool packed = e->panel_uses[t->id] == IN_PANELS;
        const float *values = e->values + at;
        wf_text_puts(&e->weights, "    /* ");
        wf_text_comment(&e->weights, called(t));
        wf_text_puts(&e->weights, packed ? ", in panels */" : " */");
        for (int64_t i = 0; i < room_of(t); i++)
            wf_text_print(&e->weights, i % 8 ? " %f," : "\n    %f,", (double)values[i]);
        wf_text_puts(&e->weights, "\n");
        at += room_of(t);
    }
    return !e->weights.lacks || wf_emitter_lacks(e);
}

bool wf_write_weights(wf_emitter *e) {
    return read_leaves(e) && (e->file ? write_bytes(e) : write_array(e));
}
