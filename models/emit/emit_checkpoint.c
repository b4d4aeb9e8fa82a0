/* models/emit/emit_checkpoint.c - the tensors and metadata of a saved training, as tables in C,
 * sorted by name and by key as core/file/file_write.c sorts them. plain_checkpoint.c writes the
 * file from them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/record/record.h"
#include "models/kind.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "training_emitter.h"

enum { MOST_NAME = 128, MOST_LITERAL = 2000 };

/* ---- tensors --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    const wf_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* The leaves that wf_trainer_write saves, sorted by name. The caller frees the list. NULL: out of
 * memory. */
static wf_tensor **list_leaves(const training_emitter *e, int *n) {
    const wf_optimizer *o = wf_trainer_optimizer(e->trainer);
    wf_graph *g = e->model->graph;
    int all = wf_parameters(g, NULL, NULL, 0);
    size_t most = (size_t)all + (size_t)o->n * (WF_MOST_MOMENTS + 1);
    wf_tensor **leaves = calloc(most + 1, sizeof *leaves);
    *n = 0;
    if (!leaves) return NULL;
    wf_parameters(g, NULL, leaves, all);
    for (int i = 0; i < all; i++)
        if (wf_is_saved(e->model, leaves[i])) leaves[(*n)++] = leaves[i];
    for (int i = 0; i < o->n; i++) {
        for (int k = 0; k < o->n_moments; k++) leaves[(*n)++] = o->moments[i][k];
        if (o->averages) leaves[(*n)++] = o->averages[i];
    }
    qsort(leaves, (size_t)*n, sizeof(wf_tensor *), by_name);
    return leaves;
}

/* Append the text as a C string literal. */
static void add_literal(wf_text *t, const char *text) {
    wf_text_puts(t, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char octal[8];
        if (c >= ' ' && c < 0x7f && c != '"' && c != '\\' && c != '?') {
            wf_text_add(t, text, 1);
            continue;
        }
        snprintf(octal, sizeof octal, "\\%03o", c);
        wf_text_puts(t, octal);
    }
    wf_text_puts(t, "\"");
}

/* Write a leaf's row of the table. A leaf that is not f32, or that no plan reads, is refused,
 * because the C file has no weights for it. */
static bool write_tensor(training_emitter *e, const wf_tensor *x, char *message) {
    wf_text *t = &e->text;
    char name[MOST_NAME], place[MOST_NAME + 32];
    wf_identifier(x->name, name, sizeof name);
    snprintf(place, sizeof place, "at_%s_%d", name, x->id);
    if (x->dtype != WF_F32 || !wf_find_word(e->plan, place))
        return fail(message,
                    "'%.150s' is no part of the training: a file without it has no form "
                    "in C",
                    x->name);
    wf_text_puts(t, "    { ");
    add_literal(t, x->name);
    wf_text_print(t, ", %s, %n, %d, { ", place, wf_count(x), x->ndim);
    for (int i = 0; i < x->ndim; i++) wf_text_print(t, i ? ", %n" : "%n", x->shape[i]);
    wf_text_puts(t, x->ndim ? " } },\n" : "0 } },\n");
    return true;
}

static bool write_tensors(training_emitter *e, char *message) {
    int n = 0;
    wf_tensor **leaves = list_leaves(e, &n);
    bool ok = leaves || fail(message, "out of memory");
    wf_text_print(&e->text,
                  "\n/* ---- what a file holds ---- */\n\n"
                  "#define SAVED_TENSORS %d\n\n"
                  "/* A tensor: n floats of the weights, from index `at` on. */\n"
                  "typedef struct saved_tensor {\n    const char *name;\n    int at, n, ndim;\n"
                  "    int shape[%d];\n} saved_tensor;\n\n"
                  "static const saved_tensor saved_tensors[SAVED_TENSORS] = {\n",
                  n, WF_MAX_DIMS);
    for (int i = 0; ok && i < n; i++) ok = write_tensor(e, leaves[i], message);
    wf_text_puts(&e->text, "};\n\n");
    free(leaves);
    return ok;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* The file's metadata without its checksum, sorted by key. The caller frees the list. NULL: out of
 * memory. */
static wf_meta *list_texts(const training_emitter *e, int *n) {
    const wf_file *f = e->options->file;
    int all = wf_file_meta_count(f);
    wf_meta *texts = calloc((size_t)all + 1, sizeof *texts);
    *n = 0;
    for (int i = 0; texts && i < all; i++) {
        wf_meta one = wf_file_meta_at(f, i);
        if (strcmp(one.key, "weft.checksum") != 0) texts[(*n)++] = one;
    }
    if (texts) qsort(texts, (size_t)*n, sizeof *texts, wf_file_by_key);
    return texts;
}

/* A long text is a table of bytes, because compilers limit literals. */
static void write_long_text(wf_text *t, int i, const char *text) {
    wf_text_print(t, "static const unsigned char saved_text_%d[] = {", i);
    for (int k = 0; text[k]; k++)
        wf_text_print(t, k % 16 ? " %d," : "\n    %d,", (int)(unsigned char)text[k]);
    wf_text_puts(t, " 0\n};\n\n");
}

static bool is_steps(const training_emitter *e, const char *key) {
    return e->options->step_key && strcmp(e->options->step_key, key) == 0;
}

static bool is_long(const training_emitter *e, const wf_meta *text) {
    return !is_steps(e, text->key) && strlen(text->value) > MOST_LITERAL;
}

static bool write_texts(training_emitter *e, char *message) {
    wf_text *t = &e->text;
    int n = 0;
    wf_meta *texts = list_texts(e, &n);
    if (!texts) return fail(message, "out of memory");
    for (int i = 0; i < n; i++)
        if (is_long(e, &texts[i])) write_long_text(t, i, texts[i].value);
    wf_text_print(t,
                  "enum { SAVED_TEXTS = %d };\n\n"
                  "/* Metadata; a null pointer stands for the number of updates. */\n"
                  "static const struct {\n    const char *key;\n    const void *text;\n"
                  "} saved_texts[%d] = {\n",
                  n, n + 1);
    for (int i = 0; i < n; i++) {
        wf_text_puts(t, "    { ");
        add_literal(t, texts[i].key);
        wf_text_puts(t, ", ");
        if (is_steps(e, texts[i].key))
            wf_text_puts(t, "0");
        else if (is_long(e, &texts[i]))
            wf_text_print(t, "saved_text_%d", i);
        else
            add_literal(t, texts[i].value);
        wf_text_puts(t, " },\n");
    }
    wf_text_puts(t, n ? "};\n\n" : "    { 0, 0 }\n};\n\n");
    free(texts);
    return true;
}

bool wf_write_checkpoint_tables(training_emitter *e, char *message) {
    return write_tensors(e, message) && write_texts(e, message);
}
