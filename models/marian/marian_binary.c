/* models/marian/marian_binary.c - a model of weft as the bytes of a binary file, with matrices in
 * int8; see marian_file.c for what is in one. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marian_file.h"
#include "models/kind.h"
#include "models/message.h"

enum { TYPE_F32 = 0x0404, TYPE_I8 = 0x0101, TYPE_INTGEMM8 = 0x4101, BLOCK = 256 };
static const char zeros[BLOCK];

/* ---- bytes ----------------------------------------------------------------------------------- */

void wf_marian_add(marian_bytes *b, const void *data, size_t n) {
    if (b->lacks || (b->n + n > b->room)) {
        size_t room = 2 * (b->n + n);
        char *more = b->lacks ? NULL : realloc(b->data, room);
        b->lacks = !more;
        if (!more) return;
        b->data = more;
        b->room = room;
    }
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

void wf_marian_add_number(marian_bytes *b, uint64_t number, int n) {
    char bytes[8];
    for (int i = 0; i < n; i++, number >>= 8) bytes[i] = (char)(unsigned char)number;
    wf_marian_add(b, bytes, (size_t)n);
}

float wf_marian_multiplier(float largest) {
    /* 127 / largest must be finite. With the multiplier 1, a matrix of smaller values becomes
     * zeros */
    return largest > 127 / FLT_MAX ? 127 / largest : 1;
}

void wf_marian_round(const float *values, int64_t n, char *to) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(values[i]));
    float multiplier = wf_marian_multiplier(most);
    for (int64_t i = 0; i < n; i++)
        to[i] = (char)(signed char)wf_marian_integer(values[i], multiplier);
    memcpy(to + n, &multiplier, sizeof multiplier);
}

/* ---- items ----------------------------------------------------------------------------------- */

/* The parts of a file, which follow each other in this order. */
typedef struct binary {
    marian_bytes headers, names, shapes, data;
    int n;
} binary;

/* Adds an item of shape [rows, columns], or [columns] if rows is 0. Its data are padded with zeros
 * to a multiple of BLOCK bytes. */
static void add_item(binary *b, const char *name, int type, int64_t rows, int64_t columns,
                     const void *data, size_t bytes) {
    size_t length = strlen(name) + 1, padded = (bytes + BLOCK - 1) / BLOCK * BLOCK;
    wf_marian_add_number(&b->headers, length, 8);
    wf_marian_add_number(&b->headers, (uint64_t)type, 8);
    wf_marian_add_number(&b->headers, rows ? 2 : 1, 8);
    wf_marian_add_number(&b->headers, padded, 8);
    wf_marian_add(&b->names, name, length);
    if (rows) wf_marian_add_number(&b->shapes, (uint64_t)rows, 4);
    wf_marian_add_number(&b->shapes, (uint64_t)columns, 4);
    wf_marian_add(&b->data, data, bytes);
    wf_marian_add(&b->data, zeros, padded - bytes);
    b->n++;
}

static void add_f32(binary *b, const char *name, float value) {
    add_item(b, name, TYPE_F32, 1, 1, &value, sizeof value);
}

/* Adds the scale of the activations that a matrix is multiplied with. As Marian's converter does,
 * the scale of a table is rounded to int8 like the table. Marian looks for the output's scale under
 * the name "none" if it has a shortlist, so this name is added for "Wemb". */
static void add_scale(binary *b, const char *matrix, marian_form form, float scale) {
    char name[MARIAN_NAME + 16], number[1 + sizeof(float)];
    snprintf(name, sizeof name, "%s_QuantMultA", matrix);
    if (form == MARIAN_MATRIX) {
        add_f32(b, name, scale);
        return;
    }
    wf_marian_round(&scale, 1, number);
    add_item(b, name, TYPE_INTGEMM8, 1, 1, number, sizeof number);
    if (strcmp(matrix, "Wemb") == 0) add_f32(b, "none_QuantMultA", scale);
}

static bool add_matrix(binary *b, const char *name, marian_form form, int64_t rows, int64_t columns,
                       const float *values, char *message) {
    int64_t n = rows * columns;
    char *numbers = malloc((size_t)n + sizeof(float));
    if (!numbers) return fail(message, "out of memory");
    wf_marian_round(values, n, numbers);
    bool turned = form == MARIAN_MATRIX;
    add_item(b, name, TYPE_INTGEMM8, turned ? columns : rows, turned ? rows : columns, numbers,
             (size_t)n + sizeof(float));
    free(numbers);
    return true;
}

static bool add_part(binary *b, const wf_model *m, const wf_marian_scales *s, const wf_tensor *t,
                     int part, int *parts, const float *values, char *message) {
    char name[MARIAN_NAME];
    marian_form form = wf_marian_name(&wf_transformer_of(m)->config, t->name, part, parts, name);
    if (form == MARIAN_UNKNOWN) return fail(message, "'%.120s' has no name in Marian", t->name);
    int64_t rows = t->shape[0] / *parts, columns = t->ndim > 1 ? t->shape[1] : 1;
    values += part * rows * columns;
    for (int64_t i = 0; i < rows * columns; i++)
        if (!isfinite(values[i]))
            return fail(message, "'%.100s' has values that are NaN or infinite", t->name);
    if (form == MARIAN_VECTOR) {
        add_item(b, name, TYPE_F32, 1, rows, values, (size_t)rows * sizeof *values);
        return true;
    }
    float scale = wf_marian_scale(s, t, part);
    if (!add_matrix(b, name, form, rows, columns, values, message)) return false;
    if (scale > 0)
        add_scale(b, name, form, scale);
    else if (form == MARIAN_MATRIX)
        return fail(message, "'%.100s' was not multiplied: there was no text", name);
    return true;
}

static bool add_parameter(binary *b, const wf_model *m, const wf_marian_scales *s,
                          const wf_tensor *t, char *message) {
    float *values = malloc(wf_bytes(t) + 1);
    bool ok = (values && wf_read(t, values, wf_bytes(t))) || fail(message, "out of memory");
    for (int part = 0, parts = 1; ok && part < parts; part++)
        ok = add_part(b, m, s, t, part, &parts, values, message);
    free(values);
    return ok;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Joins the parts of the file. The data begin at a multiple of BLOCK. */
static void join(const binary *b, marian_bytes *to) {
    wf_marian_add_number(to, 1, 8); /* version */
    wf_marian_add_number(to, (uint64_t)b->n, 8);
    wf_marian_add(to, b->headers.data, b->headers.n);
    wf_marian_add(to, b->names.data, b->names.n);
    wf_marian_add(to, b->shapes.data, b->shapes.n);
    size_t at = to->n + 8, gap = (at / BLOCK + 1) * BLOCK - at;
    wf_marian_add_number(to, gap, 8);
    wf_marian_add(to, zeros, gap);
    wf_marian_add(to, b->data.data, b->data.n);
}

void *wf_marian_export_int8(const wf_model *m, const wf_marian_scales *s, size_t *bytes,
                            char *message) {
    binary b = { .n = 0 };
    marian_bytes whole = { 0 };
    if (!wf_marian_is_plain(m, message)) return NULL;
    char *settings = wf_marian_write_settings(&wf_transformer_of(m)->config, message);
    bool ok = settings != NULL;
    for (int id = 0; ok && id < m->own_nodes; id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM)
            ok = add_parameter(&b, m, s, wf_node(m->graph, id), message);
    size_t n = ok ? strlen(settings) + 1 : 0; /* Marian writes the NUL, too */
    if (ok) add_item(&b, MARIAN_SETTINGS, TYPE_I8, 0, (int64_t)n, settings, n);
    bool lacks = b.headers.lacks || b.names.lacks || b.shapes.lacks || b.data.lacks;
    if (ok && !lacks) join(&b, &whole);
    if (ok && (lacks || whole.lacks)) ok = fail(message, "out of memory");
    free(settings), free(b.headers.data), free(b.names.data);
    free(b.shapes.data), free(b.data.data);
    *bytes = whole.n;
    if (ok) return whole.data;
    free(whole.data);
    return NULL;
}
