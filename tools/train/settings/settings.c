/* tools/train/settings/settings.c - the options of `train`. See settings.h.
 *
 * The defaults are recipes that work. Those for tasks on numbers are the variables' initial values;
 * different values for text or for a preset are in the rows. */
#include "settings.h"

#include "models/choices.h"

/* clang-format off */
static const settings defaults = {
    .model = { .positions = WF_POSITIONS_SINUSOIDAL, .activation = WF_RELU, .tie = WF_TIE_NONE },
    .recipe = { .optimizer = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9,
                .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1,
                .lr = 3e-3, .schedule = WF_LINEAR_DECAY, .warmup = 200, .seed = 1 },
    .data = { .task = -1, .min_len = 3, .max_len = 12, .min_freq = 1,
              .text_eval_size = 100000, .document_marker = "<|endoftext|>",
              .batch_size = 32, .accum = 1, .valid_size = 1000 },
    .run = { .processes = 1, .log_every = 100, .valid_every = 500, .save_every = 500 },
};
/* clang-format on */

#define STORED .stored = true
#define OF_MODEL .stored = true, .of_model = true
#define NEW .of_new = true       /* for a new training: a resume refuses it */
#define OF_PAIRS "add|date|text" /* all tasks with pairs of text; "text" is the one from files */
#define OF_TEXT OF_PAIRS "|lm"   /* and running text */
/* Describes a default that defaults.c sets when the data are known. */
#define BY_DATA(words, text)                                                                       \
    { .cases = words, .value = text, .said = "by the data" }
/* The value that older files mean, from before the setting existed. */
#define BEFORE(text) .before = text

/* The words of choices that have no type of their own. */
#define FORM_WORDS "gpt|llama"
#define LIKE_WORDS "none|marian|bart"
#define FEED_FORWARD_WORDS "plain|gated"
#define BIAS_WORDS "yes|no"
#define YES_WORDS "no|yes"

/* The one object that options are read into. The rows of the table hold its addresses. */
static settings told;

static option rows[] = {
    GROUP("What to learn"),
    CHOICE("task", told.data.task, LEARN_WORDS,
           "sequences of tokens 1..19, sums or dates as text, made as they are needed; pairs of "
           "text from files; or running text, each token from those before it",
           .fallback = "text, if there is --train; lm, if there is --text", STORED),
    COUNT("min-len", told.data.min_len, 2, TASK_MAX_LEN,
          "tokens in the shortest sequence of a task", STORED),
    COUNT("max-len", told.data.max_len, 2, 16384,
          "tokens in the longest; pairs of text with more are left out; of running text, tokens in "
          "a window: as far as the model looks back",
          OTHERWISE(FOR(OF_TEXT, "256")), STORED),

    MODEL("init", told.model.init,
          "start from the weights of the model in this file, with its sizes and its vocabulary"),
    { .name = "freeze",
      .kind = OPTION_STRING,
      .value = &told.model.freeze,
      .argument = "PREFIX[,PREFIX]",
      .help = "do not train parameters whose names begin with one of these prefixes" },

    GROUP("Running text"),
    INPUT("text", told.data.text, "file of text to learn from, unchanged, of any size"),
    INPUT("text-eval", told.data.text_eval, "text to validate with, never learned from"),
    COUNT("text-eval-size", told.data.text_eval_size, 0, 1e12,
          "without --text-eval, bytes at the end of --text to validate with, at most a tenth of "
          "it; 0: none",
          STORED, BEFORE("100000")),
    { .name = "document-marker",
      .kind = OPTION_STRING,
      .value = &told.data.document_marker,
      .argument = "LINE",
      .help = "the line that separates documents; it is not learned" },

    GROUP("Text"),
    INPUT("train", told.data.train,
          "pairs to learn from: source<TAB>target on each line; for --arch language also plain "
          "text, a "
          "target on each"),
    INPUT("train-src", told.data.train_src, "without --train, file of the sources, one a line"),
    INPUT("train-tgt", told.data.train_tgt, "and file of the targets, line by line"),
    INPUT("valid", told.data.valid, "pairs to validate with, never learned from"),
    INPUT("valid-src", told.data.valid_src, "without --valid, file of their sources"),
    INPUT("valid-tgt", told.data.valid_tgt, "and file of their targets"),
    CHOICE("tokenizer", told.data.tokenizer, WF_NAMES(WF_TOKEN_NAMES),
           "tokens that a line is cut into", .fallback = "",
           OTHERWISE(FOR("add|date", "char"), BY_DATA("text", "bpe"), FOR("lm", "byte-bpe"),
                     FOR("bart", "byte-level")),
           OF_MODEL, BEFORE("word")),
    CHOICE("tokenizer-tgt", told.data.tokenizer_tgt, "same" WF_TOKEN_NAMES(WF_NAME_AFTER),
           "tokens of a target, if they differ from a source's", OF_MODEL, BEFORE("same")),
    INPUT("spm-src", told.data.spm_src, "of --tokenizer sentencepiece: the .spm file for sources",
          NEW),
    INPUT("spm-tgt", told.data.spm_tgt,
          "the .spm file for targets; one of the two alone serves both sides", NEW),
    COUNT("vocab-size", told.data.vocab_size, 0, 1 << 20,
          "size of a vocabulary at most, of each side or shared; 0: no limit",
          OTHERWISE(BY_DATA("bpe|byte-level", "8000"), BY_DATA("byte-bpe", "4096")), OF_MODEL,
          BEFORE("0")),
    COUNT("min-freq", told.data.min_freq, 1, 1e9,
          "least count of a word or character in the vocabulary, or of a pair that bpe merges",
          OTHERWISE(FOR("bpe|byte-bpe|byte-level", "2")), OF_MODEL, BEFORE("1")),
    FLAG("share-vocab", told.data.share_vocab, "one vocabulary for source and target", NEW),

    GROUP("Model"),
    CHOICE("arch", told.model.arch, WF_NAMES(WF_MODEL_NAMES),
           "transformer: an encoder and a decoder; language: a decoder-only model, which reads a "
           "source and goes on "
           "with its target",
           OTHERWISE(FOR("lm", "language")), OF_MODEL, BEFORE("transformer")),
    CHOICE("preset", told.model.preset, "tiny|small|base", "sizes to start from",
           OTHERWISE(FOR("text|lm", "small")), NEW),
    CHOICE("like", told.model.like, LIKE_WORDS,
           "the class of Hugging Face's transformers that convert --to hf will write: it sets "
           "--norm, --positions "
           "and the like; bart learns its vocabulary, marian takes --spm-src",
           NEW),
    CHOICE(
        "form", told.model.form, FORM_WORDS,
        "of a language model: GPT-2's or Llama's; sets the defaults of --norm-kind, --positions, "
        "--activation, --feed-forward and --bias",
        NEW),
    COUNT("d-model", told.model.d_model, 2, 16384, "width", .fallback = "",
          OTHERWISE(FOR("tiny", "64"), FOR("small", "128"), FOR("base", "512")), OF_MODEL),
    COUNT("d-ff", told.model.d_ff, 1, 65536, "inner width of the feed-forward layers",
          .fallback = "", OTHERWISE(FOR("tiny", "128"), FOR("small", "256"), FOR("base", "2048")),
          OF_MODEL),
    COUNT("heads", told.model.heads, 1, 1024, "attention heads; a divisor of the width",
          .fallback = "", OTHERWISE(FOR("tiny|small", "4"), FOR("base", "8")), OF_MODEL),
    COUNT("kv-heads", told.model.kv_heads, 0, 1024,
          "heads of keys and values (grouped-query attention), a divisor of --heads; 0: as many",
          OF_MODEL, BEFORE("0")),
    COUNT("layers", told.model.layers, 1, 256,
          "layers of the encoder and of the decoder, or of the stack", .fallback = "",
          OTHERWISE(FOR("tiny", "2"), FOR("small", "4"), FOR("base", "6")), NEW),
    COUNT("enc-layers", told.model.enc_layers, 1, 256, "layers of the encoder",
          .fallback = "--layers", OF_MODEL),
    COUNT("dec-layers", told.model.dec_layers, 1, 256, "layers of the decoder",
          .fallback = "--layers", OF_MODEL),
    REAL("dropout", told.recipe.dropout, 0, 0.9, "of embeddings, residuals and inner layers",
         OTHERWISE(BY_DATA("text", "0.2"), BY_DATA("lm", "0"), FOR("init", "0.1")), STORED),
    REAL("attention-dropout", told.recipe.attention_dropout, 0, 0.9, "of attention weights",
         STORED),
    CHOICE("norm", told.model.norm, WF_NAMES(WF_NORM_NAMES),
           "LayerNorm before or after each sublayer", OTHERWISE(FOR("marian|bart", "post")),
           OF_MODEL),
    CHOICE("embedding-norm", told.model.embedding_norm, YES_WORDS,
           "of an encoder and a decoder: LayerNorm behind the embeddings, too",
           OTHERWISE(FOR("bart", "yes")), OF_MODEL, BEFORE("no")),
    CHOICE("positions", told.model.positions, WF_NAMES(WF_POSITIONS_NAMES), "encoding of positions",
           OTHERWISE(FOR("lm|bart", "learned"), FOR("llama", "rotary"),
                     FOR("marian", "sinusoidal-halves")),
           OF_MODEL),
    CHOICE("activation", told.model.activation, WF_NAMES(WF_ACTIVATION_NAMES),
           "of the feed-forward layers",
           OTHERWISE(FOR("lm", "gelu-tanh"), FOR("llama|marian", "silu"), FOR("bart", "gelu")),
           OF_MODEL),
    CHOICE("norm-kind", told.model.norm_kind, WF_NAMES(WF_NORM_KIND_NAMES), "LayerNorm or RMSNorm",
           OTHERWISE(FOR("llama", "rms")), OF_MODEL, BEFORE("layer")),
    CHOICE("feed-forward", told.model.feed_forward, FEED_FORWARD_WORDS,
           "gated: times another product of the input, SwiGLU with --activation silu",
           OTHERWISE(FOR("llama", "gated")), OF_MODEL, BEFORE("plain")),
    CHOICE("bias", told.model.bias, BIAS_WORDS, "in projections and norms",
           OTHERWISE(FOR("llama", "no")), OF_MODEL, BEFORE("yes")),
    CHOICE("tie", told.model.tie, WF_NAMES(WF_TIE_NAMES),
           "share the output's matrix with no embedding, the decoder's, or both; a language model "
           "has one embedding",
           OTHERWISE(FOR("lm", "decoder"), FOR("bart", "all")), OF_MODEL),

    GROUP("Optimisation"),
    CHOICE("optimizer", told.recipe.optimizer, WF_NAMES(WF_OPTIMIZER_NAMES),
           "rule that updates parameters by their gradients", OTHERWISE(FOR("lm", "adamw")),
           STORED),
    REAL("lr", told.recipe.lr, 1e-9, 1e6, "learning rate at its peak",
         OTHERWISE(FOR("init", "3e-4")), STORED),
    CHOICE("lr-schedule", told.recipe.schedule, WF_NAMES(WF_SCHEDULE_NAMES),
           "the rate after the warm-up", OTHERWISE(FOR("lm", "cosine")), STORED),
    COUNT("warmup", told.recipe.warmup, 0, 1e9, "steps in which the rate rises",
          OTHERWISE(FOR("text", "800"), FOR("init", "100")), STORED),
    COUNT("lr-steps", told.recipe.lr_steps, 1, 1e12, "where linear and cosine schedules end",
          .fallback = "enough for the task", STORED),
    REAL("beta1", told.recipe.beta1, 0, 0.9999,
         "decay of the average of gradients, of Adam and Lion", STORED),
    REAL("beta2", told.recipe.beta2, 0, 0.999999,
         "decay of the average of squared gradients, of Adam and RMSprop; of Lion's slower average",
         STORED),
    REAL("eps", told.recipe.eps, 1e-30, 1,
         "number added to the divisor, of Adam, RMSprop and Adagrad", STORED),
    REAL("momentum", told.recipe.momentum, 0, 0.9999, "of SGD and RMSprop", STORED),
    REAL("weight-decay", told.recipe.weight_decay, 0, 1, "of AdamW and Lion; matrices only",
         STORED),
    REAL("label-smoothing", told.recipe.label_smoothing, 0, 0.9,
         "share of the target spread over all tokens",
         OTHERWISE(FOR("text", "0.1"), FOR("init", "0")), STORED),
    REAL("ema", told.recipe.ema, 0, 0.99999,
         "decay of a moving average of the weights, which is validated and saved as the best; 0: "
         "none",
         STORED, BEFORE("0")),
    REAL("clip-norm", told.recipe.clip_norm, 0, 1e9,
         "largest norm of the gradient; 0 does not clip", STORED),

    GROUP("Steps"),
    COUNT("batch-size", told.data.batch_size, 0, 65536,
          "sequences in a batch; of text the most; 0: as many as --max-tokens allows",
          OTHERWISE(FOR(OF_TEXT, "0")), STORED),
    COUNT("max-tokens", told.data.max_tokens, 0, 1e9,
          "of text: tokens of source and target in a batch, padding included", .fallback = "",
          OTHERWISE(FOR("add|date", "4096"), BY_DATA("text|lm", "4096")), STORED, BEFORE("0")),
    COUNT("accum", told.data.accum, 1, 4096,
          "batches of text in an update, whose gradients are summed: needs the memory of one batch",
          STORED, BEFORE("1")),
    COUNT("seed", told.recipe.seed, 0, 9007199254740991, "of parameters, data and dropout", STORED),
    COUNT("max-steps", told.run.max_steps, 1, 1e12, "stop after this step",
          .fallback = "enough for the task; for text, --epochs"),
    COUNT("epochs", told.run.epochs, 1, 1e6, "stop after so many passes over the text",
          .fallback = "",
          OTHERWISE(FOR("add", "15"), FOR("date", "5"), BY_DATA("text", "26"), BY_DATA("lm", "10"),
                    FOR("init", "5"))),
    COUNT("patience", told.run.patience, 0, 1e6,
          "stop after so many validations without a lower loss; 0: never"),
    REAL("max-time", told.run.max_time, 0.001, 1e9, "stop after so many seconds",
         .fallback = "none"),
    COUNT("threads", told.run.threads, 1, 256,
          "threads of a process; the result does not depend on it",
          .fallback = DEFAULT_THREADS ", shared by the processes"),

    GROUP("Several processes"),
    COUNT("processes", told.run.processes, 1, 256,
          "train together on this machine, each with --threads and a share of the batches of an "
          "update (--accum); the result does not depend on it"),

    COUNT("ranks", told.run.simulated_ranks, 2, 65536,
          "of a --dry-run: compute the share of one of so many ranks, on machines like this one",
          .fallback = "--processes"),
    { .name = "network",
      .kind = OPTION_STRING,
      .value = &told.run.network,
      .argument = "RATE,DELAY",
      .help = "of a dry run of --ranks: bits a second and delay between the machines, such as "
              "10Gb,50us; tells "
              "how long an update takes" },

    GROUP("Output"),
    NEW_MODEL("model", told.run.model,
              "the model and all that a resume needs, in one safetensors file", .letter = 'o'),
    FLAG("resume", told.run.resume,
         "go on from the model file; settings come from there; more --epochs or --max-steps than "
         "before stretch the schedule"),
    FLAG("overwrite", told.run.overwrite,
         "replace the model file, and the best weights beside it, if they are there", NEW),
    COUNT("save-every", told.run.save_every, 0, 1e12, "steps between saves; 0: at the end only",
          OTHERWISE({ .cases = OF_PAIRS, .said = "an epoch" })),
    COUNT("valid-every", told.run.valid_every, 0, 1e12,
          "steps between validations; 0: at the end only",
          OTHERWISE({ .cases = OF_PAIRS, .said = "an epoch" }, FOR("lm", "250"))),
    COUNT("valid-size", told.data.valid_size, 0, 1e6,
          "unseen sequences of a task in a validation, and in the test at the end; pairs that are "
          "held back of --train without --valid, but no more than 1 % of them; 0: none"),
    FLAG("dry-run", told.run.dry_run,
         "measure a few steps, print the time and memory that the training would take, and stop"),
    COUNT("log-every", told.run.log_every, 1, 1e12, "steps between lines"),
    LOG("log", told.run.log, "write events as JSON, one object a line; - is --json"),
    FLAG("json", told.run.json,
         "write events as JSON lines on stdout, in place of the result as text"),
    OUTPUT("curve", told.run.curve, "draw losses over steps as an SVG"),
    OUTPUT("report", told.run.page,
           "write a page for browsers at each validation: curves, outputs, attention, time by op, "
           "memory; a resume goes on with the page that is there"),
    FOLDER("tensorboard", told.run.tensorboard,
           "write loss, rate, norm, speed and scores as events for TensorBoard into this folder"),
    FLAG("profile", told.run.profile, "say at the end where the time went, by op"),
    FLAG("quiet", told.run.quiet, "say nothing on stderr but errors and warnings"),
};

program train_program = {
    .name = "train",
    .purpose = "trains a model to map sequences to sequences",
    .examples =
        "  train --task copy -o copy.safetensors\n"
        "  train --task sort --seed 7 --max-len 20 --max-steps 4000 -o sort.safetensors "
        "--curve loss.svg\n"
        "  train --resume -o sort.safetensors --max-steps 6000\n"
        "  train --train pairs.tsv --valid held-back.tsv -o translator.safetensors --report "
        "run.html\n"
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
