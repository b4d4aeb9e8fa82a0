/* tools/train/settings/settings_refuse.c - reports options that contradict each other, or that
 * would have no effect. See settings.h. */
#include <stdio.h>
#include <string.h>

#include "models/choices.h"
#include "models/model_internal.h"
#include "models/text_internal.h"
#include "settings_file.h"

/* Exits with 2 if a number was given that the chosen optimizer does not use. */
static void refuse_idle_numbers(const settings *set) {
    const program *p = &train_program;
    bool adam = set->recipe.optimizer == WF_ADAM || set->recipe.optimizer == WF_ADAMW;
    bool sgd = set->recipe.optimizer == WF_SGD, lion = set->recipe.optimizer == WF_LION;
    bool rmsprop = set->recipe.optimizer == WF_RMSPROP;
    option_no_effect(p, "beta1", !adam && !lion, "this optimizer has no such average");
    option_no_effect(p, "beta2", !adam && !lion && !rmsprop, "this optimizer has no such average");
    option_no_effect(p, "eps", sgd || lion, "this optimizer does not divide");
    option_no_effect(p, "momentum", !sgd && !rmsprop, "only sgd and rmsprop have momentum");
    option_no_effect(p, "weight-decay", !lion && set->recipe.optimizer != WF_ADAMW,
                     "only adamw and lion decay weights");
}

enum { ANY_TIE = 1 << WF_TIE_NONE | 1 << WF_TIE_DECODER | 1 << WF_TIE_ALL };

/* The form of model that each word of --like stands for, in the order of the words. */
static const struct {
    const char *name, *form;
    wf_norm_place norm;
    wf_positions positions;
    bool embedding_norm;
    unsigned ties; /* bits of the kinds of --tie that it has */
    bool one_vocabulary, needs_text;
    int tokenizer; /* -1: any */
    const char *text;
} likes[] = {
    { .name = "none" },
    { "marian", "--norm post --positions sinusoidal-halves --activation silu", WF_NORM_POST,
      WF_POSITIONS_HALVES, false, ANY_TIE, false, false, WF_SENTENCEPIECE,
      "it reads text with SentencePiece models, which weft does not learn: --spm-src FILE "
      "--spm-tgt "
      "FILE; or --like bart, which needs no file" },
    { "bart", "--norm post --positions learned --activation gelu --embedding-norm yes --tie all",
      WF_NORM_POST, WF_POSITIONS_LEARNED, true, 1 << WF_TIE_ALL, true, true, WF_BYTE_LEVEL,
      "it reads text with byte-pair encoding of bytes: --tokenizer byte-level" },
    { "t5", "--norm pre --positions none --tie inputs or all", WF_NORM_PRE, WF_POSITIONS_NONE,
      false, 1 << WF_TIE_INPUTS | 1 << WF_TIE_ALL, true, false, -1,
      "both sides have one vocabulary: leave --tokenizer-tgt out" },
    { "firefox", "--norm post --positions sinusoidal-tensor2tensor", WF_NORM_POST,
      WF_POSITIONS_TENSOR2TENSOR, false, ANY_TIE | 1 << WF_TIE_INPUTS, false, false,
      WF_SENTENCEPIECE,
      "it reads text with a SentencePiece model, whose ids it has: --spm-src FILE" },
};

/* True if the settings of the model have the form that --like names. */
static bool alike(const settings *set) {
    const model_settings *m = &set->model;
    return m->norm == (int)likes[m->like].norm && m->positions == (int)likes[m->like].positions &&
           m->embedding_norm == likes[m->like].embedding_norm && likes[m->like].ties >> m->tie & 1;
}

/* Exits if two vocabularies are to share one table of embeddings. */
static void refuse_two_vocabularies(const settings *set) {
    const program *p = &train_program;
    bool files = set->data.spm_src && strcmp(set->data.spm_src, set->data.spm_tgt) != 0;
    bool kinds = settings_tokenizer(set, 0) != settings_tokenizer(set, 1);
    if (!settings_one_table(set) || set->run.resume || (!files && !kinds)) return;
    usage_error(p,
                "--tie %s: one table of embeddings for both sides needs one vocabulary: leave %s "
                "out",
                option_text(option_find(p, "tie"), (char[OPTION_TEXT_SIZE]){ 0 }),
                files ? "--spm-tgt" : "--tokenizer-tgt");
}

void settings_refuse_unlike(const settings *set) {
    const program *p = &train_program;
    const char *name = likes[set->model.like].name;
    if (!set->model.like) {
        refuse_two_vocabularies(set);
        return;
    }
    if (settings_in_one_row(set))
        usage_error(p, "--like %s: it has an encoder and a decoder: --arch transformer", name);
    if (set->model.decoder != WF_DECODER_ATTENTION && set->model.like != LIKE_FIREFOX)
        usage_error(p, "--like %s: its decoder has self-attention: --decoder attention", name);
    if (!alike(set)) usage_error(p, "--like %s: it has %s", name, likes[set->model.like].form);
    if (likes[set->model.like].needs_text && !settings_task(set)->text)
        usage_error(p, "--like %s: it is for text, which has a padding id: leave --like out", name);
    int tokenizer = likes[set->model.like].tokenizer;
    if (settings_task(set)->text &&
        ((tokenizer >= 0 && set->data.tokenizer != tokenizer) ||
         (likes[set->model.like].one_vocabulary && set->data.tokenizer_tgt)))
        usage_error(p, "--like %s: %s", name, likes[set->model.like].text);
    if (set->model.like == LIKE_T5 && set->data.spm_src &&
        strcmp(set->data.spm_src, set->data.spm_tgt) != 0)
        usage_error(p, "--like t5: both sides have one vocabulary: --spm-src alone");
    refuse_two_vocabularies(set);
}

/* Options that some tasks do not use. `readers` are the tasks that use them, or `idle` those that
 * do not. */
static const struct {
    const char *options, *readers, *idle, *because;
} by_task[] = {
    { .options = "text|text-eval|text-eval-size|document-marker",
      .readers = "lm|mask|spans",
      .because = "it is for --task lm, mask and spans" },
    { .options = "tokenizer-json",
      .readers = "text|lm|pairs|mask|classify|spans",
      .because = "it is for text from files" },
    { .options = "end-token", .readers = "text|lm", .because = "it is for --task lm and text" },
    { .options = "train|train-src|train-tgt|valid|valid-src|valid-tgt",
      .idle = "lm|mask|spans",
      .because = "running text is in --text" },
    { .options = "train|train-src|train-tgt|valid|valid-src|valid-tgt",
      .readers = "text|pairs|classify",
      .because = "the task makes its own pairs" },
    { .options = "alignments|alignment-weight",
      .readers = "text",
      .because = "it is for pairs of --task text" },
    { .options =
          "tokenizer|tokenizer-tgt|spm-src|spm-tgt|vocab-size|min-freq|share-vocab|max-tokens|"
          "epochs|accum",
      .readers = "add|date|text|lm|pairs|mask|classify|spans",
      .because = "it is for tasks on text" },
    { .options = "min-len",
      .idle = "add|date|text|lm|pairs|mask|classify|spans",
      .because = "text has lines of any length" },
    { .options = "valid-size",
      .idle = "lm|mask|spans",
      .because = "--text-eval-size says how much is held out" },
    { .options = "share-vocab|tokenizer-tgt",
      .idle = "lm|mask|spans",
      .because = "there is one text" },
    { .options = "share-vocab|tokenizer-tgt",
      .idle = "pairs|classify",
      .because = "an encoder has one vocabulary" },
    { .options = "arch|like|form|dec-layers|norm|embedding-norm|decoder|positions|tie",
      .idle = "pairs|mask|classify",
      .because = "the task trains an encoder, which has one form" },
    { .options = "arch|form|decoder",
      .idle = "spans",
      .because = "the task trains a model of T5's form" },
    { .options = "report", .idle = "spans", .because = "spans are no outputs to show" },
    { .options = "report",
      .idle = "pairs|mask|classify",
      .because = "an encoder has no outputs to show" },
};

static void refuse_by_task(void) {
    char word[OPTION_TEXT_SIZE], name[OPTION_TEXT_SIZE];
    option_text(option_find(&train_program, "task"), word);
    for (size_t i = 0; i < sizeof by_task / sizeof *by_task; i++) {
        const char *readers = by_task[i].readers, *at = by_task[i].options;
        bool idle = readers ? !option_among(readers, word) : option_among(by_task[i].idle, word);
        for (size_t n; idle && *at; at += n + (at[n] == '|')) {
            n = strcspn(at, "|");
            snprintf(name, sizeof name, "%.*s", (int)n, at);
            option_no_effect(&train_program, name, true, by_task[i].because);
        }
    }
}

/* Exits if --freeze is too long for a checkpoint's metadata, or not UTF-8. A checkpoint stores
 * the list, and a resume must be able to read it. */
static void refuse_freeze(const settings *set) {
    char why[WF_MESSAGE];
    if (!set->model.freeze) return;
    size_t n = strlen(set->model.freeze);
    if (n >= FREEZE_SIZE)
        usage_error(&train_program, "--freeze: more than %d characters", FREEZE_SIZE - 1);
    if (!wf_text_check(set->model.freeze, n, why)) usage_error(&train_program, "--freeze: %s", why);
}

/* Exits if options of adapters contradict each other, or would have no effect. */
static void refuse_lora(const settings *set) {
    const program *p = &train_program;
    static const char *const beside[] = { "lora-alpha", "lora-targets", "base-weights" };
    const char *targets = set->model.lora_targets;
    char why[WF_MESSAGE];
    for (int i = 0; i < 3; i++)
        option_no_effect(p, beside[i], !set->model.lora, "it is for --lora");
    if (set->model.lora && set->model.quantize_aware)
        usage_error(p, "--quantize-aware: adapters leave the matrices as they are, which it would "
                       "round: leave --lora out");
    option_no_effect(p, "freeze", set->model.lora > 0, "--lora trains adapters alone");
    if (set->model.lora && !set->model.init && !set->run.resume)
        usage_error(p, "--lora adapts a model: name it with --init MODEL");
    if (targets && !wf_text_check(targets, strlen(targets), why))
        usage_error(p, "--lora-targets: %s", why);
}

void settings_refuse_idle(const settings *set) {
    const program *p = &train_program;
    bool reports = !set->run.quiet || set->run.log || set->run.json || set->run.curve ||
                   set->run.page || set->run.tensorboard;
    refuse_by_task();
    refuse_idle_numbers(set);
    option_no_effect(p, "lr-steps", !settings_has_horizon(set),
                     "only linear and cosine schedules end");
    bool validates = settings_validates(set);
    const char *unjudged = settings_task(set)->running ? "--text-eval-size 0 holds nothing out"
                                                       : "--valid-size 0 makes no validation";
    option_no_effect(p, "valid-every", !validates, unjudged);
    option_no_effect(p, "patience", !validates, unjudged);
    option_no_effect(p, "patience", option_seen(p, "valid-every") && !set->run.valid_every,
                     "--valid-every 0 validates at the end only");
    option_no_effect(p, "save-every", !set->run.model, "without -o nothing is saved");
    option_no_effect(p, "overwrite", !set->run.model && !set->run.page && !set->run.log,
                     "without -o nothing is saved");
    option_no_effect(p, "overwrite", set->run.dry_run, "a dry run saves nothing");
    option_no_effect(p, "report", set->run.dry_run, "a dry run trains nothing");
    option_no_effect(p, "tensorboard", set->run.dry_run, "a dry run trains nothing");
    option_no_effect(p, "log-every", !reports, "--quiet without --log or --json reports nothing");
    option_no_effect(p, "profile", set->run.quiet && !set->run.log && !set->run.json,
                     "--quiet says nothing");
    bool spm = set->data.tokenizer == WF_SENTENCEPIECE;
    static const char *const files[] = { "spm-src", "spm-tgt" };
    static const char *const learned[] = { "vocab-size", "min-freq", "share-vocab" };
    for (int i = 0; i < 2; i++)
        option_no_effect(p, files[i], !spm, "it is for --tokenizer sentencepiece");
    bool json = set->data.tokenizer == WF_JSON_TEXT;
    option_no_effect(p, "tokenizer-json", !json, "it is for --tokenizer json");
    option_no_effect(p, "end-token", !set->data.tokenizer_json, "it is for --tokenizer-json");
    option_no_effect(p, "end-token", set->model.like == LIKE_T5, "T5 ends outputs with </s>");
    option_no_effect(p, "tokenizer-tgt", json, "one tokenizer.json cuts both sides");
    option_no_effect(p, "tokenizer-tgt", spm, "a SentencePiece model cuts each side");
    for (int i = 0; i < 3; i++) {
        option_no_effect(p, learned[i], spm, "the .spm file says it");
        option_no_effect(p, learned[i], json, "the tokenizer.json says it");
    }
    option_no_effect(p, "valid-size",
                     settings_from_files(set) && (set->data.valid || set->data.valid_src),
                     "all pairs of --valid are used");
    option_no_effect(p, "ranks", !set->run.dry_run, "it is for --dry-run: --processes trains");
    option_no_effect(p, "ranks", set->run.processes > 1, "--processes says how many");
    option_no_effect(p, "network", !set->run.simulated_ranks, "it is for a --dry-run of --ranks");
    option_no_effect(p, "alignments", settings_in_one_row(set),
                     "a language model has no cross-attention to guide");
    option_no_effect(p, "tie", settings_in_one_row(set) && set->model.tie == WF_TIE_INPUTS,
                     "a language model has one embedding: --tie none or decoder");
    option_no_effect(p, "alignment-weight", !set->data.alignments, "it is for --alignments");
    option_no_effect(p, "epochs", option_seen(p, "max-steps"), "--max-steps says when to stop");
    refuse_freeze(set);
    refuse_lora(set);
}

static void refuse_masks(const settings *set) {
    enum { FEWEST = 3, FEWEST_OF_SPANS = 4 };
    const program *p = &train_program;
    bool spans = settings_task(set)->spans, json = set->data.tokenizer == WF_JSON_TEXT;
    if (!json && spans && !settings_started(set))
        usage_error(p,
                    "--tokenizer %s has no tokens for spans: --tokenizer-json FILE names one that "
                    "has. " MAKES_ONE,
                    wf_token_kind_name(set->data.tokenizer), settings_learns(set));
    if (!json && !spans)
        usage_error(
            p, "--tokenizer %s has no mask: --tokenizer-json FILE names one that has. " MAKES_ONE,
            wf_token_kind_name(set->data.tokenizer), settings_learns(set));
    if (set->data.max_len < (spans ? FEWEST_OF_SPANS : FEWEST))
        usage_error(p, "--max-len %lld: it is at least %d: two tokens stand around a window%s",
                    (long long)set->data.max_len, spans ? FEWEST_OF_SPANS : FEWEST,
                    spans ? ", and a span needs two inside it" : "");
    if (set->data.max_tokens && set->data.max_tokens < set->data.max_len)
        usage_error(p, "--max-tokens %lld is less than a window of --max-len %lld",
                    (long long)set->data.max_tokens, (long long)set->data.max_len);
}

/* Exits if the tokenizer puts no special token before a line: a head of classes reads that
 * token. */
static void refuse_classes(const settings *set) {
    if (!settings_task(set)->classifies || settings_started(set)) return;
    if (set->data.tokenizer != WF_JSON_TEXT)
        usage_error(&train_program,
                    "--tokenizer %s puts no token before a line: --tokenizer-json FILE names one "
                    "that does, or --init MODEL a model. " MAKES_ONE,
                    wf_token_kind_name(set->data.tokenizer), settings_learns(set));
}

/* Exits if the tokenizer or the architecture is not possible for running text or for labels. */
void settings_refuse_running(const settings *set) {
    const program *p = &train_program;
    refuse_classes(set);
    if (!settings_task(set)->running) return;
    if (settings_task(set)->masks) {
        refuse_masks(set);
        return;
    }
    if (set->data.tokenizer != WF_BYTES && set->data.tokenizer != WF_TEXT_CHARACTERS &&
        set->data.tokenizer != WF_BYTE_BPE && set->data.tokenizer != WF_JSON_TEXT)
        usage_error(p,
                    "--tokenizer %s loses line breaks: byte, text-char and byte-bpe keep a "
                    "text as it is",
                    wf_token_kind_name(set->data.tokenizer));
    if (!settings_in_one_row(set))
        usage_error(p, "a %s reads a source, and running text has none: leave --arch out",
                    wf_model_kind_name(settings_kind(set)));
    if (set->data.max_tokens && set->data.max_tokens < set->data.max_len)
        usage_error(p, "--max-tokens %lld is less than a window of --max-len %lld",
                    (long long)set->data.max_tokens, (long long)set->data.max_len);
    option_no_effect(p, "min-freq", set->data.tokenizer == WF_BYTES, "every byte has an id");
    option_no_effect(p, "vocab-size", set->data.tokenizer == WF_BYTES, "every byte has an id");
}
