/* models/hf/lm/lm_export.c - a language model of weft as a folder that transformers opens:
 * config.json, generation_config.json and the weights. lm_tokenizer.c writes the tokenizer.
 *
 * A model of weft may have two features that its family in transformers lacks; they are replaced by
 * others with the same results. Scaled embeddings, which only Gemma has, are written multiplied by
 * their scale, and a tied output gets a table of its own. Sinusoidal positions are written as a
 * table of learned positions with the same values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm_family.h"
#include "models/choices.h"
#include "models/message.h"

/* ---- which family it is ---------------------------------------------------------------------- */

/* True for GPT-2, or GPT-BigCode, whose heads all share one head of keys and values. */
static bool is_gpt2(const wf_language_model_config *c) {
    bool table = c->positions == WF_POSITIONS_LEARNED || c->positions == WF_POSITIONS_SINUSOIDAL ||
                 c->positions == WF_POSITIONS_HALVES || c->positions == WF_POSITIONS_FAIRSEQ;
    return table && c->norm == WF_LAYER_NORM && !c->gated && c->bias && !c->qk_norm && !c->window &&
           !c->head_dim && (c->num_kv_heads <= 1 || c->num_kv_heads == c->num_heads);
}

static bool is_starcoder2(const wf_language_model_config *c) {
    return c->positions == WF_POSITIONS_ROTARY && c->norm == WF_LAYER_NORM && !c->gated &&
           c->bias && !c->qk_norm && !c->head_dim;
}

static bool is_gemma(const wf_language_model_config *c) {
    return c->scale_embedding && c->activation == WF_GELU_TANH && !c->bias && !c->qk_norm &&
           !c->window && c->qkv_bias == c->out_bias;
}

static bool is_llama(const wf_language_model_config *c) {
    return c->positions == WF_POSITIONS_ROTARY && c->norm == WF_RMS_NORM && c->gated;
}

static const hf_lm_family *family_of(const wf_language_model_config *c) {
    bool one = c->num_kv_heads == 1 && c->num_heads > 1;
    if (is_gpt2(c)) return wf_hf_lm_family(one ? "gpt_bigcode" : "gpt2");
    if (is_starcoder2(c)) return wf_hf_lm_family("starcoder2");
    if (!is_llama(c)) return NULL;
    if (is_gemma(c)) return wf_hf_lm_family("gemma");
    bool out = c->bias || c->out_bias, qkv = c->bias || c->qkv_bias;
    if (c->qk_norm) return qkv == out && !c->bias ? wf_hf_lm_family("qwen3") : NULL;
    if (qkv && !out) return wf_hf_lm_family("qwen2");
    if (out && !qkv) return NULL;
    if (c->window) return qkv ? NULL : wf_hf_lm_family("mistral");
    return wf_hf_lm_family("llama");
}

static const hf_lm_family *describe(const wf_language_model_config *c, hf_lm_config *out,
                                    char *message) {
    const hf_lm_family *f = family_of(c);
    const char *why = NULL;
    if (c->output_bias)
        why = "its output has a bias, which no language model of transformers has";
    else if (!c->norm_first || !c->final_norm)
        why = "its norms are not those of transformers: before each sublayer, and one at the end";
    else if (!c->start_first)
        why =
            "its start token stands between a prompt and its output, which it does in no language "
            "model of transformers";
    else if (!f)
        why = "its form is neither that of GPT-2 nor that of Llama: --form llama trains one";
    else if (!wf_hf_activation_name(c->activation))
        why = "transformers does not have its activation";
    if (why) return fail(message, "%s", why), NULL;
    *out = (hf_lm_config){ .c = *c, .start = c->start_id, .end = c->end_id };
    out->c.tied = c->tied && (!c->scale_embedding || f->from_one);
    out->c.head_dim = c->head_dim ? c->head_dim : c->d_model / c->num_heads;
    out->c.num_kv_heads = c->num_kv_heads ? c->num_kv_heads : c->num_heads;
    if (c->rotary_base == 0) out->c.rotary_base = 10000;
    out->attention_bias = c->bias || (c->qkv_bias && c->out_bias);
    out->ff_bias = c->bias;
    out->slides = c->window > 0;
    out->window = c->window;
    out->window_from = c->window ? 0 : c->layers;
    return f;
}

const hf_lm_family *wf_hf_lm_family_of(const wf_language_model_config *c, char *message) {
    hf_lm_config out;
    return describe(c, &out, message);
}

/* ---- config.json ----------------------------------------------------------------------------- */

/* The name of an activation in the family's files. If the family's default means this activation,
 * its name is taken: Llama's files say silu where Marian's say swish. */
static const char *activation_of(const hf_key *row, wf_activation a) {
    for (int i = 0; row->absent && i < wf_hf_n_activations; i++) {
        const char *name = wf_hf_activations[i].name;
        size_t n = strlen(name);
        if (wf_hf_activations[i].activation == a && strncmp(row->absent + 1, name, n) == 0 &&
            row->absent[n + 1] == '"')
            return name;
    }
    return a == WF_SILU ? "silu" : wf_hf_activation_name(a);
}

static void put_row(wf_text *t, const hf_key *row, const hf_lm_config *c) {
    const void *at = (const char *)c + row->offset;
    bool activates = row->type == HF_ACTIVATION;
    /* a part of 'rope_parameters' */
    if (strcmp(row->name, "rope_theta") == 0) return;
    if (strcmp(row->name, "sliding_window") == 0 && !c->window) {
        wf_hf_put_key(t, row->name);
        wf_hf_put_as(t, "null");
        return;
    }
    wf_hf_put_row(t, row, c, activates ? activation_of(row, *(const wf_activation *)at) : NULL);
}

/* Writes a number with a point or an exponent, because transformers warns of integers here. */
static const char *float_text(double value, char text[WF_REAL_TEXT]) {
    wf_hf_real_text(value, text);
    if (!strpbrk(text, ".e")) memcpy(text + strlen(text), ".0", 3);
    return text;
}

static void put_rope(wf_text *t, const wf_language_model_config *c) {
    static const char *const types[] = { "default", "linear", "llama3" };
    const wf_rotary_scaling *s = &c->rotary_scaling;
    char text[WF_REAL_TEXT];
    wf_hf_put_key(t, "rope_parameters");
    wf_hf_put_as(t, "{\"rope_type\": \"%s\", \"rope_theta\": %s", types[s->kind],
                 float_text(c->rotary_base, text));
    if (s->kind != WF_ROTARY_PLAIN)
        wf_hf_put_as(t, ", \"factor\": %s", float_text(s->factor, text));
    if (s->kind == WF_ROTARY_LLAMA3) {
        wf_hf_put_as(t, ", \"low_freq_factor\": %s", float_text(s->low, text));
        wf_hf_put_as(t, ", \"high_freq_factor\": %s", float_text(s->high, text));
        wf_hf_put_as(t, ", \"original_max_position_embeddings\": %lld", (long long)s->original);
    }
    wf_hf_put_as(t, "}");
}

static bool write_config(const hf_lm_family *f, const hf_lm_config *c, const wf_hf_writer *to,
                         char *message) {
    wf_text t = { 0 };
    wf_hf_put_type(&t, f->architecture, f->name);
    wf_hf_put_name(&t, "dtype", "float32");
    for (const hf_key *row = f->keys; row->name; row++) put_row(&t, row, c);
    if (f->positions == WF_POSITIONS_ROTARY) put_rope(&t, &c->c);
    return wf_hf_put_object(&t, "config.json", to, message);
}

bool wf_hf_lm_write(wf_hf *hf, const wf_hf_writer *to, char *message) {
    const wf_language_model_config *c = &wf_language_model_of(hf->model)->config;
    hf_lm_config out;
    const hf_lm_family *f = describe(c, &out, message);
    const hf_config search = { .decoder_only = true, .start = c->start_id, .end = c->end_id };
    if (f && c->tied && !out.c.tied)
        wf_hf_note(hf->notes,
                   "config.json: 'tie_word_embeddings' is false: %s does not scale embeddings as "
                   "the model does, so they are written scaled, and the output's table beside "
                   "them. A training of the folder's model changes the two separately",
                   f->name);
    return f && wf_hf_lm_write_tokenizer(hf, to, message) &&
           wf_hf_write_search(&search, &hf->generation, 0, to, message) &&
           write_config(f, &out, to, message);
}

/* ---- weights --------------------------------------------------------------------------------- */

typedef struct saving {
    const hf_lm_family *family;
    const wf_language_model_config *c;
    hf_tensors tensors;
} saving;

/* Adds a tensor: `rows` rows of the parameter times `scale`, less 1 or transposed if the family
 * stores the parameter so. False: out of memory. */
static bool add(saving *s, const char *name, const wf_tensor *t, int64_t rows, const float *values,
                float scale) {
    bool turned = wf_hf_lm_transposed(s->family, t);
    const float less = wf_hf_lm_from_one(s->family, t);
    int64_t columns = t->ndim == 2 ? t->shape[1] : 1;
    const int64_t shape[] = { turned ? columns : rows, turned ? rows : columns };
    float *data = wf_hf_add_tensor(&s->tensors, name, t->ndim, shape);
    for (int64_t i = 0; data && i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            data[turned ? k * rows + i : i * columns + k] = values[i * columns + k] * scale - less;
    return data;
}

static bool add_parts(saving *s, const wf_tensor *t, const float *values) {
    char name[HF_NAME];
    int parts = wf_hf_lm_name(s->family, t->name, 0, name);
    int64_t columns = t->ndim == 2 ? t->shape[1] : 1;
    bool table = strcmp(t->name, "embedding.weight") == 0, ok = parts > 0;
    bool multiplied = s->c->scale_embedding && !s->family->from_one;
    float scale = table && multiplied ? (float)sqrt((double)s->c->d_model) : 1;
    for (int i = 0; ok && i < parts; i++) {
        int64_t rows = wf_hf_lm_rows(s->c, t, i, parts);
        wf_hf_lm_name(s->family, t->name, i, name);
        ok = add(s, name, t, rows, values, scale);
        values += rows * columns;
    }
    return ok;
}

/* Adds a parameter. If the family does not scale embeddings but the model does, a tied table is
 * also added as the output's, without the scale. */
static bool add_leaf(saving *s, const wf_tensor *t) {
    char name[HF_NAME];
    float *values = malloc(wf_bytes(t) + 1);
    bool ok = values && wf_read(t, values, wf_bytes(t)) && add_parts(s, t, values);
    bool multiplied = s->c->scale_embedding && !s->family->from_one;
    bool output = s->c->tied && multiplied && strcmp(t->name, "embedding.weight") == 0;
    if (ok && output) {
        wf_hf_lm_name(s->family, "output.weight", 0, name);
        ok = add(s, name, t, t->shape[0], values, 1);
    }
    free(values);
    return ok;
}

bool wf_hf_lm_save_weights(const wf_model *m, const char *path, char *message) {
    hf_lm_config out;
    saving s = { .c = &wf_language_model_of(m)->config };
    s.family = describe(s.c, &out, message);
    if (!s.family) return false;
    const wf_tensor *positions = wf_find(m->graph, "position.weight");
    bool rotates = s.family->positions == WF_POSITIONS_ROTARY;
    if (!rotates && !positions)
        return fail(message, "its sinusoidal positions are too many for a table");
    bool ok = true;
    for (int id = 0; ok && id < wf_node_count(m->graph); id++)
        if (wf_node(m->graph, id)->kind == WF_PARAM) ok = add_leaf(&s, wf_node(m->graph, id));
    if (ok && positions && positions->kind != WF_PARAM) ok = add_leaf(&s, positions);
    ok = ok ? wf_hf_save_tensors(&s.tensors, path, message) : fail(message, "out of memory");
    wf_hf_tensors_free(&s.tensors);
    return ok;
}
