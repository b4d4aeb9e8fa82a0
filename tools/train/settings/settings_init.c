/* tools/train/settings/settings_init.c - starts from a model's file: rejects options that the file
 * determines, takes their values from the file, and reads the model without its training state. See
 * settings.h. */
#include <stdio.h>
#include <string.h>

#include "models/hf_internal.h"
#include "models/marian_internal.h"
#include "models/model_internal.h"
#include "settings.h"

bool settings_started(const settings *set) {
    return *set->model.init_hash;
}

/* ---- what the file says ---------------------------------------------------------------------- */

void settings_refuse_sizes(const char *because) {
    static const char *const said[] = { "preset",  "like",           "form",
                                        "layers",  "share-vocab",    "spm-src",
                                        "spm-tgt", "tokenizer-json", "end-token" };
    const program *p = &train_program;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        option_no_effect(p, said[i], true, because);
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (o->of_model) option_no_effect(p, o->name, true, because);
}

/* Takes the tokenizer of the model's file. Text needs a vocabulary, and a task on numbers needs a
 * model without one. */
static void take_tokenizer(const settings *set, const wf_file *f, const char *path) {
    char message[WF_MESSAGE];
    const char *kind = wf_file_meta(f, "tokenizer.kind");
    if (!kind) kind = wf_file_meta(f, "src_tokenizer.kind");
    if (!kind && settings_text(set))
        fail(&train_program, "%s holds no vocabulary: it can't be trained on text", path);
    if (kind && !settings_text(set))
        fail(&train_program, "%s is a model of text: it can't be trained on a task of numbers",
             path);
    if (kind && !option_set(option_find(&train_program, "tokenizer"), kind, message))
        fail(&train_program, "%s: %s", path, message);
}

enum { USUAL_WINDOW = 1024 }; /* tokens */

/* Refuses a --max-len above what the model can read. Without the option, text gets that length as
 * its default: at most USUAL_WINDOW for --task spans, and for models with start_if_empty. */
static void limit_length(settings *set, const wf_model *m, const char *path) {
    int64_t most = m->src ? m->max_len - 1 : (m->max_len - 1) / 2;
    if (settings_running(set)) most = m->max_len;
    bool said = option_seen(&train_program, "max-len");
    if (said && set->data.max_len > most)
        usage_error(&train_program, "--max-len %lld: the model in %s takes at most %lld tokens",
                    (long long)set->data.max_len, path, (long long)most);
    /* the longest window of an imported language model or of T5 may have a hundred thousand
     * tokens */
    bool endless = m->start_if_empty || settings_spans(set);
    if (!said && endless && most > USUAL_WINDOW) most = USUAL_WINDOW;
    if (!said && (settings_text(set) || set->data.max_len > most)) set->data.max_len = most;
}

/* Records the model without loading its weights, to read its sizes. */
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
    if (settings_running(set) && !settings_masks(set) && m->src && !set->run.resume)
        fail(&train_program,
             "%s has an encoder%s: it can't go on as a language model of --text. "
             "--train FILE.tsv goes on with pairs",
             path, e ? "" : " and a decoder");
    if (e && e->config.masked_lm && !settings_masks(set) && set->model.lora)
        fail(&train_program, "%s predicts masked tokens: its adapters are for --task mask", path);
    if (e && !e->config.classes && settings_classifies(set) && set->model.lora)
        fail(&train_program, "%s has no labels: its adapters are for a model that has them", path);
    if (settings_spans(set) && !wf_transformer_of(m))
        fail(&train_program, "%s is %s: spans need an encoder and a decoder", path,
             e ? "an encoder" : "a decoder-only model");
    if (e && !e->config.masked_lm && settings_masks(set))
        fail(&train_program, "%s has no head that predicts masked tokens", path);
    for (set->model.arch = 0; !e && wf_model_kind_at(set->model.arch) != m->kind;)
        set->model.arch++;
    if (!set->run.resume) limit_length(set, m, path);
    /* by default the packed matrix: PEFT has no adapters for q_proj and v_proj as parts of it */
    if (set->model.lora && !set->model.lora_targets && wf_hf_packs_attention(m))
        set->model.lora_targets = "in_proj";
    if (!set->run.resume) settings_scale_lora(set, m);
    wf_model_free(m);
}

/* True if the model is an encoder, and its head does not suit the task to learn. */
static bool changes_head(const settings *set, const wf_model *m) {
    const wf_encoder *e = wf_encoder_of(m);
    if (!e) return false;
    return (e->config.masked_lm && !settings_masks(set)) ||
           (e->config.classes > 0) != settings_classifies(set);
}

wf_model *settings_start(const settings *set, const dataset *m, const wf_file *init,
                         char *message) {
    const wf_training_config training = settings_training(set);
    uint64_t seed = (uint64_t)set->recipe.seed;
    wf_model *own = wf_model_record(init, &training, WF_F32, seed, message);
    if (own && changes_head(set, own)) {
        wf_model_free(own);
        own = wf_encoder_with_head(init, m->classes.n, &training, WF_F32, seed, message);
        if (own) settings_check_freeze(set, own);
        return own;
    }
    if (own) settings_check_freeze(set, own);
    if (own && settings_pack_base(set, own, init, message) &&
        wf_model_load_weights(own, init, message))
        return own;
    wf_model_free(own);
    return NULL;
}
