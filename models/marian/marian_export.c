/* models/marian/marian_export.c - a model of weft as the bytes of a model.npz.
 *
 * Records follow each other as cnpy, Marian's own library, writes them: uncompressed, with 32-bit
 * sizes, then the directory. Vectors have a first axis of 1, as all tensors of Marian have two. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marian_file.h"
#include "models/kind.h"
#include "models/marian_internal.h"
#include "models/message.h"

enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, ALIGN = 16, VERSION = 20 };

typedef struct archive {
    wf_text records, directory;
    wf_crc32_table sums;
    int n;
} archive;

/* Writes the fields that local and central headers share: version, flags, method, time and date,
 * checksum, both sizes, the lengths of the name and of extra data. */
static void add_header(wf_text *b, uint32_t sum, size_t bytes, size_t name) {
    wf_marian_add_number(b, VERSION, 2);
    wf_marian_add_number(b, 0, 8);
    wf_marian_add_number(b, sum, 4);
    wf_marian_add_number(b, bytes, 4);
    wf_marian_add_number(b, bytes, 4);
    wf_marian_add_number(b, name, 2);
    wf_marian_add_number(b, 0, 2);
}

/* Adds NAME.npy, an array [rows, columns] of f32, or [columns] of characters if rows is 0. */
static bool add_array(archive *a, const char *name, int64_t rows, int64_t columns, const void *data,
                      size_t bytes, char *message) {
    char head[256], file[MARIAN_NAME + 8], shape[64];
    int length = snprintf(file, sizeof file, "%s.npy", name);
    if (rows)
        snprintf(shape, sizeof shape, "(%lld, %lld)", (long long)rows, (long long)columns);
    else
        snprintf(shape, sizeof shape, "(%lld,)", (long long)columns);
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", rows ? "<f4" : "|i1",
                     shape);
    size_t whole = ((size_t)n + 11 + ALIGN - 1) / ALIGN * ALIGN;
    memset(head + 10 + n, ' ', whole - 10 - (size_t)n);
    head[whole - 1] = '\n';
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)(whole - 10);
    head[9] = 0;
    uint32_t sum = wf_crc32(&a->sums, UINT32_MAX, head, whole);
    sum = ~wf_crc32(&a->sums, sum, data, bytes);
    size_t at = a->records.length;
    if (at + bytes > INT32_MAX) return fail(message, "its weights have more than 2 GB");
    wf_marian_add_number(&a->records, 0x04034B50, 4);
    add_header(&a->records, sum, whole + bytes, (size_t)length);
    wf_text_add(&a->records, file, (size_t)length);
    wf_text_add(&a->records, head, whole);
    wf_text_add(&a->records, data, bytes);
    wf_marian_add_number(&a->directory, 0x02014B50, 4);
    wf_marian_add_number(&a->directory, VERSION, 2);
    add_header(&a->directory, sum, whole + bytes, (size_t)length);
    wf_marian_add_number(&a->directory, 0, 8); /* no comment, the first disk, no attributes */
    wf_marian_add_number(&a->directory, 0, 2);
    wf_marian_add_number(&a->directory, at, 4);
    wf_text_add(&a->directory, file, (size_t)length);
    a->n++;
    return !(a->records.lacks || a->directory.lacks) || fail(message, "out of memory");
}

/* Matrices are transposed. */
static bool add_part(void *user, const marian_part *p, char *message) {
    int64_t rows = p->rows, columns = p->columns;
    const size_t n = (size_t)(rows * columns), bytes = n * sizeof(float);
    if (p->form == MARIAN_VECTOR)
        return add_array(user, p->name, 1, rows, p->values, bytes, message);
    if (p->form == MARIAN_TABLE)
        return add_array(user, p->name, rows, columns, p->values, bytes, message);
    float *turned = malloc(bytes + 1);
    if (!turned) return fail(message, "out of memory");
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++) turned[k * rows + r] = p->values[r * columns + k];
    bool ok = add_array(user, p->name, columns, rows, turned, bytes, message);
    free(turned);
    return ok;
}

/* Adds the directory, and the end record that says where it is. */
static void end_archive(archive *a) {
    size_t at = a->records.length, n = a->directory.length;
    wf_text_add(&a->records, a->directory.at, n);
    wf_marian_add_number(&a->records, 0x06054B50, 8);
    wf_marian_add_number(&a->records, (uint64_t)a->n, 2);
    wf_marian_add_number(&a->records, (uint64_t)a->n, 2);
    wf_marian_add_number(&a->records, n, 4);
    wf_marian_add_number(&a->records, at, 4);
    wf_marian_add_number(&a->records, 0, 2);
}

bool wf_marian_is_plain(const wf_model *m, char *message) {
    bool plain = wf_transformer_of(m) && wf_ok(m->graph);
    for (int id = 0; plain && id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        plain = t->kind != WF_PARAM || strcmp(t->name, WF_MARIAN_SCALES) == 0 ||
                (!wf_is_added(m, t) && t->dtype == WF_F32);
    }
    return plain || fail(message, "only an encoder-decoder Transformer of f32 without added "
                                  "parameters can be written so");
}

static bool each_part_of(const wf_model *m, const wf_tensor *t,
                         bool (*add)(void *user, const marian_part *p, char *message), void *user,
                         char *message) {
    marian_part p = { .of = t };
    float *values = malloc(wf_bytes(t) + 1);
    bool ok = (values && wf_read(t, values, wf_bytes(t))) || fail(message, "out of memory");
    for (int parts = 1; ok && p.number < parts; p.number++) {
        p.form = wf_marian_name(&wf_transformer_of(m)->config, t->name, p.number, &parts, p.name);
        if (p.form == MARIAN_UNKNOWN) ok = fail(message, "'%.120s' has no name in Marian", t->name);
        p.rows = t->shape[0] / parts;
        p.columns = t->ndim > 1 ? t->shape[1] : 1;
        p.values = values + p.number * p.rows * p.columns;
        ok = ok && add(user, &p, message);
    }
    free(values);
    return ok;
}

bool wf_marian_each_part(const wf_model *m,
                         bool (*add)(void *user, const marian_part *p, char *message), void *user,
                         char *message) {
    for (int id = 0; id < m->own_nodes; id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && !each_part_of(m, t, add, user, message)) return false;
    }
    return true;
}

void *wf_marian_export(const wf_model *m, size_t *bytes, char *message) {
    archive a = { .n = 0 };
    const wf_transformer *t = wf_transformer_of(m);
    if (!wf_marian_is_plain(m, message)) return NULL;
    char *settings = wf_marian_write_settings(&t->config, message);
    if (!settings) return NULL;
    wf_crc32_fill(&a.sums, WF_CRC32_ZIP);
    bool ok = wf_marian_each_part(m, add_part, &a, message);
    size_t n = strlen(settings) + 1; /* Marian writes the NUL, too */
    ok = ok && add_array(&a, MARIAN_SETTINGS, 0, (int64_t)n, settings, n, message);
    if (ok) end_archive(&a);
    free(settings), free(a.directory.at);
    *bytes = a.records.length;
    if (ok && !a.records.lacks) return a.records.at;
    if (ok) fail(message, "out of memory");
    free(a.records.at);
    return NULL;
}
