/* models/hf/encoder/bert_config.c - config.json of an encoder, read and written. Every key is used,
 * or must have a certain value, or is known to change no result. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "models/message.h"
#include "models/model_internal.h"

/* ---- read ------------------------------------------------------------------------------------ */

/* The family of config.json; NULL: none. */
static const hf_bert_family *family_of(const hf_object *o) {
    char name[HF_TYPE];
    return wf_hf_model_type(o, name) ? wf_hf_bert_family(name) : NULL;
}

bool wf_hf_is_encoder(const hf_object *config) {
    return family_of(config) != NULL;
}

/* Searches the JSON text for the class's name, so it needs no memory. */
bool wf_hf_bert_names_class(const hf_object *o, const char *class) {
    const hf_value *classes = wf_hf_find(o, "architectures");
    char all[256], name[64];
    if (!classes) return false;
    wf_hf_compact(classes, all, sizeof all);
    snprintf(name, sizeof name, "\"%s\"", class);
    return *all == '[' && strstr(all, name);
}

static bool check_class(const hf_object *o, const hf_bert_family *f, char *message) {
    const hf_value *classes = wf_hf_find(o, "architectures");
    char text[HF_SHOWN];
    if (!classes) return true;
    for (int i = 0; i < 4 && f->architectures[i]; i++)
        if (wf_hf_bert_names_class(o, f->architectures[i])) return true;
    return fail(message, "%s: 'architectures' is %s, not %s, %s or %s", o->file,
                wf_hf_show(classes, text), f->architectures[0], f->architectures[1],
                f->architectures[2]);
}

bool wf_hf_bert_read_config(const hf_object *o, const hf_bert_family **family, hf_bert_config *c,
                            char *message) {
    const hf_bert_family *f = *family = family_of(o);
    *c = (hf_bert_config){ .c = wf_encoder_defaults(), .longest = 0 };
    c->c.normalize = false;
    if (!f) return fail(message, "%s: 'model_type' is that of no encoder", o->file);
    if (!check_class(o, f, message) ||
        !wf_hf_check_keys(o, f->keys, f->constants, f->ignored, NULL, message))
        return false;
    for (const hf_key *row = f->keys; row->name; row++)
        if (!wf_hf_read_key(o, row, c, message)) return false;
    if (f->eps > 0) c->c.layer_norm_eps = f->eps;
    c->c.counted_positions = f->counted_positions;
    c->c.relative_buckets = f->relative ? MPNET_BUCKETS : 0;
    c->c.relative_distance = f->relative ? MPNET_DISTANCE : 0;
    if (f->relative && c->pad != MPNET_PAD)
        return fail(message, "%s: 'pad_token_id' is %lld, not 1, from which MPNet counts positions",
                    o->file, (long long)c->pad);
    c->c.pooler_activation = f->relu_pooler ? WF_DENSE_RELU : WF_DENSE_TANH;
    c->c.head_activation = f->head_gelu ? WF_GELU : c->c.activation;
    int64_t skipped = f->counted_positions ? c->pad + 1 : 0;
    if (c->pad >= c->c.vocab || c->start >= c->c.vocab || c->end >= c->c.vocab)
        return fail(message, "%s: '%s' is not in the vocabulary of %lld", o->file,
                    c->pad >= c->c.vocab ? "pad_token_id" : "bos_token_id or eos_token_id",
                    (long long)c->c.vocab);
    if (c->c.positions <= skipped)
        return fail(message, "%s: 'max_position_embeddings' is %lld, of which %lld are not used",
                    o->file, (long long)c->c.positions, (long long)skipped);
    c->c.max_len = c->c.positions - skipped;
    c->c.pad_id = (int32_t)c->pad;
    c->c.start_id = c->start < 0 ? 0 : (int32_t)c->start;
    c->c.end_id = c->end < 0 ? 0 : (int32_t)c->end;
    return true;
}

/* ---- written --------------------------------------------------------------------------------- */

/* The reason why the family cannot have such an encoder. NULL: it can. */
static const char *differs(const hf_bert_family *f, const wf_encoder_config *c) {
    if (!wf_hf_activation_name(c->activation)) return "transformers does not have its activation";
    if (f->eps > 0 && c->layer_norm_eps != f->eps)
        return "its norms' eps is not that of DistilBERT";
    if (f->relative &&
        (c->relative_buckets != MPNET_BUCKETS || c->relative_distance != MPNET_DISTANCE ||
         !c->counted_positions || c->pad_id != MPNET_PAD || c->types))
        return "it has a bias of distances, but is not as MPNet otherwise";
    if (c->counted_positions && !c->types && !f->relative)
        return "it has no token types, which RoBERTa has";
    if (c->pooler && !c->types && !f->counted_positions && !f->relu_pooler)
        return "it has a pooler and no token types, which BERT has";
    if (c->pooler && c->pooler_activation != (f->relu_pooler ? WF_DENSE_RELU : WF_DENSE_TANH))
        return "the function of its pooler is not that of its family";
    if (c->pooler && f->relu_pooler && !c->classes)
        return "DistilBERT has a pooler for classes alone";
    if (c->masked_lm && c->head_activation != (f->head_gelu ? WF_GELU : c->activation))
        return "the activation of its head is not that of its layers";
    return NULL;
}

bool wf_hf_bert_write_config(const wf_hf *hf, const wf_hf_writer *to, char *message) {
    const wf_encoder_config *c = &wf_encoder_of(hf->model)->config;
    const hf_bert_family *f = wf_hf_bert_family_of(c);
    hf_bert_config out = { .c = *c, .pad = c->pad_id, .start = c->start_id, .end = c->end_id };
    const char *why = differs(f, c);
    wf_text t = { 0 };
    if (why) return fail(message, "%s", why);
    if (!c->positions) out.c.positions = wf_encoder_positions(c);
    wf_hf_put_type(&t, f->architectures[c->classes ? 2 : c->masked_lm], f->name);
    wf_hf_put_name(&t, "dtype", "float32");
    for (const hf_key *row = f->keys; row->name; row++) wf_hf_put_row(&t, row, &out, NULL);
    if (!wf_hf_bert_put_classes(&t, hf->class_names, c->classes, message)) {
        free(t.at);
        return false;
    }
    return wf_hf_put_object(&t, "config.json", to, message);
}
