/* tools/emit/emit_model.c - a model's file as one C file; see emit_model.h. */
#include "emit_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/choices.h"
#include "models/generation.h"
#include "models/model_internal.h"
#include "tools/cli/refused.h"
#include "tools/data/language.h"
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

/* ---- a budget -------------------------------------------------------------------------------- */

/* The largest number of layers in any stack of the model, each of which has attention. */
static int64_t layers_of(const wf_model *m) {
    int64_t most = 0;
    for (int i = 0; i < m->n_maps; i++)
        if (m->maps[i].layers > most) most = m->maps[i].layers;
    return most;
}

/* The number that is lowered until the memory fits: that of the layers which keep keys and values,
 * or an option. */
typedef enum fitted { FITTED_KEPT, FITTED_LENGTH, FITTED_BEAM, FITTED_BATCH, N_FITTED } fitted;

/* True if the file needs at most `ram` bytes of memory with this number. If it is that of an
 * option, all layers compute keys and values again. */
static bool fits_with(wf_model *m, wf_model_emit_options o, int64_t ram, fitted what, int64_t n) {
    char message[WF_MESSAGE];
    wf_decode_options search = *o.search;
    wf_emit_weights weights;
    int64_t bytes = -1;
    if (what == FITTED_LENGTH) o.max_source = o.max_output = n;
    if (what == FITTED_BEAM) search.beam = (int)n;
    if (what == FITTED_BATCH) o.batch = n;
    o.search = &search;
    o.recomputed = layers_of(m) - (what == FITTED_KEPT ? n : 0);
    o.memory_bytes = &bytes;
    o.weight_bytes = NULL;
    o.weights_file = &weights;
    free(wf_model_emit(m, &o, message));
    free(weights.bytes);
    return bytes >= 0 && bytes <= ram;
}

/* The largest number below `most` with which the memory fits; 0: none above 0. */
static int64_t largest_that_fits(wf_model *m, const wf_model_emit_options *o, int64_t ram,
                                 fitted what, int64_t most) {
    int64_t fits = 0, above = most;
    while (above - fits > 1) {
        int64_t n = fits + (above - fits) / 2;
        if (fits_with(m, *o, ram, what, n))
            fits = n;
        else
            above = n;
    }
    return fits;
}

/* The smallest number of layers that must compute keys and values again for the memory to fit into
 * `ram`; 0: it does not fit even if all layers do. */
static int64_t layers_to_recompute(wf_model *m, const wf_model_emit_options *o, int64_t ram) {
    int64_t layers = layers_of(m);
    if (!fits_with(m, *o, ram, FITTED_KEPT, 0)) return 0;
    return layers - largest_that_fits(m, o, ram, FITTED_KEPT, layers);
}

/* Writes a message: the memory that is needed, and each lower --max-length, --beam or --batch with
 * which it would fit into `ram`. */
static void tell_what_fits(wf_model *m, const wf_model_emit_options *o, int64_t ram,
                           char *message) {
    static const char *const names[N_FITTED] = {
        [FITTED_LENGTH] = "--max-length", [FITTED_BEAM] = "--beam", [FITTED_BATCH] = "--batch"
    };
    int64_t longest = o->max_source ? o->max_source : wf_model_longest_source(m);
    int64_t most[N_FITTED] = { 0, longest, o->search->beam, o->batch };
    char text[128] = "";
    size_t used = 0;
    for (fitted what = FITTED_LENGTH; what < N_FITTED; what++) {
        int64_t n = largest_that_fits(m, o, ram, what, most[what]);
        if (n)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %lld",
                                     used ? ", or" : ";", names[what], (long long)n);
    }
    refused(message, "its memory of %lld bytes is above --ram %lld%s%s",
            (long long)*o->memory_bytes, (long long)ram, text, used ? " would fit" : "");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The pieces of a vocabulary. False: out of memory. */
static bool take_pieces(emitted *e, const language *l, int side, int64_t n) {
    char label[LABEL_TEXT];
    e->pieces[side] = calloc((size_t)n + 1, sizeof *e->pieces[side]);
    if (!e->pieces[side]) return false;
    for (int64_t i = 0; i < n; i++) {
        const char *piece = language_label(l, side, (int32_t)i, label);
        e->pieces[side][i] = piece ? strdup(piece) : NULL;
        if (!e->pieces[side][i]) return false;
        e->n_pieces[side]++;
    }
    return true;
}

static bool take_maps(emitted *e, const wf_model *m, const language *l, char *message) {
    e->n_maps = m->n_maps;
    e->end_id = m->end_id;
    e->start_first = m->start_first;
    e->start_if_empty = m->start_if_empty;
    for (int i = 0; i < m->n_maps; i++) {
        e->maps[i] = m->maps[i];
        e->maps[i].weights = NULL;
        if (m->maps[i].layers) e->heads[i] = (int)m->maps[i].weights[0]->shape[1];
    }
    if (!l->text) return true;
    return (take_pieces(e, l, SIDE_TGT, m->tgt_vocab) &&
            (!m->src || take_pieces(e, l, SIDE_SRC, m->src_vocab))) ||
           refused(message, "out of memory");
}

static void forget(emitted *e) {
    free(e->text);
    free(e->weights.bytes);
    e->text = NULL;
    e->weights = (wf_emit_weights){ 0 };
}

static void tell_recomputed(emitted *e, int64_t layers) {
    size_t n = strlen(e->sizes);
    snprintf(e->sizes + n, sizeof e->sizes - n,
             "; to fit, %lld %s keys and values again at every step, which takes more time",
             (long long)layers, layers > 1 ? "layers compute" : "layer computes");
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
                                      .batch = set->batch,
                                      .search = &o,
                                      .source_text = l->tokenizer[SIDE_SRC],
                                      .target_text = l->tokenizer[SIDE_TGT],
                                      .max_line = set->max_line,
                                      .attention = set->attention,
                                      .memory_bytes = &memory,
                                      .weight_bytes = &weights,
                                      .weights_file = set->weights_file ? &e->weights : NULL,
                                      .weights_name = set->weights_file };
    e->text = wf_model_emit(m, &options, message);
    if (e->text && set->ram && memory > set->ram)
        options.recomputed = layers_to_recompute(m, &options, set->ram);
    if (options.recomputed) {
        forget(e);
        e->text = wf_model_emit(m, &options, message);
    }
    if (!e->text) return;
    emitted_sizes(e, memory, weights, "bytes of weights");
    if (options.recomputed) tell_recomputed(e, options.recomputed);
    if (!set->ram || memory <= set->ram) return;
    tell_what_fits(m, &options, set->ram, message);
    forget(e);
}

bool emit_model(emitted *e, const wf_file *f, const emit_settings *set, char *message) {
    wf_generation g = { 0 };
    language l = { 0 };
    *e = (emitted){ 0 };
    int format = set->weights == EMIT_INT8 ? (int)WF_WEIGHTS_INT8 : set->weights;
    wf_model *m = wf_model_load_packed(f, NULL, format, WF_ROW_MAJOR, message);
    if (m && language_open(&l, f, m, message) && usual_settings(&g, f, m, &l, message) &&
        (!set->attention || take_maps(e, m, &l, message)))
        emit(e, m, &l, &g, set, message);
    language_close(&l);
    wf_model_free(m);
    return e->text != NULL;
}
