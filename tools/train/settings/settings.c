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
    CHOICE("task", told.data.task, LEARN_WORDS,
           "what the model learns. copy, reverse, sort: to copy, reverse or sort a generated "
           "sequence of the tokens 1..19. add: to add two generated numbers. date: to write a "
           "generated date as 1998-03-03. text: to turn a source line into its target line, as a "
           "translator, from the pairs of --train. lm: to continue text, as a language model, from "
           "--text. pairs: an encoder that gives a source and its target in --train similar "
           "vectors, by a contrastive loss over each batch. mask: an encoder that predicts hidden "
           "tokens of --text, as BERT. classify: an encoder that finds the label of a line; each "
           "pair of --train is a line and its label. spans: an encoder and a decoder that write "
           "the spans taken out of --text, as T5",
           .fallback = "text with --train or --train-src; lm with --text; with --resume as before; "
                       "else it must be given",
           STORED),
    COUNT("min-len", told.data.min_len, 2, TASK_MAX_LEN,
          "with --task copy, reverse or sort: minimum length of a generated sequence in tokens, at "
          "most --max-len. Other tasks refuse it",
          STORED),
    COUNT("max-len", told.data.max_len, 2, 16384,
          "maximum length in tokens. --task copy, reverse, sort: of a generated sequence, at most "
          "512. --task add, date, text, pairs: of a source and of a target; longer pairs are left "
          "out. --task classify: of a line; longer lines are cut. --task lm, mask, spans: of a "
          "window of text, beyond which the model sees nothing. With --init the default for text "
          "is the longest that the model reads; for pairs in a decoder-only model that is half of "
          "its context. This default is at most 1024 with --task spans, and for models like GPT-2 "
          "that put no start token before a prompt. More than the model reads is refused",
          OTHERWISE(FOR(OF_TEXT, "256")), STORED),

    MODEL(
        "init", told.model.init,
        "fine-tune the model in this file: start from its weights, sizes and vocabulary. The file "
        "comes from the program train or convert. It must have a model for the task; a file of "
        "adapters is refused. Options for tokenizers and vocabularies are refused beside --init, "
        "and so are those under \"Model\" in this help, except --dropout and --attention-dropout"),
    { .name = "freeze",
      .kind = OPTION_STRING,
      .value = &told.model.freeze,
      .argument = "PREFIX[,PREFIX]",
      .help = "do not train parameters whose names begin with one of these prefixes, such as "
              "transformer.encoder. The program inspect lists the names in a model file. Each "
              "prefix must fit a name, and something must be left to train. Refused with --lora" },
    COUNT("lora", told.model.lora, 0, 65536,
          "with --init: train low-rank adapters (LoRA) of this rank, and nothing else. Only the "
          "adapters are saved: generate --adapter applies them to the model of --init, and convert "
          "--adapter merges them into a copy of it. 0: train the model itself. An encoder with a "
          "head for masked tokens needs --task mask. --task classify needs a model that has "
          "labels. Refused with --freeze and --quantize-aware",
          BEFORE("0"), STORED),
    REAL("lora-alpha", told.model.lora_alpha, 0, 1e6,
         "with --lora: alpha of the adapters. The product of an adapter's two matrices is "
         "multiplied by alpha / rank. 0: alpha is the rank, so the factor is 1",
         BEFORE("0"), STORED),
    { .name = "lora-targets",
      .kind = OPTION_STRING,
      .value = &told.model.lora_targets,
      .argument = "NAME[,NAME]",
      .help = "with --lora: matrices that get adapters, by the ends of their names. Attention: "
              "q_proj, k_proj, v_proj, out_proj, and in_proj, which is the first three as one "
              "matrix with one adapter. Feed-forward layers: linear1, linear2, linear3. An SSRU: "
              "input, forget. Average attention: inner, outer, input_gate, forget_gate. The output "
              "layer: output. all-linear: all of these except in_proj and output",
      .fallback = "q_proj,v_proj, or in_proj for a model of GPT-2's form" },
    CHOICE("base-weights", told.model.base_weights, WF_NAMES(WF_WEIGHT_FORMAT_NAMES),
           "with --lora: number format in memory of the weights of --init, which are not trained. "
           "bf16 takes half of the bytes of f32, and int8 a quarter. Both round the weights",
           .fallback = "f32, or int8 if the file has that"),

    GROUP("Running text (--task lm, mask and spans)"),
    INPUT("text", told.data.text,
          "file of running text to learn from, of any size. --task lm, mask and spans need it, and "
          "other tasks refuse it. Without --text-eval the end of the file is held out for "
          "validation, see --text-eval-size. --task lm also learns line breaks; --task mask and "
          "spans leave them out"),
    INPUT("text-eval", told.data.text_eval,
          "with --text: file of running text for validation. The model never learns from it",
          .fallback = "the end of --text"),
    COUNT("text-eval-size", told.data.text_eval_size, 0, 1e12,
          "number of bytes at the end of --text that are held out for validation, but at most a "
          "tenth of the file. 0: no validation. Refused without --text, and with --text-eval",
          STORED, BEFORE("100000")),
    { .name = "document-marker",
      .kind = OPTION_STRING,
      .value = &told.data.document_marker,
      .argument = "LINE",
      .help =
          "content of the lines in --text and --text-eval that separate documents. Such a line is "
          "not learned itself: an end token stands in its place, which --task lm learns. A "
          "resumed training needs the option again",
      .fallback = "<|endoftext|>" },

    GROUP("Pairs of text (--task text, pairs and classify)"),
    INPUT("train", told.data.train,
          "file of pairs to learn from. Each line has a source, a TAB and a target; with --task "
          "classify a text, a TAB and its label. With --arch language a line without a TAB is a "
          "target alone. --task text, pairs and classify need this file, or --train-src and "
          "--train-tgt"),
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
    INPUT(
        "alignments", told.data.alignments,
        "with --task text and --arch transformer: file of word alignments for guided alignment, in "
        "Pharaoh's format. Line N belongs to pair N of the training data, and may be empty. In it, "
        "0-0 2-1 means that the target's word 0 came from the source's word 0, and its word 1 from "
        "the source's word 2. The first head of the cross-attention in the last layer learns these "
        "links, and generate --alignment then shows them. A resumed training needs the file again",
        .fallback = "none"),
    REAL("alignment-weight", told.recipe.alignment_weight, 1e-6, 1000,
         "with --alignments: factor of the loss of the alignments, before it is added to the loss "
         "of the outputs",
         STORED, BEFORE("0.1")),
    CHOICE(
        "tokenizer", told.data.tokenizer, WF_NAMES(WF_TOKEN_NAMES),
        "kind of tokens into which text is cut. word: words between spaces. char: characters. bpe: "
        "parts of words, by byte-pair encoding. byte, text-char, byte-bpe: bytes, characters or "
        "byte-pair encoding of running text, with its line breaks. sentencepiece: the pieces of "
        "--spm-src, which sets this value. byte-level: byte-pair encoding of bytes in GPT-2's "
        "format. json: the tokens of --tokenizer-json, which sets this value. --task lm takes only "
        "byte, text-char, byte-bpe and json. --task mask, classify and spans take only json. "
        "--task copy, reverse and sort have no text, and refuse the option",
        .fallback = "",
        OTHERWISE(FOR("add|date", "char"),
                  BY_DATA("text|pairs", "bpe", "word, char or bpe, chosen from the lines,"),
                  FOR("lm", "byte-bpe"), FOR("mask|classify|spans", "json"),
                  FOR("bart", "byte-level")),
        OF_MODEL, BEFORE("word")),
    CHOICE("tokenizer-tgt", told.data.tokenizer_tgt, "same" WF_LEARNED_NAMES(WF_NAME_AFTER),
           "with --task add, date or text: kind of tokens into which targets are cut. same: that "
           "of sources, which --tokenizer says. Sides that share a vocabulary have one kind. "
           "Refused with --tokenizer json and sentencepiece",
           OF_MODEL, BEFORE("same")),
    INPUT("tokenizer-json", told.data.tokenizer_json,
          "file tokenizer.json that cuts text into tokens, on both sides of pairs. It comes from "
          "Hugging Face or from tokenize --learn, and sets --tokenizer json. --task lm also needs "
          "--end-token. With --task mask and classify the tokenizer must put special tokens around "
          "each line; mask also needs [MASK] or <mask> in it. With --task spans and --like t5 it "
          "must have <pad> and </s>; spans also needs <extra_id_0>. Tasks that generate their data "
          "refuse the option",
          NEW),
    { .name = "end-token",
      .kind = OPTION_STRING,
      .value = &told.data.end_token,
      .argument = "TOKEN",
      .help = "with --tokenizer-json: token of that file at the end of each document (--task lm) "
              "or each target (--task text), such as <|endoftext|> or </s>. --task lm needs it. "
              "Other tasks refuse it, and so does --like t5, whose outputs end with </s>",
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
          "maximum number of tokens in the vocabulary of each side, or in the shared one. 0: no "
          "limit. With --tokenizer word, char and text-char the most frequent tokens are kept, and "
          "others are unknown. With bpe, byte-bpe and byte-level merging stops at this size. "
          "Refused with sentencepiece and json, and with byte for --task lm",
          OTHERWISE(BY_DATA("bpe|byte-level", "8000", "300 to 8000, growing with the text,"),
                    BY_DATA("byte-bpe", "4096", "300 to 4096, growing with the text,")),
          OF_MODEL, BEFORE("0")),
    COUNT("min-freq", told.data.min_freq, 1, 1e9,
          "minimum number of occurrences in the training text: of a word or character for the "
          "vocabulary, or of a pair of symbols that byte-pair encoding merges. Refused with "
          "--tokenizer sentencepiece and json, and with byte for --task lm",
          OTHERWISE(FOR("bpe|byte-bpe|byte-level", "2")), OF_MODEL, BEFORE("1")),
    FLAG("share-vocab", told.data.share_vocab,
         "with --task add, date or text: learn one vocabulary from sources and targets together, "
         "instead of one for each side. Refused with --tokenizer sentencepiece and json. There is "
         "always one vocabulary with --arch language, --tokenizer json, --like t5, --tie all and "
         "--tie inputs, and with --tokenizer byte-level unless --tokenizer-tgt is given",
         NEW),

    GROUP("Model"),
    CHOICE("arch", told.model.arch, WF_NAMES(WF_MODEL_NAMES),
           "architecture of the model. transformer: an encoder reads the source, and a decoder "
           "writes the target. language: a decoder-only model reads a source and continues with "
           "its target. --task lm takes only language. --task pairs, mask and classify train an "
           "encoder alone, and --task spans a model of T5's form: they refuse the option",
           OTHERWISE(FOR("lm", "language")), OF_MODEL, BEFORE("transformer")),
    CHOICE("preset", told.model.preset, "tiny|small|base",
           "set of sizes: the defaults of --d-model, --d-ff, --heads and --layers",
           OTHERWISE(FOR("text|lm|pairs|mask|classify|spans", "small")), NEW),
    CHOICE(
        "like", told.model.like, LIKE_WORDS,
        "with --arch transformer: form of the model. marian, bart, t5: MarianMT, BART or T5 1.1 "
        "of Hugging Face's transformers; convert --to hf can write such a model. firefox: "
        "Firefox's translators, which convert --to marian writes. none: no such form. The form "
        "sets the defaults of --norm, --positions, --activation, --embedding-norm, --decoder "
        "and --tie, and with bart of --tokenizer and --lr. Values that the form does not have are "
        "refused. On text, marian and firefox need --spm-src. bart needs --task text, add or "
        "date, and learns its vocabulary. For t5, convert --to hf writes the vocabulary only if "
        "--spm-src or --tokenizer-json gave it",
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
          "number of layers; with --arch transformer, of the encoder and of the decoder, each. "
          "Refused if --enc-layers and --dec-layers are both given",
          .fallback = "", OTHERWISE(FOR("tiny", "2"), FOR("small", "4"), FOR("base", "6")), NEW),
    COUNT("enc-layers", told.model.enc_layers, 1, 256,
          "number of layers in the encoder. Refused with --arch language", .fallback = "--layers",
          OF_MODEL),
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
           "place of the normalisation. pre: before each sublayer (pre-norm). post: after it "
           "(post-norm). --task pairs, mask and classify, whose encoder is post-norm, refuse the "
           "option",
           OTHERWISE(FOR("marian|bart|firefox", "post")), OF_MODEL),
    CHOICE("decoder", told.model.decoder, WF_NAMES(WF_DECODER_KIND_NAMES),
           "with --arch transformer: first sublayer of each decoder layer. attention: "
           "self-attention. ssru: a recurrent unit (SSRU), as in Marian's fast translators. "
           "average: the mean of all tokens so far, and a feed-forward layer. The state of ssru "
           "and of average does not grow with the output. --like marian, bart and t5 take only "
           "attention. --task pairs, mask, classify and spans refuse the option",
           OTHERWISE(FOR("firefox", "ssru")), OF_MODEL, BEFORE("attention")),
    CHOICE("embedding-norm", told.model.embedding_norm, YES_WORDS,
           "with --arch transformer: whether a LayerNorm follows the embeddings of the encoder and "
           "of the decoder, as in BART. With --like only the default is possible",
           OTHERWISE(FOR("bart", "yes")), OF_MODEL, BEFORE("no")),
    CHOICE(
        "positions", told.model.positions, WF_NAMES(WF_POSITIONS_NAMES),
        "kind of position encoding. sinusoidal: sines and cosines are added to embeddings. "
        "sinusoidal-halves: all sines before all cosines, as MarianMT. sinusoidal-tensor2tensor: "
        "the same with slightly lower frequencies, as tensor2tensor and Marian. "
        "sinusoidal-fairseq: these two positions later, as fairseq. learned: a trained table is "
        "added. rotary: attention rotates queries and keys (RoPE). sinusoidal-rotary: sinusoidal "
        "and rotary together. none: nothing is added; with --like t5 attention has T5's relative "
        "positions. --task pairs, mask and classify, whose encoder has learned positions, refuse "
        "the option",
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
           "with --arch language: kind of normalisation. layer: LayerNorm. rms: RMSNorm",
           OTHERWISE(FOR("llama", "rms")), OF_MODEL, BEFORE("layer")),
    CHOICE("feed-forward", told.model.feed_forward, FEED_FORWARD_WORDS,
           "with --arch language: form of the feed-forward layers. plain: two linear layers. "
           "gated: a third linear layer of the input multiplies the inner values. With "
           "--activation silu this is SwiGLU",
           OTHERWISE(FOR("llama", "gated")), OF_MODEL, BEFORE("plain")),
    CHOICE("bias", told.model.bias, BIAS_WORDS,
           "with --arch language: whether the linear layers and LayerNorms add a trained bias",
           OTHERWISE(FOR("llama", "no")), OF_MODEL, BEFORE("yes")),
    CHOICE("tie", told.model.tie, WF_NAMES(WF_TIE_NAMES),
           "which of the embeddings and the output layer share one matrix. none: each has its own. "
           "decoder: the decoder's embedding and the output layer. all: both embeddings and the "
           "output layer. inputs: both embeddings. With all and inputs both sides share a "
           "vocabulary. --arch language has one embedding: all means decoder there, and inputs is "
           "refused. --task pairs, mask and classify refuse the option",
           OTHERWISE(FOR("lm", "decoder"), FOR("bart", "all"), FOR("t5", "inputs")), OF_MODEL),

    GROUP("Optimisation"),
    CHOICE("optimizer", told.recipe.optimizer, WF_NAMES(WF_OPTIMIZER_NAMES),
           "rule by which gradients update the parameters",
           OTHERWISE(FOR("lm|mask|spans", "adamw")), STORED),
    REAL("lr", told.recipe.lr, 1e-9, 1e6,
         "peak learning rate, which is reached at the end of the warm-up. For models wider than "
         "128 the default is multiplied by 128 / width in two cases: with --lora, and for a new "
         "model (no --init) that learns text from files",
         OTHERWISE(FOR("pairs|bart", "2e-3"), FOR("init", "3e-4"), FOR("lora", "1e-2")), STORED),
    CHOICE("lr-schedule", told.recipe.schedule, WF_NAMES(WF_SCHEDULE_NAMES),
           "course of the learning rate after the warm-up. constant: it stays at the peak. linear, "
           "cosine: it falls to 0 at --lr-steps, along a line or a cosine. inverse-sqrt: it is the "
           "peak times sqrt(W / step), where W is --warmup, or 1 if that is 0. noam: the same as "
           "inverse-sqrt",
           OTHERWISE(FOR("lm|mask|spans", "cosine")), STORED),
    COUNT("warmup", told.recipe.warmup, 0, 1e9,
          "number of steps in which the learning rate rises linearly from 0 to its peak. For a "
          "task on text the default is at most a tenth of --lr-steps, or of --max-steps if only "
          "that is given; for a new model of --task pairs or --like bart at most three tenths",
          OTHERWISE(FOR("text|pairs|classify", "800"), FOR("init", "100")), STORED),
    COUNT("lr-steps", told.recipe.lr_steps, 1, 1e12,
          "with --lr-schedule linear or cosine: number of the step at which the learning rate "
          "reaches 0. It may not be below --max-steps. A resumed training may change it",
          .fallback = "the larger of --max-steps and its default", STORED),
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
         "with --optimizer adamw or lion: decay of weights. Each step subtracts from each matrix "
         "this times the learning rate times the matrix. Biases and norms do not decay",
         STORED),
    REAL("label-smoothing", told.recipe.label_smoothing, 0, 0.9,
         "share of the target's probability that the loss spreads evenly over all tokens; with "
         "--task classify over all labels, and with --task pairs over the lines of a batch",
         OTHERWISE(FOR("text", "0.1"), FOR("init", "0")), STORED),
    REAL("ema", told.recipe.ema, 0, 0.99999,
         "decay of an exponential moving average of the weights. 0: no average. Validations use "
         "the averages, and NAME.best.safetensors (see --model) has those of the best validation. "
         "The file of --model has the weights themselves, and for --resume also the averages",
         STORED, BEFORE("0")),
    CHOICE("quantize-aware", told.model.quantize_aware, WF_NAMES(WF_QUANTIZE_NAMES),
           "quantisation-aware training: the forward pass rounds matrices as a model in int8 has "
           "them, also in validations. Gradients pass straight through to the weights, which stay "
           "in f32. int8: with a scale for each row, as convert --weights int8. marian: with a "
           "scale for each matrix, as convert --to marian --calibrate, for models that Marian has. "
           "none: nothing is rounded. Refused with --lora",
           STORED, BEFORE("none")),
    REAL("clip-norm", told.recipe.clip_norm, 0, 1e9,
         "maximum norm of the gradient of all parameters together. A larger gradient is scaled "
         "down to it; 0: never",
         STORED),

    GROUP("Steps"),
    COUNT("batch-size", told.data.batch_size, 0, 65536,
          "number of sequences in a batch. For tasks on text (add and date included) it is a "
          "maximum beside --max-tokens, and 0 means that only --max-tokens limits a batch",
          OTHERWISE(FOR(OF_TEXT, "0")), STORED),
    COUNT("max-tokens", told.data.max_tokens, 0, 1e9,
          "for tasks on text (add and date included): maximum number of tokens in a batch, "
          "sources, targets and padding together. 0: only --batch-size limits a batch",
          .fallback = "",
          OTHERWISE(FOR("add|date", "4096"), BY_DATA("text|lm|pairs|mask|classify|spans", "4096",
                                                     "256 to 4096, more for more data,")),
          STORED, BEFORE("0")),
    COUNT("accum", told.data.accum, 1, 4096,
          "for tasks on text (add and date included): number of batches in a step. Their gradients "
          "are added before the parameters are updated, with the memory of one batch",
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
          "for tasks on text (add and date included): number of passes over the data after which "
          "the training ends. A resumed training counts on. Refused with --max-steps",
          .fallback = "",
          OTHERWISE(FOR("add", "15"), FOR("date", "5"),
                    BY_DATA("text|pairs|classify", "26", "200 to 2, fewer for more pairs,"),
                    BY_DATA("lm|mask|spans", "10", "40 to 2, fewer for more text,"),
                    FOR("init", "5"))),
    COUNT("patience", told.run.patience, 0, 1e6,
          "number of validations in a row without a lower loss after which the training ends. 0: "
          "it does not end early. Refused with --valid-every 0, and if nothing is held out"),
    ROW("max-time", OPTION_REAL, told.run.max_time, "SECONDS",
        "number of seconds after which this run ends and saves, counted from its first step. A "
        "step that has begun is finished. --resume continues the training, and counts from 0 "
        "again. The schedule of --lr-schedule linear and cosine does not become shorter: for a "
        "short training also lower --epochs, or with --task copy, reverse and sort --max-steps and "
        "--lr-steps",
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
