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

void wf_marian_add_number(wf_text *to, uint64_t number, int n) {
    char bytes[8];
    for (int i = 0; i < n; i++, number >>= 8) bytes[i] = (char)(unsigned char)number;
    wf_text_add(to, bytes, (size_t)n);
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
    wf_text headers, names, shapes, data;
    int n;
    const wf_marian_scales *scales;
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
    wf_text_add(&b->names, name, length);
    if (rows) wf_marian_add_number(&b->shapes, (uint64_t)rows, 4);
    wf_marian_add_number(&b->shapes, (uint64_t)columns, 4);
    wf_text_add(&b->data, data, bytes);
    wf_text_add(&b->data, zeros, padded - bytes);
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

static bool add_matrix(binary *b, const marian_part *p, char *message) {
    int64_t n = p->rows * p->columns;
    char *numbers = malloc((size_t)n + sizeof(float));
    if (!numbers) return fail(message, "out of memory");
    wf_marian_round(p->values, n, numbers);
    bool turned = p->form == MARIAN_MATRIX;
    add_item(b, p->name, TYPE_INTGEMM8, turned ? p->columns : p->rows,
             turned ? p->rows : p->columns, numbers, (size_t)n + sizeof(float));
    free(numbers);
    return true;
}

static bool add_part(void *user, const marian_part *p, char *message) {
    binary *b = user;
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        if (!isfinite(p->values[i]))
            return fail(message, "'%.100s' has values that are NaN or infinite", p->of->name);
    if (p->form == MARIAN_VECTOR) {
        add_item(b, p->name, TYPE_F32, 1, p->rows, p->values, (size_t)p->rows * sizeof(float));
        return true;
    }
    float scale = wf_marian_scale(b->scales, p->of, p->number);
    if (!add_matrix(b, p, message)) return false;
    if (scale > 0)
        add_scale(b, p->name, p->form, scale);
    else if (p->form == MARIAN_MATRIX)
        return fail(message, "'%.100s' was not multiplied: there was no text", p->name);
    return true;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Joins the parts of the file. The data begin at a multiple of BLOCK. */
static void join(const binary *b, wf_text *to) {
    wf_marian_add_number(to, 1, 8); /* version */
    wf_marian_add_number(to, (uint64_t)b->n, 8);
    wf_text_add(to, b->headers.at, b->headers.length);
    wf_text_add(to, b->names.at, b->names.length);
    wf_text_add(to, b->shapes.at, b->shapes.length);
    size_t at = to->length + 8, gap = (at / BLOCK + 1) * BLOCK - at;
    wf_marian_add_number(to, gap, 8);
    wf_text_add(to, zeros, gap);
    wf_text_add(to, b->data.at, b->data.length);
}

void *wf_marian_export_int8(const wf_model *m, const wf_marian_scales *s, size_t *bytes,
                            char *message) {
    binary b = { .scales = s };
    wf_text whole = { 0 };
    if (!wf_marian_is_plain(m, message)) return NULL;
    char *settings = wf_marian_write_settings(&wf_transformer_of(m)->config, message);
    bool ok = settings && wf_marian_each_part(m, add_part, &b, message);
    size_t n = ok ? strlen(settings) + 1 : 0; /* Marian writes the NUL, too */
    if (ok) add_item(&b, MARIAN_SETTINGS, TYPE_I8, 0, (int64_t)n, settings, n);
    bool lacks = b.headers.lacks || b.names.lacks || b.shapes.lacks || b.data.lacks;
    if (ok && !lacks) join(&b, &whole);
    if (ok && (lacks || whole.lacks)) ok = fail(message, "out of memory");
    free(settings), free(b.headers.at), free(b.names.at);
    free(b.shapes.at), free(b.data.at);
    *bytes = whole.length;
    if (ok) return whole.at;
    free(whole.at);
    return NULL;
}
