/* tools/generate.c - reads lines of token ids, writes what the model makes of them, in the same
 * order; or how likely it finds the outputs that are given.
 *
 * Greedy decoding with cached keys and values, or forced scoring, a batch of lines at a time; a
 * line's output does not depend on the lines beside it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attention.h"
#include "jsonl.h"
#include "lines.h"
#include "options.h"
#include "output.h"
#include "score.h"

static struct {
    const char *model, *input, *output, *attention;
    int64_t batch_size, threads;
    int weights;
    double max_len_a, max_len_b;
    bool score, json;
} set = { .batch_size = 64, .max_len_a = 1, .max_len_b = 10 };

static option rows[] = {
    GROUP("Files"),
    NAME("model", set.model, "a model that train wrote"),
    NAME("input", set.input, "lines of token ids", .letter = 'i', .fallback = "stdin"),
    NAME("output", set.output, "a line of token ids for each", .letter = 'o', .fallback = "stdout"),
    NAME("attention", set.attention,
         "every attention weight as JSON, one object a line; or, if it ends in .svg, the first "
         "line's "
         "cross-attention as a picture"),

    GROUP("Scoring"),
    FLAG("score", set.score,
         "read source<TAB>target; write the natural logarithm of the target's probability, the end "
         "token's included"),
    FLAG("json", set.json, "with --score: an object a line, with each token's share"),

    GROUP("Decoding"),
    REAL("max-len-a", set.max_len_a, 0, 1000, "a source of n tokens gets at most a n + b"),
    REAL("max-len-b", set.max_len_b, 0, 100000, "the b in it"),
    COUNT("batch-size", set.batch_size, 1, 4096,
          "lines at a time; the output does not depend on it"),
    COUNT("threads", set.threads, 1, 256, "nor on this", .fallback = "processors, at most 8"),
    CHOICE("weights", set.weights, "f32|bf16",
           "as the model has them, or rounded to half the bytes: faster, and a little worse"),
};

static program self = {
    .name = "generate",
    .purpose = "decodes lines of token ids with a trained model",
    .examples = "  echo \"1 2 3 4 5\" | generate --model copy.safetensors\n"
                "  generate --model sort.safetensors -i questions.txt -o answers.txt\n"
                "  echo \"7 3 9\" | generate --model sort.safetensors --attention attention.svg\n"
                "  printf '7 3 9\\t3 7 9\\n' | generate --model sort.safetensors --score --json\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
};

typedef struct work {
    wf_transformer *model;
    wf_pool *pool;
    wf_decoder *decoder; /* NULL when scoring */
    scorer scorer;
    attention attention;
    lines in;
    FILE *out, *picture;
    int64_t most;          /* tokens that the model takes; a target has the start token too */
    int64_t low, high;     /* lengths it was trained on; high 0: not known */
    int64_t n;             /* lines in the batch */
    int32_t *ids, *length; /* [batch_size, most], [batch_size] */
    int32_t *src, *result, *result_length; /* the batch as it is fed, and what comes back */
    int32_t *tgt;  /* [most]: one output after the start token, for the attention */
    int64_t first; /* line number of the batch's first line */
    int64_t out_of_range, unfinished, drawn;
} work;

/* ---- opening ------------------------------------------------------------------------------- */

static void check_outputs(void) {
    char message[WF_MESSAGE];
    static const char *const idle[] = { "attention", "max-len-a", "max-len-b" };
    if (!set.model) usage_error(&self, "say which model: --model FILE");
    for (int i = 0; i < 3; i++)
        option_no_effect(&self, idle[i], set.score, "--score generates nothing");
    option_no_effect(&self, "json", !set.score, "only --score writes objects");
    const char *const files[] = { set.output, set.attention };
    for (int i = 0; i < 2; i++) {
        if (!files[i]) continue;
        if (!output_writable(files[i], message)) fail(&self, "%s", message);
        if (same_file(files[i], set.model) || (set.input && same_file(files[i], set.input)))
            usage_error(&self, "%s is to be read and written at once", files[i]);
    }
    if (set.output && set.attention && strcmp(set.output, set.attention) == 0)
        usage_error(&self, "%s is to be two outputs at once", set.output);
}

static FILE *open_output(const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) fail(&self, "%s can't be written: %s", path, strerror(errno));
    return f;
}

/* The lengths that the training saw, if the file tells. */
static void read_range(work *w, const wf_file *f) {
    const char *low = wf_file_meta(f, "train.min-len"), *high = wf_file_meta(f, "train.max-len");
    if (!low || !high) return;
    w->low = strtoll(low, NULL, 10);
    w->high = strtoll(high, NULL, 10);
}

/* Packed before they are loaded, the weights are written once. */
static wf_transformer *load_packed(const wf_file *f, char *message) {
    wf_transformer_config c;
    if (!wf_transformer_read_config(f, &c, message)) return NULL;
    wf_transformer *m = wf_transformer_new(&c, NULL, WF_F32, 0, message);
    if (m && wf_pack_weights(m->graph, set.weights ? WF_PANELS_BF16 : WF_PANELS, message) &&
        wf_transformer_load_weights(m, f, message))
        return m;
    wf_transformer_free(m);
    return NULL;
}

static void open_model(work *w) {
    char message[WF_MESSAGE];
    wf_file *f = wf_file_open(set.model);
    if (!wf_file_ok(f)) fail(&self, "%s", wf_file_error(f));
    w->model = load_packed(f, message);
    if (!w->model) fail(&self, "%s: %s", set.model, message);
    read_range(w, f);
    wf_file_free(f);
    if (set.score) {
        if (!scorer_new(&w->scorer, w->model, w->pool, set.batch_size, message))
            fail(&self, "%s", message);
        return;
    }
    w->decoder = wf_decoder_new(w->model, w->pool, message);
    if (!w->decoder) fail(&self, "%s", message);
    if (set.attention && !attention_new(&w->attention, w->model, w->pool, message))
        fail(&self, "%s", message);
}

static int64_t processors(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 8 ? 8 : n;
}

static void open_work(work *w) {
    check_outputs();
    w->pool = wf_pool_new((int)(set.threads ? set.threads : processors()));
    open_model(w);
    if (!lines_open(&w->in, set.input))
        fail(&self, "%s can't be read: %s", set.input, strerror(errno));
    w->out = set.output ? open_output(set.output) : stdout;
    if (set.attention) w->picture = open_output(set.attention);
    w->most = w->model->config.max_len;
    size_t batch = (size_t)set.batch_size,
           most = (size_t)w->most; /* range-checked when the model was read */
    w->ids = calloc(batch * most, sizeof *w->ids);
    w->src = calloc(batch * most, sizeof *w->src);
    w->result = calloc(batch * most, sizeof *w->result);
    w->length = calloc(batch, sizeof *w->length);
    w->result_length = calloc(batch, sizeof *w->result_length);
    w->tgt = calloc(most, sizeof *w->tgt);
    if (!w->pool || !w->ids || !w->src || !w->result || !w->length || !w->result_length || !w->tgt)
        fail(&self, "out of memory: --batch-size lowers the need");
}

static void close_work(work *w) {
    lines_close(&w->in);
    attention_free(&w->attention);
    wf_decoder_free(w->decoder);
    scorer_free(&w->scorer);
    wf_transformer_free(w->model);
    wf_pool_free(w->pool);
    free(w->ids), free(w->src), free(w->result), free(w->length), free(w->result_length),
        free(w->tgt);
}

/* ---- a batch ------------------------------------------------------------------------------- */

/* The most that line i may get: a function of its own length alone. The decoder is asked for one
 * more, so that an output that ends there is told from one that is cut. */
static int64_t limit_of(const work *w, int64_t i) {
    double limit = set.max_len_a * w->length[i] + set.max_len_b;
    return limit < 1 ? 1 : limit < (double)w->most - 1 ? (int64_t)limit : w->most - 1;
}

static void draw(work *w, int64_t i, const int32_t *out, int64_t n) {
    char message[WF_MESSAGE];
    const int32_t *src = w->ids + i * w->most;
    const char *suffix = strrchr(set.attention, '.');
    bool svg = suffix && strcmp(suffix, ".svg") == 0;
    if (svg && w->drawn++ > 0) return;
    w->tgt[0] = w->model->config.start_id;
    memcpy(w->tgt + 1, out, (size_t)n * sizeof *out);
    if (!attention_run(&w->attention, w->length[i], src, n + 1, w->tgt, message))
        fail(&self, "%s", message);
    if (!(svg ? attention_svg : attention_json)(&w->attention, w->length[i], src, n + 1, w->tgt,
                                                w->picture))
        fail(&self, "%s could not be written", set.attention);
}

static void write_line(work *w, int64_t i, int64_t width) {
    const int32_t *out = w->result + i * width;
    int64_t n = w->result_length[i], limit = limit_of(w, i);
    if (n > limit) n = limit, w->unfinished++;
    for (int64_t k = 0; k < n; k++) fprintf(w->out, "%s%d", k ? " " : "", (int)out[k]);
    fputc('\n', w->out);
    if (set.attention) draw(w, i, out, n);
}

static void generate_batch(work *w) {
    int64_t longest = 0, width = 1;
    for (int64_t i = 0; i < w->n; i++) {
        if (w->length[i] > longest) longest = w->length[i];
        if (limit_of(w, i) + 1 > width) width = limit_of(w, i) + 1;
    }
    for (int64_t i = 0; i < w->n; i++) {
        memset(w->src + i * longest, 0, (size_t)longest * sizeof *w->src);
        memcpy(w->src + i * longest, w->ids + i * w->most, (size_t)w->length[i] * sizeof *w->src);
    }
    if (!wf_decode_greedy(w->decoder, (int)w->n, (int)longest, w->src, w->length, (int)width,
                          w->result, w->result_length))
        fail(&self, "line %lld: %s", (long long)w->first, wf_decoder_error(w->decoder));
    for (int64_t i = 0; i < w->n; i++) write_line(w, i, width);
}

static void write_score(const work *w, int64_t i) {
    int64_t n;
    double total = 0;
    const float *log_probs = scorer_at(&w->scorer, i, &n);
    for (int64_t t = 0; t < n; t++) total += log_probs[t];
    if (!set.json) {
        fprintf(w->out, "%.9g\n", total);
        return;
    }
    json_begin(w->out, "score");
    json_int(w->out, "line", w->first + i);
    json_real(w->out, "total", total);
    json_floats(w->out, "log_probs", log_probs, n);
    json_end(w->out);
}

static void score_batch(work *w) {
    if (!scorer_run(&w->scorer))
        fail(&self, "line %lld: %s", (long long)w->first, wf_plan_error(w->scorer.plan));
    for (int64_t i = 0; i < w->n; i++) write_score(w, i);
}

static void run_batch(work *w) {
    if (w->n == 0) return;
    (set.score ? score_batch : generate_batch)(w);
    fflush(w->out);
    w->n = 0;
}

/* What came before a bad line is answered; then the bad line is told. */
static _Noreturn void refuse_line(work *w, const char *why) {
    run_batch(w);
    fail(&self, "line %lld: %s", (long long)w->in.number, why);
}

/* A sentence of a line as ids: the one place that knows how sentences are written. A target leaves
 * room for the start or end token, and may be empty. Does not return from a line that is none. */
static int64_t read_sentence(work *w, bool target, const char *text, int32_t *ids) {
    char message[WF_MESSAGE];
    const wf_transformer_config *c = &w->model->config;
    if (target && !text[strspn(text, " ")]) return 0;
    int64_t n =
        parse_ids(text, target ? c->tgt_vocab : c->src_vocab, w->most - target, ids, message);
    if (n < 0) refuse_line(w, message);
    return n;
}

/* source<TAB>target */
static int64_t add_pair(work *w, char *line) {
    char *tab = strchr(line, '\t');
    if (!tab) refuse_line(w, "there is no tab between a source and a target");
    if (strchr(tab + 1, '\t')) refuse_line(w, "there is a second tab: one pair a line");
    *tab = '\0';
    int64_t n = read_sentence(w, false, line, scorer_src(&w->scorer));
    scorer_add(&w->scorer, n, read_sentence(w, true, tab + 1, scorer_tgt(&w->scorer)));
    return n;
}

static void add_line(work *w, char *line) {
    int64_t n =
        set.score ? add_pair(w, line) : read_sentence(w, false, line, w->ids + w->n * w->most);
    if (w->high && (n < w->low || n > w->high)) w->out_of_range++;
    if (w->n == 0) w->first = w->in.number;
    w->length[w->n++] = (int32_t)n;
}

static void generate(work *w) {
    char *line;
    for (;;) {
        switch (lines_next(&w->in, w->n == 0, &line)) {
        case LINE_READ:
            add_line(w, line);
            break;
        case LINE_WAIT:
            run_batch(w);
            continue;
        case LINE_END:
            run_batch(w);
            return;
        case LINE_TOO_LONG:
            w->in.number++, refuse_line(w, "it is longer than a megabyte");
        case LINE_FAILED:
            run_batch(w), fail(&self, "the input can't be read: %s", strerror(errno));
        }
        if (w->n == set.batch_size) run_batch(w);
    }
}

static void warn_of_limits(const work *w) {
    if (w->out_of_range)
        warn(&self, "%lld of %lld lines are outside the %lld..%lld tokens the model was trained on",
             (long long)w->out_of_range, (long long)w->in.number, (long long)w->low,
             (long long)w->high);
    if (w->unfinished)
        warn(&self,
             "%lld of %lld lines were cut before an end token; --max-len-a and --max-len-b give "
             "more room",
             (long long)w->unfinished, (long long)w->in.number);
}

static int close_outputs(const work *w) {
    int status = EXIT_DONE;
    if (w->picture && fclose(w->picture) != 0)
        warn(&self, "%s could not be written: %s", set.attention, strerror(errno)),
            status = EXIT_FAILED;
    if (w->out != stdout && (ferror(w->out) | fclose(w->out)) != 0)
        warn(&self, "%s could not be written: %s", set.output, strerror(errno)),
            status = EXIT_FAILED;
    return close_stdout(&self, status);
}

int main(int argc, char **argv) {
    work w = { .in = { .file = -1 } };
    options_parse(&self, argc, argv);
    open_work(&w);
    generate(&w);
    warn_of_limits(&w);
    int status = close_outputs(&w);
    close_work(&w);
    return status;
}
