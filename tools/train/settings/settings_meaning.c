/* tools/train/settings/settings_meaning.c - what the settings mean to the data, the model, the optimizer and
 * the schedule. See settings.h. */
#include "models/choices.h"
#include "settings.h"

/* The places of words that are asked for: settings.c. */
enum { GATED = 1, NO_BIAS = 1 };

/* ---- data ------------------------------------------------------------------------------------ */

wf_token_kind settings_tokenizer(const settings *set, int side) {
    return (wf_token_kind)(side && set->tokenizer_tgt ? set->tokenizer_tgt - 1 : set->tokenizer);
}

wf_tokenizer_options settings_tokens(const settings *set, int side) {
    wf_tokenizer_options tokens = wf_tokenizer_defaults(settings_tokenizer(set, side));
    bool alike = tokens.kind == settings_tokenizer(set, 0);
    if (alike || option_seen(&train_program, "vocab-size")) tokens.vocab_size = set->vocab_size;
    if (alike || option_seen(&train_program, "min-freq")) tokens.min_freq = set->min_freq;
    return tokens;
}

/* What is read by one model of transformers with a vocab.json has one vocabulary. */
static bool settings_share_vocab(const settings *set) {
    bool byte_level = set->tokenizer == WF_BYTE_LEVEL && !set->tokenizer_tgt;
    return set->share_vocab || settings_in_one_row(set) || byte_level;
}

static dataset_options pairs_of(settings *set) {
    return (dataset_options){
        .text_task = settings_from_files(set) ? -1 : set->task - LEARN_ADD,
        .train = { set->train ? set->train : set->train_src, set->train_tgt },
        .valid = { set->valid ? set->valid : set->valid_src, set->valid_tgt },
        .valid_size = set->valid_size,
        .held = set->held,
        .tokens = { settings_tokens(set, 0), settings_tokens(set, 1) },
        .spm = { set->spm_src, set->spm_tgt },
        .shared = settings_share_vocab(set),
        .targets = settings_in_one_row(set),
        .max_tokens = set->max_len,
        .batches = { .sentences = set->batch_size,
                     .tokens = set->max_tokens,
                     .accum = set->accum,
                     .shuffle = true,
                     .seed = (uint64_t)set->seed },
        .follow = settings_follower(set),
    };
}

/* As many windows as --max-tokens allows. */
static running_options running_text_of(settings *set) {
    int64_t most = set->max_tokens / set->max_len;
    if (set->batch_size && (!set->max_tokens || set->batch_size < most)) most = set->batch_size;
    return (running_options){ .text = set->text,
                              .eval = set->text_eval,
                              .eval_bytes = set->text_eval_size,
                              .marker = set->document_marker,
                              .tokens = settings_tokens(set, 0),
                              .window = set->max_len,
                              .rows = most,
                              .accum = set->accum,
                              .seed = (uint64_t)set->seed,
                              .follow = settings_follower(set) };
}

source_options settings_source(settings *set) {
    return (source_options){
        .numbers = { (task_kind)set->task, set->min_len, set->max_len, (uint64_t)set->seed },
        .rows = set->batch_size,
        .held = set->valid_size,
        .pairs = pairs_of(set),
        .running = running_text_of(set),
    };
}

/* ---- the model ------------------------------------------------------------------------------- */

static wf_model_sizes sizes_of(const settings *set, const dataset *m) {
    return (wf_model_sizes){ .src_vocab = dataset_vocab(m, 0),
                             .tgt_vocab = dataset_vocab(m, 1),
                             .longest = set->max_len,
                             .d_model = set->d_model,
                             .num_heads = set->heads,
                             .dim_feedforward = set->d_ff,
                             .encoder_layers = set->enc_layers,
                             .decoder_layers = set->dec_layers,
                             .activation = (wf_activation)set->activation,
                             .positions = (wf_positions)set->positions,
                             .tie = (wf_tie)set->tie,
                             .norm_first = set->norm == WF_NORM_PRE,
                             .embedding_norm = set->embedding_norm,
                             .start_id = m->ids.start,
                             .end_id = m->ids.end,
                             .norm_kind = (wf_norm_kind)set->norm_kind,
                             .num_kv_heads = set->kv_heads,
                             .gated = set->feed_forward == GATED,
                             .no_bias = set->bias == NO_BIAS,
                             .row = m->kind->running ? set->max_len : 0,
                             .start_first = m->kind->running };
}

const wf_model_kind *settings_kind(const settings *set) {
    return wf_model_kind_at(set->arch);
}

bool settings_model_ok(const settings *set, const dataset *m, char *message) {
    const wf_model_sizes sizes = sizes_of(set, m);
    return wf_model_sizes_ok(settings_kind(set), &sizes, message);
}

wf_model *settings_model(const settings *set, const dataset *m, char *message) {
    const wf_training_config training = settings_training(set);
    const wf_model_sizes sizes = sizes_of(set, m);
    return wf_model_new(settings_kind(set), &sizes, &training, WF_F32, (uint64_t)set->seed,
                        message);
}

wf_training_config settings_training(const settings *set) {
    return (wf_training_config){
        .dropout = set->dropout,
        .attention_dropout = set->attention_dropout,
        .activation_dropout = set->dropout,
        .label_smoothing = set->label_smoothing,
    };
}

wf_optimizer_options settings_optimizer(const settings *set) {
    return (wf_optimizer_options){
        .kind = (wf_optimizer_kind)set->optimizer,
        .momentum = set->momentum,
        .beta1 = set->beta1,
        .beta2 = set->beta2,
        .eps = set->eps,
        .weight_decay = set->optimizer == WF_ADAMW ? set->weight_decay : 0,
        .clip_norm = set->clip_norm,
        .average_decay = set->ema,
    };
}

wf_schedule settings_schedule(const settings *set) {
    return (wf_schedule){
        .kind = (wf_schedule_kind)set->schedule,
        .peak = set->lr,
        .warmup = set->warmup,
        .steps = set->lr_steps,
    };
}
