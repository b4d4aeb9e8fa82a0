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
    { .cases = words, .value = text, .said = "from the data's size" }
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
    GROUP("Task"),
    CHOICE("task", told.data.task, LEARN_WORDS,
           "copy, reverse, sort: sequences of tokens 1..19; add, date: sums and dates as "
           "text; all five are generated. text: pairs of lines from files. lm: running "
           "text, where a model predicts each token from those before it",
           .fallback = "text, if there is --train; lm, if there is --text", STORED),
    COUNT("min-len", told.data.min_len, 2, TASK_MAX_LEN,
          "minimum length of a generated sequence in tokens", STORED),
    COUNT("max-len", told.data.max_len, 2, 16384,
          "maximum length of a source and of a target, each, in tokens; longer pairs of text "
          "are left out. copy, reverse and sort take at most 512. For lm: tokens in a "
          "window of text, which is as far as the model looks back",
          OTHERWISE(FOR(OF_TEXT, "256")), STORED),

    MODEL("init", told.model.init,
          "fine-tune the model in this file: start from its weights, with its sizes and "
          "vocabulary"),
    { .name = "freeze",
      .kind = OPTION_STRING,
      .value = &told.model.freeze,
      .argument = "PREFIX[,PREFIX]",
      .help = "do not train parameters whose names begin with one of these prefixes" },

    GROUP("Running text"),
    INPUT("text", told.data.text,
          "file of running text to learn from; every byte of it is used, and it may have "
          "any size"),
    INPUT("text-eval", told.data.text_eval,
          "running text for validation, which is never learned from"),
    COUNT("text-eval-size", told.data.text_eval_size, 0, 1e12,
          "without --text-eval: hold out this many bytes at the end of --text for "
          "validation, but at most a tenth of it; 0: none",
          STORED, BEFORE("100000")),
    { .name = "document-marker",
      .kind = OPTION_STRING,
      .value = &told.data.document_marker,
      .argument = "LINE",
      .help = "a line that separates documents; it is not part of the text",
      .fallback = "<|endoftext|>" },

    GROUP("Pairs of text"),
    INPUT("train", told.data.train,
          "file of pairs to learn from: source<TAB>target on each line. With --arch "
          "language a line may also be a target alone"),
    INPUT("train-src", told.data.train_src,
          "without --train: file of the sources, one on each line"),
    INPUT("train-tgt", told.data.train_tgt, "file of the targets, with as many lines"),
    INPUT("valid", told.data.valid, "file of pairs for validation, which are never learned from"),
    INPUT("valid-src", told.data.valid_src, "without --valid: file of the sources for validation"),
    INPUT("valid-tgt", told.data.valid_tgt, "file of the targets for validation"),
    CHOICE("tokenizer", told.data.tokenizer, WF_NAMES(WF_TOKEN_NAMES),
           "kind of tokens into which a line is cut", .fallback = "",
           OTHERWISE(FOR("add|date", "char"), BY_DATA("text", "bpe"), FOR("lm", "byte-bpe"),
                     FOR("bart", "byte-level")),
           OF_MODEL, BEFORE("word")),
    CHOICE("tokenizer-tgt", told.data.tokenizer_tgt, "same" WF_TOKEN_NAMES(WF_NAME_AFTER),
           "kind of tokens of targets, if it is not that of sources", OF_MODEL, BEFORE("same")),
    INPUT("spm-src", told.data.spm_src,
          "SentencePiece model (.spm) for sources; with it --tokenizer is sentencepiece", NEW),
    INPUT("spm-tgt", told.data.spm_tgt,
          "SentencePiece model (.spm) for targets. If only one of the two is given, it "
          "serves both sides; --arch language takes only one",
          NEW),
    COUNT("vocab-size", told.data.vocab_size, 0, 1 << 20,
          "maximum size of the vocabulary, of each side or shared; 0: no limit",
          OTHERWISE(BY_DATA("bpe|byte-level", "8000"), BY_DATA("byte-bpe", "4096")), OF_MODEL,
          BEFORE("0")),
    COUNT("min-freq", told.data.min_freq, 1, 1e9,
          "how often a word or a character must occur to get into the vocabulary, or a "
          "pair of symbols to be merged by bpe",
          OTHERWISE(FOR("bpe|byte-bpe|byte-level", "2")), OF_MODEL, BEFORE("1")),
    FLAG("share-vocab", told.data.share_vocab, "use one vocabulary for source and target", NEW),

    GROUP("Model"),
    CHOICE("arch", told.model.arch, WF_NAMES(WF_MODEL_NAMES),
           "transformer: an encoder and a decoder; language: a decoder-only model, which "
           "reads a source and continues with its target",
           OTHERWISE(FOR("lm", "language")), OF_MODEL, BEFORE("transformer")),
    CHOICE("preset", told.model.preset, "tiny|small|base",
           "sizes of the model, which the following options can change",
           OTHERWISE(FOR("text|lm", "small")), NEW),
    CHOICE("like", told.model.like, LIKE_WORDS,
           "make a model that convert --to hf can write as this class of Hugging Face's "
           "transformers: sets --norm, --positions and others. marian needs --spm-src; "
           "bart learns its vocabulary",
           NEW),
    CHOICE("form", told.model.form, FORM_WORDS,
           "form of a language model, that of GPT-2 or of Llama: sets the defaults of "
           "--norm-kind, --positions, --activation, --feed-forward and --bias",
           NEW),
    COUNT("d-model", told.model.d_model, 2, 16384,
          "width of the model: size of embeddings and of every layer's output", .fallback = "",
          OTHERWISE(FOR("tiny", "64"), FOR("small", "128"), FOR("base", "512")), OF_MODEL),
    COUNT("d-ff", told.model.d_ff, 1, 65536, "inner width of the feed-forward layers",
          .fallback = "", OTHERWISE(FOR("tiny", "128"), FOR("small", "256"), FOR("base", "2048")),
          OF_MODEL),
    COUNT("heads", told.model.heads, 1, 1024, "number of attention heads; must divide the width",
          .fallback = "", OTHERWISE(FOR("tiny|small", "4"), FOR("base", "8")), OF_MODEL),
    COUNT("kv-heads", told.model.kv_heads, 0, 1024,
          "number of heads of keys and values (grouped-query attention); must divide "
          "--heads; 0: as many as --heads",
          OF_MODEL, BEFORE("0")),
    COUNT("layers", told.model.layers, 1, 256,
          "number of layers in the encoder and in the decoder; in a decoder-only model, "
          "in all",
          .fallback = "", OTHERWISE(FOR("tiny", "2"), FOR("small", "4"), FOR("base", "6")), NEW),
    COUNT("enc-layers", told.model.enc_layers, 1, 256, "number of layers in the encoder",
          .fallback = "--layers", OF_MODEL),
    COUNT("dec-layers", told.model.dec_layers, 1, 256, "number of layers in the decoder",
          .fallback = "--layers", OF_MODEL),
    REAL("dropout", told.recipe.dropout, 0, 0.9,
         "dropout rate of embeddings, residuals and inner layers",
         OTHERWISE(BY_DATA("text", "0.2"), BY_DATA("lm", "0"), FOR("init", "0.1")), STORED),
    REAL("attention-dropout", told.recipe.attention_dropout, 0, 0.9,
         "dropout rate of attention weights", STORED),
    CHOICE("norm", told.model.norm, WF_NAMES(WF_NORM_NAMES),
           "normalise before (pre-norm) or after (post-norm) each sublayer",
           OTHERWISE(FOR("marian|bart", "post")), OF_MODEL),
    CHOICE("embedding-norm", told.model.embedding_norm, YES_WORDS,
           "normalise the embeddings, too, in a model with an encoder and a decoder",
           OTHERWISE(FOR("bart", "yes")), OF_MODEL, BEFORE("no")),
    CHOICE("positions", told.model.positions, WF_NAMES(WF_POSITIONS_NAMES),
           "kind of position encoding",
           OTHERWISE(BY_DATA("text", "sinusoidal"), FOR("lm|bart", "learned"),
                     FOR("llama", "rotary"), FOR("marian", "sinusoidal-halves")),
           OF_MODEL),
    CHOICE("activation", told.model.activation, WF_NAMES(WF_ACTIVATION_NAMES),
           "activation function of the feed-forward layers",
           OTHERWISE(FOR("lm", "gelu-tanh"), FOR("llama|marian", "silu"), FOR("bart", "gelu")),
           OF_MODEL),
    CHOICE("norm-kind", told.model.norm_kind, WF_NAMES(WF_NORM_KIND_NAMES),
           "kind of normalisation: LayerNorm or RMSNorm", OTHERWISE(FOR("llama", "rms")), OF_MODEL,
           BEFORE("layer")),
    CHOICE("feed-forward", told.model.feed_forward, FEED_FORWARD_WORDS,
           "plain: two linear layers; gated: the inner layer is multiplied by a third "
           "linear layer of the input, which is SwiGLU with --activation silu",
           OTHERWISE(FOR("llama", "gated")), OF_MODEL, BEFORE("plain")),
    CHOICE("bias", told.model.bias, BIAS_WORDS, "whether projections and norms have biases",
           OTHERWISE(FOR("llama", "no")), OF_MODEL, BEFORE("yes")),
    CHOICE("tie", told.model.tie, WF_NAMES(WF_TIE_NAMES),
           "which embeddings share their matrix with the output layer: none; the "
           "decoder's; or all, which adds the encoder's",
           OTHERWISE(FOR("lm", "decoder"), FOR("bart", "all")), OF_MODEL),

    GROUP("Optimisation"),
    CHOICE("optimizer", told.recipe.optimizer, WF_NAMES(WF_OPTIMIZER_NAMES),
           "how gradients update the parameters", OTHERWISE(FOR("lm", "adamw")), STORED),
    REAL("lr", told.recipe.lr, 1e-9, 1e6,
         "peak learning rate, at the end of the warm-up. For text and lm the default is "
         "multiplied by 128 / --d-model where --d-model is above 128",
         OTHERWISE(FOR("init", "3e-4")), STORED),
    CHOICE("lr-schedule", told.recipe.schedule, WF_NAMES(WF_SCHEDULE_NAMES),
           "how the learning rate changes after the warm-up", OTHERWISE(FOR("lm", "cosine")),
           STORED),
    COUNT("warmup", told.recipe.warmup, 0, 1e9,
          "number of steps in which the learning rate rises linearly to its peak. The "
          "default for add, date, text and lm is at most a tenth of --lr-steps",
          OTHERWISE(FOR("text", "800"), FOR("init", "100")), STORED),
    COUNT("lr-steps", told.recipe.lr_steps, 1, 1e12,
          "step at which linear and cosine schedules end", .fallback = "enough for the task",
          STORED),
    REAL("beta1", told.recipe.beta1, 0, 0.9999,
         "Adam and AdamW: decay of the average of gradients; Lion: share of the momentum in "
         "the direction of a step",
         STORED),
    REAL("beta2", told.recipe.beta2, 0, 0.999999,
         "Adam, AdamW and RMSprop: decay of the average of squared gradients; Lion: decay "
         "of the momentum",
         STORED),
    REAL("eps", told.recipe.eps, 1e-30, 1,
         "Adam, AdamW, RMSprop and Adagrad: number added to the root that a step is "
         "divided by",
         STORED),
    REAL("momentum", told.recipe.momentum, 0, 0.9999, "SGD and RMSprop: momentum", STORED),
    REAL("weight-decay", told.recipe.weight_decay, 0, 1,
         "AdamW and Lion: decoupled weight decay of matrices, not of biases and norms", STORED),
    REAL("label-smoothing", told.recipe.label_smoothing, 0, 0.9,
         "share of the target's probability that is spread over all tokens",
         OTHERWISE(FOR("text", "0.1"), FOR("init", "0")), STORED),
    REAL("ema", told.recipe.ema, 0, 0.99999,
         "decay of an exponential moving average of the weights. Validation uses the "
         "average, and it is saved as the best weights, NAME.best.safetensors; the file of "
         "the model keeps the weights of the last step. 0: no average",
         STORED, BEFORE("0")),
    REAL("clip-norm", told.recipe.clip_norm, 0, 1e9,
         "scale a gradient down if its norm is larger than this; 0: never", STORED),

    GROUP("Steps"),
    COUNT("batch-size", told.data.batch_size, 0, 65536,
          "number of sequences in a batch. For add, date, text and lm the maximum, which "
          "--max-tokens limits, too; 0: as many as --max-tokens allows",
          OTHERWISE(FOR(OF_TEXT, "0")), STORED),
    COUNT("max-tokens", told.data.max_tokens, 0, 1e9,
          "for add, date, text and lm: maximum number of tokens in a batch, of sources and "
          "targets together, including padding; 0: no limit",
          .fallback = "", OTHERWISE(FOR("add|date", "4096"), BY_DATA("text|lm", "4096")), STORED,
          BEFORE("0")),
    COUNT("accum", told.data.accum, 1, 4096,
          "for text: number of batches in an update. Their gradients are summed, which "
          "needs only the memory of one batch",
          STORED, BEFORE("1")),
    COUNT("seed", told.recipe.seed, 0, 9007199254740991,
          "seed of initial parameters, data and dropout", STORED),
    COUNT("max-steps", told.run.max_steps, 1, 1e12, "stop after this step",
          .fallback = "enough for the task; for text, as --epochs says"),
    COUNT("epochs", told.run.epochs, 1, 1e6, "stop after this many passes over the text",
          .fallback = "",
          OTHERWISE(FOR("add", "15"), FOR("date", "5"), BY_DATA("text", "26"), BY_DATA("lm", "10"),
                    FOR("init", "5"))),
    COUNT("patience", told.run.patience, 0, 1e6,
          "stop after this many validations without a lower loss; 0: never"),
    REAL("max-time", told.run.max_time, 0.001, 1e9, "stop after this many seconds",
         .fallback = "none"),
    COUNT("threads", told.run.threads, 1, 256,
          "number of threads in each process; the result does not depend on it",
          .fallback = DEFAULT_THREADS ", shared by the processes"),

    GROUP("Several processes"),
    COUNT("processes", told.run.processes, 1, 256,
          "number of processes on this machine that train together (data-parallel, "
          "ZeRO-1): each has --threads threads and some of an update's batches (--accum)."
          " The result does not depend on it"),

    COUNT("ranks", told.run.simulated_ranks, 2, 65536,
          "with --dry-run: simulate one of this many ranks, on machines like this one",
          .fallback = "--processes"),
    { .name = "network",
      .kind = OPTION_STRING,
      .value = &told.run.network,
      .argument = "RATE,DELAY",
      .help = "with --ranks: the network between the machines, as bits per second and delay, "
              "such as 10Gb,50us. An estimate of the time of an update is printed" },

    GROUP("Output"),
    NEW_MODEL("model", told.run.model,
              "file to write: the model and everything that --resume needs, as safetensors",
              .letter = 'o'),
    FLAG("resume", told.run.resume,
         "continue the training in the --model file, with the settings stored there. "
         "More --epochs or --max-steps than before stretch the schedule"),
    FLAG("overwrite", told.run.overwrite,
         "replace an existing --model file, and the best weights beside it", NEW),
    COUNT("save-every", told.run.save_every, 0, 1e12,
          "number of steps between saves; 0: only at the end",
          OTHERWISE({ .cases = OF_PAIRS, .said = "an epoch" })),
    COUNT("valid-every", told.run.valid_every, 0, 1e12,
          "number of steps between validations; 0: only at the end",
          OTHERWISE({ .cases = OF_PAIRS, .said = "an epoch" }, FOR("lm", "250"))),
    COUNT("valid-size", told.data.valid_size, 0, 1e6,
          "number of generated sequences in a validation, and in the test at the end. "
          "Without --valid: number of pairs of --train to hold out for validation, at "
          "most 1 % of them; 0: none"),
    FLAG("dry-run", told.run.dry_run,
         "make a few steps, print the time and memory that the training would take, and "
         "end"),
    COUNT("log-every", told.run.log_every, 1, 1e12, "number of steps between lines of progress"),
    LOG("log", told.run.log, "write events to this file as JSON lines; - is the same as --json"),
    FLAG("json", told.run.json,
         "write events as JSON lines on stdout instead of the result as text"),
    OUTPUT("curve", told.run.curve, "draw the losses over steps as SVG into this file"),
    OUTPUT("report", told.run.page,
           "write a page for browsers at each validation, with curves, outputs, attention,"
           " time by op, and memory. A resumed training continues the page"),
    FOLDER("tensorboard", told.run.tensorboard,
           "write loss, learning rate, gradient norm, speed and scores into this folder as"
           " events for TensorBoard"),
    FLAG("profile", told.run.profile, "print at the end how much time each op took"),
    FLAG("quiet", told.run.quiet, "print nothing on stderr except errors and warnings"),
};

program train_program = {
    .name = "train",
    .purpose = "trains a Transformer: a translator from pairs of text, or a language model",
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
