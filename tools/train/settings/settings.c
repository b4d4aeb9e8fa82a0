/* tools/train/settings/settings.c - the options of `train`. See settings.h.
 *
 * The defaults are recipes that work. Those for tasks on numbers are the variables' initial values;
 * different values for text or for a preset are in the rows. */
#include "settings.h"

#include "models/choices.h"

/* clang-format off */
static const source_kind not_known = { 0 };
static const settings defaults = {
    .model = { .positions = WF_POSITIONS_SINUSOIDAL, .activation = WF_RELU, .tie = WF_TIE_NONE,
               .base_weights = -1 },
    .recipe = { .optimizer = WF_ADAM, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9,
                .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 1,
                .alignment_weight = 0.1,
                .lr = 3e-3, .schedule = WF_LINEAR_DECAY, .warmup = 200, .seed = 1 },
    .data = { .task = -1, .kind = &not_known, .min_len = 3, .max_len = 12, .min_freq = 1,
              .text_eval_size = 100000, .document_marker = "<|endoftext|>",
              .batch_size = 32, .accum = 1, .valid_size = 1000 },
    .run = { .processes = 1, .log_every = 100, .valid_every = 500, .save_every = 500 },
};
/* clang-format on */

#define STORED .stored = true
#define OF_MODEL .stored = true, .of_model = true
#define NEW .of_new = true /* for a new training: a resume refuses it */
/* all tasks with pairs of text; the last three are those from files */
#define OF_PAIRS "add|date|text|pairs|classify"
#define OF_TEXT OF_PAIRS "|lm|mask|spans" /* and running text */
/* Describes a default that defaults.c sets when the data are known. */
#define BY_DATA(words, text, described)                                                            \
    { .cases = words, .value = text, .said = described }
/* The value that holds in checkpoints from before the setting existed. */
#define BEFORE(text) .before = text

/* The words of choices that have no type of their own. */
#define FORM_WORDS "gpt|llama"
#define LIKE_WORDS "none|marian|bart|t5|firefox"
#define FEED_FORWARD_WORDS "plain|gated"
#define BIAS_WORDS "yes|no"
#define YES_WORDS "no|yes"

/* The one object that options are read into. The rows of the table hold its addresses. */
static settings told;

static option rows[] = {
    GROUP("Task"),
    CHOICE(
        "task", told.data.task, LEARN_WORDS,
        "what the model learns. copy, reverse, sort: to copy, reverse or sort sequences of the "
        "tokens 1..19, which are generated. add, date: to add two numbers, or to write a date as "
        "1998-03-03; these texts are generated, too. text: to turn a source line into its target "
        "line, as a translator, from the pairs of --train. lm: a language model of --text. pairs: "
        "an encoder that gives a source and its target in --train similar vectors, by a "
        "contrastive loss over each batch. mask: an encoder that predicts hidden tokens of --text, "
        "as BERT. classify: an encoder that finds the label of a line; the pairs of --train are "
        "lines and their labels. spans: an encoder and a decoder that write the spans taken out of "
        "--text, as T5",
        .fallback = "text with --train or --train-src; lm with --text; with --resume as before; "
                    "else it must be given",
        STORED),
    COUNT("min-len", told.data.min_len, 2, TASK_MAX_LEN,
          "with --task copy, reverse or sort: minimum length of a generated sequence in tokens, at "
          "most --max-len. Other tasks refuse it",
          STORED),
    COUNT("max-len", told.data.max_len, 2, 16384,
          "maximum length in tokens. With --task copy, reverse and sort: of a generated sequence, "
          "at most 512. With pairs of text: of a source and of a target, each; longer pairs are "
          "left out, and with --task classify longer lines are cut. With --task lm, mask and "
          "spans: of a window of text, beyond which the model sees nothing. With --init the "
          "default for text is the longest that the model reads: for pairs in a decoder-only model "
          "half of its context; for --task spans, and for models like GPT-2 that put no start "
          "token before a prompt, at most 1024. More than the model reads is refused",
          OTHERWISE(FOR(OF_TEXT, "256")), STORED),

    MODEL("init", told.model.init,
          "fine-tune the model in this file, which train or convert wrote: start from its weights, "
          "sizes and vocabulary. Options for tokenizers and vocabularies are refused, and so are "
          "those that this help lists under \"Model\", except the two for dropout. The file must "
          "have a model for the task, and not adapters alone"),
    { .name = "freeze",
      .kind = OPTION_STRING,
      .value = &told.model.freeze,
      .argument = "PREFIX[,PREFIX]",
      .help = "do not train parameters whose names begin with one of these prefixes, such as "
              "transformer.encoder. The program inspect lists the names in a model file. Each "
              "prefix must fit a name, and something must be left to train. Refused with --lora" },
    COUNT("lora", told.model.lora, 0, 65536,
          "with --init: rank of low-rank adapters (LoRA), which alone are trained and saved. The "
          "model of --init does not change; generate --adapter applies them, and convert --adapter "
          "merges them into it. 0: train the model itself. --freeze and --quantize-aware are "
          "refused beside it. An encoder with a head for masked tokens needs --task mask, and "
          "--task classify a model that has labels",
          BEFORE("0"), STORED),
    REAL("lora-alpha", told.model.lora_alpha, 0, 1e6,
         "with --lora: alpha of the adapters. The product of an adapter's two matrices is "
         "multiplied by alpha / rank. 0: alpha is the rank, so the factor is 1",
         BEFORE("0"), STORED),
    { .name = "lora-targets",
      .kind = OPTION_STRING,
      .value = &told.model.lora_targets,
      .argument = "NAME[,NAME]",
      .help = "with --lora: the matrices that get adapters, by the ends of their names: q_proj, "
              "k_proj, v_proj, in_proj (these three as one matrix, with one adapter), out_proj, "
              "linear1, linear2, linear3, output, an SSRU's input and forget, average attention's "
              "inner, outer, input_gate and forget_gate. all-linear stands for all of these but "
              "output, with q_proj, k_proj and v_proj in place of in_proj",
      .fallback = "q_proj,v_proj, or in_proj for a model of GPT-2's form" },
    CHOICE("base-weights", told.model.base_weights, WF_NAMES(WF_WEIGHT_FORMAT_NAMES),
           "with --lora: number format in which the weights of --init, which are not trained, are "
           "kept in memory. bf16 takes half of the bytes of f32 and int8 a quarter, and both round "
           "them",
           .fallback = "f32, or int8 if the file has that"),

    GROUP("Running text (--task lm, mask and spans)"),
    INPUT("text", told.data.text,
          "file of running text to learn from, of any size. --task lm, mask and spans need it, and "
          "other tasks refuse it. Without --text-eval its end is held out, see --text-eval-size. "
          "--task lm learns line breaks, too; mask and spans leave them out"),
    INPUT("text-eval", told.data.text_eval,
          "with --text: file of running text for validation. The model never learns from it",
          .fallback = "the end of --text"),
    COUNT("text-eval-size", told.data.text_eval_size, 0, 1e12,
          "with --text and without --text-eval: number of bytes at the end of --text that are held "
          "out for validation, but at most a tenth of the file; 0: no validation",
          STORED, BEFORE("100000")),
    { .name = "document-marker",
      .kind = OPTION_STRING,
      .value = &told.data.document_marker,
      .argument = "LINE",
      .help = "content of the lines in --text and --text-eval that separate documents. At such a "
              "line the model learns that a document ends, and it never learns the line itself. A "
              "resumed training needs the option again",
      .fallback = "<|endoftext|>" },

    GROUP("Pairs of text (--task text, pairs and classify)"),
    INPUT("train", told.data.train,
          "file of pairs to learn from: --task text, pairs and classify need it, or --train-src "
          "and --train-tgt. Each line has a source, a TAB and a target; with --task classify a "
          "text, a TAB and its label. With --arch language a line without a TAB is a target alone"),
    INPUT("train-src", told.data.train_src,
          "file of sources to learn from, one on each line. It needs --train-tgt, and both "
          "together are given in place of --train"),
    INPUT("train-tgt", told.data.train_tgt,
          "file of targets to learn from. It needs --train-src: line N is the target of line N "
          "there, so both files have the same number of lines"),
    INPUT(
        "valid", told.data.valid,
        "file of pairs for validation, in the format of --train. The model never learns from them",
        .fallback = "some pairs of --train, see --valid-size"),
    INPUT("valid-src", told.data.valid_src,
          "file of sources for validation, one on each line. It needs --valid-tgt, and both "
          "together are given in place of --valid"),
    INPUT("valid-tgt", told.data.valid_tgt,
          "file of targets for validation. It needs --valid-src: line N is the target of line N "
          "there"),
    INPUT("alignments", told.data.alignments,
          "with --task text and --arch transformer: file of word alignments for guided alignment, "
          "in Pharaoh's format, with a line for each pair of --train: 0-0 2-1 means that the "
          "target's word 0 came from the source's word 0, and its word 1 from the source's word "
          "2. The first head of the last layer's cross-attention learns them, and generate "
          "--alignment then shows them. A line may be empty. A resumed training needs the file "
          "again",
          .fallback = "none"),
    REAL("alignment-weight", told.recipe.alignment_weight, 1e-6, 1000,
         "with --alignments: weight of the loss of the alignments, which is multiplied by it and "
         "added to the loss of the outputs",
         STORED, BEFORE("0.1")),
    CHOICE("tokenizer", told.data.tokenizer, WF_NAMES(WF_TOKEN_NAMES),
           "kind of tokens into which text is cut. word: words between spaces. char: characters. "
           "bpe: parts of words by byte-pair encoding. byte, text-char, byte-bpe: bytes, "
           "characters and byte-pair encoding for running text, which keep its line breaks. "
           "sentencepiece: the model of --spm-src, which sets it. byte-level: byte-pair encoding "
           "of bytes in GPT-2's format. json: the tokenizer of --tokenizer-json, which sets it. "
           "--task lm takes only byte, text-char, byte-bpe and json, and mask, classify and spans "
           "take only json. copy, reverse and sort have no text, and refuse it",
           .fallback = "",
           OTHERWISE(FOR("add|date", "char"),
                     BY_DATA("text|pairs", "bpe", "word, char or bpe, chosen from the lines,"),
                     FOR("lm", "byte-bpe"), FOR("mask|classify|spans", "json"),
                     FOR("bart", "byte-level")),
           OF_MODEL, BEFORE("word")),
    CHOICE("tokenizer-tgt", told.data.tokenizer_tgt, "same" WF_LEARNED_NAMES(WF_NAME_AFTER),
           "with --task add, date or text: kind of tokens into which targets are cut, if it "
           "differs from that of sources. same: the value of --tokenizer, which is then for both. "
           "If both sides share a vocabulary, they have one kind. Refused with --tokenizer json "
           "and sentencepiece",
           OF_MODEL, BEFORE("same")),
    INPUT("tokenizer-json", told.data.tokenizer_json,
          "for tasks that read text from files: tokenizer.json of Hugging Face, or of tokenize "
          "--learn, that cuts the text into tokens; of pairs, both sides. It sets --tokenizer "
          "json. --task lm also needs --end-token. With --task mask and classify it must put "
          "special tokens around each line, and with mask have [MASK] or <mask>. With --task spans "
          "and --like t5 it must have <pad> and </s>, and with spans <extra_id_0>",
          NEW),
    { .name = "end-token",
      .kind = OPTION_STRING,
      .value = &told.data.end_token,
      .argument = "TOKEN",
      .help = "with --tokenizer-json and --task lm or text: token of that file with which each "
              "document or each target ends, such as <|endoftext|> or </s>. --task lm needs it. "
              "--like t5 refuses it, because its outputs end with </s>",
      .fallback = "with --task text the first that the file has of </s>, [SEP] and <|endoftext|>",
      NEW },
    INPUT("spm-src", told.data.spm_src,
          "with --task add, date, text or pairs: SentencePiece model (.spm) that cuts sources into "
          "tokens. It sets --tokenizer sentencepiece, and also serves targets unless --spm-tgt is "
          "given",
          NEW),
    INPUT("spm-tgt", told.data.spm_tgt,
          "with --task add, date, text or pairs: SentencePiece model (.spm) that cuts targets into "
          "tokens. It also serves sources unless --spm-src is given. --arch language takes only "
          "one of the two",
          NEW),
    COUNT("vocab-size", told.data.vocab_size, 0, 1 << 20,
          "maximum number of tokens in the vocabulary of each side, or in the shared one. word and "
          "char keep the most frequent tokens, and others are unknown; kinds of byte-pair encoding "
          "stop merging at this size. 0: no limit. Refused with --tokenizer sentencepiece, json "
          "and byte, which have their own",
          OTHERWISE(BY_DATA("bpe|byte-level", "8000", "300 to 8000, growing with the text,"),
                    BY_DATA("byte-bpe", "4096", "300 to 4096, growing with the text,")),
          OF_MODEL, BEFORE("0")),
    COUNT("min-freq", told.data.min_freq, 1, 1e9,
          "minimum number of times that a word or a character occurs in the training text to get "
          "into the vocabulary, or that byte-pair encoding sees a pair of symbols to merge it. "
          "Refused with --tokenizer sentencepiece, json and byte",
          OTHERWISE(FOR("bpe|byte-bpe|byte-level", "2")), OF_MODEL, BEFORE("1")),
    FLAG("share-vocab", told.data.share_vocab,
         "with --task add, date or text: learn one vocabulary from sources and targets together. "
         "Without it each of the two has its own vocabulary, except where there is always one: "
         "with --arch language, with --tokenizer json, with --tokenizer byte-level if "
         "--tokenizer-tgt is not given, with --like t5, and with --tie all or inputs. Refused "
         "with --tokenizer sentencepiece and json",
         NEW),

    GROUP("Model"),
    CHOICE("arch", told.model.arch, WF_NAMES(WF_MODEL_NAMES),
           "architecture. transformer: an encoder reads the source, and a decoder writes the "
           "target. language: a decoder-only model reads a source and continues with its target. "
           "--task lm takes only language. pairs, mask and classify train an encoder alone and "
           "spans a model of T5's form; these four refuse it",
           OTHERWISE(FOR("lm", "language")), OF_MODEL, BEFORE("transformer")),
    CHOICE("preset", told.model.preset, "tiny|small|base",
           "set of sizes: the defaults of --d-model, --d-ff, --heads and --layers",
           OTHERWISE(FOR("text|lm|pairs|mask|classify|spans", "small")), NEW),
    CHOICE("like", told.model.like, LIKE_WORDS,
           "with --arch transformer: form of the model. marian, bart, t5: that of MarianMT, BART "
           "or T5 1.1 in Hugging Face's transformers, so that convert --to hf can write it. "
           "firefox: that of Firefox's translators, which convert --to marian writes. none: no "
           "such form. It sets the defaults of --norm, --positions, --activation, "
           "--embedding-norm, --decoder and --tie, and refuses values that the form does not have; "
           "bart also sets those of --tokenizer and --lr. For text, marian and firefox need "
           "--spm-src. bart is only possible with --task text, and learns its vocabulary. With "
           "t5, convert --to hf writes the vocabulary only if it was given by --spm-src or "
           "--tokenizer-json",
           OTHERWISE(FOR("spans", "t5")), NEW),
    CHOICE("form", told.model.form, FORM_WORDS,
           "with --arch language: form of the layers, that of GPT-2 or of Llama. It sets the "
           "defaults of --norm-kind, --positions, --activation, --feed-forward and --bias",
           NEW),
    COUNT("d-model", told.model.d_model, 2, 16384,
          "width of the model: number of values in an embedding and in each output of a layer",
          .fallback = "", OTHERWISE(FOR("tiny", "64"), FOR("small", "128"), FOR("base", "512")),
          OF_MODEL),
    COUNT("d-ff", told.model.d_ff, 1, 65536, "inner width of the feed-forward layers",
          .fallback = "", OTHERWISE(FOR("tiny", "128"), FOR("small", "256"), FOR("base", "2048")),
          OF_MODEL),
    COUNT("heads", told.model.heads, 1, 1024,
          "number of attention heads in each layer. It must divide --d-model, and with rotary "
          "positions --d-model / --heads must be even",
          .fallback = "", OTHERWISE(FOR("tiny|small", "4"), FOR("base", "8")), OF_MODEL),
    COUNT("kv-heads", told.model.kv_heads, 0, 1024,
          "with --arch language: number of heads of keys and values (grouped-query attention). It "
          "must divide --heads; 0: as many as --heads",
          OF_MODEL, BEFORE("0")),
    COUNT("layers", told.model.layers, 1, 256,
          "number of layers. With --arch transformer the encoder has as many, and the decoder, "
          "too. Refused if --enc-layers and --dec-layers are both given",
          .fallback = "", OTHERWISE(FOR("tiny", "2"), FOR("small", "4"), FOR("base", "6")), NEW),
    COUNT("enc-layers", told.model.enc_layers, 1, 256,
          "with --arch transformer, or a task that trains an encoder alone: number of layers in "
          "the encoder",
          .fallback = "--layers", OF_MODEL),
    COUNT("dec-layers", told.model.dec_layers, 1, 256,
          "with --arch transformer: number of layers in the decoder", .fallback = "--layers",
          OF_MODEL),
    REAL("dropout", told.recipe.dropout, 0, 0.9,
         "share of values that training sets to 0 at random (dropout), in embeddings, outputs of "
         "sublayers and inner values of the feed-forward layers",
         OTHERWISE(BY_DATA("text|pairs|classify", "0.2", "0.3 to 0.05, less for more pairs,"),
                   BY_DATA("lm|mask|spans", "0", "0.2 to 0, less for more text,"),
                   FOR("init", "0.1")),
         STORED),
    REAL("attention-dropout", told.recipe.attention_dropout, 0, 0.9,
         "share of attention weights that training sets to 0 at random", STORED),
    CHOICE("norm", told.model.norm, WF_NAMES(WF_NORM_NAMES),
           "place of the normalisation: before each sublayer (pre-norm), or after it (post-norm). "
           "--task pairs, mask and classify refuse it: their encoder is post-norm",
           OTHERWISE(FOR("marian|bart|firefox", "post")), OF_MODEL),
    CHOICE("decoder", told.model.decoder, WF_NAMES(WF_DECODER_KIND_NAMES),
           "with --arch transformer: first sublayer of the decoder's layers. attention: "
           "self-attention. ssru: a recurrent unit (SSRU) whose state does not grow with the "
           "output, as in Marian's fast translators. average: the mean of all tokens so far, and a "
           "feed-forward layer, whose state does not grow either. --task pairs, mask, classify and "
           "spans refuse it, and --like marian, bart and t5 take only attention",
           OTHERWISE(FOR("firefox", "ssru")), OF_MODEL, BEFORE("attention")),
    CHOICE("embedding-norm", told.model.embedding_norm, YES_WORDS,
           "with --arch transformer: whether a LayerNorm follows the embeddings of the encoder and "
           "of the decoder, as in BART. With --like only the default is possible",
           OTHERWISE(FOR("bart", "yes")), OF_MODEL, BEFORE("no")),
    CHOICE(
        "positions", told.model.positions, WF_NAMES(WF_POSITIONS_NAMES),
        "kind of position encoding. sinusoidal: sines and cosines are added to embeddings. "
        "sinusoidal-halves, -fairseq, -tensor2tensor: these in another order of the columns, that "
        "of MarianMT, of fairseq, or of tensor2tensor, which Marian shares. learned: a trained "
        "table is added. rotary: attention rotates queries and keys (RoPE). sinusoidal-rotary: "
        "sinusoidal and rotary together. none: nothing is added; with --like t5 the attention has "
        "T5's relative positions. --task pairs, mask and classify refuse it: their encoder has "
        "learned ones",
        OTHERWISE(BY_DATA("text", "sinusoidal",
                          "sinusoidal, or sinusoidal-rotary if sources are cut into characters,"),
                  FOR("lm|bart", "learned"), FOR("llama", "rotary"),
                  FOR("marian", "sinusoidal-halves"), FOR("t5", "none"),
                  FOR("firefox", "sinusoidal-tensor2tensor")),
        OF_MODEL),
    CHOICE("activation", told.model.activation, WF_NAMES(WF_ACTIVATION_NAMES),
           "activation function of the feed-forward layers. gelu is the exact one, and gelu-tanh "
           "its approximation by tanh",
           OTHERWISE(FOR("lm|t5", "gelu-tanh"), FOR("llama|marian", "silu"),
                     FOR("bart|pairs|mask|classify", "gelu"), FOR("firefox", "relu")),
           OF_MODEL),
    CHOICE("norm-kind", told.model.norm_kind, WF_NAMES(WF_NORM_KIND_NAMES),
           "with --arch language: kind of normalisation, LayerNorm or RMSNorm",
           OTHERWISE(FOR("llama", "rms")), OF_MODEL, BEFORE("layer")),
    CHOICE(
        "feed-forward", told.model.feed_forward, FEED_FORWARD_WORDS,
        "with --arch language: form of the feed-forward layers. plain: two linear layers. gated: "
        "a third linear layer of the input multiplies the inner values, which is SwiGLU with "
        "--activation silu",
        OTHERWISE(FOR("llama", "gated")), OF_MODEL, BEFORE("plain")),
    CHOICE("bias", told.model.bias, BIAS_WORDS,
           "with --arch language: whether the linear layers and LayerNorms add a trained bias",
           OTHERWISE(FOR("llama", "no")), OF_MODEL, BEFORE("yes")),
    CHOICE("tie", told.model.tie, WF_NAMES(WF_TIE_NAMES),
           "which of the embeddings and the output layer share one matrix. none: each has its own. "
           "decoder: the decoder's embedding and the output layer. all: these two and the "
           "encoder's embedding. inputs: the two embeddings. With all and inputs both sides share "
           "a vocabulary. With --arch language all is decoder, and inputs is refused. --task "
           "pairs, mask and classify refuse --tie",
           OTHERWISE(FOR("lm", "decoder"), FOR("bart", "all"), FOR("t5", "inputs")), OF_MODEL),

    GROUP("Optimisation"),
    CHOICE("optimizer", told.recipe.optimizer, WF_NAMES(WF_OPTIMIZER_NAMES),
           "rule by which gradients update the parameters",
           OTHERWISE(FOR("lm|mask|spans", "adamw")), STORED),
    REAL("lr", told.recipe.lr, 1e-9, 1e6,
         "peak learning rate, which is reached at the end of the warm-up. If the model is "
         "wider than 128, the default is multiplied by 128 / width in two cases: with --lora, and "
         "for a new model (no --init) that learns text from files",
         OTHERWISE(FOR("pairs|bart", "2e-3"), FOR("init", "3e-4"), FOR("lora", "1e-2")), STORED),
    CHOICE("lr-schedule", told.recipe.schedule, WF_NAMES(WF_SCHEDULE_NAMES),
           "course of the learning rate after the warm-up. constant: it stays at the peak. linear "
           "and cosine: it falls to 0 at --lr-steps. inverse-sqrt, and noam, which is the same: it "
           "is the peak times sqrt(--warmup / step), where a --warmup of 0 counts as 1",
           OTHERWISE(FOR("lm|mask|spans", "cosine")), STORED),
    COUNT(
        "warmup", told.recipe.warmup, 0, 1e9,
        "number of steps in which the learning rate rises linearly from 0 to its peak. For a task "
        "on text the default is smaller in a short training: no more than a tenth of --lr-steps, "
        "or of --max-steps if only that is given. For a new model of --task pairs or --like bart "
        "it is no more than three tenths",
        OTHERWISE(FOR("text|pairs|classify", "800"), FOR("init", "100")), STORED),
    COUNT("lr-steps", told.recipe.lr_steps, 1, 1e12,
          "with --lr-schedule linear or cosine: number of the step at which the learning rate "
          "reaches 0. It may not be below --max-steps. A resumed training may change it",
          .fallback = "--max-steps, or its default if that is more", STORED),
    REAL("beta1", told.recipe.beta1, 0, 0.9999,
         "with --optimizer adam or adamw: decay of the moving average of gradients. With lion: "
         "share of the momentum in the direction of a step",
         STORED),
    REAL("beta2", told.recipe.beta2, 0, 0.999999,
         "with --optimizer adam, adamw or rmsprop: decay of the moving average of squared "
         "gradients. With lion: decay of the momentum. All four have the same default",
         STORED),
    REAL("eps", told.recipe.eps, 1e-30, 1,
         "with --optimizer adam, adamw, rmsprop or adagrad: number added to the square root by "
         "which a step is divided",
         STORED),
    REAL("momentum", told.recipe.momentum, 0, 0.9999,
         "with --optimizer sgd or rmsprop: momentum coefficient, the share of the last step that "
         "is added to the next",
         STORED),
    REAL("weight-decay", told.recipe.weight_decay, 0, 1,
         "with --optimizer adamw or lion: decay of weights. Each step makes a matrix "
         "smaller by this times the learning rate times the matrix, but not biases and norms",
         STORED),
    REAL("label-smoothing", told.recipe.label_smoothing, 0, 0.9,
         "share of the target's probability that the loss spreads evenly over all tokens, with "
         "--task classify over all labels, and with pairs over the lines of a batch",
         OTHERWISE(FOR("text", "0.1"), FOR("init", "0")), STORED),
    REAL("ema", told.recipe.ema, 0, 0.99999,
         "decay of an exponential moving average of the weights. Validations use the averages, and "
         "NAME.best.safetensors, the best weights so far, has averages, too. The file of --model "
         "has the weights themselves, and also the averages, for --resume. 0: no average",
         STORED, BEFORE("0")),
    CHOICE("quantize-aware", told.model.quantize_aware, WF_NAMES(WF_QUANTIZE_NAMES),
           "quantisation-aware training: the forward pass rounds matrices as a model in int8 has "
           "them, in validations, too, and gradients pass straight through to the weights, which "
           "stay in f32. int8: a scale for each row, as convert --weights int8. marian: one for "
           "each matrix, as convert --to marian --calibrate, for models that Marian has. none: "
           "nothing is rounded. Refused with --lora",
           STORED, BEFORE("none")),
    REAL("clip-norm", told.recipe.clip_norm, 0, 1e9,
         "maximum norm of the gradient of all parameters together. A larger gradient is scaled "
         "down to it; 0: never",
         STORED),

    GROUP("Steps"),
    COUNT("batch-size", told.data.batch_size, 0, 65536,
          "number of sequences in a batch. With any task on text, add and date included, it is a "
          "maximum beside --max-tokens; 0: only --max-tokens limits a batch",
          OTHERWISE(FOR(OF_TEXT, "0")), STORED),
    COUNT("max-tokens", told.data.max_tokens, 0, 1e9,
          "with any task on text, add and date included: maximum number of tokens in a batch, "
          "sources and targets together, with padding; 0: only --batch-size limits it",
          .fallback = "",
          OTHERWISE(FOR("add|date", "4096"), BY_DATA("text|lm|pairs|mask|classify|spans", "4096",
                                                     "256 to 4096, more for more data,")),
          STORED, BEFORE("0")),
    COUNT("accum", told.data.accum, 1, 4096,
          "with any task on text, add and date included: number of batches in a step. Their "
          "gradients are added before the parameters are updated, with the memory of one batch",
          STORED, BEFORE("1")),
    COUNT("seed", told.recipe.seed, 0, 9007199254740991,
          "seed of all random numbers: initial parameters, order of the data, generated sequences "
          "and dropout. The same seed gives the same model",
          STORED),
    COUNT("max-steps", told.run.max_steps, 1, 1e12,
          "number of the step at which the training ends. A step is one update of the parameters; "
          "a resumed training counts on",
          .fallback = "2000 with --task copy or reverse; 2500 with sort; else as --epochs says"),
    COUNT("epochs", told.run.epochs, 1, 1e6,
          "with any task on text, add and date included: number of passes over the data after "
          "which the training ends. A resumed training counts on. Refused beside --max-steps",
          .fallback = "",
          OTHERWISE(FOR("add", "15"), FOR("date", "5"),
                    BY_DATA("text|pairs|classify", "26", "200 to 2, fewer for more pairs,"),
                    BY_DATA("lm|mask|spans", "10", "40 to 2, fewer for more text,"),
                    FOR("init", "5"))),
    COUNT("patience", told.run.patience, 0, 1e6,
          "number of validations in a row without a lower loss after which the training ends; 0: "
          "it never ends so. It needs a validation before the end, see --valid-every"),
    ROW("max-time", OPTION_REAL, told.run.max_time, "SECONDS",
        "number of seconds after which this run ends and saves, counted from its first step. A "
        "step that has begun is finished. The schedule of --lr-schedule linear and cosine does not "
        "become shorter: for a short training lower --epochs, too, or with --task copy, reverse "
        "and sort --max-steps and --lr-steps. --resume continues, and counts from 0 again",
        .min = 0.001, .max = 1e9, .fallback = "no limit"),
    COUNT("threads", told.run.threads, 1, 256,
          "number of threads in each process. The result does not depend on it",
          .fallback = "processors divided by --processes, at most 8"),
    FLAG("recompute", told.run.recompute,
         "gradient checkpointing: keep only the inputs of the layers for the backward pass, which "
         "computes the rest again. This takes less memory, and about a third more time. The "
         "model is the same"),

#include "output_rows.inc"
};

program train_program = {
    .name = "train",
    .purpose =
        "trains a Transformer: a translator from pairs of text, a language model or an encoder",
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
        "  train --task mask --text book.txt --tokenizer-json bert.json -o encoder.safetensors\n"
        "  train --task classify --train labelled.tsv --init minilm.safetensors -o t.safetensors\n"
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
