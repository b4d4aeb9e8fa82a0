/* models/hf/lm/lm_family.c - the tables of the families of language models; see lm_family.h.
 *
 * The source is transformers 5.23.0: configuration_*.py and modeling_*.py of gpt2, gpt_bigcode,
 * llama, mistral, qwen2, qwen3, gemma, starcoder2. A new family needs a row below. */
#include "lm_family.h"

#include <string.h>

#define AT(field) offsetof(hf_lm_config, field)
#define IS(key, value)                                                                             \
    { key, value, NULL } /* clang wants every field */
/* clang-format off */

#define TANH "\"gelu_pytorch_tanh\""
/* Keys that every family with rotary positions has. */
#define LLAMA_SIZES(kv_absent, activation_absent, tied_absent) \
    { "vocab_size", HF_COUNT, AT(c.vocab), NULL }, \
    { "max_position_embeddings", HF_COUNT, AT(c.max_len), NULL }, \
    { "hidden_size", HF_COUNT, AT(c.d_model), NULL }, \
    { "num_hidden_layers", HF_COUNT, AT(c.layers), NULL }, \
    { "num_attention_heads", HF_COUNT, AT(c.num_heads), NULL }, \
    { "num_key_value_heads", HF_COUNT, AT(c.num_kv_heads), kv_absent }, \
    { "intermediate_size", HF_COUNT, AT(c.dim_feedforward), NULL }, \
    { "hidden_act", HF_ACTIVATION, AT(c.activation), activation_absent }, \
    { "tie_word_embeddings", HF_FLAG, AT(c.tied), tied_absent }, \
    { "rope_theta", HF_REAL, AT(c.rotary_base), "10000" }, \
    { "bos_token_id", HF_ID, AT(start), "-1" }, \
    { "eos_token_id", HF_FIRST_ID, AT(end), "-1" }
#define LLAMA_HEADS(head_dim_absent) \
    { "head_dim", HF_COUNT, AT(c.head_dim), head_dim_absent }, \
    { "rms_norm_eps", HF_REAL, AT(c.layer_norm_eps), NULL }
#define LLAMA_KEYS(kv_absent, head_dim_absent) \
    LLAMA_SIZES(kv_absent, NULL, "false"), LLAMA_HEADS(head_dim_absent)
#define LLAMA_CONSTANTS \
    IS("is_encoder_decoder", "false"), IS("partial_rotary_factor", "1"), \
    IS("rope_interleaved", "false"), IS("add_cross_attention", "false")
#define LLAMA_IGNORED \
    "initializer_range", "pretraining_tp", "pad_token_id", "is_decoder", "is_llama_config", \
    "transformers.js_config", "unk_token_id", "mlp_dropout", "residual_dropout"
/* tensor names of everything but the feed-forward layers */
#define LLAMA_BODY \
    { "embedding.", "model.embed_tokens." }, \
    { "transformer.layers.#.self_attn.in_proj_", "model.layers.#.self_attn.@_proj." }, \
    { "transformer.layers.#.self_attn.out_proj.", "model.layers.#.self_attn.o_proj." }, \
    { "transformer.layers.#.self_attn.", "model.layers.#.self_attn." }, \
    { "transformer.layers.#.norm1.", "model.layers.#.input_layernorm." }, \
    { "transformer.layers.#.norm2.", "model.layers.#.post_attention_layernorm." }, \
    { "transformer.norm.", "model.norm." }, \
    { "output.", "lm_head." }
#define LLAMA_STEMS \
    LLAMA_BODY, \
    { "transformer.layers.#.linear1.", "model.layers.#.mlp.gate_proj." }, \
    { "transformer.layers.#.linear2.", "model.layers.#.mlp.down_proj." }, \
    { "transformer.layers.#.linear3.", "model.layers.#.mlp.up_proj." }
/* frequencies of rotary positions, which follow from config.json */
#define LLAMA_DROPPED ".rotary_emb.inv_freq"
#define LLAMA_FORM \
    .positions = WF_POSITIONS_ROTARY, .norm = WF_RMS_NORM, .gated = true

#define GPT2_KEYS(activation_absent) \
    { "vocab_size", HF_COUNT, AT(c.vocab), NULL }, \
    { "n_positions", HF_COUNT, AT(c.max_len), NULL }, \
    { "n_embd", HF_COUNT, AT(c.d_model), NULL }, \
    { "n_layer", HF_COUNT, AT(c.layers), NULL }, \
    { "n_head", HF_COUNT, AT(c.num_heads), NULL }, \
    { "n_inner", HF_COUNT, AT(c.dim_feedforward), "0" }, /* 0: four times n_embd */ \
    { "activation_function", HF_ACTIVATION, AT(c.activation), activation_absent }, \
    { "layer_norm_epsilon", HF_REAL, AT(c.layer_norm_eps), "1e-5" }, \
    { "tie_word_embeddings", HF_FLAG, AT(c.tied), "true" }, \
    { "bos_token_id", HF_ID, AT(start), "-1" }, \
    { "eos_token_id", HF_FIRST_ID, AT(end), "-1" }
#define GPT2_CONSTANTS \
    IS("is_encoder_decoder", "false"), IS("add_cross_attention", "false"), \
    IS("scale_attn_weights", "true"), IS("scale_attn_by_inverse_layer_idx", "false"), \
    { "n_ctx", NULL, "n_positions" }
#define GPT2_IGNORED \
    "initializer_range", "pad_token_id", "is_decoder", "resid_pdrop", "embd_pdrop", "attn_pdrop", \
    "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation", \
    "summary_proj_to_labels", "summary_first_dropout", "unk_token_id"
#define GPT2_STEMS \
    { "embedding.", "transformer.wte." }, \
    { "position.", "transformer.wpe." }, \
    { "transformer.layers.#.self_attn.in_proj_", "transformer.h.#.attn.c_attn." }, \
    { "transformer.layers.#.self_attn.out_proj.", "transformer.h.#.attn.c_proj." }, \
    { "transformer.layers.#.linear1.", "transformer.h.#.mlp.c_fc." }, \
    { "transformer.layers.#.linear2.", "transformer.h.#.mlp.c_proj." }, \
    { "transformer.layers.#.norm1.", "transformer.h.#.ln_1." }, \
    { "transformer.layers.#.norm2.", "transformer.h.#.ln_2." }, \
    { "transformer.norm.", "transformer.ln_f." }, \
    { "output.", "lm_head." }
#define GPT2_DROPPED ".attn.bias", ".attn.masked_bias" /* causal masks */
#define GPT2_FORM \
    .positions = WF_POSITIONS_LEARNED, .norm = WF_LAYER_NORM, .bias = true, \
    .optional = "transformer."

static const hf_lm_family families[] = {
    { .name = "gpt2", .architecture = "GPT2LMHeadModel", GPT2_FORM, .transposed = true,
      .keys = { GPT2_KEYS("\"gelu_new\"") }, .constants = { GPT2_CONSTANTS },
      .ignored = { GPT2_IGNORED }, .stems = { GPT2_STEMS }, .dropped = { GPT2_DROPPED } },
    { .name = "gpt_bigcode", .architecture = "GPTBigCodeForCausalLM", GPT2_FORM, .kv_heads = 1,
      .keys = { GPT2_KEYS(TANH) },
      .constants = { GPT2_CONSTANTS, IS("multi_query", "true"), IS("num_key_value_heads", "1") },
      .ignored = { GPT2_IGNORED, "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                   "inference_runner", "max_batch_size", "max_sequence_length", "pad_key_length",
                   "pre_allocate_kv_cache", "validate_runner_input" },
      .stems = { GPT2_STEMS }, .dropped = { GPT2_DROPPED } },
    { .name = "llama", .architecture = "LlamaForCausalLM", LLAMA_FORM,
      .keys = { LLAMA_KEYS("0", "0"),
                { "attention_bias", HF_FLAG, AT(attention_bias), "false" },
                { "mlp_bias", HF_FLAG, AT(ff_bias), "false" } },
      .constants = { LLAMA_CONSTANTS },
      .ignored = { LLAMA_IGNORED }, .stems = { LLAMA_STEMS }, .dropped = { LLAMA_DROPPED } },
    { .name = "mistral", .architecture = "MistralForCausalLM", LLAMA_FORM, .slides = true,
      .keys = { LLAMA_KEYS(NULL, "0"),
                { "sliding_window", HF_COUNT, AT(window), "0" } },
      .constants = { LLAMA_CONSTANTS, IS("attention_bias", "false") },
      .ignored = { LLAMA_IGNORED }, .stems = { LLAMA_STEMS }, .dropped = { LLAMA_DROPPED } },
    { .name = "qwen2", .architecture = "Qwen2ForCausalLM", LLAMA_FORM, .qkv_bias = true,
      .keys = { LLAMA_KEYS(NULL, "0"),
                { "use_sliding_window", HF_FLAG, AT(slides), "false" },
                { "sliding_window", HF_COUNT, AT(window), "0" },
                { "max_window_layers", HF_COUNT, AT(window_from), "-1" } },
      .constants = { LLAMA_CONSTANTS, IS("use_mrope", "false") },
      .ignored = { LLAMA_IGNORED }, .stems = { LLAMA_STEMS }, .dropped = { LLAMA_DROPPED } },
    { .name = "qwen3", .architecture = "Qwen3ForCausalLM", LLAMA_FORM, .qk_norm = true,
      .keys = { LLAMA_KEYS(NULL, "128"),
                { "attention_bias", HF_FLAG, AT(attention_bias), "false" },
                { "use_sliding_window", HF_FLAG, AT(slides), "false" },
                { "sliding_window", HF_COUNT, AT(window), "0" },
                { "max_window_layers", HF_COUNT, AT(window_from), "-1" } },
      .constants = { LLAMA_CONSTANTS, IS("use_mrope", "false") },
      .ignored = { LLAMA_IGNORED }, .stems = { LLAMA_STEMS }, .dropped = { LLAMA_DROPPED } },
    { .name = "gemma", .architecture = "GemmaForCausalLM", LLAMA_FORM, .from_one = true,
      .keys = { LLAMA_SIZES(NULL, TANH, "true"), LLAMA_HEADS("256"),
                { "attention_bias", HF_FLAG, AT(attention_bias), "false" } },
      .constants = { LLAMA_CONSTANTS, IS("hidden_activation", TANH),
                     IS("use_bidirectional_attention", "false") },
      .ignored = { LLAMA_IGNORED }, .stems = { LLAMA_STEMS }, .dropped = { LLAMA_DROPPED } },
    { .name = "starcoder2", .architecture = "Starcoder2ForCausalLM",
      .positions = WF_POSITIONS_ROTARY, .norm = WF_LAYER_NORM, .bias = true, .slides = true,
      .keys = { LLAMA_SIZES("2", TANH, "true"),
                { "norm_epsilon", HF_REAL, AT(c.layer_norm_eps), "1e-5" },
                { "sliding_window", HF_COUNT, AT(window), "0" } },
      .constants = { LLAMA_CONSTANTS, IS("use_bias", "true"), IS("norm_type", "\"layer_norm\""),
                     IS("mlp_type", "\"default\"") },
      .ignored = { LLAMA_IGNORED, "embedding_dropout" },
      .stems = { LLAMA_BODY,
                 { "transformer.layers.#.linear1.", "model.layers.#.mlp.c_fc." },
                 { "transformer.layers.#.linear2.", "model.layers.#.mlp.c_proj." } },
      .dropped = { LLAMA_DROPPED } },
};
/* clang-format on */
enum { FAMILIES = sizeof families / sizeof *families };

const hf_lm_family *wf_hf_lm_family(const char *model_type) {
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].name, model_type) == 0) return &families[i];
    return NULL;
}

const char *wf_hf_lm_family_names(void) {
    return "gpt2, gpt_bigcode, llama, mistral, qwen2, qwen3, gemma, starcoder2";
}

int wf_hf_lm_name(const hf_lm_family *family, const char *parameter, int part, char name[HF_NAME]) {
    int n = 0;
    while (n < HF_LM_STEMS && family->stems[n].from) n++;
    return wf_hf_name_by(family->stems, n, parameter, part, name);
}

bool wf_hf_lm_transposed(const hf_lm_family *family, const wf_tensor *parameter) {
    return family->transposed && parameter->ndim == 2 &&
           strncmp(parameter->name, "transformer.", strlen("transformer.")) == 0;
}

int64_t wf_hf_lm_rows(const wf_language_model_config *c, const wf_tensor *parameter, int i,
                      int parts) {
    int64_t kv = c->num_kv_heads ? c->num_kv_heads : c->num_heads;
    if (parts == 1) return parameter->shape[0];
    return parameter->shape[0] / (c->num_heads + 2 * kv) * (i == 0 ? c->num_heads : kv);
}

bool wf_hf_lm_from_one(const hf_lm_family *family, const wf_tensor *parameter) {
    static const char end[] = ".weight";
    size_t n = strlen(parameter->name), k = sizeof end - 1;
    return family->from_one && parameter->ndim == 1 && n > k &&
           strcmp(parameter->name + n - k, end) == 0;
}

bool wf_hf_lm_dropped(const hf_lm_family *family, const char *tensor) {
    size_t n = strlen(tensor);
    for (const char *const *end = family->dropped; *end; end++) {
        size_t k = strlen(*end);
        if (n > k && strcmp(tensor + n - k, *end) == 0) return true;
    }
    return false;
}
