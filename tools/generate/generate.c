/* tools/generate/generate.c - uses a trained model as a filter: it reads lines, and writes the
 * model's output for each, in the same order. It can also score given outputs.
 *
 * This file has the options, and opens and closes everything. See generate.h for the other
 * files. */
#include "generate.h"
#include "core/file_internal.h"
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
    {                                                                                              \
        .name = option, .kind = OPTION_STRING, .value = &(variable), .argument = "CODE",           \
        .help = text, .fallback = "as the model says"                                              \
    }

static option rows[] = {
    GROUP("Files"),
    MODEL("model", told.model,
          "file of a model that train or convert wrote. It may also be the first word "
          "without a dash",
          .letter = 'm'),
    INPUT("input", told.input,
          "file of lines: text if the model has a vocabulary, else token ids. An empty "
          "line gives an empty answer, except with a language model, which then writes "
          "freely. It may also be the second word without a dash; - is stdin",
          .letter = 'i', .fallback = "stdin"),
    { .name = "prompt",
      .kind = OPTION_STRING,
      .value = &told.prompt,
      .argument = "TEXT",
      .help = "use this prompt instead of lines of input. A language model continues it, and "
              "the output begins with it" },
    OUTPUT("output", told.output,
           "file for the outputs, one line for each line of input. It is created when all "
           "lines are done; - is stdout",
           .letter = 'o', .fallback = "stdout"),
    FLAG("stream", told.stream,
         "write each token as soon as it is chosen, one line of input at a time"),
    FLAG("json", told.json,
         "write a JSON object for each line: the source, and for each output its text, tokens, "
         "log_probs (natural, the end token's last), their total, score, and cut (the maximum "
         "length was reached)"),
    INPUT("reference", told.reference,
          "reference outputs, line by line. BLEU, chrF, character and word error rate and exact "
          "matches are printed on stderr, or as a last object with --json"),
    OUTPUT("attention", told.attention,
           "write attention weights: all of them as JSON, an object for each line. If the name "
           "ends in .svg: a picture of the last layer for the first line. - draws each line's "
           "weights on stderr"),
    OUTPUT(
        "explain", told.explain,
        "write an HTML page about the one line of input: its pieces, the beam as a tree, the ten "
        "likeliest tokens of each step, all attention, and the numbers of every node. A browser "
        "opens the file without a network"),
    FLAG("raw", told.raw,
         "write line breaks within an output unescaped. By default they are written as \\n and "
         "\\r, and tabs in columns as \\t, so that each line of input has one line of output. With "
         "--prompt they are unescaped unless there is --nbest"),
    CHOICE("long-lines", told.long_lines, "crop|split|skip|stop",
           "lines with more tokens than the model can read: crop keeps the beginning (of a prompt "
           "the end); split cuts at ends of sentences or at spaces, and joins the outputs; skip "
           "gives an empty answer; stop ends the run. Their number is printed at the end"),
    FLAG("quiet", told.quiet, "do not print the speed"),

    GROUP("Search (the model's file may have other defaults)"),
    COUNT("beam", told.beam, 1, 1024,
          "number of hypotheses kept at every step of the beam search; 1 is greedy search",
          OTHERWISE(FOR(TOKEN_IDS, "1"), FOR(GOES_ON, "1"))),
    CHOICE("length-penalty-type", told.penalty, WF_NAMES(WF_PENALTY_NAMES),
           "an output of n tokens has its log-probability divided by 1, ((5 + n) / 6)^alpha, or "
           "n^alpha"),
    REAL("length-penalty", told.length_penalty, 0, 10,
         "alpha of the length penalty; larger values favour longer outputs",
         OTHERWISE(FOR("avg", "1"))),
    COUNT("nbest", told.nbest, 1, 1024,
          "outputs for each line, best first, each on a line of its own: score, tab, text. Missing "
          "outputs are empty lines",
          .fallback = "1, without its score"),
    REAL("max-len-a", told.max_len_a, 0, 1000,
         "for a source of n tokens, the maximum length of an output is a * n + b tokens; this is a",
         OTHERWISE(FOR(GOES_ON, "0"))),
    REAL("max-len-b", told.max_len_b, 0, 100000,
         "for a source of n tokens, the maximum length of an output is a * n + b tokens; this is b",
         OTHERWISE(FOR(TOKEN_IDS, "10"), FOR(GOES_ON, "200"))),
    COUNT("max-new-tokens", told.max_new, 1, 100000,
          "maximum length of an output in tokens, whatever the source",
          .fallback = "--max-len-a and --max-len-b"),
    COUNT("min-len", told.min_len, 0, 100000,
          "minimum length of an output in tokens (min_new_tokens)"),
    COUNT("no-repeat-ngram-size", told.no_repeat_ngram, 0, 1000,
          "allow no n-gram of this length twice in an output; 0: allow all"),
    REAL("repetition-penalty", told.repetition_penalty, 0.001, 1000,
         "values above 1 make tokens less likely that have occurred before"),
    { .name = "begin-suppress-tokens",
      .kind = OPTION_STRING,
      .value = &told.begin_suppress,
      .argument = "IDS",
      .help = "token ids that an output may not begin with" },
    REAL("length-decay", told.decay, 0.001, 1000,
         "values above 1 make the end likelier with each token (exponential_decay_length_penalty)"),
    COUNT("length-decay-start", told.decay_start, 0, 100000,
          "tokens after which --length-decay begins"),
    CHOICE("stop", told.stop, WF_NAMES(WF_STOP_NAMES),
           "when the beam search of a line ends: sure, when better outputs are impossible; full, "
           "when as many outputs have ended as --beam says; present, when also no open hypothesis "
           "scores more at its present length; longest, or at its maximum length"),
    CHOICE("at-limit", told.at_limit, WF_NAMES(WF_LIMIT_NAMES),
           "what happens at the maximum length: end appends and scores the end token; free-end "
           "appends it without a cost; no-end leaves the output open"),

    GROUP("Drawing at random"),
    FLAG("sample", told.sample,
         "draw each token at random instead of searching; with --nbest, draw this many "
         "outputs. If the model's file asks for sampling, --beam turns it off and "
         "searches"),
    COUNT("top-k", told.top_k, 1, 1000000, "draw only from the k likeliest tokens",
          .fallback = "all"),
    REAL("top-p", told.top_p, 0.001, 1,
         "draw only from the fewest tokens whose probabilities sum to p (after --top-k)"),
    REAL("temperature", told.temperature, 0.001, 1000,
         "divide logits by this: outputs are more random above 1, and less random below "
         "1"),
    COUNT("seed", told.seed, 0, 9007199254740991,
          "seed of the random draws, which also depend on the number of the line"),

    GROUP("Scoring"),
    FLAG("score", told.score,
         "read source<TAB>target, and write the natural logarithm of the target's probability, "
         "including the end token; with --json also each token's"),

    GROUP("Languages (of a multilingual model)"),
    LANGUAGE("source-language", told.source_language,
             "language of the source, as the model's vocabulary spells it: eng_Latn, en"),
    LANGUAGE("target-language", told.target_language,
             "language of the output: fra_Latn, fr; or fra, if sources begin with >>fra<<"),

    GROUP("Work"),
    COUNT("batch-size", told.batch_size, 1, 4096,
          "number of lines that are decoded together; the output does not depend on it"),
    COUNT("threads", told.threads, 1, 256, "number of threads; the output does not depend on it",
          .fallback = DEFAULT_THREADS),
    CHOICE("weights", told.weights, "f32|bf16|int8",
           "format of the weight matrices: bf16 takes half and int8 a quarter of the bytes; both "
           "are faster, and slightly less accurate",
           .fallback = "f32, or int8 if the model has it"),
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

/* Opens the destinations of results, and the buffers in which lines are composed. */
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

/* Packs the weights in the requested layout. The default is that of the file: int8 if that needs no
 * rounding. */
static bool pack(const settings *set, wf_model *m, const wf_file *f, char *message) {
    static const wf_layout layouts[] = { WF_PANELS, WF_PANELS_BF16, WF_PANELS_INT8 };
    if (set->weights >= 0) return wf_pack_weights(m->graph, layouts[set->weights], message);
    return wf_pack_weights(m->graph, WF_PANELS_INT8, message) &&
           (wf_model_rounded(m, f) || wf_pack_weights(m->graph, WF_PANELS, message));
}

/* The model is packed before its weights are loaded, so that each is written once. */
static wf_model *load_packed(const settings *set, const wf_file *f, char *message) {
    wf_model *m = wf_model_record(f, NULL, WF_F32, 0, message);
    if (m && pack(set, m, f, message) && wf_model_load_weights(m, f, message)) return m;
    wf_model_free(m);
    return NULL;
}

static void open_model(job *j, settings *set) {
    char message[WF_MESSAGE];
    wf_file *f = j->file = wf_file_open(j->set->model);
    if (!wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    wf_file_drop_loaded(f);
    j->model = load_packed(j->set, f, message);
    if (!j->model) fail(&self, "%s: %s", j->set->model, message);
    if (!language_open(&j->language, f, j->model, message))
        fail(&self, "%s: %s", j->set->model, message);
    choose_search(j, &self, set, f);
    choose_languages(j);
    read_range(j, f);
    wf_file_free(f);
    j->file = NULL;
    j->decoder = wf_decoder_new(j->model, j->pool, message);
    if (!j->decoder) fail(&self, "%s", message);
    if ((j->set->attention || j->set->draw) &&
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
    if (!set->prompt && !lines_open(&j->in, j->set->input))
        fail(&self, "%s can't be read: %s", j->set->input, strerror(errno));
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
    wf_decoder_free(j->decoder);
    wf_model_free(j->model);
    wf_pool_free(j->pool);
}

static void warn_of_limits(const job *j) {
    if (j->out_of_range)
        warn(&self, "%lld of %lld lines are outside the %lld..%lld tokens the model was trained on",
             (long long)j->out_of_range, (long long)j->in.number, (long long)j->low,
             (long long)j->high);
    warn_of_long_lines(j);
    if (j->escaped)
        warn(&self,
             "line breaks%s within outputs were written as \\n and the like, %lld of them: --raw "
             "writes them as they are, and --json has the text",
             j->set->scores ? " or tabs" : "", (long long)j->escaped);
    /* running text seldom ends within a maximum length */
    if (j->unfinished && !j->model->start_first)
        warn(&self,
             "%lld of %lld outputs were cut before an end token; --max-len-a and --max-len-b give "
             "more room",
             (long long)j->unfinished, (long long)j->sentences);
}

static int close_output(output *o) {
    char message[WF_MESSAGE];
    if (!o->stream || output_close(o, message)) return EXIT_DONE;
    warn(&self, "%s", message);
    return EXIT_FAILED;
}

/* If there was no line there is no picture, and an old one stays. */
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
