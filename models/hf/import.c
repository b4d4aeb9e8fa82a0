/* models/hf/import.c - a folder of transformers as a model of weft; see hf.h. */
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "folder.h"
#include "models/message.h"

/* ---- weights --------------------------------------------------------------------------------- */

bool wf_hf_of_file(const char *name, bool ok, char *message) {
    char sentence[WF_MESSAGE];
    if (ok || !message) return ok;
    memcpy(sentence, message, sizeof sentence);
    return fail(message, "%s: %.240s", name, sentence);
}

static bool read_weights(const char *folder, const hf_family *family, hf_config *c, wf_hf *out,
                         char *message) {
    const char *name = "";
    wf_file *f = wf_hf_open_weights(folder, &name, message);
    if (!f) return false;
    /* In T5's family, weights with a different table for the output have an output of their own.
     * 'tie_word_embeddings' does not tell: from version 5 on, transformers always writes true. */
    if (family->t5 && wf_hf_own_output(f, family)) c->c.tie = WF_TIE_INPUTS;
    wf_file_drop_loaded(f);
    out->model = wf_transformer_new(&c->c, NULL, WF_F32, 0, message);
    bool ok = out->model &&
              (wf_ok(out->model->graph) || fail(message, "%s", wf_error(out->model->graph)));
    ok = ok && wf_hf_of_file(name, wf_hf_load_weights(f, family, out->model, message), message);
    wf_file_free(f);
    return ok;
}

/* ---- search ---------------------------------------------------------------------------------- */

/* With renormalize_logits, rules banned tokens out by the output's bias. Then scores, also those of
 * a given output, are those of a model that cannot produce these tokens. For a family without such
 * a bias, only the search renormalises. */
static bool shut_out(const hf_search *s, wf_hf *out, char *message) {
    wf_tensor *bias = wf_find(out->model->graph, "output.bias");
    const wf_decode_options *d = &s->g.options;
    if (!s->renormalize || !s->g.n_banned || !bias) return true;
    /* transformers applies these two rules to log-probabilities normalised over all tokens, also
     * banned ones. The bias would change these log-probabilities, so it is not set. */
    if (d->repetition_penalty != 1 || d->decay != 1) return true;
    size_t bytes = wf_bytes(bias);
    float *values = malloc(bytes + 1);
    bool ok = values && wf_read(bias, values, bytes);
    for (int i = 0; ok && i < s->g.n_banned; i++) values[s->g.banned[i]] = HF_SHUT_OUT;
    ok = ok && wf_write(bias, values, bytes);
    free(values);
    return ok || fail(message, "out of memory");
}

bool wf_hf_find_search(const char *folder, const hf_object *config, hf_config *c, hf_search *s,
                       wf_hf *out, char *message) {
    hf_object o;
    if (!wf_hf_exists(folder, "generation_config.json"))
        return wf_hf_read_search(config, c, s, out->notes, message);
    bool ok = wf_hf_object_read(&o, folder, "generation_config.json", message) &&
              wf_hf_read_search(&o, c, s, out->notes, message);
    wf_hf_object_free(&o);
    return ok;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool import_pairs(const char *folder, const hf_object *o, wf_hf *out, char *message) {
    const hf_family *family;
    hf_config c;
    hf_search s;
    bool ok = wf_hf_read_config(o, &family, &c, message) &&
              wf_hf_find_search(folder, o, &c, &s, out, message) &&
              wf_hf_complete(family, &c, message) &&
              read_weights(folder, family, &c, out, message) && shut_out(&s, out, message);
    if (ok) out->generation = s.g;
    return ok && wf_hf_read_tokenizers(folder, family, &c, out, message);
}

bool wf_hf_import(const char *folder, wf_hf *out, char *message) {
    hf_object o;
    if (out) *out = (wf_hf){ .generation.options = wf_decode_defaults() };
    if (!folder || !out) return fail(message, "there is no folder, or no room for what is in it");
    bool ok = wf_hf_object_read(&o, folder, "config.json", message);
    if (ok && wf_hf_is_encoder(&o))
        ok = wf_hf_import_encoder(folder, &o, out, message);
    else if (ok)
        ok = (wf_hf_is_lm(&o) ? wf_hf_import_lm : import_pairs)(folder, &o, out, message);
    wf_hf_object_free(&o);
    return ok;
}

void wf_hf_free(wf_hf *hf) {
    if (!hf) return;
    wf_model_free(hf->model);
    if (hf->tgt != hf->src) wf_tokenizer_free(hf->tgt);
    wf_tokenizer_free(hf->src);
    free(hf->class_names);
    *hf = (wf_hf){ 0 };
}
