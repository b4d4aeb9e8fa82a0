/* models/hf/lm/lm_config.c - config.json of a language model. Every key is used, or must have a
 * certain value, or is known to change no result. */
#include <string.h>

#include "lm_family.h"
#include "models/message.h"
#include "models/model_internal.h"

/* Keys that wf_hf_lm_read_config reads itself. */
static const char *const own_keys[] = { "rope_scaling", "rope_parameters", "layer_types", NULL };

/* ---- keys ------------------------------------------------------------------------------------ */

static bool is_rotary(const hf_lm_family *f) {
    return f->positions == WF_POSITIONS_ROTARY;
}

/* The family of config.json; NULL: none. */
static const hf_lm_family *family_of(const hf_object *o) {
    char name[HF_TYPE];
    return wf_hf_model_type(o, name) ? wf_hf_lm_family(name) : NULL;
}

bool wf_hf_is_lm(const hf_object *config) {
    return family_of(config) != NULL;
}

static bool find_family(const hf_object *o, const hf_lm_family **family, char *message) {
    const hf_value *classes = wf_hf_find(o, "architectures");
    *family = family_of(o);
    if (!*family) return fail(message, "%s: 'model_type' is that of no language model", o->file);
    return !classes || wf_hf_lists(classes, (*family)->architecture) ||
           wf_hf_wrong(o, classes, (*family)->architecture, message);
}

/* ---- rotary positions ------------------------------------------------------------------------ */

static bool needed(const hf_object *rope, const char *key, double *out, char *message) {
    const hf_value *v = wf_hf_find(rope, key);
    if (!v) return fail(message, "%s: '%s' of the rotary positions is missing", rope->file, key);
    return wf_hf_real(v, out) || wf_hf_wrong(rope, v, "a number", message);
}

/* False with message if the object has a key that is unknown for this type of rotary positions.
 * 'partial_rotary_factor' must be 1. */
static bool known_rope_keys(const hf_object *rope, wf_rotary_stretch kind, char *message) {
    static const char *const all[] = { "rope_type",
                                       "type",
                                       "rope_theta",
                                       "factor",
                                       "low_freq_factor",
                                       "high_freq_factor",
                                       "original_max_position_embeddings" };
    static const hf_constant whole = { "partial_rotary_factor", "1", NULL };
    static const int known[] = {
        [WF_ROTARY_PLAIN] = 3, [WF_ROTARY_LINEAR] = 4, [WF_ROTARY_LLAMA3] = 7
    };
    for (int i = 0; i < rope->n; i++) {
        const hf_value *v = &rope->values[i];
        bool partial = strcmp(v->key, whole.name) == 0;
        if (partial && !wf_hf_check_constant(rope, v, &whole, message)) return false;
        if (partial || wf_hf_listed(all, known[kind], v->key) || wf_hf_is_null(v)) continue;
        return fail(message, "%s: '%.60s' of the rotary positions is not known of their type",
                    rope->file, v->key);
    }
    return true;
}

static bool read_rope_type(const hf_object *rope, wf_rotary_stretch *kind, char *message) {
    static const char *const names[] = { "default", "linear", "llama3" };
    const hf_value *v = wf_hf_find(rope, "rope_type"), *old = wf_hf_find(rope, "type");
    char type[32] = "";
    if (!v) v = old;
    *kind = WF_ROTARY_PLAIN;
    if (!v) return true;
    for (int i = 0; wf_hf_string(v, type, sizeof type) && i < 3; i++)
        if (strcmp(names[i], type) == 0) {
            *kind = (wf_rotary_stretch)i;
            return true;
        }
    return wf_hf_wrong(rope, v, "one of default, linear, llama3", message);
}

static bool read_rope(const hf_object *rope, hf_lm_config *c, char *message) {
    wf_rotary_scaling *s = &c->c.rotary_scaling;
    if (!read_rope_type(rope, &s->kind, message) || !known_rope_keys(rope, s->kind, message))
        return false;
    if (wf_hf_find(rope, "rope_theta") && !needed(rope, "rope_theta", &c->c.rotary_base, message))
        return false;
    if (s->kind == WF_ROTARY_PLAIN) return true;
    if (!needed(rope, "factor", &s->factor, message)) return false;
    return s->kind == WF_ROTARY_LINEAR ||
           (needed(rope, "low_freq_factor", &s->low, message) &&
            needed(rope, "high_freq_factor", &s->high, message) &&
            needed(rope, "original_max_position_embeddings", &s->original, message));
}

/* Newer files have everything in 'rope_parameters'; older ones the scaling in 'rope_scaling'. */
static bool read_ropes(const hf_object *o, const hf_lm_family *f, hf_lm_config *c, char *message) {
    for (int i = 0; i < 2; i++) {
        hf_object rope;
        if (!is_rotary(f) || !wf_hf_find(o, own_keys[i])) continue;
        bool ok = wf_hf_object_in(&rope, o, own_keys[i], message) && read_rope(&rope, c, message);
        wf_hf_object_free(&rope);
        if (!ok) return false;
    }
    return true;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* How many times a JSON array contains the string. -1: the value is no array. */
static int64_t times(const hf_value *v, const char *string) {
    size_t k = strlen(string);
    int64_t n = 0;
    if (*v->text != '[') return -1;
    for (size_t i = 0; i + k + 2 <= v->bytes; i++)
        n += v->text[i] == '"' && memcmp(v->text + i + 1, string, k) == 0 &&
             v->text[i + k + 1] == '"';
    return n;
}

/* Counts the layers in which attention has a window: by layer_types, or in older files by
 * max_window_layers. */
static bool windowed_layers(const hf_object *o, const hf_lm_config *c, int64_t *n, char *message) {
    const hf_value *v = wf_hf_find(o, "layer_types");
    bool slides = c->slides && c->window;
    int64_t first = c->window_from < 0 ? 0 : c->window_from;
    *n = slides && first < c->c.layers ? c->c.layers - first : 0;
    if (!v) return true;
    int64_t sliding = times(v, "sliding_attention"), full = times(v, "full_attention");
    if (sliding < 0 || sliding + full != c->c.layers)
        return wf_hf_wrong(o, v, "'full_attention' or 'sliding_attention' for each layer", message);
    if (sliding && !slides)
        return fail(message, "%s: 'layer_types' has 'sliding_attention', but there is no window",
                    o->file);
    *n = sliding;
    return true;
}

/* Reads the window of attention. A window that no text of the model exceeds is left out. False with
 * message if only some layers have one. */
static bool read_window(const hf_object *o, hf_lm_config *c, char *message) {
    int64_t n;
    if (!windowed_layers(o, c, &n, message)) return false;
    if (n == 0 || c->window >= c->c.max_len) return true;
    if (n < c->c.layers)
        return fail(message,
                    "%s: 'sliding_window' is %lld in %lld of %lld layers: weft's layers have the "
                    "same",
                    o->file, (long long)c->window, (long long)n, (long long)c->c.layers);
    c->c.window = c->window;
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool wf_hf_lm_read_config(const hf_object *o, const hf_lm_family **family, hf_lm_config *c,
                          char *message) {
    *c = (hf_lm_config){ .c = wf_language_model_defaults(WF_GPT2), .window_from = -1 };
    if (!find_family(o, family, message)) return false;
    const hf_lm_family *f = *family;
    if (!wf_hf_check_keys(o, f->keys, f->constants, f->ignored, is_rotary(f) ? own_keys : NULL,
                          message))
        return false;
    c->slides = f->slides;
    for (const hf_key *row = f->keys; row->name; row++)
        if (!wf_hf_read_key(o, row, c, message)) return false;
    return read_ropes(o, f, c, message) && read_window(o, c, message);
}

static bool ends_ok(hf_lm_config *c, char *message) {
    if (c->end < 0)
        return fail(message, "'eos_token_id' is neither in config.json nor in "
                             "generation_config.json, and nothing is guessed");
    if (c->end >= c->c.vocab || c->start >= c->c.vocab)
        return fail(message, "config.json: '%s' is not in the vocabulary of %lld",
                    c->end >= c->c.vocab ? "eos_token_id" : "bos_token_id", (long long)c->c.vocab);
    return true;
}

bool wf_hf_lm_complete(const hf_lm_family *f, hf_lm_config *c, char *message) {
    wf_language_model_config *m = &c->c;
    if (!ends_ok(c, message)) return false;
    if (c->ff_bias && !c->attention_bias)
        return fail(message, "config.json: 'mlp_bias' is true and 'attention_bias' false, which no "
                             "model of weft is");
    m->positions = f->positions;
    m->norm = f->norm;
    m->gated = f->gated;
    m->bias = f->bias || c->ff_bias;
    m->qkv_bias = !m->bias && (f->qkv_bias || c->attention_bias);
    m->out_bias = !m->bias && c->attention_bias;
    m->qk_norm = f->qk_norm;
    m->scale_embedding = f->from_one;
    /* Gemma's first files say gelu, but transformers computes the tanh approximation */
    if (f->from_one && m->activation == WF_GELU) m->activation = WF_GELU_TANH;
    if (f->kv_heads) m->num_kv_heads = f->kv_heads;
    if (!m->dim_feedforward) m->dim_feedforward = 4 * m->d_model;
    if (m->num_kv_heads == m->num_heads) m->num_kv_heads = 0;
    if (m->num_heads && m->d_model % m->num_heads == 0 && m->head_dim == m->d_model / m->num_heads)
        m->head_dim = 0;
    m->start_first = m->start_if_empty = true;
    m->end_id = (int32_t)c->end;
    m->start_id = (int32_t)(c->start < 0 ? c->end : c->start);
    return wf_hf_of_file("config.json", wf_language_model_check(m, message), message);
}
