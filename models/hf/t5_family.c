/* models/hf/t5_family.c - keys of config.json and names of tensors of T5 (Raffel et al. 2020), its
 * version 1.1, mT5, UMT5 and MADLAD-400; see family.h. */
#include <stdio.h>
#include <string.h>

#include "family.h"

/* ---- config.json ----------------------------------------------------------------------------- */

#define AT(field) offsetof(hf_config, field)
/* clang-format off */
#define T5_KEYS(feed_forward_absent) \
    { "vocab_size", HF_COUNT, AT(c.src_vocab), NULL }, \
    { "d_model", HF_COUNT, AT(c.d_model), NULL }, \
    { "d_kv", HF_COUNT, AT(c.head_dim), NULL }, \
    { "d_ff", HF_COUNT, AT(c.dim_feedforward), NULL }, \
    { "num_layers", HF_COUNT, AT(c.encoder_layers), NULL }, \
    /* 0: as many as the encoder has */ \
    { "num_decoder_layers", HF_COUNT, AT(c.decoder_layers), "0" }, \
    { "num_heads", HF_COUNT, AT(c.num_heads), NULL }, \
    { "relative_attention_num_buckets", HF_COUNT, AT(c.relative_buckets), "32" }, \
    { "relative_attention_max_distance", HF_COUNT, AT(c.relative_distance), "128" }, \
    { "layer_norm_epsilon", HF_REAL, AT(c.layer_norm_eps), NULL }, \
    { "feed_forward_proj", HF_FEED_FORWARD, AT(c.activation), feed_forward_absent }, \
    { "tie_word_embeddings", HF_FLAG, AT(tied), "true" }, \
    { "pad_token_id", HF_ID, AT(pad), NULL }, \
    { "eos_token_id", HF_ID, AT(end), NULL }, \
    /* may be in generation_config.json instead */ \
    { "decoder_start_token_id", HF_ID, AT(start), "-1" }
/* without this key, hf_config.c takes the value of 'tie_word_embeddings' */
#define T5_SCALED { "scale_decoder_outputs", HF_FLAG, AT(scaled), "true" }
#define T5_END { NULL, HF_COUNT, 0, NULL }
const hf_key wf_hf_t5_keys[] = { T5_KEYS("\"relu\""), T5_SCALED, T5_END };
const hf_key wf_hf_umt5_keys[] = { T5_KEYS(NULL), T5_SCALED, T5_END };
const hf_key wf_hf_mt5_keys[] = { T5_KEYS(NULL), T5_END };
/* clang-format on */

const char *const wf_hf_t5_ignored[] = {
    "dropout_rate",
    "initializer_factor",
    "n_positions", /* no length is too long for these models */
    "scalable_attention",
    /* compared with 'feed_forward_proj' by hf_config.c */
    "dense_act_fn",
    "is_gated_act",
    NULL,
};

/* ---- tensors --------------------------------------------------------------------------------- */

const char *const wf_hf_t5_tables[4] = { "encoder.embed_tokens.weight",
                                         "decoder.embed_tokens.weight", "lm_head.weight",
                                         "shared.weight" };

/* clang-format off */
#define T5_STACK(stack, feed_forward) \
    { "transformer." stack ".layers.#.self_attn.in_proj_", \
      stack ".block.#.layer.0.SelfAttention.@." }, \
    { "transformer." stack ".layers.#.self_attn.out_proj.", \
      stack ".block.#.layer.0.SelfAttention.o." }, \
    { "transformer." stack ".layers.#.norm1.", stack ".block.#.layer.0.layer_norm." }, \
    { "transformer." stack ".layers.#.relative.", \
      stack ".block.#.layer.0.SelfAttention.relative_attention_bias." }, \
    { "transformer." stack ".relative.", \
      stack ".block.0.layer.0.SelfAttention.relative_attention_bias." }, \
    { "transformer." stack ".layers.#.linear2.", \
      stack ".block.#.layer." feed_forward ".DenseReluDense.wo." }, \
    { "transformer." stack ".norm.", stack ".final_layer_norm." }
#define T5_INNER(stack, layer, linear, inner) \
    { "transformer." stack ".layers.#." linear ".", \
      stack ".block.#.layer." layer ".DenseReluDense." inner "." }
#define T5_STEMS \
    T5_STACK("encoder", "1"), T5_STACK("decoder", "2"), \
    { "transformer.encoder.layers.#.norm2.", "encoder.block.#.layer.1.layer_norm." }, \
    { "transformer.decoder.layers.#.multihead_attn.in_proj_", \
      "decoder.block.#.layer.1.EncDecAttention.@." }, \
    { "transformer.decoder.layers.#.multihead_attn.out_proj.", \
      "decoder.block.#.layer.1.EncDecAttention.o." }, \
    { "transformer.decoder.layers.#.norm2.", "decoder.block.#.layer.1.layer_norm." }, \
    { "transformer.decoder.layers.#.norm3.", "decoder.block.#.layer.2.layer_norm." }
#define T5_STEMS_END { NULL, NULL }
const hf_stem wf_hf_t5_stems[] = {
    T5_STEMS, T5_INNER("encoder", "1", "linear1", "wi"),
    T5_INNER("decoder", "2", "linear1", "wi"), T5_STEMS_END
};
const hf_stem wf_hf_t5_gated_stems[] = {
    T5_STEMS, T5_INNER("encoder", "1", "linear1", "wi_0"),
    T5_INNER("decoder", "2", "linear1", "wi_0"), T5_INNER("encoder", "1", "linear3", "wi_1"),
    T5_INNER("decoder", "2", "linear3", "wi_1"), T5_STEMS_END
};
/* clang-format on */

/* ---- the form of the feed-forward layers ----------------------------------------------------- */

#define GATED "gated-"

bool wf_hf_t5_feed_forward(const char *text, bool *gated, wf_activation *activation) {
    size_t n = strlen(GATED);
    *gated = strncmp(text, GATED, n) == 0;
    if (*gated) text += n;
    if (!wf_hf_find_activation(text, activation)) return false;
    if (*gated && *activation == WF_GELU) *activation = WF_GELU_TANH;
    return true;
}

bool wf_hf_t5_feed_forward_name(bool gated, wf_activation activation, char text[32]) {
    static const char *const names[] = {
        [WF_RELU] = "relu", [WF_GELU] = "gelu", [WF_GELU_TANH] = "gelu_new", [WF_SILU] = "silu"
    };
    if ((unsigned)activation > WF_SILU || (gated && activation == WF_GELU)) return false;
    bool usual = gated && activation == WF_GELU_TANH;
    snprintf(text, 32, "%s%s", gated ? GATED : "", usual ? "gelu" : names[activation]);
    return true;
}

bool wf_hf_is_t5(const wf_transformer_config *c) {
    return c->relative_buckets > 0 && c->positions == WF_POSITIONS_NONE && c->norm_first &&
           c->encoder_norm && c->decoder_norm && c->norm == WF_RMS_NORM && !c->bias &&
           !c->output_bias && !c->embedding_norm && !c->scale_embedding &&
           c->attention_scale == 1 && (c->tie == WF_TIE_ALL || c->tie == WF_TIE_INPUTS);
}
