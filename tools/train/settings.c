/* tools/train/settings.c - what `train` can be told. See settings.h.
 *
 * The defaults are recipes that work: those of tasks of numbers stand in the variables, what is
 * another for text, or for a preset, stands in the rows. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "models/choices.h"

/* clang-format off */
static const settings defaults = {
    .task = -1, .min_len = 3, .max_len = 12,
    .positions = WF_POSITIONS_SINUSOIDAL, .activation = WF_RELU, .tie = WF_TIE_NONE,
    .optimizer = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9,
    .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1,
    .lr = 3e-3, .schedule = WF_LINEAR_DECAY, .warmup = 200,
    .batch_size = 32, .accum = 1, .seed = 1, .min_freq = 1, .processes = 1,
    .text_eval_size = 100000, .document_marker = "<|endoftext|>",
    .log_every = 100, .valid_every = 500, .valid_size = 1000, .save_every = 500,
};
/* clang-format on */

#define STORED .stored = true
#define OF_MODEL .stored = true, .of_model = true
#define NEW .of_new = true       /* of a new training: a resume refuses it */
#define OF_PAIRS "add|date|text" /* all tasks on pairs of text; "text" alone: from files */
#define OF_TEXT OF_PAIRS "|lm"   /* and running text */
/* The value until the data are known, which have the last word: defaults.c. */
#define BY_DATA(words, text)                                                                       \
    { .cases = words, .value = text, .said = "by the data" }
#define BEFORE(text) .before = text /* what was done when there was no such setting */

/* The words of choices that have no type of their own. */
#define FORM_WORDS "gpt|llama"
#define LIKE_WORDS "none|marian|bart"
#define FEED_FORWARD_WORDS "plain|gated"
#define BIAS_WORDS "yes|no"
#define YES_WORDS "no|yes"

/* What the rows are read into: a table holds addresses. */
static settings told;

static option rows[] = {
    GROUP("What to learn"),
    CHOICE("task", told.task, LEARN_WORDS,
           "sequences of tokens 1..19, sums or dates as text, made as they are needed; pairs of "
           "text from files; or running text, each token from those before it",
           .fallback = "text, if there is --train; lm, if there is --text", STORED),
    COUNT("min-len", told.min_len, 2, TASK_MAX_LEN, "tokens in the shortest sequence of a task",
          STORED),
    COUNT("max-len", told.max_len, 2, 16384,
          "tokens in the longest; pairs of text with more are left out; of running text, tokens in "
          "a window: as far as the model looks back",
          OTHERWISE(FOR(OF_TEXT, "256")), STORED),

    MODEL("init", told.init,
          "start from the model in this file, with its vocabulary, and train it anew: sizes come "
          "from there"),
    { .name = "freeze",
      .kind = OPTION_STRING,
      .value = &told.freeze,
      .argument = "PREFIX[,PREFIX]",
      .help = "leave parameters alone whose names, as in files, begin so" },

    GROUP("Running text"),
    INPUT("text", told.text, "text to learn from, as it stands, of any size"),
    INPUT("text-eval", told.text_eval, "text to validate with, never learned from"),
    COUNT("text-eval-size", told.text_eval_size, 0, 1e12,
          "or so many bytes at the end of --text, at most a tenth of it; 0: none", STORED,
          BEFORE("100000")),
    { .name = "document-marker",
      .kind = OPTION_STRING,
      .value = &told.document_marker,
      .argument = "LINE",
      .help = "a line between two documents, which is not learned" },

    GROUP("Text"),
    INPUT("train", told.train,
          "pairs to learn from: source<TAB>target on each line; for --arch language also plain "
          "text, a "
          "target on each"),
    INPUT("train-src", told.train_src, "or the sources alone, one a line"),
    INPUT("train-tgt", told.train_tgt, "and the targets, line by line"),
    INPUT("valid", told.valid, "pairs to validate with, never learned from"),
    INPUT("valid-src", told.valid_src, "or their sources alone"),
    INPUT("valid-tgt", told.valid_tgt, "and their targets"),
    CHOICE("tokenizer", told.tokenizer, WF_NAMES(WF_TOKEN_NAMES), "what a line is cut into",
           .fallback = "",
           OTHERWISE(FOR("add|date", "char"), BY_DATA("text", "bpe"), FOR("lm", "byte-bpe"),
                     FOR("bart", "byte-level")),
           OF_MODEL, BEFORE("word")),
    CHOICE("tokenizer-tgt", told.tokenizer_tgt, "same" WF_TOKEN_NAMES(WF_NAME_AFTER),
           "and a target, if that is another", OF_MODEL, BEFORE("same")),
    INPUT("spm-src", told.spm_src, "of sentencepiece: the .spm file of the source", NEW),
    INPUT("spm-tgt", told.spm_tgt, "and that of the target; one of the two alone is for both sides",
          NEW),
    COUNT("vocab-size", told.vocab_size, 0, 1 << 20, "ids at most, of each side or shared; 0: all",
          OTHERWISE(BY_DATA("bpe|byte-level", "8000"), BY_DATA("byte-bpe", "4096")), OF_MODEL,
          BEFORE("0")),
    COUNT("min-freq", told.min_freq, 1, 1e9,
          "rarer words or characters are unknown; rarer pairs "
          "of bpe stay apart",
          OTHERWISE(FOR("bpe|byte-bpe|byte-level", "2")), OF_MODEL, BEFORE("1")),
    FLAG("share-vocab", told.share_vocab, "one vocabulary for source and target", NEW),

    GROUP("Model"),
    CHOICE(
        "arch", told.arch, WF_NAMES(WF_MODEL_NAMES),
        "an encoder and a decoder; or one stack that reads a source and goes on with its target, "
        "of one vocabulary",
        OTHERWISE(FOR("lm", "language")), OF_MODEL, BEFORE("transformer")),
    CHOICE("preset", told.preset, "tiny|small|base", "sizes to start from",
           OTHERWISE(FOR("text|lm", "small")), NEW),
    CHOICE(
        "like", told.like, LIKE_WORDS,
        "a form of transformers, which convert --to hf can write: --norm, --positions and the like "
        "are its own; bart learns its vocabulary, marian takes --spm-src",
        NEW),
    CHOICE("form", told.form, FORM_WORDS,
           "of a language model: as GPT-2 or as Llama, which is what --norm-kind, --positions, "
           "--activation, --feed-forward and --bias are if nothing else is said",
           NEW),
    COUNT("d-model", told.d_model, 2, 16384, "width", .fallback = "",
          OTHERWISE(FOR("tiny", "64"), FOR("small", "128"), FOR("base", "512")), OF_MODEL),
    COUNT("d-ff", told.d_ff, 1, 65536, "inner width of the feed-forward layers", .fallback = "",
          OTHERWISE(FOR("tiny", "128"), FOR("small", "256"), FOR("base", "2048")), OF_MODEL),
    COUNT("heads", told.heads, 1, 1024, "attention heads; a divisor of the width", .fallback = "",
          OTHERWISE(FOR("tiny|small", "4"), FOR("base", "8")), OF_MODEL),
    COUNT("kv-heads", told.kv_heads, 0, 1024,
          "heads of keys and values, each shared by some heads: a divisor of theirs; 0: as many",
          OF_MODEL, BEFORE("0")),
    COUNT("layers", told.layers, 1, 256,
          "layers of the encoder and of the decoder, or of the stack", .fallback = "",
          OTHERWISE(FOR("tiny", "2"), FOR("small", "4"), FOR("base", "6")), NEW),
    COUNT("enc-layers", told.enc_layers, 1, 256, "layers of the encoder", .fallback = "--layers",
          OF_MODEL),
    COUNT("dec-layers", told.dec_layers, 1, 256, "layers of the decoder", .fallback = "--layers",
          OF_MODEL),
    REAL("dropout", told.dropout, 0, 0.9, "of embeddings, residuals and inner layers",
         OTHERWISE(BY_DATA("text", "0.2"), BY_DATA("lm", "0"), FOR("init", "0.1")), STORED),
    REAL("attention-dropout", told.attention_dropout, 0, 0.9, "of attention weights", STORED),
    CHOICE("norm", told.norm, WF_NAMES(WF_NORM_NAMES), "LayerNorm before or after each sublayer",
           OTHERWISE(FOR("marian|bart", "post")), OF_MODEL),
    CHOICE("embedding-norm", told.embedding_norm, YES_WORDS,
           "of an encoder and a decoder: LayerNorm behind the embeddings, too",
           OTHERWISE(FOR("bart", "yes")), OF_MODEL, BEFORE("no")),
    CHOICE("positions", told.positions, WF_NAMES(WF_POSITIONS_NAMES),
           "what tells the model about order",
           OTHERWISE(FOR("lm|bart", "learned"), FOR("llama", "rotary"),
                     FOR("marian", "sinusoidal-halves")),
           OF_MODEL),
    CHOICE("activation", told.activation, WF_NAMES(WF_ACTIVATION_NAMES),
           "of the feed-forward layers",
           OTHERWISE(FOR("lm", "gelu-tanh"), FOR("llama|marian", "silu"), FOR("bart", "gelu")),
           OF_MODEL),
    CHOICE("norm-kind", told.norm_kind, WF_NAMES(WF_NORM_KIND_NAMES), "LayerNorm or RMSNorm",
           OTHERWISE(FOR("llama", "rms")), OF_MODEL, BEFORE("layer")),
    CHOICE("feed-forward", told.feed_forward, FEED_FORWARD_WORDS,
           "gated: times another product of the input, SwiGLU with --activation silu",
           OTHERWISE(FOR("llama", "gated")), OF_MODEL, BEFORE("plain")),
    CHOICE("bias", told.bias, BIAS_WORDS, "in projections and norms", OTHERWISE(FOR("llama", "no")),
           OF_MODEL, BEFORE("yes")),
    CHOICE(
        "tie", told.tie, WF_NAMES(WF_TIE_NAMES),
        "share the output's table with no, the decoder's, or both embeddings; of a language model "
        "with none or its one",
        OTHERWISE(FOR("lm", "decoder"), FOR("bart", "all")), OF_MODEL),

    GROUP("Optimisation"),
    CHOICE("optimizer", told.optimizer, WF_NAMES(WF_OPTIMIZER_NAMES),
           "how parameters follow their gradients", OTHERWISE(FOR("lm", "adamw")), STORED),
    REAL("lr", told.lr, 1e-9, 1e6, "learning rate at its peak", OTHERWISE(FOR("init", "3e-4")),
         STORED),
    CHOICE("lr-schedule", told.schedule, WF_NAMES(WF_SCHEDULE_NAMES), "the rate after the warm-up",
           OTHERWISE(FOR("lm", "cosine")), STORED),
    COUNT("warmup", told.warmup, 0, 1e9, "steps in which the rate rises",
          OTHERWISE(FOR("text", "800"), FOR("init", "100")), STORED),
    COUNT("lr-steps", told.lr_steps, 1, 1e12, "where linear and cosine schedules end",
          .fallback = "enough for the task", STORED),
    REAL("beta1", told.beta1, 0, 0.9999, "average of gradients, of Adam and Lion", STORED),
    REAL("beta2", told.beta2, 0, 0.999999,
         "average of their squares, of Adam and RMSprop; of Lion the slower one of gradients",
         STORED),
    REAL("eps", told.eps, 1e-30, 1, "guard of the division, of Adam, RMSprop and Adagrad", STORED),
    REAL("momentum", told.momentum, 0, 0.9999, "of SGD and RMSprop", STORED),
    REAL("weight-decay", told.weight_decay, 0, 1, "of AdamW and Lion; matrices only", STORED),
    REAL("label-smoothing", told.label_smoothing, 0, 0.9,
         "share of the target spread over all tokens",
         OTHERWISE(FOR("text", "0.1"), FOR("init", "0")), STORED),
    REAL("ema", told.ema, 0, 0.99999,
         "keep an average of the weights with this decay, judged and kept in their place; 0: none",
         STORED, BEFORE("0")),
    REAL("clip-norm", told.clip_norm, 0, 1e9, "largest norm of the gradient; 0 does not clip",
         STORED),

    GROUP("Steps"),
    COUNT("batch-size", told.batch_size, 0, 65536,
          "sequences in a step; of text at most; 0: as many as --max-tokens allows",
          OTHERWISE(FOR(OF_TEXT, "0")), STORED),
    COUNT("max-tokens", told.max_tokens, 0, 1e9,
          "of text: tokens of source and target in a batch, padding included", .fallback = "",
          OTHERWISE(FOR("add|date", "4096"), BY_DATA("text|lm", "4096")), STORED, BEFORE("0")),
    COUNT("accum", told.accum, 1, 4096,
          "batches of text in an update: the gradient of all of them, in the memory of one", STORED,
          BEFORE("1")),
    COUNT("seed", told.seed, 0, 9007199254740991, "of parameters, data and dropout", STORED),
    COUNT("max-steps", told.max_steps, 1, 1e12, "stop after this step",
          .fallback = "enough for the task; for text, --epochs"),
    COUNT("epochs", told.epochs, 1, 1e6, "stop after so many passes over the text", .fallback = "",
          OTHERWISE(FOR("add", "15"), FOR("date", "5"), BY_DATA("text", "26"), BY_DATA("lm", "10"),
                    FOR("init", "5"))),
    COUNT("patience", told.patience, 0, 1e6,
          "stop after so many validations without a lower loss; 0: never"),
    REAL("max-time", told.max_time, 0.001, 1e9, "stop after so many seconds", .fallback = "none"),
    COUNT("threads", told.threads, 1, 256, "the result does not depend on it",
          .fallback = DEFAULT_THREADS ", shared by the processes"),

    GROUP("Several processes"),
    COUNT("processes", told.processes, 1, 256,
          "train together on this machine, each with --threads and a share of the batches of an "
          "update (--accum); the result does not depend on it"),

    COUNT("ranks", told.ranks, 2, 65536,
          "of a --dry-run: as one of so many, on machines like this one",
          .fallback = "--processes"),
    { .name = "network",
      .kind = OPTION_STRING,
      .value = &told.network,
      .argument = "RATE,DELAY",
      .help = "of a dry run of --ranks: what is between the machines, such as 10Gb,50us; says how "
              "long an update takes there" },

    GROUP("Output"),
    NEW_MODEL("model", told.model, "the model and all that a resume needs, in one safetensors file",
           .letter = 'o'),
    FLAG("resume", told.resume,
         "go on from the model file; settings come from there; more --epochs or --max-steps than "
         "before stretch the schedule"),
    FLAG("overwrite", told.overwrite,
         "replace the model file, and the best weights beside it, if they are there", NEW),
    COUNT("save-every", told.save_every, 0, 1e12, "steps between saves; 0: at the end only",
          OTHERWISE({ .cases = OF_PAIRS, .said = "an epoch" })),
    COUNT("valid-every", told.valid_every, 0, 1e12, "steps between validations; 0: at the end only",
          OTHERWISE({ .cases = OF_PAIRS, .said = "an epoch" }, FOR("lm", "250"))),
    COUNT("valid-size", told.valid_size, 0, 1e6,
          "unseen sequences of a task in a validation, and in the test at the end; pairs that are "
          "held back of --train without --valid, but no more than 1 % of them; 0: none"),
    FLAG("dry-run", told.dry_run, "say what it would take, and stop before the first step"),
    COUNT("log-every", told.log_every, 1, 1e12, "steps between lines"),
    LOG("log", told.log, "write events as JSON, one object a line; - is --json"),
    FLAG("json", told.json, "the same on stdout, in place of the result as text"),
    OUTPUT("curve", told.curve, "draw losses over steps as an SVG"),
    FLAG("profile", told.profile, "say at the end where the time went, by op"),
    FLAG("quiet", told.quiet, "say nothing on stderr but errors and warnings"),
};

program train_program = {
    .name = "train",
    .purpose = "trains a model to map sequences to sequences",
    .examples = "  train --task copy -o copy.safetensors\n"
                "  train --task sort --seed 7 --max-len 20 --max-steps 4000 -o sort.safetensors "
                "--curve loss.svg\n"
                "  train --resume -o sort.safetensors --max-steps 6000\n"
                "  train --train pairs.tsv --valid held-back.tsv -o translator.safetensors\n"
                "  train --task date -o date.safetensors\n"
                "  train --arch language --train pairs.tsv -o language.safetensors\n"
                "  train --task lm --text book.txt -o book.safetensors\n"
                "  train --init translator.safetensors --train own.tsv -o own.safetensors\n"
                "  train --task reverse --preset small --dropout 0.1 --optimizer adamw --lr 1e-3 "
                "--log log.jsonl\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
};

settings *settings_new(void) {
    told = defaults;
    for (option *o = rows; o < rows + train_program.n; o++) o->seen = false;
    return &told;
}

/* ---- filling in ---------------------------------------------------------------------------- */

bool settings_in_one_row(const settings *set) {
    return wf_model_kind_in_one_row(settings_kind(set));
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
    option_no_effect(&train_program, "layers", set->enc_layers && set->dec_layers,
                     "--enc-layers and --dec-layers say it all");
    if (!set->enc_layers) set->enc_layers = set->layers;
    if (!set->dec_layers) set->dec_layers = set->layers;
}

/* What the words of a choice say is the default, where nothing else was asked for. */
static void take_defaults_of(const char *choice) {
    char word[OPTION_TEXT_SIZE];
    options_take_defaults(&train_program, option_text(option_find(&train_program, choice), word));
}

/* Enough for what was tried: each date and each sum came out right, and a translator learned. */
static int64_t recipe_epochs(const settings *set) {
    char word[OPTION_TEXT_SIZE];
    option_text(option_find(&train_program, "task"), word);
    const char *epochs = option_default(option_find(&train_program, "epochs"),
                                        settings_started(set) ? "init" : word);
    if (set->usual_epochs) return set->usual_epochs;
    return epochs ? strtoll(epochs, NULL, 10) : 0;
}

/* Steps after which a thousand unseen sequences come out right with a margin, for every seed
 * tried; of text, what so many epochs take. */
static int64_t recipe_steps(const settings *set, int64_t updates, int64_t epochs) {
    bool quick = set->task == LEARN_COPY || set->task == LEARN_REVERSE;
    return updates ? epochs * updates : quick ? 2000 : 2500;
}

bool settings_has_horizon(const settings *set) {
    return set->schedule == WF_LINEAR_DECAY || set->schedule == WF_COSINE;
}

/* More steps than were planned: the same schedule over all of them, from the step that is reached. So
 * the rate may rise again, to less than its peak. */
static void stretch(settings *set) {
    bool said = option_seen(&train_program, "lr-steps");
    if (!settings_has_horizon(set)) return;
    if (!said && set->max_steps > set->lr_steps) {
        set->planned_steps = set->lr_steps;
        set->lr_steps = set->max_steps;
    }
    if (set->planned_steps == set->lr_steps) set->planned_steps = 0;
}

void settings_complete_steps(settings *set, int64_t updates) {
    const program *p = &train_program;
    int64_t recipe = recipe_steps(set, updates, set->epochs);
    bool pairs = updates && !settings_running(set);
    if (pairs && !option_seen(p, "valid-every")) set->valid_every = updates;
    if (pairs && !option_seen(p, "save-every")) set->save_every = updates;
    if (!set->max_steps) set->max_steps = set->resume && !set->epochs ? set->lr_steps : recipe;
    if (!set->lr_steps &&
        !settings_has_horizon(set)) /* a setting must not tell where this training stops */
        set->lr_steps = recipe_steps(set, updates, recipe_epochs(set));
    if (!set->lr_steps) set->lr_steps = set->max_steps > recipe ? set->max_steps : recipe;
    if (set->resume) stretch(set);
    if (updates && !set->resume && !option_seen(p, "warmup"))
        set->warmup = defaults_warmup(set->warmup, set->lr_steps);
    if (settings_has_horizon(set) && set->max_steps > set->lr_steps)
        usage_error(p, "--max-steps %lld is beyond --lr-steps %lld, where the rate ends at 0",
                    (long long)set->max_steps, (long long)set->lr_steps);
    if (settings_has_horizon(set) && set->warmup >= set->lr_steps)
        usage_error(p, "--warmup %lld leaves nothing before --lr-steps %lld",
                    (long long)set->warmup, (long long)set->lr_steps);
}

/* ---- text ---------------------------------------------------------------------------------- */

bool settings_text(const settings *set) {
    const source_kind *kind = source_of_word(set->task);
    return kind && kind->text;
}

bool settings_running(const settings *set) {
    const source_kind *kind = source_of_word(set->task);
    return kind && kind->running;
}

bool settings_from_files(const settings *set) {
    return set->task == LEARN_TEXT;
}

bool settings_validates(const settings *set) {
    if (settings_running(set)) return set->text_eval || set->text_eval_size > 0;
    if (settings_from_files(set) && (set->valid || set->valid_src)) return true;
    return set->valid_size > 0;
}

static void one_way(const char *both, const char *const *path, const char *src, const char *tgt) {
    if (path[0] && (path[1] || path[2]))
        usage_error(&train_program, "--%s holds both sides: --%s and --%s are not wanted", both,
                    src, tgt);
    if (!path[1] != !path[2]) usage_error(&train_program, "--%s and --%s go together", src, tgt);
}

static void check_files(settings *set) {
    const program *p = &train_program;
    one_way("train", (const char *[]){ set->train, set->train_src, set->train_tgt }, "train-src",
            "train-tgt");
    one_way("valid", (const char *[]){ set->valid, set->valid_src, set->valid_tgt }, "valid-src",
            "valid-tgt");
    bool given = set->train || set->train_src;
    if (set->task < 0 && given) set->task = LEARN_TEXT;
    if (set->task < 0 && set->text) set->task = LEARN_LM;
    if (settings_running(set) && !set->text) usage_error(p, "say which text: --text FILE");
    if (settings_from_files(set) && !given)
        usage_error(p, "say which text: --train FILE.tsv, or --train-src and --train-tgt");
    static const char *const files[] = { "train", "train-src", "train-tgt",
                                         "valid", "valid-src", "valid-tgt" };
    for (int i = 0; i < 6; i++)
        option_no_effect(p, files[i], !settings_from_files(set),
                         settings_running(set) ? "running text is in --text"
                                               : "the task makes its own pairs");
    static const char *const running[] = { "text", "text-eval", "text-eval-size",
                                           "document-marker" };
    for (int i = 0; i < 4; i++)
        option_no_effect(p, running[i], !settings_running(set), "it is for --task lm");
    option_no_effect(p, "text-eval-size", set->text_eval, "--text-eval is what is held back");
}

/* Without --valid, pairs of the training are held back; a resume holds back the same. */
static void complete_held(settings *set, const wf_file *f) {
    const char *stored = f ? setting_in_file(f, "held") : NULL;
    bool named = set->valid || set->valid_src;
    if (!settings_from_files(set)) return;
    set->held = f ? (stored ? strtoll(stored, NULL, 10) : 0) : named ? 0 : set->valid_size;
    bool was_named = f && setting_in_file(f, "valid");
    if (was_named && !named && (!option_seen(&train_program, "valid-size") || set->valid_size))
        usage_error(&train_program,
                    "%s was validated with --valid: name that file again, or go on without by "
                    "--valid-size 0",
                    set->model);
    if (f && !named && set->valid_size && set->valid_size != set->held) {
        if (option_seen(&train_program, "valid-size"))
            usage_error(&train_program,
                        "%s was trained with --valid-size %lld, not %lld: leave it out", set->model,
                        (long long)set->held, (long long)set->valid_size);
        set->valid_size = set->held;
    }
}

/* ---- the whole --------------------------------------------------------------------------- */

/* A file that is given twice is one of both sides, as one alone is. */
static void complete_sentencepiece(settings *set) {
    const program *p = &train_program;
    bool wanted = set->tokenizer == WF_SENTENCEPIECE;
    if (wanted && !set->spm_src && !set->spm_tgt)
        usage_error(p, "--tokenizer sentencepiece: say which vocabulary, --spm-src FILE and "
                       "--spm-tgt FILE, or one for both");
    if (settings_in_one_row(set) && set->spm_src && set->spm_tgt)
        usage_error(p, "this architecture has one vocabulary: --spm-src or --spm-tgt alone");
    if (!set->spm_src) set->spm_src = set->spm_tgt;
    if (!set->spm_tgt) set->spm_tgt = set->spm_src;
}

/* A new model is what the words of its choices say; one that is there is trained in its own way. */
static void take_defaults(settings *set, const wf_file *init) {
    program *p = &train_program;
    take_defaults_of("task");
    if (init) {
        options_take_defaults(p, "init");
        return;
    }
    bool spm = set->spm_src || set->spm_tgt;
    if (spm && !option_seen(p, "tokenizer")) set->tokenizer = WF_SENTENCEPIECE;
    take_defaults_of("like");
    take_defaults_of("tokenizer"), take_defaults_of("preset"), take_defaults_of("form");
}

/* stdout has the results as text or as events, and no picture among them. */
static void take_dashes(settings *set) {
    if (is_dash(set->curve))
        usage_error(&train_program, "--curve -: stdout gets the results: name a file");
    if (!is_dash(set->log)) return;
    set->json = true;
    set->log = NULL;
}

void settings_complete(settings *set, const wf_file *f, const wf_file *init) {
    const program *p = &train_program;
    take_dashes(set);
    if (f) settings_from_file(set, f);
    if (init) settings_refuse_sizes("the model of --init says it");
    check_files(set);
    complete_held(set, f);
    if (set->task < 0)
        usage_error(p, "say what to learn: --task %s, or --train FILE.tsv", LEARN_WORDS);
    if (!f) take_defaults(set, init);
    if (settings_started(set)) settings_from_model(set, f ? f : init, f ? set->model : set->init);
    settings_refuse_idle(set);
    settings_refuse_freeze(set);
    if (!f && !init) complete_sentencepiece(set);
    settings_refuse_unlike(set);
    if (!settings_text(set) && set->max_len > TASK_MAX_LEN)
        usage_error(p, "--max-len %lld: a task has at most %d tokens", (long long)set->max_len,
                    TASK_MAX_LEN);
    if (!settings_text(set) && set->min_len > set->max_len)
        usage_error(p, "--min-len %lld is more than --max-len %lld", (long long)set->min_len,
                    (long long)set->max_len);
    settings_refuse_running(set);
    if (settings_text(set) && !set->batch_size && !set->max_tokens)
        usage_error(p, "--batch-size 0 and --max-tokens 0: one of them must limit a batch");
    if (!settings_text(set) && !set->batch_size)
        usage_error(p, "--batch-size 0: a task has at least one sequence in a step");
    complete_sizes(set);
}
