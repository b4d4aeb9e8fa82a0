/* tools/train/settings/settings_model.c - the model of a training: what its file determines, how it
 * is made, which of its parameters are trained, and their trainer. See settings.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_internal.h"
#include "core/graph_internal.h"
#include "defaults.h"
#include "models/choices.h"
#include "models/encoder.h"
#include "models/hf_internal.h"
#include "models/language_model.h"
#include "models/marian_internal.h"
#include "models/model_internal.h"
#include "models/transformer.h"
#include "settings_file.h"
#include "tools/data/language.h"

/* Indices of words in the choices of settings.c. */
enum { GATED = 1, NO_BIAS = 1 };

/* ---- what the model's file determines -------------------------------------------------------- */

/* Takes the tokenizer of the model's file. Text needs a vocabulary, and a task on numbers needs a
 * model without one. */
static void take_tokenizer(const settings *set, const wf_file *f, const char *path) {
    char message[WF_MESSAGE];
    const char *kind = wf_file_meta(f, "tokenizer.kind");
    if (!kind) kind = wf_file_meta(f, "src_tokenizer.kind");
    if (!kind && set->data.kind->text)
        fail(&train_program, "%s holds no vocabulary: it can't be trained on text", path);
    if (kind && !set->data.kind->text)
        fail(&train_program, "%s is a model of text: it can't be trained on a task of numbers",
             path);
    if (kind && !option_set(option_find(&train_program, "tokenizer"), kind, message))
        fail(&train_program, "%s: %s", path, message);
}

enum { USUAL_LENGTH = 1024 }; /* tokens */

/* Refuses a --max-len above what the model can read. Without the option, text gets that length as
 * its default: at most USUAL_LENGTH for --task spans, and for models with start_if_empty. */
static void limit_length(settings *set, const wf_model *m, const char *path) {
    int64_t most = m->src ? m->max_len - 1 : (m->max_len - 1) / 2;
    if (set->data.kind->running) most = m->max_len;
    bool said = option_seen(&train_program, "max-len");
    if (said && set->data.max_len > most)
        usage_error(&train_program, "--max-len %lld: the model in %s takes at most %lld tokens",
                    (long long)set->data.max_len, path, (long long)most);
    /* the longest window of an imported language model or of T5 may have a hundred thousand
     * tokens */
    bool endless = m->start_if_empty || set->data.kind->spans;
    if (!said && endless && most > USUAL_LENGTH) most = USUAL_LENGTH;
    if (!said && (set->data.kind->text || set->data.max_len > most)) set->data.max_len = most;
}

/* Chooses the default rate of adapters by the width of the model. Matrix B of an adapter begins
 * as zeros, so adapters need a higher rate than weights do. The rate falls with the width, and
 * comes near those of the paper and of PEFT for large models. */
static void scale_lora(settings *set, const wf_model *m) {
    const wf_transformer *t = wf_transformer_of(m);
    const wf_language_model *l = wf_language_model_of(m);
    const wf_encoder *e = wf_encoder_of(m);
    int64_t width = 0;
    if (!set->model.lora || option_seen(&train_program, "lr")) return;
    if (t) width = t->config.d_model;
    if (l) width = l->config.d_model;
    if (e) width = e->config.d_model;
    set->recipe.lr = defaults_rate(set->recipe.lr, (double)width);
}

/* The model is recorded without its weights: only its kind and its configuration are read. */
void settings_from_model(settings *set, const wf_file *f, const char *path) {
    char message[WF_MESSAGE];
    const char *added = wf_file_meta(f, "weft.added");
    /* Marian's int8 scales are dropped, because training changes the weights that they belong
     * to. */
    if (added && *added && strcmp(added, WF_MARIAN_SCALES "\n") != 0)
        fail(&train_program,
             "%s has parameters that another program added to its model, '%.*s' the first: only "
             "that program can train it",
             path, (int)strcspn(added, "\n"), added);
    wf_adapters adapters;
    if (!set->run.resume && wf_model_read_adapters(f, &adapters, NULL))
        fail(&train_program,
             "%s has adapters without their model: start from that model, or from both merged: "
             "convert --adapter %s MODEL -o FILE",
             path, path);
    take_tokenizer(set, f, path);
    wf_model *m = wf_model_record(f, NULL, WF_F32, 0, message);
    if (!m) fail(&train_program, "%s: %s", path, message);
    const wf_encoder *e = wf_encoder_of(m);
    if (set->data.kind->running && !set->data.kind->masks && m->src && !set->run.resume)
        fail(&train_program,
             "%s has an encoder%s: it can't go on as a language model of --text. "
             "--train FILE.tsv goes on with pairs",
             path, e ? "" : " and a decoder");
    if (e && e->config.masked_lm && !set->data.kind->masks && set->model.lora)
        fail(&train_program, "%s predicts masked tokens: its adapters are for --task mask", path);
    if (e && !e->config.classes && set->data.kind->classifies && set->model.lora)
        fail(&train_program, "%s has no labels: its adapters are for a model that has them", path);
    if (set->data.kind->spans && !wf_transformer_of(m))
        fail(&train_program, "%s is %s: spans need an encoder and a decoder", path,
             e ? "an encoder" : "a decoder-only model");
    if (e && !e->config.masked_lm && set->data.kind->masks)
        fail(&train_program, "%s has no head that predicts masked tokens", path);
    for (set->model.arch = 0; !e && wf_model_kind_at(set->model.arch) != m->kind;)
        set->model.arch++;
    if (!set->run.resume) limit_length(set, m, path);
    /* by default the packed matrix: PEFT has no adapters for q_proj and v_proj as parts of it */
    if (set->model.lora && !set->model.lora_targets && wf_hf_packs_attention(m))
        set->model.lora_targets = "in_proj";
    if (!set->run.resume) scale_lora(set, m);
    wf_model_free(m);
}

/* ---- parameters that are not trained --------------------------------------------------------- */

/* True if the name begins with the first of the prefixes. An empty prefix fits no name. */
static bool begins(const char *name, const char *prefix) {
    size_t n = strcspn(prefix, ",");
    return n && strncmp(name, prefix, n) == 0;
}

/* The next prefix of the list; NULL: there are no more. */
static const char *next(const char *prefix) {
    const char *comma = strchr(prefix, ',');
    return comma ? comma + 1 : NULL;
}

static bool frozen(const char *prefixes, const char *name) {
    for (; prefixes; prefixes = next(prefixes))
        if (begins(name, prefixes)) return true;
    return false;
}

/* True if the parameter is not trained. With adapters, only they are trained. */
static bool is_frozen(const settings *set, const wf_tensor *param) {
    return set->model.lora ? !wf_from_hook(param) : frozen(set->model.freeze, param->name);
}

int64_t settings_frozen(const settings *set, const wf_model *m) {
    int64_t n = 0;
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && is_frozen(set, t)) n += wf_count(t);
    }
    return n;
}

/* Exits if a prefix fits no parameter. A tied table has only the first of its names. */
static void check_prefix(const wf_model *m, const char *prefix) {
    int length = (int)strcspn(prefix, ",");
    for (int id = 0; id < wf_node_count(m->graph); id++) {
        const wf_tensor *t = wf_node(m->graph, id);
        if (t->kind == WF_PARAM && begins(t->name, prefix)) return;
    }
    for (int i = 1; i < m->n_tied; i++)
        if (begins(m->tied[i], prefix))
            usage_error(&train_program, "--freeze %.*s: in this model that is one table with %s",
                        length, prefix, m->tied[0]);
    usage_error(&train_program,
                "--freeze '%.*s': no parameter's name begins with it; inspect lists the names in a "
                "model file",
                length, prefix);
}

static void check_freeze(const settings *set, const wf_model *m) {
    if (!set->model.freeze) return;
    int64_t n = settings_frozen(set, m);
    if (n && n == wf_model_parameter_count(m))
        usage_error(&train_program, "--freeze %s leaves nothing to train", set->model.freeze);
    if (!wf_ok(m->graph)) return; /* a failed graph may lack names, and has its own error message */
    for (const char *prefix = set->model.freeze; prefix; prefix = next(prefix))
        check_prefix(m, prefix);
}

/* ---- opening the model ----------------------------------------------------------------------- */

static wf_model_sizes sizes_of(const settings *set, const dataset *m) {
    return (wf_model_sizes){ .src_vocab = dataset_vocab(m, 0),
                             .tgt_vocab = dataset_vocab(m, 1),
                             .longest = set->data.max_len,
                             .d_model = set->model.d_model,
                             .num_heads = set->model.heads,
                             .dim_feedforward = set->model.d_ff,
                             .encoder_layers = set->model.enc_layers,
                             .decoder_layers = set->model.dec_layers,
                             .activation = (wf_activation)set->model.activation,
                             .positions = (wf_positions)set->model.positions,
                             .tie = (wf_tie)set->model.tie,
                             .norm_first = set->model.norm == WF_NORM_PRE,
                             .embedding_norm = set->model.embedding_norm,
                             .decoder = (wf_decoder_kind)set->model.decoder,
                             .t5 = set->model.like == LIKE_T5,
                             .marian = set->model.like == LIKE_FIREFOX,
                             .start_id = m->ids.start,
                             .end_id = m->ids.end,
                             .norm_kind = (wf_norm_kind)set->model.norm_kind,
                             .num_kv_heads = set->model.kv_heads,
                             .gated = set->model.feed_forward == GATED,
                             .no_bias = set->model.bias == NO_BIAS,
                             .row = m->kind->running ? set->data.max_len : 0,
                             .start_first = m->kind->running,
                             .masked = m->kind->masks,
                             .classes = m->classes.n,
                             .pad_id = m->ids.pad,
                             .start_if_empty = set->data.tokenizer == WF_JSON_TEXT };
}

wf_training_config settings_training(const settings *set) {
    return (wf_training_config){
        .dropout = set->recipe.dropout,
        .attention_dropout = set->recipe.attention_dropout,
        .activation_dropout = set->recipe.dropout,
        .label_smoothing = set->recipe.label_smoothing,
        .recompute = set->run.recompute,
        .alignment_weight = set->data.alignments ? set->recipe.alignment_weight : 0,
        .adapters = { set->model.lora, set->model.lora_alpha, set->model.lora_targets },
        .quantize_aware = (wf_quantize)set->model.quantize_aware,
    };
}

/* True if the model is an encoder, and its head does not suit the task to learn. */
static bool changes_head(const settings *set, const wf_model *m) {
    const wf_encoder *e = wf_encoder_of(m);
    if (!e) return false;
    return (e->config.masked_lm && !set->data.kind->masks) ||
           (e->config.classes > 0) != set->data.kind->classifies;
}

/* The model in the file of --init, without anything about its training, and with a head for the
 * labels if these are learned; NULL with message[256]. */
static wf_model *start(const settings *set, const dataset *d, const wf_file *init, char *message) {
    const wf_training_config training = settings_training(set);
    uint64_t seed = (uint64_t)set->recipe.seed;
    wf_model *m = wf_model_record(init, &training, WF_F32, seed, message);
    bool headless = m && changes_head(set, m);
    if (headless) {
        wf_model_free(m);
        m = wf_encoder_with_head(init, d->classes.n, &training, WF_F32, seed, message);
    }
    if (m) check_freeze(set, m);
    if (!m || headless) return m;
    /* with --lora, the frozen weights may have another format than the file */
    bool ok =
        !set->model.lora || wf_model_pack(m, init, set->model.base_weights, WF_ROW_MAJOR, message);
    if (ok && wf_model_load_weights(m, init, message)) return m;
    wf_model_free(m);
    return NULL;
}

/* The model of --init with adapters: new ones, or those of the checkpoint. */
static wf_model *adapted(const settings *set, const dataset *d, const wf_file *f, wf_file *init,
                         char *message) {
    const char *base = f ? wf_file_meta(f, WF_ADAPTER_BASE_FILE) : NULL;
    if (!init)
        usage_error(&train_program,
                    "%s has adapters without their model: name it with --init MODEL%s%s",
                    set->run.model, base ? ", which was " : "", base ? base : "");
    wf_file_drop_loaded(init);
    wf_model *m = start(set, d, init, message);
    if (!m || !f || wf_model_load_adapters(m, f, message)) return m;
    wf_model_free(m);
    return NULL;
}

static wf_model *new_model(const settings *set, const dataset *d, char *message) {
    const wf_training_config training = settings_training(set);
    const wf_model_sizes sizes = sizes_of(set, d);
    if (!wf_model_sizes_ok(set->model.kind, &sizes, message))
        usage_error(&train_program, "%s", message);
    wf_model *m = wf_model_new(set->model.kind, &sizes, &training, WF_F32,
                               (uint64_t)set->recipe.seed, message);
    if (m) check_freeze(set, m);
    return m;
}

/* Checks a model that was read from the file `path`: its kind must be that of the training, its
 * vocabularies and labels must have as many entries as those of the data. The start and end ids of
 * text come from the model; for running text, only if the model puts a start token before an empty
 * prompt alone. A model for running text must begin it with a start token. Other data, such as a
 * task on numbers, have ids of their own, which must be the model's. */
static void check_model(const wf_model_kind *kind, const wf_model *m, dataset *d,
                        const char *path) {
    const int64_t of_model[] = { m->src_vocab, m->tgt_vocab };
    const wf_encoder *e = wf_encoder_of(m);
    const source_kind *source = d->kind;
    bool running = source->running && !source->masks;
    char message[WF_MESSAGE];
    if (m->kind != kind)
        fail(&train_program, "%s: its model is of kind %s, and this training of kind %s%s", path,
             wf_model_kind_name(m->kind), wf_model_kind_name(kind),
             e ? "; --task pairs, mask and classify train an encoder" : "");
    for (int i = 0; i < 2; i++)
        if (!vocabulary_fits(i, dataset_vocab(d, i), of_model[i], message))
            fail(&train_program, "%s: %s", path, message);
    if (source->classifies && e && e->config.classes != d->classes.n)
        fail(&train_program, "%s: it names %lld labels, but has %lld classes", path,
             (long long)d->classes.n, (long long)e->config.classes);
    if (source->text && (!running || m->start_if_empty)) {
        d->ids.start = m->start_id;
        d->ids.end = m->end_id;
    }
    if (m->start_id != d->ids.start || m->end_id != d->ids.end || (running && !m->start_first))
        fail(&train_program,
             "%s: its model was not made for this task: it begins or ends outputs with other ids",
             path);
}

wf_model *settings_open_model(const settings *set, dataset *d, const wf_file *f, wf_file *init) {
    char message[WF_MESSAGE];
    const char *path = f ? set->run.model : set->model.init;
    wf_training_config training = settings_training(set);
    wf_model *m;
    if (set->model.lora)
        m = adapted(set, d, f, init, message);
    else if (f)
        m = wf_model_load(f, &training, WF_F32, (uint64_t)set->recipe.seed, message);
    else if (init)
        m = start(set, d, init, message);
    else
        m = new_model(set, d, message);
    if (!m && (f || init)) fail(&train_program, "%s: %s", path, message);
    if (!m) fail(&train_program, "%s", message);
    if (!wf_ok(m->graph)) fail(&train_program, "%s", wf_error(m->graph));
    if (f || init) check_model(set->model.kind, m, d, path);
    return m;
}

/* ---- the trainer ----------------------------------------------------------------------------- */

/* Only AdamW and Lion get a weight decay. RMSprop's alpha is --beta2. */
static wf_optimizer_options optimizer_of(const settings *set) {
    wf_optimizer_kind kind = (wf_optimizer_kind)set->recipe.optimizer;
    bool decays = kind == WF_ADAMW || kind == WF_LION;
    return (wf_optimizer_options){
        .kind = kind,
        .momentum = set->recipe.momentum,
        .beta1 = set->recipe.beta1,
        .beta2 = set->recipe.beta2,
        .alpha = set->recipe.beta2,
        .eps = set->recipe.eps,
        .weight_decay = decays ? set->recipe.weight_decay : 0,
        .clip_norm = set->recipe.clip_norm,
        .average_decay = set->recipe.ema,
    };
}

wf_trainer *settings_trainer(const settings *set, wf_model *m, wf_pool *pool,
                             wf_transport *transport) {
    wf_tensor *const sums[] = { m->loss.loss, m->loss.nll, m->correct, m->alignment_loss };
    int all = wf_parameters(m->graph, NULL, NULL, 0), n = 0;
    wf_tensor **params = calloc((size_t)all + 1, sizeof *params);
    if (!params) return NULL;
    wf_parameters(m->graph, NULL, params, all);
    for (int i = 0; i < all; i++)
        if (!is_frozen(set, params[i])) params[n++] = params[i];
    wf_trainer_options o = { .optimizer = optimizer_of(set),
                             .schedule = settings_schedule(set),
                             .micro_batches = set->data.accum,
                             .sums = sums,
                             .n_sums = 3 + (m->alignment_loss != NULL),
                             .params = params,
                             .n_params = n,
                             .pool = pool,
                             .transport = transport };
    wf_trainer *t = wf_trainer_new(m->graph, m->objective, m->loss.count, &o);
    free(params);
    return t;
}
