/* core/emit/emit_weights.c - the values of the leaves: arrays in the text, or a second file of
 * bytes, which has the same numbers in the same order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/int8_row.h"
#include "core/base/random.h"
#include "core/graph_internal.h"
#include "emit_sections.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* True if the leaf is in int8. The scales of its rows are then among the floats. */
static bool is_int8(const wf_tensor *t) {
    return wf_layout_of(t) == WF_PANELS_INT8;
}

/* The number of floats that the file has for a leaf. */
static int64_t floats_of(const wf_emitter *e, const wf_tensor *t) {
    if (is_int8(t)) return t->shape[0];
    return t->ndim && t->shape[0] ? wf_count(t) / t->shape[0] * wf_rows_of(e, t) : wf_count(t);
}

static int64_t room_of(const wf_emitter *e, const wf_tensor *t) {
    return (floats_of(e, t) + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
}

static int64_t int8_room_of(const wf_tensor *t) {
    return is_int8(t) ? (wf_count(t) + INT8_UNIT - 1) / INT8_UNIT * INT8_UNIT : 0;
}

static const wf_tensor *leaf_at(const wf_emitter *e, int k) {
    return e->parts[0].plan->graph->nodes[e->leaves[k]];
}

static bool is_all_zeros(int64_t n, const float *values) {
    for (int64_t i = 0; i < n; i++)
        if (values[i] != 0 || signbit(values[i])) return false;
    return true;
}

static bool read_leaf(wf_emitter *e, const wf_tensor *t, float *values) {
    size_t bytes = (size_t)wf_count(t) * sizeof *values;
    int64_t n = floats_of(e, t);
    float *all = malloc(bytes + 1);
    if (!all) return wf_emitter_lacks(e);
    bool ok = wf_read(t, all, bytes) || wf_emitter_fail(e, "'%s' cannot be read", called(t));
    if (ok && e->panel_uses[t->id] == IN_PANELS) ok = wf_pack_panels(t, all) || wf_emitter_lacks(e);
    for (int64_t i = 0; ok && i < n; i++) values[i] = all[i];
    free(all);
    return ok;
}

/* Quantise the values of an int8 leaf again. Values that were quantised before give the same
 * integers and scales. */
static bool read_int8_leaf(wf_emitter *e, const wf_tensor *t, float *scales, signed char *q) {
    int64_t width = t->shape[1];
    float *rows = malloc(((size_t)wf_count(t) + 1) * sizeof *rows);
    if (!rows) return wf_emitter_lacks(e);
    bool ok = wf_read(t, rows, (size_t)wf_count(t) * sizeof *rows);
    for (int64_t i = 0; ok && i < t->shape[0]; i++) {
        scales[i] = wf_int8_scale(width, rows + i * width);
        wf_int8_round(width, rows + i * width, scales[i], q + i * width);
    }
    free(rows);
    return ok || wf_emitter_fail(e, "'%s' cannot be read", called(t));
}

/* Read all leaves, one behind the other. Leaves of zeros at the end, such as an optimizer's moments
 * before training, are not written to the file if runs update leaves: n_first excludes them. */
static bool read_leaves(wf_emitter *e) {
    int64_t at = 0, byte = 0;
    for (int k = 0; k < e->n_leaves; k++) at += room_of(e, leaf_at(e, k));
    for (int k = 0; k < e->n_leaves; k++) e->n_int8 += int8_room_of(leaf_at(e, k));
    e->values = calloc((size_t)at + 1, sizeof *e->values);
    e->int8 = calloc((size_t)e->n_int8 + 1, sizeof *e->int8);
    e->places = calloc((size_t)e->n_leaves + 1, sizeof *e->places);
    if (!e->values || !e->int8 || !e->places) return wf_emitter_lacks(e);
    e->n_weights = at;
    at = 0;
    for (int k = 0; k < e->n_leaves; k++) {
        const wf_tensor *t = leaf_at(e, k);
        float *values = e->values + at;
        bool ok =
            is_int8(t) ? read_int8_leaf(e, t, values, e->int8 + byte) : read_leaf(e, t, values);
        if (!ok) return false;
        e->places[k].at = at;
        at += room_of(e, t);
        byte += int8_room_of(t);
        if (!is_all_zeros(floats_of(e, t), values)) e->n_first = at;
    }
    return true;
}

/* The index of another leaf that begins with the floats of leaf k, such as a longer table of the
 * same positions. Of two equal leaves, only the later one has such a leaf. -1: there is none. */
static int leaf_with_values_of(const wf_emitter *e, int k) {
    int64_t n = floats_of(e, leaf_at(e, k));
    const float *values = e->values + e->places[k].at;
    for (int i = 0; i < e->n_leaves && n > 0; i++) {
        int64_t most = floats_of(e, leaf_at(e, i));
        if (most < n || (most == n && i >= k)) continue;
        if (memcmp(e->values + e->places[i].at, values, (size_t)n * sizeof *values) == 0) return i;
    }
    return -1;
}

/* Give leaves with the same floats one place in the file. This is not called if runs update
 * leaves. */
static bool share_values(wf_emitter *e) {
    int *with = malloc(((size_t)e->n_leaves + 1) * sizeof *with);
    int64_t at = 0;
    if (!with) return wf_emitter_lacks(e);
    for (int k = 0; k < e->n_leaves; k++) with[k] = leaf_with_values_of(e, k);
    for (int k = 0; k < e->n_leaves; k++) {
        int64_t n = room_of(e, leaf_at(e, k));
        e->places[k].shared = with[k] >= 0;
        if (with[k] >= 0) continue;
        memmove(e->values + at, e->values + e->places[k].at, (size_t)n * sizeof *e->values);
        e->places[k].at = at;
        at += n;
    }
    for (int k = 0; k < e->n_leaves; k++) {
        int other = with[k];
        while (other >= 0 && with[other] >= 0) other = with[other];
        if (other >= 0) e->places[k].at = e->places[other].at;
    }
    e->n_weights = at;
    free(with);
    return true;
}

int64_t wf_first_weights(const wf_emitter *e) {
    return e->updates ? e->n_first : e->n_weights;
}

/* ---- a file of bytes ------------------------------------------------------------------------- */

/* Append a word, little-endian, and add it to the checksum. A big-endian machine reads other words,
 * so its checksum differs. */
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
    e->file_bytes = FILE_HEAD + n * 4 + e->n_int8;
    unsigned char *to = malloc((size_t)e->file_bytes);
    if (!to) return wf_emitter_lacks(e);
    for (int i = 0; i < FILE_HEAD; i += 4) put_word(to + i, word_at(head + i), &e->checksum);
    for (int64_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, &e->values[i], sizeof word);
        put_word(to + FILE_HEAD + i * 4, word, &e->checksum);
    }
    unsigned char *behind = to + FILE_HEAD + n * 4;
    const unsigned char *int8 = (const unsigned char *)e->int8;
    for (int64_t i = 0; i < e->n_int8; i += 4)
        put_word(behind + i, word_at(int8 + i), &e->checksum);
    *e->file = (wf_emit_weights){ to, (size_t)e->file_bytes };
    return true;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void add_name(wf_text *t, const wf_tensor *of, const char *how) {
    wf_text_puts(t, "    /* ");
    wf_text_comment(t, called(of));
    wf_text_print(t, "%s */", how);
}

static bool write_arrays(wf_emitter *e) {
    int64_t byte = 0;
    for (int k = 0; k < e->n_leaves; k++) {
        const wf_tensor *t = leaf_at(e, k);
        int64_t at = e->places[k].at;
        bool packed = e->panel_uses[t->id] == IN_PANELS, int8 = is_int8(t);
        const char *how = packed ? ", in panels" : "";
        if (int8) how = ", scales of rows";
        bool has_values = !e->places[k].shared && at < wf_first_weights(e);
        int64_t n = has_values ? room_of(e, t) : 0, bytes = int8_room_of(t);
        if (n) add_name(&e->weights, t, how);
        for (int64_t i = 0; i < n; i++)
            wf_text_print(&e->weights, i % 8 ? " %f," : "\n    %f,", (double)e->values[at + i]);
        if (n) wf_text_puts(&e->weights, "\n");
        if (bytes) add_name(&e->int8_text, t, "");
        for (int64_t i = 0; i < bytes; i++)
            wf_text_print(&e->int8_text, i % 20 ? " %d," : "\n    %d,", (int)e->int8[byte + i]);
        if (bytes) wf_text_puts(&e->int8_text, "\n");
        byte += bytes;
    }
    return (!e->weights.lacks && !e->int8_text.lacks) || wf_emitter_lacks(e);
}

static bool name_places(wf_emitter *e) {
    int64_t byte = 0;
    for (int k = 0; k < e->n_leaves; k++) {
        const wf_tensor *t = leaf_at(e, k);
        int64_t at = e->places[k].at;
        char name[MOST_NAME];
        wf_leaf_name(t, name);
        wf_text_print(&e->names, "    at_%s_%d = %n,\n", name, t->id, is_int8(t) ? byte : at);
        if (is_int8(t)) wf_text_print(&e->names, "    at_%s_%d_scales = %n,\n", name, t->id, at);
        byte += int8_room_of(t);
    }
    return !e->names.lacks || wf_emitter_lacks(e);
}

bool wf_write_weights(wf_emitter *e) {
    return read_leaves(e) && (e->updates || share_values(e)) && name_places(e) &&
           (e->file ? write_bytes(e) : write_arrays(e));
}
