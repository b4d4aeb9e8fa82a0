/* tools/generate/generate.c - a trained model as a filter: lines in, what the model makes of them
 * out, in the same order; or how likely it finds outputs that are given.
 *
 * Here are the options, and what is opened and closed. See generate.h for the rest. */
#include "generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "models/choices.h"
#include "tools/cli/terminal.h"
#include "tools/cli/uses.h"

/* What the rows are read into: a table holds addresses. */
static settings told = {
    .beam = 4,
    .nbest = 1,
    .penalty = WF_PENALTY_GNMT,
    .length_penalty = 0.6,
    .max_len_a = 1,
    .max_len_b = 50,
    .top_p = 1,
    .temperature = 1,
    .seed = 1,
    .batch_size = 64,
    .weights = -1,
};

#define TOKEN_IDS "token ids"       /* the case of a model without a vocabulary */
#define GOES_ON "text that goes on" /* of one whose outputs go on from what they are given */

#define LANGUAGE(option, variable, text)                                                           \
    {                                                                                              \
        .name = option, .kind = OPTION_STRING, .value = &(variable), .argument = "CODE",           \
        .help = text, .fallback = "as the model says"                                              \
    }

static option rows[] = {
    GROUP("Files"),
    INPUT("model", told.model, "a model that train wrote"),
    INPUT("input", told.input,
          "lines of text if the model has a vocabulary, else of token ids; an empty line has an "
          "empty answer, or of a language model what it says unasked",
          .letter = 'i', .fallback = "stdin"),
    { .name = "prompt",
      .kind = OPTION_STRING,
      .value = &told.prompt,
      .argument = "TEXT",
      .help = "instead of lines; of a model of running text it is written before its output, which "
              "goes on from it" },
    OUTPUT("output", told.output, "a line for each, there when all are", .letter = 'o',
           .fallback = "stdout"),
    FLAG("stream", told.stream, "write each token as it is made, a line of the input at a time"),
    FLAG("json", told.json,
         "an object for each line instead: its source, and of every output text, tokens, log_probs "
         "(natural, the end token's last), their total, score, and cut: ended by its maximum "
         "length"),
    INPUT("reference", told.reference,
          "what should come out, line by line: BLEU, chrF, character and word error rate and exact "
          "matches are told on stderr, or as a last object with --json"),
    OUTPUT(
        "attention", told.attention,
        "where the model looks: every weight as JSON, an object a line; if the name ends in .svg, "
        "where the last layer looks in the first line, as a picture; - draws each line's on "
        "stderr"),
    FLAG("quiet", told.quiet, "no figures of speed"),

    GROUP("Search: what the model's file says goes before these defaults"),
    COUNT("beam", told.beam, 1, 1024, "hypotheses that go on at every step; 1 is greedy",
          OTHERWISE(FOR(TOKEN_IDS, "1"), FOR(GOES_ON, "1"))),
    CHOICE("length-penalty-type", told.penalty, WF_NAMES(WF_PENALTY_NAMES),
           "what a log-probability is divided by for its score: 1, ((5 + n) / 6)^alpha, n^alpha"),
    REAL("length-penalty", told.length_penalty, 0, 10, "the alpha in it; larger favours longer",
         OTHERWISE(FOR("avg", "1"))),
    COUNT("nbest", told.nbest, 1, 1024,
          "so many outputs of each line, each on a line as score, tab, text, the best first; empty "
          "lines fill up where there are fewer",
          .fallback = "1, without its score"),
    REAL("max-len-a", told.max_len_a, 0, 1000, "a source of n tokens gets at most a n + b",
         OTHERWISE(FOR(GOES_ON, "0"))),
    REAL("max-len-b", told.max_len_b, 0, 100000, "the b in it",
         OTHERWISE(FOR(TOKEN_IDS, "10"), FOR(GOES_ON, "200"))),
    COUNT("max-new-tokens", told.max_new, 1, 100000, "or simply at most so many",
          .fallback = "as these say"),
    COUNT("min-len", told.min_len, 0, 100000, "no end before so many tokens"),
    CHOICE("stop", told.stop, WF_NAMES(WF_STOP_NAMES),
           "when a beam's outputs are done: when what is asked for can't change any more; when as "
           "many as the beam have ended; and none that goes on scores more at its length so far; "
           "or would at the longest"),
    CHOICE("at-limit", told.at_limit, WF_NAMES(WF_LIMIT_NAMES),
           "what becomes of the longest: an end, an end that costs nothing, no end"),

    GROUP("Drawing at random"),
    FLAG("sample", told.sample, "draw each token instead of searching; --nbest: so many draws"),
    COUNT("top-k", told.top_k, 1, 1000000, "from the k likeliest tokens", .fallback = "all"),
    REAL("top-p", told.top_p, 0.001, 1, "of these, from the fewest that hold the share p"),
    REAL("temperature", told.temperature, 0.001, 1000,
         "flatter above 1, sharper below: logits are divided by it"),
    COUNT("seed", told.seed, 0, 9007199254740991, "with a line's number, decides every draw"),

    GROUP("Scoring"),
    FLAG("score", told.score,
         "read source<TAB>target; write the natural logarithm of the target's probability, the end "
         "token's included; with --json also each token's"),

    GROUP("Languages, of a model of many"),
    LANGUAGE("source-language", told.source_language,
             "what it reads, as its vocabulary spells it: eng_Latn, en"),
    LANGUAGE("target-language", told.target_language,
             "what it writes: fra_Latn, fr; or fra, of one whose sources begin with >>fra<<"),

    GROUP("Work"),
    COUNT("batch-size", told.batch_size, 1, 4096,
          "lines at a time; the output does not depend on it"),
    COUNT("threads", told.threads, 1, 256, "nor on this", .fallback = DEFAULT_THREADS),
    CHOICE("weights", told.weights, "f32|bf16|int8",
           "those that are multiplied with: rounded to half or a quarter of the bytes they are "
           "faster, and a little worse",
           .fallback = "f32, or int8 if the model has it"),
};

static program self = {
    .name = "generate",
    .purpose = "turns lines into lines with a trained model",
    .examples =
        "  generate --model de-en.safetensors < news.de > news.en\n"
        "  generate --model de-en.safetensors -i test.de --reference test.en > test.out\n"
        "  generate --model de-en.safetensors --nbest 4 --json < news.de\n"
        "  generate --model de-en.safetensors --sample --top-p 0.9 --seed 7 < news.de\n"
        "  generate --model book.safetensors --prompt \"Once upon\" --sample --stream\n"
        "  echo \"ein Haus\" | generate --model de-en.safetensors --attention heat-map.svg\n"
        "  printf '7 3 9\\t3 7 9\\n' | generate --model sort.safetensors --score --json\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
};

/* ---- options --------------------------------------------------------------------------------- */

static void refuse_idle(const char *const *names, int n, bool idle, const char *because) {
    for (int i = 0; i < n; i++) option_no_effect(&self, names[i], idle, because);
}
#define REFUSE_IDLE(idle, because, ...)                                                            \
    refuse_idle((const char *const[]){ __VA_ARGS__ },                                              \
                sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), idle, because)

/* What can be told without the model. */
static void check_options(settings *set) {
    if (!set->model) usage_error(&self, "say which model: --model FILE");
    REFUSE_IDLE(set->score, "--score generates nothing", "beam", "length-penalty-type",
                "length-penalty", "nbest", "max-len-a", "max-len-b", "min-len", "stop", "at-limit",
                "sample", "top-k", "top-p", "temperature", "seed", "reference", "attention");
    REFUSE_IDLE(set->score, "--score generates nothing", "prompt", "stream", "max-new-tokens");
    REFUSE_IDLE(set->prompt, "--prompt is all there is to read", "input", "reference");
    REFUSE_IDLE(set->json, "--json writes an object when it is whole", "stream");
    REFUSE_IDLE(set->stream, "--stream makes one output at a time", "nbest", "batch-size");
    REFUSE_IDLE(option_seen(&self, "max-new-tokens"), "--max-new-tokens says it all", "max-len-a",
                "max-len-b");
    REFUSE_IDLE(!set->sample, "only --sample draws", "top-k", "top-p", "temperature", "seed");
    REFUSE_IDLE(set->sample, "--sample draws and does not search", "beam", "stop");
    REFUSE_IDLE(set->penalty == WF_PENALTY_NONE, "--length-penalty-type none has no alpha",
                "length-penalty");
    set->scores = option_seen(&self, "nbest");
}

static void check_files(settings *set) {
    bool named = set->input || set->prompt;
    used_file input = { "stdin", NULL, STDIN_FILENO, named ? USE_NONE : USE_INPUT };
    set->draw = set->attention && strcmp(set->attention, "-") == 0;
    if (set->draw) set->attention = NULL;
    check_uses(&self, &input, 1);
}

/* A value that nobody asked for becomes the model's. */
#define RECORDED(option, field, value)                                                             \
    if (!option_seen(&self, option)) set->field = value

/* The penalty's alpha is of its type: another type has another. */
static void take_recorded(settings *set, const wf_decode_options *o) {
    RECORDED("beam", beam, o->beam);
    if (!option_seen(&self, "length-penalty-type")) {
        set->penalty = (int)o->penalty;
        RECORDED("length-penalty", length_penalty, o->alpha);
    }
    RECORDED("stop", stop, (int)o->stop);
    RECORDED("max-len-a", max_len_a, o->max_len_a);
    RECORDED("max-len-b", max_len_b, o->max_len_b);
    RECORDED("at-limit", at_limit, (int)o->at_limit);
    RECORDED("min-len", min_len, o->min_len);
}

/* Text is searched as in "Attention Is All You Need"; token ids, which are mostly exact tasks,
 * are taken greedily, and so is text that goes on, where the likeliest is the dullest. */
static void choose_defaults(bool text, bool goes_on) {
    char penalty[OPTION_TEXT_SIZE];
    if (!text) options_take_defaults(&self, TOKEN_IDS);
    if (goes_on) options_take_defaults(&self, GOES_ON);
    options_take_defaults(&self, option_text(option_find(&self, "length-penalty-type"), penalty));
}

static void settle(settings *set) {
    REFUSE_IDLE(set->penalty == WF_PENALTY_NONE, "the model's length penalty is none",
                "length-penalty");
    if (option_seen(&self, "max-new-tokens"))
        set->max_len_a = 0, set->max_len_b = (double)set->max_new;
    if (set->stream && option_seen(&self, "beam") && set->beam > 1)
        usage_error(&self, "--stream writes what will not change, and a beam of %lld may: --beam 1",
                    (long long)set->beam);
    if (set->stream) set->beam = 1;
    if (set->sample) set->beam = 1;
    if (!set->sample && set->nbest > set->beam)
        usage_error(&self, "--nbest %lld is more than a beam of %lld holds: ask for --beam %lld",
                    (long long)set->nbest, (long long)set->beam, (long long)set->nbest);
    REFUSE_IDLE(set->beam == 1 && !set->sample, "beam 1 ends with the first end", "stop");
    REFUSE_IDLE(set->beam == 1 && !set->scores && !set->json,
                "without a beam it changes the scores alone, and --nbest or --json shows them",
                "length-penalty", "length-penalty-type");
}

static void write_options(const settings *set, wf_decode_options *o) {
    o->beam = (int)set->beam;
    o->penalty = (wf_length_penalty)set->penalty, o->alpha = set->length_penalty;
    o->stop = (wf_stop)set->stop, o->at_limit = (wf_limit_rule)set->at_limit;
    o->max_len_a = set->max_len_a, o->max_len_b = set->max_len_b, o->min_len = set->min_len;
}

static wf_decode_options decode_options(const settings *set, const wf_generation *lists) {
    wf_decode_options o = wf_generation_options(lists);
    write_options(set, &o);
    o.nbest = (int)set->nbest;
    o.sample = set->sample, o.top_k = (int)set->top_k, o.top_p = set->top_p;
    o.temperature = set->temperature, o.seed = (uint64_t)set->seed;
    return o;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Where results go, and where they are composed. */
static void open_outputs(job *j) {
    char message[WF_MESSAGE];
    if ((j->set->output && !output_open(&j->result, j->set->output, message)) ||
        (j->set->attention && !output_open(&j->picture, j->set->attention, message)))
        fail(&self, "%s", message);
    j->out = j->set->output ? j->result.stream : stdout;
    j->line.stream = j->out, j->weights.stream = j->picture.stream;
}

/* The lengths that a task on numbers was trained on, if the file tells. */
static void read_range(job *j, const wf_file *f) {
    const char *low = wf_file_meta(f, "train.min-len"), *high = wf_file_meta(f, "train.max-len");
    if (!low || !high || j->language.text) return;
    j->low = strtoll(low, NULL, 10);
    j->high = strtoll(high, NULL, 10);
}

/* What the file says of a search goes before the defaults of its kind of model, and what is asked
 * for before both. */
static void choose_search(job *j, settings *set, const wf_file *f) {
    char message[WF_MESSAGE];
    wf_generation *g = &j->generation;
    choose_defaults(j->language.text, j->model->start_first);
    g->options = wf_decode_defaults();
    write_options(set, &g->options);
    if (j->language.text) g->n_banned = no_text(j->language.tokenizer[SIDE_TGT], false, g->banned);
    if (!wf_generation_from_meta(f, j->model, g, message))
        fail(&self, "%s: %s", set->model, message);
    take_recorded(set, &g->options);
    settle(set);
}

static void choose_languages(job *j) {
    char message[WF_MESSAGE];
    int32_t forced;
    if (!language_choose(&j->language, j->set->source_language, j->set->target_language, &forced,
                         message))
        fail(&self, "%s: %s", j->set->model, message);
    if (forced >= 0) j->generation.forced[0] = forced, j->generation.n_forced = 1;
}

/* As asked for; else as the file has them: int8 if nothing has to be rounded for it. */
static bool pack(const settings *set, wf_model *m, const wf_file *f, char *message) {
    static const wf_layout layouts[] = { WF_PANELS, WF_PANELS_BF16, WF_PANELS_INT8 };
    if (set->weights >= 0) return wf_pack_weights(m->graph, layouts[set->weights], message);
    return wf_pack_weights(m->graph, WF_PANELS_INT8, message) &&
           (wf_model_rounded(m, f) || wf_pack_weights(m->graph, WF_PANELS, message));
}

/* Packed before they are loaded, the weights are written once. */
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
    choose_search(j, set, f);
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
    check_options(set);
    check_files(set);
    *j = (job){ .program = &self, .set = set, .in = { .file = -1 } };
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
}

static void close_job(job *j) {
    close_window(j);
    attention_free(&j->attention);
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
    if (j->unfinished && !j->model->start_first) /* text seldom ends within bounds */
        warn(&self,
             "%lld of %lld lines were cut before an end token; --max-len-a and --max-len-b give "
             "more room",
             (long long)j->unfinished, (long long)j->in.number);
}

static int close_output(output *o) {
    char message[WF_MESSAGE];
    if (!o->stream || output_close(o, message)) return EXIT_DONE;
    warn(&self, "%s", message);
    return EXIT_FAILED;
}

/* Without a line there is no picture: an old one stays. */
static void keep_old_picture(job *j) {
    if (!j->picture.stream || !attention_is_svg(j->set->attention) || j->drawn) return;
    warn(&self, "%s is not drawn: there is no output to draw", j->set->attention);
    output_discard(&j->picture);
    j->picture.stream = NULL;
}

static int close_outputs(job *j) {
    keep_old_picture(j);
    int status = close_output(&j->picture) | close_output(&j->result);
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
