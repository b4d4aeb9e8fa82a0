/* models/marian/marian_names.c - the names of Marian's tensors.
 *
 * A layer's tensors begin with encoder_l1_ or decoder_l1_, which count from 1. The norm of a
 * sublayer is named by the sublayer, and differently before it (pre-norm) and after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marian_file.h"
#include "models/transformer/tied.h"

#define LAYERS(stack) "transformer." stack ".layers."

typedef struct row {
    const char *from, *to;
    marian_form form;
} row;

/* Parameters of a layer. @ is one of q, k, v. */
static const row layer_rows[] = {
    { "self_attn.in_proj_weight", "self_W@", MARIAN_MATRIX },
    { "self_attn.in_proj_bias", "self_b@", MARIAN_VECTOR },
    { "self_attn.out_proj.weight", "self_Wo", MARIAN_MATRIX },
    { "self_attn.out_proj.bias", "self_bo", MARIAN_VECTOR },
    { "multihead_attn.in_proj_weight", "context_W@", MARIAN_MATRIX },
    { "multihead_attn.in_proj_bias", "context_b@", MARIAN_VECTOR },
    { "multihead_attn.out_proj.weight", "context_Wo", MARIAN_MATRIX },
    { "multihead_attn.out_proj.bias", "context_bo", MARIAN_VECTOR },
    { "ssru.input.weight", "rnn_W", MARIAN_MATRIX },
    { "ssru.forget.weight", "rnn_Wf", MARIAN_MATRIX },
    { "ssru.forget.bias", "rnn_bf", MARIAN_VECTOR },
    { "average.inner.weight", "aan_W1", MARIAN_MATRIX },
    { "average.inner.bias", "aan_b1", MARIAN_VECTOR },
    { "average.outer.weight", "aan_W2", MARIAN_MATRIX },
    { "average.outer.bias", "aan_b2", MARIAN_VECTOR },
    { "average.input_gate.weight", "aan_Wi", MARIAN_MATRIX },
    { "average.input_gate.bias", "aan_bi", MARIAN_VECTOR },
    { "average.forget_gate.weight", "aan_Wf", MARIAN_MATRIX },
    { "average.forget_gate.bias", "aan_bf", MARIAN_VECTOR },
    { "linear1.weight", "ffn_W1", MARIAN_MATRIX },
    { "linear1.bias", "ffn_b1", MARIAN_VECTOR },
    { "linear2.weight", "ffn_W2", MARIAN_MATRIX },
    { "linear2.bias", "ffn_b2", MARIAN_VECTOR },
};

/* Parameters outside of layers, except for the token tables. */
static const row other_rows[] = {
    { "output.bias", "decoder_ff_logit_out_b", MARIAN_VECTOR },
    { "transformer.encoder.norm.weight", "encoder_top_ln_scale", MARIAN_VECTOR },
    { "transformer.encoder.norm.bias", "encoder_top_ln_bias", MARIAN_VECTOR },
    { "transformer.decoder.norm.weight", "decoder_top_ln_scale", MARIAN_VECTOR },
    { "transformer.decoder.norm.bias", "decoder_top_ln_bias", MARIAN_VECTOR },
};

static const row *find_row(const row *rows, size_t n, const char *from) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].from, from) == 0) return &rows[i];
    return NULL;
}

/* The name of the sublayer to which norm number `norm` of a layer belongs. Marian's name of the
 * norm begins with it. NULL: there is no such norm. */
static const char *sublayer(const wf_transformer_config *c, bool decoder, int norm) {
    const char *firsts[] = { "self_Wo", c->norm_first ? "rnn" : "rnn_ffn", "aan_ffn" };
    const char *const names[] = { firsts[decoder ? c->decoder : WF_DECODER_ATTENTION],
                                  decoder ? "context_Wo" : "ffn_ffn", decoder ? "ffn_ffn" : NULL };
    return norm >= 1 && norm <= 3 ? names[norm - 1] : NULL;
}

/* The name of "norm1.weight" or the like in a layer. */
static marian_form norm_name(const wf_transformer_config *c, bool decoder, const char *rest,
                             const char *prefix, char name[MARIAN_NAME]) {
    const char *of = strncmp(rest, "norm", 4) == 0 ? sublayer(c, decoder, rest[4] - '0') : NULL;
    if (!of || rest[5] != '.') return MARIAN_UNKNOWN;
    snprintf(name, MARIAN_NAME, "%s%s_ln_%s%s", prefix, of,
             strcmp(rest + 6, "bias") == 0 ? "bias" : "scale", c->norm_first ? "_pre" : "");
    return MARIAN_VECTOR;
}

static marian_form layer_name(const wf_transformer_config *c, bool decoder, const char *rest,
                              int part, int *parts, char name[MARIAN_NAME]) {
    char prefix[32], *end;
    long layer = strtol(rest, &end, 10);
    if (end == rest || *end != '.') return MARIAN_UNKNOWN;
    snprintf(prefix, sizeof prefix, "%s_l%ld_", decoder ? "decoder" : "encoder", layer + 1);
    const row *r = find_row(layer_rows, sizeof layer_rows / sizeof *layer_rows, end + 1);
    if (!r) return norm_name(c, decoder, end + 1, prefix, name);
    int n = snprintf(name, MARIAN_NAME, "%s%s", prefix, r->to);
    if (n < 1 || n >= MARIAN_NAME) return MARIAN_UNKNOWN;
    if (name[n - 1] == '@') {
        name[n - 1] = "qkv"[part];
        *parts = 3;
    }
    return r->form;
}

/* The name of a table of tokens. A table that both sides share is called Wemb. */
static marian_form table_name(const wf_transformer_config *c, int table, char name[MARIAN_NAME]) {
    bool shared = wf_first_tied(c->tie) == 0;
    const char *const names[] = { shared ? "Wemb" : "encoder_Wemb", "decoder_Wemb",
                                  "decoder_ff_logit_out_W" };
    snprintf(name, MARIAN_NAME, "%s", names[table]);
    return table == 2 ? MARIAN_MATRIX : MARIAN_TABLE;
}

marian_form wf_marian_name(const wf_transformer_config *c, const char *parameter, int part,
                           int *parts, char name[MARIAN_NAME]) {
    const size_t start = sizeof LAYERS("encoder") - 1;
    *parts = 1;
    for (int i = 0; i < WF_TABLES; i++)
        if (strcmp(parameter, wf_tables[i]) == 0) return table_name(c, i, name);
    if (strncmp(parameter, LAYERS("encoder"), start) == 0)
        return layer_name(c, false, parameter + start, part, parts, name);
    if (strncmp(parameter, LAYERS("decoder"), start) == 0)
        return layer_name(c, true, parameter + start, part, parts, name);
    const row *r = find_row(other_rows, sizeof other_rows / sizeof *other_rows, parameter);
    if (!r) return MARIAN_UNKNOWN;
    snprintf(name, MARIAN_NAME, "%s", r->to);
    return r->form;
}
