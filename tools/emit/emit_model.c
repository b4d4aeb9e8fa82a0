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

/* Loading such a model as f32 would round what `generate` does not. */
static bool has_int8(const wf_file *f) {
    wf_model *m = wf_model_record(f, NULL, WF_F32, 0, NULL);
    bool rounded = m && wf_pack_weights(m->graph, WF_PANELS_INT8, NULL) && wf_model_rounded(m, f);
    wf_model_free(m);
    return rounded;
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
                                      .weight_bytes = &weights };
    e->text = wf_model_emit(m, &options, message);
    if (e->text)
        snprintf(e->sizes, sizeof e->sizes,
                 "%lld bytes of memory, %lld bytes of weights, %lld bytes of C", (long long)memory,
                 (long long)weights, (long long)strlen(e->text));
}

bool emit_model(emitted *e, const wf_file *f, const emit_settings *set, char *message) {
    wf_generation g = { 0 };
    language l = { 0 };
    *e = (emitted){ 0 };
    if (has_int8(f)) return refused(message, "weights in int8 have no form in C");
    wf_model *m = wf_model_load(f, NULL, WF_F32, 0, message);
    if (m && language_open(&l, f, m, message) && usual_settings(&g, f, m, &l, message))
        emit(e, m, &l, &g, set, message);
    language_close(&l);
    wf_model_free(m);
    return e->text != NULL;
}
