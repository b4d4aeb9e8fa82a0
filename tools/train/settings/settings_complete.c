/* tools/train/settings/settings_complete.c - fills in settings that were not given, and refuses
 * those that contradict each other or would have no effect. See settings.h. */
#include <stdio.h>
#include <string.h>

#include "models/choices.h"
#include "models/model_internal.h"
#include "models/text_internal.h"
#include "settings_file.h"

/* ---- the files and the task ------------------------------------------------------------------ */

/* Results, as text or events, have stdout to themselves: a picture cannot go there. `--log -` means
 * --json. */
static void take_dashes(run_settings *run) {
    if (is_dash(run->curve))
        usage_error(&train_program, "--curve -: stdout gets the results: name a file");
    if (is_dash(run->page))
        usage_error(&train_program, "--report -: stdout gets the results: name a file");
    if (!is_dash(run->log)) return;
    run->json = true;
    run->log = NULL;
}

static void one_way(const char *both, const char *file, const char *src, const char *tgt) {
    if (file && (src || tgt))
        usage_error(&train_program, "--%s holds both sides: --%s-src and --%s-tgt are not wanted",
                    both, both, both);
    if (!src != !tgt) usage_error(&train_program, "--%s-src and --%s-tgt go together", both, both);
}

/* Finds the task: if --task was not given, it follows from the files. Exits if these are not the
 * files of the task. */
static void take_task(data_settings *d) {
    const program *p = &train_program;
    const char *pairs = d->train ? d->train : d->train_src;
    if (d->task < 0 && pairs) d->task = LEARN_TEXT;
    if (d->task < 0 && d->text) d->task = LEARN_LM;
    if (d->task >= 0) d->kind = source_of_word(d->task);
    d->from_files = d->task == LEARN_TEXT || d->task == LEARN_PAIRS || d->task == LEARN_CLASSIFY;
    if (d->kind->running && !d->text && pairs)
        usage_error(p, "--train has pairs, and this task learns from running text: --text %s",
                    pairs);
    if (d->kind->running && !d->text) usage_error(p, "say which text: --text FILE");
    one_way("train", d->train, d->train_src, d->train_tgt);
    one_way("valid", d->valid, d->valid_src, d->valid_tgt);
    if (d->from_files && !pairs)
        usage_error(p, "say which text: --train FILE.tsv, or --train-src and --train-tgt%s",
                    d->text ? "; --text is for --task lm, mask and spans" : "");
    option_no_effect(p, "text-eval-size", d->text_eval, "--text-eval is used for validation");
}

/* ---- defaults -------------------------------------------------------------------------------- */

/* Takes the defaults for the chosen word, for options that were not given. */
static void take_defaults_of(const char *choice) {
    char word[OPTION_TEXT_SIZE];
    options_take_defaults(&train_program, option_text(option_find(&train_program, choice), word));
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

/* ---- options that would have no effect ------------------------------------------------------- */

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
    char word[OPTION_TEXT_SIZE];
    option_text(option_find(&train_program, "task"), word);
    for (size_t i = 0; i < sizeof by_task / sizeof *by_task; i++) {
        const char *readers = by_task[i].readers;
        bool idle = readers ? !option_among(readers, word) : option_among(by_task[i].idle, word);
        option_no_effect(&train_program, by_task[i].options, idle, by_task[i].because);
    }
}

/* Numbers that the chosen optimizer does not use. */
static void refuse_by_optimizer(int optimizer) {
    const program *p = &train_program;
    bool adam = optimizer == WF_ADAM || optimizer == WF_ADAMW, lion = optimizer == WF_LION;
    bool sgd = optimizer == WF_SGD, rmsprop = optimizer == WF_RMSPROP;
    option_no_effect(p, "beta1", !adam && !lion, "this optimizer has no such average");
    option_no_effect(p, "beta2", !adam && !lion && !rmsprop, "this optimizer has no such average");
    option_no_effect(p, "eps", sgd || lion, "this optimizer does not divide");
    option_no_effect(p, "momentum", !sgd && !rmsprop, "only sgd and rmsprop have momentum");
    option_no_effect(p, "weight-decay", !lion && optimizer != WF_ADAMW,
                     "only adamw and lion decay weights");
}

bool settings_validates(const settings *set) {
    if (set->data.kind->running) return set->data.text_eval || set->data.text_eval_size > 0;
    if (set->data.from_files && (set->data.valid || set->data.valid_src)) return true;
    return set->data.valid_size > 0;
}

static void refuse_idle(const settings *set) {
    const program *p = &train_program;
    const data_settings *d = &set->data;
    const run_settings *run = &set->run;
    bool reports =
        !run->quiet || run->log || run->json || run->curve || run->page || run->tensorboard;
    bool validates = settings_validates(set), spm = d->tokenizer == WF_SENTENCEPIECE,
         json = d->tokenizer == WF_JSON_TEXT;
    const char *unjudged = d->kind->running ? "--text-eval-size 0 holds nothing out"
                                            : "--valid-size 0 makes no validation";
    refuse_by_task();
    refuse_by_optimizer(set->recipe.optimizer);
    option_no_effect(p, "lr-steps", !settings_has_horizon(set),
                     "only linear and cosine schedules end");
    option_no_effect(p, "valid-every|patience", !validates, unjudged);
    option_no_effect(p, "patience", option_seen(p, "valid-every") && !run->valid_every,
                     "--valid-every 0 validates at the end only");
    option_no_effect(p, "save-every", !run->model, "without -o nothing is saved");
    option_no_effect(p, "overwrite", !run->model && !run->page && !run->log,
                     "without -o nothing is saved");
    option_no_effect(p, "overwrite", run->dry_run, "a dry run saves nothing");
    option_no_effect(p, "report|tensorboard", run->dry_run, "a dry run trains nothing");
    option_no_effect(p, "log-every", !reports, "--quiet without --log or --json reports nothing");
    option_no_effect(p, "profile", run->quiet && !run->log && !run->json, "--quiet says nothing");
    option_no_effect(p, "spm-src|spm-tgt", !spm, "it is for --tokenizer sentencepiece");
    option_no_effect(p, "tokenizer-json", !json, "it is for --tokenizer json");
    option_no_effect(p, "end-token", !d->tokenizer_json, "it is for --tokenizer-json");
    option_no_effect(p, "end-token", set->model.like == LIKE_T5, "T5 ends outputs with </s>");
    option_no_effect(p, "tokenizer-tgt", json, "one tokenizer.json cuts both sides");
    option_no_effect(p, "tokenizer-tgt", spm, "a SentencePiece model cuts each side");
    option_no_effect(p, "vocab-size|min-freq|share-vocab", spm, "the .spm file says it");
    option_no_effect(p, "vocab-size|min-freq|share-vocab", json, "the tokenizer.json says it");
    option_no_effect(p, "valid-size", d->from_files && (d->valid || d->valid_src),
                     "all pairs of --valid are used");
    option_no_effect(p, "ranks", !run->dry_run, "it is for --dry-run: --processes trains");
    option_no_effect(p, "ranks", run->processes > 1, "--processes says how many");
    option_no_effect(p, "network", !run->simulated_ranks, "it is for a --dry-run of --ranks");
    option_no_effect(p, "alignments", set->model.in_one_row,
                     "a language model has no cross-attention to guide");
    /* a resume may repeat what an older version accepted */
    option_no_effect(p, "tie",
                     !run->resume && set->model.in_one_row && set->model.tie == WF_TIE_INPUTS,
                     "a language model has one embedding: --tie none or decoder");
    option_no_effect(p, "alignment-weight", !d->alignments, "it is for --alignments");
    option_no_effect(p, "epochs", option_seen(p, "max-steps"), "--max-steps says when to stop");
}

/* Exits if --freeze is too long for a checkpoint's metadata, which store the list, if it or
 * --lora-targets is not UTF-8, or if options of adapters contradict each other or would have no
 * effect. */
static void refuse_trained(const model_settings *m, bool resume) {
    const program *p = &train_program;
    char why[WF_MESSAGE];
    if (m->freeze && strlen(m->freeze) >= FREEZE_SIZE)
        usage_error(p, "--freeze: more than %d characters", FREEZE_SIZE - 1);
    if (m->freeze && !wf_text_check(m->freeze, strlen(m->freeze), why))
        usage_error(p, "--freeze: %s", why);
    option_no_effect(p, "lora-alpha|lora-targets|base-weights", !m->lora, "it is for --lora");
    if (m->lora && m->quantize_aware)
        usage_error(p, "--quantize-aware: adapters leave the matrices as they are, which it would "
                       "round: leave --lora out");
    option_no_effect(p, "freeze", m->lora > 0, "--lora trains adapters alone");
    if (m->lora && !m->init && !resume)
        usage_error(p, "--lora adapts a model: name it with --init MODEL");
    if (m->lora_targets && !wf_text_check(m->lora_targets, strlen(m->lora_targets), why))
        usage_error(p, "--lora-targets: %s", why);
}

/* ---- the tokenizer and the form of the model ------------------------------------------------- */

/* How to make a tokenizer.json, in messages; learned_by is the text for its %s. */
#define MAKES_ONE "\"tokenize --learn %s --vocab-size 8000 -i TEXT -o FILE\" makes one"
static const char *learned_by(const settings *set) {
    if (set->data.kind->spans) return "unigram --special '<pad>,</s>,<unk>,<extra_id_0>,...'";
    if (set->model.like == LIKE_T5) return "unigram";
    return set->data.kind->encoder ? "wordpiece" : "bpe";
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
                    learned_by(set));
    if (json && !set->data.end_token && set->data.kind->running && !set->data.kind->masks)
        usage_error(p, "--tokenizer-json: say which of its tokens ends a document, as --end-token "
                       "'<|endoftext|>'");
    if (wanted && !set->data.spm_src && !set->data.spm_tgt)
        usage_error(p, "--tokenizer sentencepiece: say which vocabulary, --spm-src FILE and "
                       "--spm-tgt FILE, or one for both");
    if (set->model.in_one_row && set->data.spm_src && set->data.spm_tgt)
        usage_error(p, "this architecture has one vocabulary: --spm-src or --spm-tgt alone");
    if (!set->data.spm_src) set->data.spm_src = set->data.spm_tgt;
    if (!set->data.spm_tgt) set->data.spm_tgt = set->data.spm_src;
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

/* Exits if settings contradict --like, or if two vocabularies are to share one table of
 * embeddings. */
static void refuse_unlike(const settings *set) {
    const program *p = &train_program;
    const model_settings *m = &set->model;
    const data_settings *d = &set->data;
    const char *name = likes[m->like].name;
    int tokenizer = likes[m->like].tokenizer;
    bool alike =
        m->norm == (int)likes[m->like].norm && m->positions == (int)likes[m->like].positions &&
        m->embedding_norm == likes[m->like].embedding_norm && likes[m->like].ties >> m->tie & 1;
    bool files = d->spm_src && strcmp(d->spm_src, d->spm_tgt) != 0;
    bool kinds = d->tokenizer_tgt && d->tokenizer_tgt - 1 != d->tokenizer;
    if (m->like && m->in_one_row)
        usage_error(p, "--like %s: it has an encoder and a decoder: --arch transformer", name);
    if (m->like && m->decoder != WF_DECODER_ATTENTION && m->like != LIKE_FIREFOX)
        usage_error(p, "--like %s: its decoder has self-attention: --decoder attention", name);
    if (m->like && !alike) usage_error(p, "--like %s: it has %s", name, likes[m->like].form);
    if (likes[m->like].needs_text && !d->kind->text)
        usage_error(p, "--like %s: it is for text, which has a padding id: leave --like out", name);
    if (m->like && d->kind->text &&
        ((tokenizer >= 0 && d->tokenizer != tokenizer) ||
         (likes[m->like].one_vocabulary && d->tokenizer_tgt)))
        usage_error(p, "--like %s: %s", name, likes[m->like].text);
    if (m->like == LIKE_T5 && files)
        usage_error(p, "--like t5: both sides have one vocabulary: --spm-src alone");
    if (settings_one_table(set) && !set->run.resume && (files || kinds))
        usage_error(p,
                    "--tie %s: one table of embeddings for both sides needs one vocabulary: leave "
                    "%s out",
                    option_text(option_find(p, "tie"), (char[OPTION_TEXT_SIZE]){ 0 }),
                    files ? "--spm-tgt" : "--tokenizer-tgt");
}

static void refuse_masks(const settings *set) {
    enum { FEWEST = 3, FEWEST_OF_SPANS = 4 };
    const program *p = &train_program;
    bool spans = set->data.kind->spans, json = set->data.tokenizer == WF_JSON_TEXT;
    if (!json && spans && !set->model.started)
        usage_error(p,
                    "--tokenizer %s has no tokens for spans: --tokenizer-json FILE names one that "
                    "has. " MAKES_ONE,
                    wf_token_kind_name(set->data.tokenizer), learned_by(set));
    if (!json && !spans)
        usage_error(
            p, "--tokenizer %s has no mask: --tokenizer-json FILE names one that has. " MAKES_ONE,
            wf_token_kind_name(set->data.tokenizer), learned_by(set));
    if (set->data.max_len < (spans ? FEWEST_OF_SPANS : FEWEST))
        usage_error(p, "--max-len %lld: it is at least %d: two tokens stand around a window%s",
                    (long long)set->data.max_len, spans ? FEWEST_OF_SPANS : FEWEST,
                    spans ? ", and a span needs two inside it" : "");
}

/* Exits if the tokenizer or the architecture is not possible for running text or for labels. */
static void refuse_running(const settings *set) {
    const program *p = &train_program;
    const data_settings *d = &set->data;
    const char *tokenizer = wf_token_kind_name(d->tokenizer);
    bool json = d->tokenizer == WF_JSON_TEXT;
    /* a head of classes reads the special token before a line */
    if (d->kind->classifies && !set->model.started && !json)
        usage_error(p,
                    "--tokenizer %s puts no token before a line: --tokenizer-json FILE names one "
                    "that does, or --init MODEL a model. " MAKES_ONE,
                    tokenizer, learned_by(set));
    if (!d->kind->running) return;
    if (d->kind->masks)
        refuse_masks(set);
    else if (!json && d->tokenizer != WF_BYTES && d->tokenizer != WF_TEXT_CHARACTERS &&
             d->tokenizer != WF_BYTE_BPE)
        usage_error(p,
                    "--tokenizer %s loses line breaks: byte, text-char and byte-bpe keep a "
                    "text as it is",
                    tokenizer);
    else if (!set->model.in_one_row)
        usage_error(p, "a %s reads a source, and running text has none: leave --arch out",
                    wf_model_kind_name(set->model.kind));
    if (d->max_tokens && d->max_tokens < d->max_len)
        usage_error(p, "--max-tokens %lld is less than a window of --max-len %lld",
                    (long long)d->max_tokens, (long long)d->max_len);
    option_no_effect(p, "min-freq|vocab-size", d->tokenizer == WF_BYTES, "every byte has an id");
}

static void complete_sizes(model_settings *m) {
    const program *p = &train_program;
    option_no_effect(p, "enc-layers|dec-layers", m->in_one_row,
                     "this architecture has one stack: --layers");
    option_no_effect(p, "form|kv-heads|norm-kind|feed-forward|bias", !m->in_one_row,
                     "this architecture has one form");
    option_no_effect(p, "embedding-norm", m->in_one_row, "this architecture has none");
    option_no_effect(p, "decoder", m->in_one_row, "this architecture has self-attention");
    option_no_effect(p, "layers", m->enc_layers && m->dec_layers,
                     "--enc-layers and --dec-layers say it all");
    if (!m->enc_layers) m->enc_layers = m->layers;
    if (!m->dec_layers) m->dec_layers = m->layers;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void settings_complete(settings *set, const wf_file *f, const wf_file *init) {
    const program *p = &train_program;
    take_dashes(&set->run);
    if (f) settings_from_file(set, f);
    if (init) settings_refuse_sizes("the model of --init says it");
    take_task(&set->data);
    settings_complete_held(set, f);
    if (set->data.task < 0)
        usage_error(p, "say what to learn: --task %s, or --train FILE.tsv", LEARN_WORDS);
    if (!f) take_defaults(set, init);
    if (set->model.started)
        settings_from_model(set, f ? f : init, f ? set->run.model : set->model.init);
    set->model.kind =
        set->data.kind->encoder ? &wf_encoder_kind : wf_model_kind_at(set->model.arch);
    set->model.in_one_row = wf_model_kind_decoder_only(set->model.kind);
    refuse_idle(set);
    refuse_trained(&set->model, set->run.resume);
    if (!f && !init) complete_sentencepiece(set);
    refuse_unlike(set);
    if (!set->data.kind->text && set->data.max_len > TASK_MAX_LEN)
        usage_error(p, "--max-len %lld: a generated sequence has at most %d tokens",
                    (long long)set->data.max_len, TASK_MAX_LEN);
    if (!set->data.kind->text && set->data.min_len > set->data.max_len)
        usage_error(p, "--min-len %lld is more than --max-len %lld", (long long)set->data.min_len,
                    (long long)set->data.max_len);
    refuse_running(set);
    if (set->data.kind->text && !set->data.batch_size && !set->data.max_tokens)
        usage_error(p, "--batch-size 0 and --max-tokens 0: one of them must limit a batch");
    if (!set->data.kind->text && !set->data.batch_size)
        usage_error(p, "--batch-size 0: a batch of generated sequences has at least one");
    complete_sizes(&set->model);
}
