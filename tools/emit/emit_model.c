/* tools/emit/emit_model.c - a model's file as one C file; see emit_model.h. */
#include "emit_model.h"

#include <stdio.h>
#include <string.h>

#include "models/generation.h"
#include "models/model_internal.h"
#include "tools/data/language.h"
#include "tools/data/refused.h"
#include "tools/generate/usual_search.h"

enum { ROOM_OF_IDS = 10, ROOM_OF_RUNNING_TEXT = 200 };

/* The search that `generate` makes with this model, unless options say otherwise. */
static bool usual_settings(wf_generation *g, const wf_file *f, const wf_model *m, const language *l,
                           char *message) {
    g->options = usual_search(true);
    if (!l->text || m->start_first) g->options.beam = 1;
    if (!l->text) g->options.max_len_b = ROOM_OF_IDS;
    if (m->start_first) {
        g->options.max_len_a = 0;
        g->options.max_len_b = ROOM_OF_RUNNING_TEXT;
    }
    if (l->text) g->n_banned = no_text(l->tokenizer[SIDE_TGT], false, g->banned);
    return wf_generation_from_meta(f, m, g, message);
}

void emitted_sizes(emitted *e, int64_t memory, int64_t weights, const char *of_weights) {
    int n = snprintf(e->sizes, sizeof e->sizes, "%lld bytes of memory, %lld %s, %lld bytes of C",
                     (long long)memory, (long long)weights, of_weights, (long long)strlen(e->text));
    if (e->weights.n)
        snprintf(e->sizes + n, sizeof e->sizes - (size_t)n, ", %zu bytes of the weights' file",
                 e->weights.n);
}

static void emit(emitted *e, wf_model *m, const language *l, const wf_generation *g,
                 const emit_settings *set, char *message) {
    wf_decode_options o = wf_generation_options(g);
    int64_t memory, weights;
    if (set->beam) {
        o.beam = (int)set->beam;
        o.sample = false;
    }
    o.nbest = 1;
    e->ids = !l->text;
    wf_model_text(m, e->about);
    wf_model_emit_options options = { .name = set->prefix,
                                      .max_source = set->max_length,
                                      .max_output = set->max_length,
                                      .search = &o,
                                      .source_text = l->tokenizer[SIDE_SRC],
                                      .target_text = l->tokenizer[SIDE_TGT],
                                      .max_line = set->max_line,
                                      .memory_bytes = &memory,
                                      .weight_bytes = &weights,
                                      .weights = set->weights_file ? &e->weights : NULL,
                                      .weights_name = set->weights_file };
    e->text = wf_model_emit(m, &options, message);
    if (e->text) emitted_sizes(e, memory, weights, "bytes of weights");
}

bool emit_model(emitted *e, const wf_file *f, const emit_settings *set, char *message) {
    wf_generation g = { 0 };
    language l = { 0 };
    *e = (emitted){ 0 };
    wf_layout layout = set->weights == EMIT_INT8 ? WF_PANELS_INT8 : WF_ROW_MAJOR;
    wf_model *m = wf_model_load_packed(f, layout, set->weights < 0, message);
    if (m && language_open(&l, f, m, message) && usual_settings(&g, f, m, &l, message))
        emit(e, m, &l, &g, set, message);
    language_close(&l);
    wf_model_free(m);
    return e->text != NULL;
}
