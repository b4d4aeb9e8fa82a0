/* tools/generate/generate.c - uses a trained model as a filter: it reads lines, and writes the
 * model's output for each, in the same order. It can also score given outputs.
 *
 * This file has the options, and opens and closes everything. See generate.h for the other
 * files. */
#include "generate.h"
#include "core/file_internal.h"
#include "models/marian_internal.h"
#include "models/model_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/choices.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/terminal.h"
#include "tools/generate/usual_search.h"

/* Static, because the rows of the option table hold addresses of these settings. */
static settings told = {
    .beam = USUAL_BEAM,
    .nbest = 1,
    .penalty = USUAL_PENALTY,
    .length_penalty = USUAL_ALPHA,
    .stop = USUAL_STOP,
    .max_len_a = 1,
    .max_len_b = USUAL_ROOM,
    .top_p = 1,
    .temperature = 1,
    .repetition_penalty = 1,
    .decay = 1,
    .seed = 1,
    .batch_size = 64,
    .weights = -1,
};

#define LANGUAGE(option, variable, text)                                                           \
    STRING(option, variable, "CODE", text, .fallback = "set by the model's file")

static option rows[] = {
    GROUP("Files"),
    MODEL("model", told.model,
          "model file, written by the program train or convert. It must be given, with this option "
          "or as the first word without a dash. An encoder alone is refused: the program embed "
          "runs it",
          .letter = 'm'),
    MODEL("adapter", told.adapter,
          "file of adapters for this model, written by train --lora or convert --from hf. They are "
          "applied beside its weights. A warning is printed if they were trained beside other "
          "weights. Refused with --arithmetic marian"),
    INPUT("input", told.input,
          "file with a source on each line: text, or token ids if the model has no vocabulary. "
          "With --score a line is a source, a TAB and a target. An empty line has an empty output, "
          "but a decoder-only model writes a text of its own. The file may also be the second word "
          "without a dash. - is stdin",
          .letter = 'i', .fallback = "stdin"),
    STRING("prompt", told.prompt, "TEXT",
           "text to use as the only source, in place of lines of input; token ids if the model has "
           "no vocabulary. A model of running text (of train --task lm, or imported, as GPT-2) "
           "continues it. The output then begins with the prompt; with --json it is the "
           "continuation alone. Refused with --input, --reference and --score"),
    INPUT("shortlist", told.shortlist,
          "lexical shortlist, a file in Marian's binary form (lex.s2t.bin). An output has only "
          "tokens that the shortlist has for the tokens of its source. It must have been made for "
          "the model's vocabulary. --reference shows what it costs in quality. Refused with "
          "--score, and for decoder-only models",
          .fallback = "none: all tokens of the vocabulary"),
    OUTPUT("output", told.output,
           "file for the outputs, one line for each line of input. It is written when all lines "
           "are done. An existing file is replaced, unless it is a model, or a picture or page of "
           "weft. - is stdout",
           .letter = 'o', .fallback = "stdout"),
    FLAG("stream", told.stream,
         "write each token as soon as it is chosen, and decode one line of input at a time, "
         "greedily or with --sample. Refused with --beam above 1, --nbest, --batch-size, --json "
         "and --score"),
    FLAG("json", told.json,
         "write a JSON object for each line of input, with its source and its outputs. An output "
         "has: text; tokens; log_probs, the natural logarithms of their probabilities, the end "
         "token's last; total, their sum; score, total with the length penalty; and cut, true if "
         "the maximum length ended it, and not the model. With --score the object has total and "
         "log_probs of the target"),
    INPUT("reference", told.reference,
          "file of right outputs. Line N belongs to line N of the input, and there must be as many "
          "lines. BLEU, chrF, error rates of characters and words, and the number of exact matches "
          "are printed on stderr at the end, or with --json as a last object. Refused with "
          "--prompt and --score"),
    DRAWN("attention", told.attention,
          "file for the attention weights of each line's best output: all layers as JSON, an "
          "object for each line. With a name that ends in .svg, the file is a picture of the last "
          "layer for the first line. With - the last layer is drawn on stderr, for each line. "
          "Refused with --score"),
    STRING(
        "alignment", told.alignment, "hard|soft|THRESHOLD",
        "write ||| and a word alignment after each output. hard: pairs SOURCE-OUTPUT of word "
        "numbers, counted from 0 (Pharaoh's format): 2-1 means that the output's second word came "
        "from the source's third. Each word of the output is linked to its likeliest source word. "
        "THRESHOLD, 0 to 1: all pairs with more weight. soft: in place of pairs, for each word of "
        "the output its weights for all source words, separated by commas. The weights are "
        "cross-attention in the last layer: of the head that was trained to align, else the mean "
        "of all heads. With --score the given targets are aligned. Words are separated by spaces; "
        "without a vocabulary each token id is a word. Refused for models without cross-attention",
        .fallback = "none"),
    DRAWN("explain", told.explain,
          "file for an HTML page about a single line of input: its tokens, the beam as a tree, the "
          "ten likeliest tokens of each step, all attention, and the numbers of the graph's nodes. "
          "A browser opens it without a network. A second line of input is an error. Refused with "
          "--score and --long-lines split"),
    FLAG("raw", told.raw,
         "write line breaks within an output as they are, and with --nbest tabs, too. Without the "
         "option they are written as \\n, \\r and \\t, so that each output is one line; only with "
         "--prompt and without --nbest is text always written as it is. Refused with --score, and "
         "with --json, which has all text as it is"),
    CHOICE("long-lines", told.long_lines, "crop|split|skip|stop",
           "treatment of lines with more tokens than the model can read. crop: use the beginning, "
           "or the end for models of running text. split: cut at ends of sentences or at spaces, "
           "and join the outputs. skip: write an empty output. stop: end with an error. The number "
           "of such lines is printed at the end. With --score a cropped pair has the score of what "
           "is left. --long-lines split is refused with --score, --nbest, --explain and "
           "--alignment, and for models of running text",
           OTHERWISE(FOR(SCORES, "skip"))),
    FLAG("quiet", told.quiet,
         "do not print progress and speed on stderr. Warnings are still printed"),

#include "search_rows.inc"

    GROUP("Scoring"),
    FLAG("score", told.score,
         "write how likely given outputs are, and generate nothing. Each line of input is a "
         "source, a TAB and a target. Its line of output is the natural logarithm of the target's "
         "probability with the end token; with --json also that of each token. Options of search, "
         "drawing and outputs are refused"),

    GROUP("Languages (of a multilingual model)"),
    LANGUAGE("source-language", told.source_language,
             "language of the sources of a multilingual model, as its vocabulary writes it, such "
             "as eng_Latn or en; other codes are errors"),
    LANGUAGE("target-language", told.target_language,
             "language of the outputs of a multilingual model, as its vocabulary writes it, such "
             "as fra_Latn or fr; other codes are errors. For a model whose sources begin with "
             ">>fra<< it is fra"),

    GROUP("Work"),
    COUNT("batch-size", told.batch_size, 1, 4096,
          "number of lines that are decoded together. The output does not depend on it. Refused "
          "with --stream, which decodes one"),
    COUNT("threads", told.threads, 1, 256, "number of threads. The output does not depend on it",
          .fallback = DEFAULT_THREADS),
    CHOICE("weights", told.weights, WF_NAMES(WF_WEIGHT_FORMAT_NAMES),
           "number format of the weight matrices in memory. bf16 takes half of the bytes of f32 "
           "and int8 a quarter. Both are faster and slightly less accurate. Refused with "
           "--arithmetic marian",
           .fallback = "f32, or int8 if the file has that"),
    CHOICE("arithmetic", told.arithmetic, "weft|marian",
           "arithmetic of matrix products. weft: with weights in the format of --weights. marian: "
           "int8 as in Firefox, with one scale for each matrix, and with activations rounded by "
           "the scales of the .intgemm.alphas.bin from which convert made the model. Other models "
           "are refused with marian"),
};

static program self = {
    .name = "generate",
    .purpose = "turns lines into lines with a trained model",
    .examples =
        "  generate de-en.safetensors news.de > news.en\n"
        "  generate --model de-en.safetensors -i test.de --reference test.en > test.out\n"
        "  generate --model de-en.safetensors --nbest 4 --json < news.de\n"
        "  generate --model de-en.safetensors --sample --top-p 0.9 --seed 7 < news.de\n"
        "  generate --model book.safetensors --prompt \"Once upon\" --sample --stream\n"
        "  echo \"ein Haus\" | generate --model de-en.safetensors --attention heat-map.svg\n"
        "  echo \"ein Haus\" | generate --model de-en.safetensors --explain page.html\n"
        "  printf '7 3 9\\t3 7 9\\n' | generate --model sort.safetensors --score --json\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "[MODEL [FILE]]",
    .by_place = { "model", "input" },
};

/* ---- options --------------------------------------------------------------------------------- */

static void check_files(settings *set) {
    if (is_dash(set->input)) set->input = NULL;
    if (is_dash(set->output)) set->output = NULL;
    bool named = set->input || set->prompt;
    used_file input = { "stdin", NULL, STDIN_FILENO, named ? USE_NONE : USE_INPUT };
    set->draw = is_dash(set->attention);
    if (set->draw) set->attention = NULL;
    if (set->explain && strcmp(set->explain, "-") == 0)
        usage_error(&self, "--explain - is no file for a browser: name one, as page.html");
    check_uses(&self, &input, 1);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Opens the files for results, attention and the page. Results as JSON go to the first of these or
 * to stdout, attention as JSON to the second. */
static void open_outputs(job *j) {
    char message[WF_MESSAGE];
    if ((j->set->output && !output_open(&j->result, j->set->output, message)) ||
        (j->set->attention && !output_open(&j->picture, j->set->attention, message)) ||
        (j->set->explain && !output_open(&j->page, j->set->explain, message)))
        fail(&self, "%s", message);
    j->out = j->set->output ? j->result.stream : stdout;
    j->line.stream = j->out;
    j->weights.stream = j->picture.stream;
}

/* Reads the lengths on which a task on numbers was trained, if the file has them. */
static void read_range(job *j, const wf_file *f) {
    const char *low = wf_file_meta(f, "train.min-len"), *high = wf_file_meta(f, "train.max-len");
    if (!low || !high || j->language.text) return;
    j->low = strtoll(low, NULL, 10);
    j->high = strtoll(high, NULL, 10);
}

/* Reads the shortlist, for the model's vocabularies. */
static void open_shortlist(job *j) {
    char message[WF_MESSAGE];
    size_t bytes;
    const char *path = j->set->shortlist;
    wf_tokenizer *const *tokenizer = j->language.tokenizer;
    if (!path) return;
    char *data = spool_whole(path, &bytes, message);
    if (!data) fail(&self, "%s", message);
    j->shortlist =
        wf_shortlist_read(data, bytes, j->model->src_vocab, j->model->tgt_vocab,
                          same_pieces(tokenizer[SIDE_SRC], tokenizer[SIDE_TGT]), message);
    free(data);
    if (!j->shortlist) fail(&self, "%s: %s", path, message);
}

static void choose_languages(job *j) {
    char message[WF_MESSAGE];
    int32_t forced;
    if (!language_choose(&j->language, j->set->source_language, j->set->target_language, &forced,
                         message))
        fail(&self, "%s: %s", j->set->model, message);
    if (forced >= 0) {
        j->generation.forced[0] = forced;
        j->generation.n_forced = 1;
    }
}

/* Loads the model with its weights in the requested format. By default it is int8 if the file's
 * weights are, and f32 otherwise. */
static wf_model *load_model(const settings *set, const wf_file *f,
                            const wf_training_config *training, char *message) {
    if (set->arithmetic) return wf_marian_load(f, message);
    return wf_model_load_packed(f, training, set->weights, WF_PANELS, message);
}

/* Loads the model with the adapters of a file. They fit every model of the same form, but are meant
 * for the weights that they were trained beside: others get a warning. */
static wf_model *load_adapted(const settings *set, wf_file *f) {
    char message[WF_MESSAGE], hash[WF_MODEL_HASH];
    wf_training_config training = { 0 };
    wf_file *adapter = wf_file_open(set->adapter);
    wf_model_hash(f, hash);
    wf_file_drop_loaded(f);
    wf_model *m = NULL;
    if (!wf_model_read_adapters(adapter, &training.adapters, message))
        fail(&self, "%s: %s", set->adapter, message);
    const char *base = wf_file_meta(adapter, WF_ADAPTER_BASE);
    if (base && strcmp(base, hash) != 0)
        warn(&self,
             "warning: %s was trained beside other weights than those in %s; it is applied all the "
             "same, and outputs may be worse",
             set->adapter, set->model);
    m = load_model(set, f, &training, message);
    if (!m) fail(&self, "%s: %s", set->model, message);
    if (!wf_model_load_adapters(m, adapter, message)) fail(&self, "%s: %s", set->adapter, message);
    wf_file_free(adapter);
    return m;
}

static void open_model(job *j, settings *set) {
    char message[WF_MESSAGE];
    wf_file *f = j->file = wf_file_open(j->set->model);
    if (!wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    if (j->set->adapter) {
        j->model = load_adapted(j->set, f);
    } else {
        wf_file_drop_loaded(f);
        j->model = load_model(j->set, f, NULL, message);
    }
    if (!j->model) fail(&self, "%s: %s", j->set->model, message);
    if (!language_open(&j->language, f, j->model, message))
        fail(&self, "%s: %s", j->set->model, message);
    choose_search(j, &self, set, f);
    choose_languages(j);
    read_range(j, f);
    open_alignment(j, f);
    open_shortlist(j);
    wf_file_free(f);
    j->file = NULL;
    j->decoder = wf_decoder_new(j->model, j->pool, message);
    if (!j->decoder) fail(&self, "%s", message);
    if ((j->set->attention || j->set->draw || j->set->align.kind) &&
        !attention_new(&j->attention, j->model, &j->language, j->pool, message))
        fail(&self, "%s", message);
}

static void open_job(job *j, settings *set) {
    check_options(&self, set);
    check_files(set);
    *j = (job){ .program = &self, .set = set, .in.file.file = -1 };
    j->pool = wf_pool_new((int)(j->set->threads ? j->set->threads : default_threads(1)));
    if (!j->pool) fail(&self, "out of memory: --threads lowers the need");
    open_model(j, set);
    j->options = decode_options(set, &j->generation);
    j->options.shortlist = j->shortlist;
    if (!set->prompt && !lines_open(&j->in, set->input)) {
        bool text = errno == ENOENT && (strchr(set->input, ' ') || !strpbrk(set->input, "/."));
        text = text && !set->score && !set->reference;
        fail(&self, "%s can't be read: %s%s", set->input, strerror(errno),
             text ? "; --prompt TEXT gives a text in place of a file" : "");
    }
    open_window(j);
    open_references(j);
    open_outputs(j);
    open_stream(j);
    open_explanation(j);
}

static void close_job(job *j) {
    close_window(j);
    free(j->joined);
    attention_free(&j->attention);
    close_explanation(j);
    free(j->stream.ids);
    language_close(&j->language);
    wf_shortlist_free(j->shortlist);
    wf_decoder_free(j->decoder);
    wf_model_free(j->model);
    wf_pool_free(j->pool);
}

static int close_output(output *o) {
    char message[WF_MESSAGE];
    if (!o->stream || output_close(o, message)) return EXIT_DONE;
    warn(&self, "%s", message);
    return EXIT_FAILED;
}

/* Without a line of input there is no picture to draw, and an old picture file stays. */
static void keep_old_picture(job *j) {
    if (!j->picture.stream || !attention_is_svg(j->set->attention) || j->drawn) return;
    warn(&self, "%s is not drawn: there is no output to draw", j->set->attention);
    output_discard(&j->picture);
    j->picture.stream = NULL;
}

/* Finishes the page; after a failure an old one stays. */
static int close_page(job *j) {
    if (!j->set->explain) return EXIT_DONE;
    if (explanation_written(j)) return close_output(&j->page);
    warn(&self, "%s is not written: there is no output to explain", j->set->explain);
    output_discard(&j->page);
    return EXIT_FAILED;
}

static int close_outputs(job *j) {
    keep_old_picture(j);
    int status = close_output(&j->picture) | close_page(j) | close_output(&j->result);
    json_free(&j->line), json_free(&j->weights);
    return close_stdout(&self, status);
}

int main(int argc, char **argv) {
    job j;
    terminal_open();
    options_parse(&self, argc, argv);
    open_job(&j, &told);
    answer_lines(&j);
    warn_of_limits(&j);
    if (j.metrics) write_metrics(&j);
    if (!j.set->quiet) say_speed(&j);
    int status = close_outputs(&j);
    close_job(&j);
    return status;
}
