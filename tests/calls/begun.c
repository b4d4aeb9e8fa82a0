/* tests/calls/begun.c - structs of options, filled as a program would fill them, and layers: see
 * world.h. */
#include "models/model_internal.h"
#include "world.h"

void begin_wf_pool_options(world *w, wf_pool_options *o) {
    (void)w;
    *o = (wf_pool_options){ .kernel = { 2, 2 } };
}

void begin_wf_conv_options(world *w, wf_conv_options *o) {
    (void)w;
    *o = (wf_conv_options){ .stride = { 1, 1 } };
}

void begin_wf_stft_options(world *w, wf_stft_options *o) {
    (void)w;
    *o = (wf_stft_options){ .n_fft = 2 };
}

void begin_wf_resize_options(world *w, wf_resize_options *o) {
    *o = (wf_resize_options){ .size = 3, .mode = (wf_resize_mode)dice(w, 4) };
}

void begin_wf_mel_options(world *w, wf_mel_options *o) {
    (void)w;
    *o = (wf_mel_options){ .sample_rate = 8000, .n_fft = 8, .n_mels = 2 };
}

void begin_wf_block_options(world *w, wf_block_options *o) {
    (void)w;
    *o = (wf_block_options){ .d_model = 4, .num_heads = 2, .dim_feedforward = 6, .bias = true };
    o->layer_norm_eps = 1e-5;
}

void begin_wf_optimizer_options(world *w, wf_optimizer_options *o) {
    *o = wf_optimizer_defaults(dice(w, 2) ? WF_ADAM : WF_SGD);
    o->name = draw_text(w, -2);
}

void begin_wf_schedule(world *w, wf_schedule *o) {
    (void)w;
    *o = (wf_schedule){ WF_CONSTANT_RATE, 0.1, 0, 10, 0 };
}

void begin_wf_trainer_options(world *w, wf_trainer_options *o) {
    (void)w;
    (void)o;
}

void begin_wf_recurrent_options(world *w, wf_recurrent_options *o) {
    (void)w;
    *o = (wf_recurrent_options){ .input_size = 4, .hidden_size = 3, .num_layers = 1, .bias = true };
}

void begin_wf_model_sizes(world *w, wf_model_sizes *o) {
    (void)w;
    *o = (wf_model_sizes){ .src_vocab = 9,
                           .tgt_vocab = 9,
                           .longest = 6,
                           .d_model = 4,
                           .num_heads = 2,
                           .dim_feedforward = 6,
                           .encoder_layers = 1,
                           .decoder_layers = 1 };
}

void begin_wf_transformer_config(world *w, wf_transformer_config *o) {
    (void)w;
    *o = wf_transformer_defaults();
    o->src_vocab = 9;
    o->tgt_vocab = 9;
    o->max_len = 6;
    o->d_model = 4;
    o->num_heads = 2;
    o->dim_feedforward = 6;
    o->encoder_layers = 1;
    o->decoder_layers = 1;
}

void begin_wf_language_model_config(world *w, wf_language_model_config *o) {
    *o = wf_language_model_defaults(dice(w, 2) ? WF_LLAMA : WF_GPT2);
    o->vocab = 9;
    o->max_len = 8;
    o->d_model = 4;
    o->num_heads = 2;
    o->dim_feedforward = 6;
    o->layers = 1;
}

void begin_wf_encoder_config(world *w, wf_encoder_config *o) {
    *o = wf_encoder_defaults();
    o->vocab = 9;
    o->max_len = 8;
    o->d_model = 4;
    o->num_heads = 2;
    o->dim_feedforward = 6;
    o->layers = 1;
    o->masked_lm = dice(w, 2);
}

void begin_wf_decode_options(world *w, wf_decode_options *o) {
    *o = wf_decode_defaults();
    o->beam = 1 + (int)dice(w, 2);
    o->max_len_b = 2;
}

void begin_wf_tokenizer_options(world *w, wf_tokenizer_options *o) {
    *o = wf_tokenizer_defaults((wf_token_kind)dice(w, 6));
}

void begin_wf_json_learn_options(world *w, wf_json_learn_options *o) {
    static const int64_t sizes[] = { 258, 12, 14 };
    *o = (wf_json_learn_options){ .kind = (wf_json_learn_kind)dice(w, 3), .min_freq = 1 };
    o->vocab_size = sizes[o->kind];
}

void begin_wf_entry(world *w, wf_entry *o) {
    static const char *const types[] = { "F32", "I32", "BF16", "F64", "X9" };
    *o = (wf_entry){ .name = draw_text(w, -2), .dtype = types[dice(w, odd(w) ? 5 : 1)], .ndim = 2 };
    o->shape[0] = 2;
    o->shape[1] = 3;
    o->bytes = 24;
}

void begin_wf_meta(world *w, wf_meta *o) {
    *o = (wf_meta){ draw_text(w, -2), "value" };
}

void begin_wf_rename(world *w, wf_rename *o) {
    *o = (wf_rename){ draw_text(w, -2), draw_text(w, -2) };
}

void begin_wf_sentencepiece_options(world *w, wf_sentencepiece_options *o) {
    static const char model[] =
        "\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>\x18\x03"
        "\x0a\x08\x0a\x04</s>\x18\x03\x0a\x0a\x0a\x03\xE2\x96\x81\x15\0\0\x80\xbf"
        "\x0a\x08\x0a\x01"
        "a\x15\0\0\0\xc0";
    char why[WF_MESSAGE];
    (void)w;
    wf_sentencepiece_defaults(model, sizeof model - 1, o, why);
}

void begin_wf_byte_level_options(world *w, wf_byte_level_options *o) {
    static const char *const pieces[] = { "<pad>", "<unk>", "<s>", "</s>", "a", "b", "ab" };
    static const char merges[] = "#version: 0.2\na b\n";
    (void)w;
    *o = (wf_byte_level_options){ .pieces = pieces,
                                  .n_pieces = COUNT_OF(pieces),
                                  .merges = merges,
                                  .merges_bytes = sizeof merges - 1,
                                  .special = { 0, 1, 2, 3 } };
}

void begin_wf_adam_options(world *w, wf_adam_options *o) {
    (void)w;
    *o = (wf_adam_options){ 0.9, 0.99, 1e-8, 0, false };
}

void begin_wf_rmsprop_options(world *w, wf_rmsprop_options *o) {
    (void)w;
    *o = (wf_rmsprop_options){ .alpha = 0.9, .eps = 1e-8 };
}

void begin_wf_lion_options(world *w, wf_lion_options *o) {
    (void)w;
    *o = (wf_lion_options){ 0.9, 0.99, 0 };
}

/* ---- layers ---------------------------------------------------------------------------------- */

#define LAYER(name, ...)                                                                           \
    void whole_##name(world *w, struct name *l) {                                                  \
        wf_graph *g = current(w);                                                                  \
        const char *path = draw_text(w, -2);                                                       \
        *l = __VA_ARGS__;                                                                          \
    }
LAYER(wf_linear_layer, wf_linear_new(g, path, 3, 2, true))
LAYER(wf_embedding_layer, wf_embedding_new(g, path, 5, 4, false))
LAYER(wf_position_layer, wf_position_new(g, path, (wf_positions)dice(w, 6), 4, 4))
LAYER(wf_norm_layer, wf_norm_new(g, path, WF_LAYER_NORM, 3, 1e-5, true))
LAYER(wf_group_norm_layer, wf_group_norm_new(g, path, 1, 3, 1e-5))
LAYER(wf_batch_norm_layer, wf_batch_norm_new(g, path, 3, 1e-5, 0.1))
LAYER(wf_mha_layer, wf_mha_new(g, path, 4, 2, 0, true, 0))
LAYER(wf_conv_layer, wf_conv_new(g, path, WF_CONV2D, 2, 3, 2, NULL, true))

static wf_block_options block(world *w) {
    wf_block_options o;
    begin_wf_block_options(w, &o);
    return o;
}

static wf_recurrent_options recurrent(world *w) {
    wf_recurrent_options o;
    begin_wf_recurrent_options(w, &o);
    return o;
}

void whole_wf_feed_forward_layer(world *w, struct wf_feed_forward_layer *l) {
    const wf_block_options o = block(w);
    *l = wf_feed_forward_new(current(w), &o);
}

void whole_wf_encoder_block(world *w, struct wf_encoder_block *l) {
    const wf_block_options o = block(w);
    *l = wf_encoder_layer_new(current(w), draw_text(w, -2), &o);
}

void whole_wf_decoder_block(world *w, struct wf_decoder_block *l) {
    const wf_block_options o = block(w);
    *l = wf_decoder_layer_new(current(w), draw_text(w, -2), &o);
}

void whole_wf_recurrent_layer(world *w, struct wf_recurrent_layer *l) {
    const wf_recurrent_options o = recurrent(w);
    *l = wf_recurrent_new(current(w), draw_text(w, -2), &o);
}

void whole_wf_recurrent_cell(world *w, struct wf_recurrent_cell *l) {
    struct wf_recurrent_layer layer;
    whole_wf_recurrent_layer(w, &layer);
    *l = layer.cell[0][0];
}

void whole_wf_generation(world *w, wf_generation *g) {
    *g = (wf_generation){ .options = wf_decode_defaults() };
    for (int i = 0; i < WF_MOST_BANNED; i++) g->banned[i] = 1;
    g->n_banned = (int)dice(w, WF_MOST_BANNED + 1);
    g->n_forced = odd(w) ? (int)dice(w, WF_MOST_FORCED + 1) : 0;
}
