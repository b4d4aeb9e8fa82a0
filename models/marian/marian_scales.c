/* models/marian/marian_scales.c - the scales of an int8 file as a parameter of its model: qA and qB
 * of every matrix that is multiplied, in the order of the model's parameters and their parts.
 *
 * A graph has this parameter only if wf_marian_declare_scales was called. A model that is trained
 * further does not declare it: it is saved without scales, because they fit the old weights
 * alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "marian_file.h"
#include "models/message.h"

static bool is_table(const wf_model *m, const wf_tensor *weight) {
    char name[MARIAN_NAME];
    int parts;
    return wf_marian_name(&wf_transformer_of(m)->config, weight->name, 0, &parts, name) ==
           MARIAN_TABLE;
}

/* True if the part is a matrix of a product. A token table is one only if the output shares it. */
static bool is_multiplied(const wf_model *m, const wf_tensor *t, int part, int *parts,
                          char name[MARIAN_NAME]) {
    const wf_transformer_config *c = &wf_transformer_of(m)->config;
    marian_form form = wf_marian_name(c, t->name, part, parts, name);
    bool shared = (c->tie == WF_TIE_ALL && strcmp(name, "Wemb") == 0) ||
                  (c->tie == WF_TIE_DECODER && strcmp(name, "decoder_Wemb") == 0);
    return form == MARIAN_MATRIX || (form == MARIAN_TABLE && shared);
}

/* The number of multiplied matrices before part `of_part` of a weight; weight NULL: the number of
 * all. -1: the part is not multiplied. */
static int count(const wf_model *m, const wf_tensor *weight, int of_part) {
    char name[MARIAN_NAME];
    int n = 0;
    for (int id = 0; id < m->own_nodes; id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        for (int part = 0, parts = 1; t->kind == WF_PARAM && part < parts; part++) {
            if (!is_multiplied(m, t, part, &parts, name)) continue;
            if (t == weight && part == of_part) return n;
            n++;
        }
    }
    return weight ? -1 : n;
}

int wf_marian_scale_index(const wf_model *m, const wf_tensor *weight, int part) {
    return count(m, weight, part);
}

wf_tensor *wf_marian_declare_scales(wf_model *m) {
    return wf_param(m->graph, WF_MARIAN_SCALES, 2, (int64_t[]){ count(m, NULL, 0), 2 },
                    wf_init_zeros());
}

/* The scale of a matrix's activations; see add_scale in marian_binary.c. 0: it is not there. */
static float scale_in(marian_file *f, const char *matrix, bool table) {
    char name[MARIAN_NAME + 16];
    snprintf(name, sizeof name, "%s_QuantMultA", matrix);
    const marian_item *item = table ? wf_marian_find(f, "none_QuantMultA") : NULL;
    if (!item) item = wf_marian_find(f, name);
    return item && item->count == 1 ? wf_marian_value(item, 0) : 0;
}

/* Finds qA and qB of all matrices. False: the file is not one in int8, with scales. */
static bool find_scales(marian_file *f, const wf_model *m, float *to) {
    char name[MARIAN_NAME];
    for (int id = 0; id < m->own_nodes; id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        for (int part = 0, parts = 1; t->kind == WF_PARAM && part < parts; part++) {
            if (!is_multiplied(m, t, part, &parts, name)) continue;
            const marian_item *item = wf_marian_find(f, name);
            float scale = scale_in(f, name, is_table(m, t));
            if (!item || item->type != MARIAN_INT8 || !(scale > 0) || !isfinite(scale))
                return false;
            *to++ = scale;
            *to++ = item->multiplier;
        }
    }
    return true;
}

bool wf_marian_keep_scales(marian_file *f, wf_model *m, char *message) {
    size_t n = 2 * (size_t)count(m, NULL, 0);
    float *scales = malloc(n * sizeof *scales + 1);
    bool ok = scales != NULL;
    if (ok && n && find_scales(f, m, scales))
        ok = wf_write(wf_marian_declare_scales(m), scales, n * sizeof *scales);
    free(scales);
    return ok || fail(message, "out of memory");
}
