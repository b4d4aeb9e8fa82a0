/* models/hf/encoder/bert_family.c - the tables of the families of encoders; see bert_family.h.
 *
 * The source is transformers 5.23.0: configuration_*.py and modeling_*.py of bert, roberta,
 * xlm_roberta, camembert, mpnet, distilbert. A new family needs a row below. */
#include "bert_family.h"

#include <string.h>

#define AT(field) offsetof(hf_bert_config, field)
#define IS(key, value)                                                                             \
    { key, value, NULL } /* clang wants every field */
/* clang-format off */

#define BERT_SIZES(pad_absent) \
    { "vocab_size", HF_COUNT, AT(c.vocab), NULL }, \
    { "max_position_embeddings", HF_COUNT, AT(c.positions), NULL }, \
    { "hidden_size", HF_COUNT, AT(c.d_model), NULL }, \
    { "num_hidden_layers", HF_COUNT, AT(c.layers), NULL }, \
    { "num_attention_heads", HF_COUNT, AT(c.num_heads), NULL }, \
    { "intermediate_size", HF_COUNT, AT(c.dim_feedforward), NULL }, \
    { "hidden_act", HF_ACTIVATION, AT(c.activation), NULL }, \
    { "layer_norm_eps", HF_REAL, AT(c.layer_norm_eps), "1e-12" }, \
    { "tie_word_embeddings", HF_FLAG, AT(c.tied), "true" }, \
    { "pad_token_id", HF_ID, AT(pad), pad_absent }, \
    { "bos_token_id", HF_ID, AT(start), "-1" }, \
    { "eos_token_id", HF_ID, AT(end), "-1" }
#define BERT_KEYS(pad_absent) \
    BERT_SIZES(pad_absent), { "type_vocab_size", HF_COUNT, AT(c.types), "2" }
#define BERT_CONSTANTS \
    IS("is_encoder_decoder", "false"), IS("is_decoder", "false"), \
    IS("add_cross_attention", "false"), IS("position_embedding_type", "\"absolute\"")
#define BERT_IGNORED \
    "initializer_range", "attention_probs_dropout_prob", "hidden_dropout_prob", "directionality", \
    "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_type", \
    "pooler_size_per_head", "transformers.js_config", "unk_token_id", "mask_token_id"
#define BERT_BODY(of) \
    { "embedding.", of "embeddings.word_embeddings." }, \
    { "position.", of "embeddings.position_embeddings." }, \
    { "type.", of "embeddings.token_type_embeddings." }, \
    { "embedding_norm.", of "embeddings.LayerNorm." }, \
    { "encoder.layers.#.self_attn.in_proj_", of "encoder.layer.#.attention.self.&." }, \
    { "encoder.layers.#.self_attn.out_proj.", of "encoder.layer.#.attention.output.dense." }, \
    { "encoder.layers.#.norm1.", of "encoder.layer.#.attention.output.LayerNorm." }, \
    { "encoder.layers.#.linear1.", of "encoder.layer.#.intermediate.dense." }, \
    { "encoder.layers.#.linear2.", of "encoder.layer.#.output.dense." }, \
    { "encoder.layers.#.norm2.", of "encoder.layer.#.output.LayerNorm." }, \
    { "pooler.", of "pooler.dense." }
#define CLASSIFIES(class) class "ForSequenceClassification"
#define ROBERTA(type, class) \
    { .name = type, .architectures = { class "Model", class "ForMaskedLM", CLASSIFIES(class) }, \
      .class_pooler = "classifier.dense.", \
      .counted_positions = true, .head_gelu = true, .body = "roberta.", \
      .keys = { BERT_KEYS("1") }, .constants = { BERT_CONSTANTS }, \
      .ignored = { BERT_IGNORED }, \
      .stems = { BERT_BODY("roberta."), LM_HEAD }, \
      .bias_copy = "lm_head.decoder.bias", \
      .dropped = { "roberta.embeddings.position_ids" } }

#define LM_HEAD \
    { "head.", "lm_head.dense." }, { "head_norm.", "lm_head.layer_norm." }, \
    { "output.bias", "lm_head.bias" }, { "output.", "lm_head.decoder." }, \
    { "classifier.", "classifier.out_proj." }

static const hf_bert_family families[] = {
    { .name = "bert", .architectures = { "BertModel", "BertForMaskedLM", CLASSIFIES("Bert"),
                                         "BertForPreTraining" },
      .body = "bert.",
      .keys = { BERT_KEYS("0") }, .constants = { BERT_CONSTANTS }, .ignored = { BERT_IGNORED },
      .stems = { BERT_BODY("bert."),
                 { "head.", "cls.predictions.transform.dense." },
                 { "head_norm.", "cls.predictions.transform.LayerNorm." },
                 { "output.bias", "cls.predictions.bias" },
                 { "output.", "cls.predictions.decoder." },
                 { "classifier.", "classifier." } },
      .bias_copy = "cls.predictions.decoder.bias",
      .dropped = { "bert.embeddings.position_ids", "cls.seq_relationship." } },
    ROBERTA("roberta", "Roberta"),
    ROBERTA("xlm-roberta", "XLMRoberta"),
    ROBERTA("camembert", "Camembert"),
    { .name = "mpnet",
      .architectures = { "MPNetModel", "MPNetForMaskedLM", CLASSIFIES("MPNet") },
      .class_pooler = "classifier.dense.", .counted_positions = true, .relative = true,
      .head_gelu = true, .body = "mpnet.", .keys = { BERT_SIZES("1") },
      .constants = { BERT_CONSTANTS, IS("relative_attention_num_buckets", "32") },
      .ignored = { BERT_IGNORED },
      .stems = { { "embedding.", "mpnet.embeddings.word_embeddings." },
                 { "position.", "mpnet.embeddings.position_embeddings." },
                 { "embedding_norm.", "mpnet.embeddings.LayerNorm." },
                 { "encoder.relative.", "mpnet.encoder.relative_attention_bias." },
                 { "encoder.layers.#.self_attn.in_proj_",
                   "mpnet.encoder.layer.#.attention.attn.@." },
                 { "encoder.layers.#.self_attn.out_proj.",
                   "mpnet.encoder.layer.#.attention.attn.o." },
                 { "encoder.layers.#.norm1.", "mpnet.encoder.layer.#.attention.LayerNorm." },
                 { "encoder.layers.#.linear1.", "mpnet.encoder.layer.#.intermediate.dense." },
                 { "encoder.layers.#.linear2.", "mpnet.encoder.layer.#.output.dense." },
                 { "encoder.layers.#.norm2.", "mpnet.encoder.layer.#.output.LayerNorm." },
                 { "pooler.", "mpnet.pooler.dense." },
                 LM_HEAD },
      .bias_copy = "lm_head.decoder.bias",
      .dropped = { "mpnet.embeddings.position_ids" } },
    { .name = "distilbert", .architectures = { "DistilBertModel", "DistilBertForMaskedLM",
                                               CLASSIFIES("DistilBert") },
      .relu_pooler = true, .class_pooler = "pre_classifier.",
      .eps = 1e-12, .body = "distilbert.",
      .keys = { { "vocab_size", HF_COUNT, AT(c.vocab), NULL },
                { "max_position_embeddings", HF_COUNT, AT(c.positions), NULL },
                { "dim", HF_COUNT, AT(c.d_model), NULL },
                { "n_layers", HF_COUNT, AT(c.layers), NULL },
                { "n_heads", HF_COUNT, AT(c.num_heads), NULL },
                { "hidden_dim", HF_COUNT, AT(c.dim_feedforward), NULL },
                { "activation", HF_ACTIVATION, AT(c.activation), NULL },
                { "tie_word_embeddings", HF_FLAG, AT(c.tied), "true" },
                { "pad_token_id", HF_ID, AT(pad), "0" },
                { "bos_token_id", HF_ID, AT(start), "-1" },
                { "eos_token_id", HF_ID, AT(end), "-1" } },
      .constants = { IS("is_encoder_decoder", "false"), IS("is_decoder", "false"),
                     IS("add_cross_attention", "false") },
      .ignored = { "initializer_range", "qa_dropout", "seq_classif_dropout", "unk_token_id",
                   "sinusoidal_pos_embds", "tie_weights_", "transformers.js_config" },
      .stems = { { "embedding.", "distilbert.embeddings.word_embeddings." },
                 { "position.", "distilbert.embeddings.position_embeddings." },
                 { "embedding_norm.", "distilbert.embeddings.LayerNorm." },
                 { "encoder.layers.#.self_attn.in_proj_",
                   "distilbert.transformer.layer.#.attention.@_lin." },
                 { "encoder.layers.#.self_attn.out_proj.",
                   "distilbert.transformer.layer.#.attention.out_lin." },
                 { "encoder.layers.#.norm1.", "distilbert.transformer.layer.#.sa_layer_norm." },
                 { "encoder.layers.#.linear1.", "distilbert.transformer.layer.#.ffn.lin1." },
                 { "encoder.layers.#.linear2.", "distilbert.transformer.layer.#.ffn.lin2." },
                 { "encoder.layers.#.norm2.", "distilbert.transformer.layer.#.output_layer_norm." },
                 { "head.", "vocab_transform." },
                 { "head_norm.", "vocab_layer_norm." },
                 { "output.", "vocab_projector." },
                 { "classifier.", "classifier." } },
      .dropped = { "distilbert.embeddings.position_ids" } },
};
/* clang-format on */
enum { FAMILIES = sizeof families / sizeof *families };

const hf_bert_family *wf_hf_bert_family(const char *model_type) {
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].name, model_type) == 0) return &families[i];
    return NULL;
}

const hf_bert_family *wf_hf_bert_family_of(const wf_encoder_config *c) {
    if (c->relative_buckets) return wf_hf_bert_family("mpnet");
    bool distil = !c->types && (!c->pooler || c->pooler_activation == WF_DENSE_RELU);
    if (!c->counted_positions) return wf_hf_bert_family(distil ? "distilbert" : "bert");
    return wf_hf_bert_family("roberta");
}

const char *wf_hf_bert_family_names(void) {
    return "bert, roberta, xlm-roberta, camembert, mpnet, distilbert";
}

int wf_hf_bert_name(const hf_bert_family *family, const char *parameter, int part,
                    char name[HF_NAME]) {
    int n = 0;
    while (n < HF_BERT_STEMS && family->stems[n].from) n++;
    return wf_hf_name_by(family->stems, n, parameter, part, name);
}
