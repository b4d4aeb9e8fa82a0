/* models/marian/marian_rewrite.c - writes a model, imported from a binary file and trained further,
 * into a copy of that file: new weights, the same settings and scales of activations.
 *
 * A matrix in int8 has one multiplier, 127 divided by the largest absolute value. If the file's
 * integers already give the matrix's values, its bytes stay. So a model that was not trained gives
 * the same file again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "marian_file.h"
#include "models/marian_internal.h"
#include "models/message.h"

typedef struct rewriting {
    marian_file f;
    const char *like;
    char *bytes; /* a copy of it */
    const wf_transformer_config *c;
    char *message;
} rewriting;

/* True if the settings in the file are those of the model. Settings have no ids and no lengths, so
 * these are not compared. */
static bool same_settings(rewriting *r) {
    wf_transformer_config c;
    const marian_item *settings = wf_marian_find(&r->f, MARIAN_SETTINGS);
    if (!settings || settings->type != MARIAN_TEXT)
        return fail(r->message, "there are no settings '" MARIAN_SETTINGS "'");
    if (!wf_marian_read_settings(settings->data, (size_t)settings->count, &c, r->message))
        return false;
    char *own = wf_marian_write_settings(r->c, r->message);
    char *other = own ? wf_marian_write_settings(&c, r->message) : NULL;
    bool same = other && strcmp(own, other) == 0;
    if (other && !same) fail(r->message, "it is a file of another model than this one");
    free(own), free(other);
    return same;
}

/* True if the file's numbers already give these values. */
static bool holds(const marian_item *item, const float *values) {
    for (int64_t i = 0; i < item->count; i++)
        if (wf_marian_value(item, i) != values[i]) return false;
    return true;
}

static void write_int8(const rewriting *r, const marian_item *item, const float *values) {
    if (!holds(item, values))
        wf_marian_round(values, item->count, r->bytes + (item->data - r->like));
}

static void write_f32(const rewriting *r, const marian_item *item, const marian_origin *o,
                      const float *values) {
    char *to = r->bytes + (item->data - r->like);
    bool turned = o->form == MARIAN_MATRIX;
    for (int64_t row = 0; row < o->rows; row++)
        for (int64_t k = 0; k < o->columns; k++) {
            int64_t at = turned ? k * o->rows + row : row * o->columns + k;
            memcpy(to + 4 * at, &values[row * o->columns + k], sizeof *values);
        }
}

static bool write_leaf(rewriting *r, const wf_tensor *leaf) {
    marian_origin o;
    if (!wf_marian_find_origin(&r->f, r->c, leaf, &o, r->message)) return false;
    float *values = malloc(wf_bytes(leaf) + 1);
    bool ok =
        (values && wf_read(leaf, values, wf_bytes(leaf))) || fail(r->message, "out of memory");
    for (int64_t i = 0; ok && i < wf_count(leaf); i++)
        ok = isfinite(values[i]) ||
             fail(r->message, "'%.100s' has values that are NaN or infinite", leaf->name);
    for (int i = 0; ok && i < o.parts; i++) {
        const float *part = values + i * o.rows * o.columns;
        if (o.items[i]->type == MARIAN_INT8)
            write_int8(r, o.items[i], part);
        else
            write_f32(r, o.items[i], &o, part);
    }
    free(values);
    return ok;
}

void *wf_marian_export_like(const wf_model *m, const void *like, size_t bytes, char *message) {
    if (!wf_marian_is_plain(m, message)) return NULL;
    rewriting r = { .like = like, .c = &wf_transformer_of(m)->config, .message = message };
    bool ok = like && bytes ? wf_marian_open(&r.f, like, bytes, message)
                            : fail(message, "there is no file to be like");
    if (ok && r.f.zip.count) ok = fail(message, "it is an archive, not a binary file of Marian");
    r.bytes = ok ? malloc(bytes) : NULL;
    if (ok && !r.bytes) ok = fail(message, "out of memory");
    if (ok) memcpy(r.bytes, like, bytes);
    ok = ok && same_settings(&r);
    for (int id = 0; ok && id < m->own_nodes; id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM) ok = write_leaf(&r, wf_node(m->graph, id));
    ok = ok && wf_marian_explain_rest(&r.f, message);
    wf_marian_close(&r.f);
    if (ok) return r.bytes;
    free(r.bytes);
    return NULL;
}
