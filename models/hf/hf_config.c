/* models/hf/hf_config.c - reads config.json. Every key is used, or must have a certain value, or is
 * known to change no result. */
#include <string.h>

#include "core/file_internal.h"
#include "folder.h"
#include "models/choices.h"
#include "models/message.h"
#include "models/model_internal.h"

/* ---- one key --------------------------------------------------------------------------------- */

static bool has_key(const hf_key *keys, const char *name) {
    for (const hf_key *k = keys; k->name; k++)
        if (strcmp(k->name, name) == 0) return true;
    return false;
}

static const hf_constant *constant_of(const hf_constant *constants, const char *name) {
    for (const hf_constant *c = constants; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

/* True if the value is the number `want`; 1 and 1.0 are the same. */
static bool same_number(const hf_value *v, const char *want) {
    double is, number;
    return wf_hf_real(v, &is) && wf_parse_real(want, &number) && is == number;
}

bool wf_hf_check_constant(const hf_object *o, const hf_value *v, const hf_constant *c,
                          char *message) {
    if (wf_hf_is_null(v)) return true;
    const hf_value *as = c->as ? wf_hf_find(o, c->as) : NULL;
    const char *want = c->as ? (as ? as->text : v->text) : c->value;
    size_t n = c->as ? (as ? as->bytes : v->bytes) : strlen(c->value);
    if (v->bytes == n && memcmp(v->text, want, n) == 0) return true;
    if (!c->as && same_number(v, c->value)) return true;
    return c->as ? fail(message, "%s: '%s' is %.*s but '%s' is %.*s", o->file, v->key,
                        v->bytes < 30 ? (int)v->bytes : 30, v->text, c->as, n < 30 ? (int)n : 30,
                        want)
                 : wf_hf_wrong(o, v, c->value, message);
}

static bool read_activation(const hf_object *o, const hf_value *v, wf_activation *out,
                            char *message) {
    char name[64];
    return (wf_hf_string(v, name, sizeof name) && wf_hf_find_activation(name, out)) ||
           wf_hf_wrong(o, v, "one of swish, silu, relu, gelu, gelu_new, gelu_pytorch_tanh",
                       message);
}

/* Reads the form of the feed-forward layers: the activation, and whether they are gated. */
static bool read_feed_forward(const hf_object *o, const hf_value *v, hf_config *c, char *message) {
    char text[64];
    return (wf_hf_string(v, text, sizeof text) &&
            wf_hf_t5_feed_forward(text, &c->c.gated, &c->c.activation)) ||
           wf_hf_wrong(o, v, "relu, gated-gelu or another form of these activations", message);
}

bool wf_hf_read_key(const hf_object *o, const hf_key *row, void *c, char *message) {
    int32_t ids[HF_MOST_ENDS];
    const hf_value *v = wf_hf_find(o, row->name), absent = { row->name, row->absent, 0 };
    void *at = (char *)c + row->offset;
    if (!v && !row->absent)
        return fail(message, "%s: '%s' is missing, and nothing is guessed", o->file, row->name);
    hf_value there = v ? *v : absent;
    if (!v) there.bytes = strlen(row->absent);
    switch (row->type) {
    case HF_FLAG:
        return wf_hf_bool(&there, at) || wf_hf_wrong(o, &there, "true or false", message);
    case HF_ACTIVATION:
        return read_activation(o, &there, at, message);
    case HF_FEED_FORWARD:
        return read_feed_forward(o, &there, c, message);
    case HF_REAL:
        return wf_hf_real(&there, at) || wf_hf_wrong(o, &there, "a number", message);
    case HF_FIRST_ID:
        if (*there.text != '[' || wf_hf_ids(&there, 1, ids, HF_MOST_ENDS) < 1)
            return (!v && wf_hf_int(&there, at)) || wf_hf_id(&there, at) ||
                   wf_hf_wrong(o, &there, "a token's id, or a list of ids", message);
        *(int64_t *)at = ids[0];
        return true;
    case HF_ID:
        return (!v && wf_hf_int(&there, at)) || wf_hf_id(&there, at) ||
               wf_hf_wrong(o, &there, "a token's id", message);
    default:
        return (wf_hf_int(&there, at) && *(int64_t *)at >= 0 && *(int64_t *)at <= INT32_MAX) ||
               wf_hf_wrong(o, &there, "a count", message);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool find_family(const hf_object *o, const hf_family **family, char *message) {
    char type[64] = "";
    const hf_value *v = wf_hf_find(o, "model_type"), *classes = wf_hf_find(o, "architectures");
    if (!v || !wf_hf_string(v, type, sizeof type))
        return fail(message, "%s: 'model_type' is missing: it names the family", o->file);
    *family = wf_hf_family(type);
    if (!*family)
        return fail(message, "%s: 'model_type' is '%.60s', which is none of %s, %s, %s", o->file,
                    type, wf_hf_family_names(), wf_hf_lm_family_names(), wf_hf_bert_family_names());
    const char *older = (*family)->older;
    return !classes || wf_hf_lists(classes, (*family)->architecture) ||
           (older && wf_hf_lists(classes, older)) ||
           wf_hf_wrong(o, classes, (*family)->architecture, message);
}

bool wf_hf_check_keys(const hf_object *o, const hf_key *keys, const hf_constant *constants,
                      const char *const *ignored, const char *const *own, char *message) {
    for (int i = 0; i < o->n; i++) {
        const hf_value *v = &o->values[i];
        const hf_constant *c = constant_of(constants, v->key);
        if (c && !wf_hf_check_constant(o, v, c, message)) return false;
        if (c || has_key(keys, v->key) || wf_hf_listed(ignored, HF_IGNORED, v->key) ||
            wf_hf_listed(own, HF_IGNORED, v->key) || wf_hf_is_search_key(v->key) ||
            wf_hf_ignored_key(v->key))
            continue;
        return fail(message,
                    "%s: '%.60s' is not known of this family: if it changes no result, take it out",
                    o->file, v->key);
    }
    return true;
}

bool wf_hf_model_type(const hf_object *o, char name[HF_TYPE]) {
    const hf_value *v = wf_hf_find(o, "model_type");
    if (!v || *v->text != '"' || v->bytes < 2 || v->bytes - 2 >= HF_TYPE) return false;
    memcpy(name, v->text + 1, v->bytes - 2);
    name[v->bytes - 2] = '\0';
    return true;
}

static bool same(const char *file, const char *what, int64_t a, int64_t b, char *message) {
    return a == b || fail(message,
                          "%s: 'encoder_%s' is %lld and 'decoder_%s' %lld: weft's stacks have the "
                          "same",
                          file, what, (long long)a, what, (long long)b);
}

/* Newer files repeat the form of T5's feed-forward layers in 'is_gated_act' and 'dense_act_fn',
 * which must agree. Files without 'scale_decoder_outputs' scale the output if it is tied. */
static bool read_t5(const hf_object *o, const hf_family *family, hf_config *c, char *message) {
    const hf_value *gated = wf_hf_find(o, "is_gated_act"), *by = wf_hf_find(o, "dense_act_fn");
    wf_activation activation = WF_RELU;
    bool is;
    if (gated && (!wf_hf_bool(gated, &is) || is != c->c.gated))
        return wf_hf_wrong(o, gated, "what 'feed_forward_proj' says", message);
    if (by && (!read_activation(o, by, &activation, NULL) || activation != c->c.activation))
        return wf_hf_wrong(o, by, "what 'feed_forward_proj' says", message);
    if (c->c.head_dim < 1) return fail(message, "%s: 'd_kv' is 0, not a width", o->file);
    if (!c->c.decoder_layers) c->c.decoder_layers = c->c.encoder_layers;
    if (!wf_hf_find(o, "scale_decoder_outputs")) c->scaled = c->tied;
    c->shared = true;
    c->c.scale_embedding = false;
    c->c.scale_output = c->scaled && !family->unscaled;
    c->c.max_len = WF_RELATIVE_MAX_LEN;
    return true;
}

bool wf_hf_read_config(const hf_object *o, const hf_family **family, hf_config *c, char *message) {
    *c = (hf_config){ .c = wf_transformer_defaults() };
    if (!find_family(o, family, message)) return false;
    const hf_family *f = *family;
    if (!wf_hf_check_keys(o, f->keys, f->constants, f->ignored, NULL, message)) return false;
    for (const hf_key *row = f->keys; row->name; row++)
        if (!wf_hf_read_key(o, row, c, message)) return false;
    if (f->t5) return read_t5(o, f, c, message);
    return same(o->file, "attention_heads", c->c.num_heads, c->decoder_heads, message) &&
           same(o->file, "ffn_dim", c->c.dim_feedforward, c->decoder_ffn, message);
}

/* ---- the Transformer of it ------------------------------------------------------------------- */

static bool vocabularies(const hf_family *f, hf_config *c, char *message) {
    if (c->c.tgt_vocab == 0) c->c.tgt_vocab = c->c.src_vocab;
    if (!f->may_separate && !c->shared)
        return fail(message,
                    "config.json: 'share_encoder_decoder_embeddings' is false, which a "
                    "%s model has not",
                    f->name);
    if (c->shared && c->c.src_vocab != c->c.tgt_vocab)
        return fail(message,
                    "config.json: 'decoder_vocab_size' is %lld and 'vocab_size' %lld, but "
                    "'share_encoder_decoder_embeddings' is true",
                    (long long)c->c.tgt_vocab, (long long)c->c.src_vocab);
    if (f->t5) /* import.c replaces it if the weights have an output of their own */
        c->c.tie = c->tied ? WF_TIE_ALL : WF_TIE_INPUTS;
    else
        c->c.tie = !c->tied ? WF_TIE_NONE : c->shared ? WF_TIE_ALL : WF_TIE_DECODER;
    return true;
}

/* Sets the fields of T5's forms that follow from the family and not from a key of config.json. */
static void complete_t5(const hf_family *f, wf_transformer_config *c) {
    c->norm = WF_RMS_NORM;
    c->attention_scale = 1;
    c->relative_per_layer = f->per_layer;
    if (c->num_heads && c->head_dim * c->num_heads == c->d_model) c->head_dim = 0;
}

bool wf_hf_complete(const hf_family *f, hf_config *c, char *message) {
    if (c->start < 0)
        return fail(message, "'decoder_start_token_id' is neither in config.json nor in "
                             "generation_config.json");
    if (f->pad >= 0 && c->pad != f->pad)
        return fail(message,
                    "config.json: 'pad_token_id' is %lld: positions of a %s model begin "
                    "after it, and are known for %lld",
                    (long long)c->pad, f->name, (long long)f->pad);
    if (!vocabularies(f, c, message)) return false;
    c->c.positions = f->positions;
    c->c.norm_first = f->norm_first;
    c->c.encoder_norm = c->c.decoder_norm = f->final_norms;
    c->c.embedding_norm = f->embedding_norm;
    c->c.output_bias = f->output_bias;
    c->c.bias = !f->t5;
    if (f->t5)
        complete_t5(f, &c->c);
    else
        c->c.layer_norm_eps = 1e-5;
    c->c.pad_id = (int32_t)c->pad;
    c->c.start_id = (int32_t)c->start;
    c->c.end_id = (int32_t)c->end;
    return wf_hf_of_file("config.json", wf_transformer_check(&c->c, message), message);
}
