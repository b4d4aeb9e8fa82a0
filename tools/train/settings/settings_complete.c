/* tools/train/settings/settings_complete.c - fills in settings that were not given, and reports
 * contradictions. See settings.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "settings_file.h"

const wf_model_kind *settings_kind(const settings *set) {
    return settings_task(set)->encoder ? &wf_encoder_kind : wf_model_kind_at(set->model.arch);
}

bool settings_in_one_row(const settings *set) {
    return wf_model_kind_decoder_only(settings_kind(set));
}

static void complete_sizes(settings *set) {
    option_no_effect(&train_program, "enc-layers", settings_in_one_row(set),
                     "this architecture has one stack: --layers");
    option_no_effect(&train_program, "dec-layers", settings_in_one_row(set),
                     "this architecture has one stack: --layers");
    static const char *const of_one[] = { "form", "kv-heads", "norm-kind", "feed-forward", "bias" };
    for (int i = 0; i < 5; i++)
        option_no_effect(&train_program, of_one[i], !settings_in_one_row(set),
                         "this architecture has one form");
    option_no_effect(&train_program, "embedding-norm", settings_in_one_row(set),
                     "this architecture has none");
    option_no_effect(&train_program, "decoder", settings_in_one_row(set),
                     "this architecture has self-attention");
    option_no_effect(&train_program, "layers", set->model.enc_layers && set->model.dec_layers,
                     "--enc-layers and --dec-layers say it all");
    if (!set->model.enc_layers) set->model.enc_layers = set->model.layers;
    if (!set->model.dec_layers) set->model.dec_layers = set->model.layers;
}

/* Takes the defaults for the chosen word, for options that were not given. */
static void take_defaults_of(const char *choice) {
    char word[OPTION_TEXT_SIZE];
    options_take_defaults(&train_program, option_text(option_find(&train_program, choice), word));
}

/* The epochs of the recipe: usual_epochs, which depends on the size of the data, or else the
 * default of --epochs for the task or for --init; 0: it has none. */
static int64_t recipe_epochs(const settings *set) {
    char word[OPTION_TEXT_SIZE];
    option_text(option_find(&train_program, "task"), word);
    const char *epochs = option_default(option_find(&train_program, "epochs"),
                                        settings_started(set) ? "init" : word);
    if (set->recipe.usual_epochs) return set->recipe.usual_epochs;
    return epochs ? strtoll(epochs, NULL, 10) : 0;
}

/* The steps of the recipe. For text, those of `epochs` epochs. For copy, reverse and sort, a number
 * (with a margin) after which every seed tried gave right outputs for 1,000 unseen sequences. */
static int64_t recipe_steps(const settings *set, int64_t updates, int64_t epochs) {
    bool quick = set->data.task == LEARN_COPY || set->data.task == LEARN_REVERSE;
    if (updates) return epochs * updates;
    return quick ? 2000 : 2500;
}

bool settings_has_horizon(const settings *set) {
    return set->recipe.schedule == WF_LINEAR_DECAY || set->recipe.schedule == WF_COSINE;
}

/* Extends a schedule that has an end to --max-steps, if that is beyond it. So the rate may jump up
 * at the resumed step, but it is at most its peak. */
static void stretch(settings *set) {
    bool said = option_seen(&train_program, "lr-steps");
    if (!settings_has_horizon(set)) return;
    if (!said && set->run.max_steps > set->recipe.lr_steps) {
        set->recipe.planned_steps = set->recipe.lr_steps;
        set->recipe.lr_steps = set->run.max_steps;
    }
    if (set->recipe.planned_steps == set->recipe.lr_steps) set->recipe.planned_steps = 0;
}

/* True if --max-steps is given without --lr-steps, and ends a new training before the schedule of
 * the learning rate does. */
static bool makes_fewer(const settings *set) {
    return !set->run.resume && option_seen(&train_program, "max-steps") &&
           !option_seen(&train_program, "lr-steps") && set->run.max_steps < set->recipe.lr_steps;
}

bool settings_stops_early(const settings *set) {
    return settings_has_horizon(set) && makes_fewer(set);
}

/* Limits the default warm-up for text to a part (defaults_warmup) of the schedule's steps; or of
 * --max-steps, if that alone ends the training earlier. */
static void complete_warmup(settings *set, bool is_long) {
    int64_t whole = defaults_warmup(set->recipe.warmup, set->recipe.lr_steps, is_long);
    int64_t made = defaults_warmup(set->recipe.warmup, set->run.max_steps, is_long);
    set->recipe.warmup_follows = makes_fewer(set) && made < whole;
    set->recipe.warmup = set->recipe.warmup_follows ? made : whole;
}

bool settings_warm_before(const settings *set, int64_t updates, int64_t steps) {
    bool is_part = updates && !option_seen(&train_program, "warmup");
    return steps > (is_part ? 0 : set->recipe.warmup);
}

void settings_complete_steps(settings *set, int64_t updates) {
    assert(updates >= 0);
    const program *p = &train_program;
    int64_t recipe = recipe_steps(set, updates, set->run.epochs);
    bool pairs = updates && !settings_task(set)->running;
    bool is_long =
        !settings_started(set) && (set->data.task == LEARN_PAIRS || set->model.like == LIKE_BART);
    if (pairs && !option_seen(p, "valid-every")) set->run.valid_every = updates;
    if (pairs && !option_seen(p, "save-every")) set->run.save_every = updates;
    if (!set->run.max_steps)
        set->run.max_steps = set->run.resume && !set->run.epochs ? set->recipe.lr_steps : recipe;
    /* lr_steps is stored. If the schedule has no end, it comes from the default epochs, so that it
     * does not depend on where this training stops */
    if (!set->recipe.lr_steps && !settings_has_horizon(set))
        set->recipe.lr_steps = recipe_steps(set, updates, recipe_epochs(set));
    if (!set->recipe.lr_steps)
        set->recipe.lr_steps = set->run.max_steps > recipe ? set->run.max_steps : recipe;
    if (set->run.resume) stretch(set);
    if (updates && !set->run.resume && !option_seen(p, "warmup")) complete_warmup(set, is_long);
    if (settings_has_horizon(set) && set->run.max_steps > set->recipe.lr_steps)
        usage_error(p,
                    "--max-steps %lld is beyond --lr-steps %lld, where the rate ends at 0: raise "
                    "--lr-steps, or leave it out",
                    (long long)set->run.max_steps, (long long)set->recipe.lr_steps);
    if (settings_has_horizon(set) && set->recipe.warmup >= set->recipe.lr_steps)
        usage_error(p, "--warmup %lld leaves nothing before --lr-steps %lld: lower it",
                    (long long)set->recipe.warmup, (long long)set->recipe.lr_steps);
}

/* ---- text ------------------------------------------------------------------------------------ */

const source_kind *settings_task(const settings *set) {
    static const source_kind not_known = { 0 };
    const source_kind *kind = source_of_word(set->data.task);
    return kind ? kind : &not_known;
}

bool settings_from_files(const settings *set) {
    return set->data.task == LEARN_TEXT || set->data.task == LEARN_PAIRS ||
           set->data.task == LEARN_CLASSIFY;
}

bool settings_validates(const settings *set) {
    if (settings_task(set)->running) return set->data.text_eval || set->data.text_eval_size > 0;
    if (settings_from_files(set) && (set->data.valid || set->data.valid_src)) return true;
    return set->data.valid_size > 0;
}

static void one_way(const char *both, const char *const *path, const char *src, const char *tgt) {
    if (path[0] && (path[1] || path[2]))
        usage_error(&train_program, "--%s holds both sides: --%s and --%s are not wanted", both,
                    src, tgt);
    if (!path[1] != !path[2]) usage_error(&train_program, "--%s and --%s go together", src, tgt);
}

/* Exits if running text is to be learned and --text does not name it. */
static void refuse_other_file(const settings *set) {
    const char *pairs = set->data.train ? set->data.train : set->data.train_src;
    if (!settings_task(set)->running || set->data.text) return;
    if (pairs)
        usage_error(&train_program,
                    "--train has pairs, and this task learns from running text: --text %s", pairs);
    usage_error(&train_program, "say which text: --text FILE");
}

static void check_files(settings *set) {
    const program *p = &train_program;
    refuse_other_file(set);
    one_way("train", (const char *[]){ set->data.train, set->data.train_src, set->data.train_tgt },
            "train-src", "train-tgt");
    one_way("valid", (const char *[]){ set->data.valid, set->data.valid_src, set->data.valid_tgt },
            "valid-src", "valid-tgt");
    bool given = set->data.train || set->data.train_src;
    if (set->data.task < 0 && given) set->data.task = LEARN_TEXT;
    if (set->data.task < 0 && set->data.text) set->data.task = LEARN_LM;
    if (settings_from_files(set) && !given)
        usage_error(p, "say which text: --train FILE.tsv, or --train-src and --train-tgt%s",
                    set->data.text ? "; --text is for --task lm, mask and spans" : "");
    option_no_effect(p, "text-eval-size", set->data.text_eval,
                     "--text-eval is used for validation");
}

/* ---- the whole ------------------------------------------------------------------------------- */

const char *settings_learns(const settings *set) {
    if (settings_task(set)->spans) return "unigram --special '<pad>,</s>,<unk>,<extra_id_0>,...'";
    if (set->model.like == LIKE_T5) return "unigram";
    return settings_task(set)->encoder ? "wordpiece" : "bpe";
}

/* Uses a single .spm file for both sides. Exits if the tokenizer of a new model lacks its file, or
 * if running text lacks the token that ends a document. */
static void complete_sentencepiece(settings *set) {
    const program *p = &train_program;
    bool wanted = set->data.tokenizer == WF_SENTENCEPIECE;
    bool json = set->data.tokenizer == WF_JSON_TEXT && !set->model.init && !set->run.resume;
    if (json && !set->data.tokenizer_json)
        usage_error(p,
                    "--tokenizer json: say which one, --tokenizer-json FILE, or a model from "
                    "Hugging Face, --init MODEL. " MAKES_ONE,
                    settings_learns(set));
    if (json && !set->data.end_token && settings_task(set)->running && !settings_task(set)->masks)
        usage_error(p, "--tokenizer-json: say which of its tokens ends a document, as --end-token "
                       "'<|endoftext|>'");
    if (wanted && !set->data.spm_src && !set->data.spm_tgt)
        usage_error(p, "--tokenizer sentencepiece: say which vocabulary, --spm-src FILE and "
                       "--spm-tgt FILE, or one for both");
    if (settings_in_one_row(set) && set->data.spm_src && set->data.spm_tgt)
        usage_error(p, "this architecture has one vocabulary: --spm-src or --spm-tgt alone");
    if (!set->data.spm_src) set->data.spm_src = set->data.spm_tgt;
    if (!set->data.spm_tgt) set->data.spm_tgt = set->data.spm_src;
}

/* Takes the defaults of --task; then for a new model those of --like, --tokenizer, --preset and
 * --form, and for one from a file those of --init and --lora. */
static void take_defaults(settings *set, const wf_file *init) {
    program *p = &train_program;
    take_defaults_of("task");
    if (init) {
        options_take_defaults(p, "init");
        if (set->model.lora) options_take_defaults(p, "lora");
        set->model.like = LIKE_NONE; /* the model's file determines the form */
        return;
    }
    take_defaults_of("like");
    bool spm = set->data.spm_src || set->data.spm_tgt;
    if (set->data.tokenizer_json && !option_seen(p, "tokenizer"))
        set->data.tokenizer = WF_JSON_TEXT;
    if (spm && !option_seen(p, "tokenizer")) set->data.tokenizer = WF_SENTENCEPIECE;
    take_defaults_of("tokenizer");
    take_defaults_of("preset");
    take_defaults_of("form");
}

/* Results, as text or events, have stdout to themselves: a picture cannot go there. `--log -` means
 * --json. */
static void take_dashes(settings *set) {
    if (is_dash(set->run.curve))
        usage_error(&train_program, "--curve -: stdout gets the results: name a file");
    if (is_dash(set->run.page))
        usage_error(&train_program, "--report -: stdout gets the results: name a file");
    if (!is_dash(set->run.log)) return;
    set->run.json = true;
    set->run.log = NULL;
}

void settings_complete(settings *set, const wf_file *f, const wf_file *init) {
    const program *p = &train_program;
    take_dashes(set);
    if (f) settings_from_file(set, f);
    if (init) settings_refuse_sizes("the model of --init says it");
    check_files(set);
    settings_complete_held(set, f);
    if (set->data.task < 0)
        usage_error(p, "say what to learn: --task %s, or --train FILE.tsv", LEARN_WORDS);
    if (!f) take_defaults(set, init);
    if (settings_started(set))
        settings_from_model(set, f ? f : init, f ? set->run.model : set->model.init);
    settings_refuse_idle(set);
    if (!f && !init) complete_sentencepiece(set);
    settings_refuse_unlike(set);
    if (!settings_task(set)->text && set->data.max_len > TASK_MAX_LEN)
        usage_error(p, "--max-len %lld: a generated sequence has at most %d tokens",
                    (long long)set->data.max_len, TASK_MAX_LEN);
    if (!settings_task(set)->text && set->data.min_len > set->data.max_len)
        usage_error(p, "--min-len %lld is more than --max-len %lld", (long long)set->data.min_len,
                    (long long)set->data.max_len);
    settings_refuse_running(set);
    if (settings_task(set)->text && !set->data.batch_size && !set->data.max_tokens)
        usage_error(p, "--batch-size 0 and --max-tokens 0: one of them must limit a batch");
    if (!settings_task(set)->text && !set->data.batch_size)
        usage_error(p, "--batch-size 0: a batch of generated sequences has at least one");
    complete_sizes(set);
}
