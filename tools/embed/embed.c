/* tools/embed/embed.c - turns lines into vectors with a trained encoder, or finds the lines that
 * are nearest to them.
 *
 * This file has the options, and writes the results. See embed.h for the other files. */
#include "embed.h"
#include "core/file_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/op.h"
#include "models/choices.h"
#include "models/model_internal.h"
#include "ops/base/scalars.h"
#include "tools/cli/numbers.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/output.h"
#include "tools/cli/terminal.h"

/* Static, because the rows of the option table hold addresses of these settings. */
static settings told = { .top = 5, .batch_size = 32, .weights = -1, .format = -1 };

static option rows[] = {
    GROUP("Files"),
    MODEL("model", told.model,
          "file of an encoder, written by the program train or convert. It must be given, with "
          "this option or as the first word without a dash",
          .letter = 'm'),
    INPUT("input", told.input,
          "file with a text on each line, or with token ids if the model has no vocabulary. It may "
          "also be the second word without a dash; - is stdin",
          .letter = 'i', .fallback = "stdin"),
    OUTPUT("output", told.output,
           "file for the results. It is written when all lines are done. An existing file is "
           "replaced, unless it is a model, or a picture or page of weft. - is stdout",
           .letter = 'o', .fallback = "stdout"),
    CHOICE("format", told.format, "text|npy|f32|label",
           "form of the vectors. text: a line of numbers for each line of input. npy: a matrix for "
           "NumPy, with a row for each line. f32: only the numbers of this matrix, of 4 bytes each "
           "in this machine's order. label: no vector, but the label of the likeliest class, TAB, "
           "and its probability, for a model that has labels. Refused with --search",
           .fallback = "label if the model has labels, as of train --task classify, else text"),
    GROUP("Search"),
    INPUT("search", told.search,
          "file of lines to search: for each line of the input, print the nearest of these lines, "
          "best first, in place of vectors. Each is printed as the cosine of the two vectors, TAB, "
          "the line's number in this file, from 1, TAB, the line"),
    COUNT("top", told.top, 1, 100000,
          "with --search: number of lines that are printed for each line of the input, or all if "
          "there are fewer"),
    GROUP("Text"),
    STRING("prompt", told.prompt, "TEXT",
           "text to put before each line of the input. Some models were trained with one, such as "
           "E5 with \"query: \"",
           .fallback = "none"),
    STRING("search-prompt", told.search_prompt, "TEXT",
           "with --search: text to put before each line of the file of --search, such as "
           "\"passage: \"",
           .fallback = "none"),
    GROUP("Work"),
    COUNT("batch-size", told.batch_size, 1, 4096,
          "maximum number of lines that are computed together. Fewer are taken if they are long. "
          "The vectors do not depend on it"),
    COUNT("threads", told.threads, 1, 256, "number of threads. The vectors do not depend on it",
          .fallback = DEFAULT_THREADS),
    CHOICE("weights", told.weights, WF_NAMES(WF_WEIGHT_FORMAT_NAMES),
           "number format of the weight matrices in memory. bf16 takes half of the bytes of f32 "
           "and int8 a quarter. Both are faster and slightly less accurate",
           .fallback = "f32, or int8 if the file has that"),
    FLAG("quiet", told.quiet,
         "do not print the speed on stderr. Warnings about lines that are cut are still printed"),
};

static program self = {
    .name = "embed",
    .purpose = "turns lines into vectors with an encoder, and finds the nearest lines",
    .examples = "  embed minilm.safetensors lines.txt > vectors.txt\n"
                "  embed minilm.safetensors lines.txt --format npy -o vectors.npy\n"
                "  echo \"a dog runs\" | embed minilm.safetensors --search lines.txt --top 3\n"
                "  embed e5.safetensors questions.txt --prompt \"query: \" --search pages.txt "
                "--search-prompt \"passage: \"\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "[MODEL [FILE]]",
    .by_place = { "model", "input" },
};

/* ---- results --------------------------------------------------------------------------------- */

typedef struct results {
    embedder *e;
    FILE *out;
    /* with --format npy: all vectors, because the file's header has their number */
    float *kept;
    int64_t n;
    size_t room;
    collection lines; /* those of --search */
    int64_t *nearest;
    float *cosines;
} results;

static void put_text(FILE *out, const float *vector, int64_t n) {
    enum { DIGITS = 9 }; /* so many read back as the same f32 */
    char text[WF_REAL_TEXT];
    for (int64_t i = 0; i < n; i++) {
        if (i) putc(' ', out);
        fputs(wf_format_real(vector[i], DIGITS, text), out);
    }
    putc('\n', out);
}

/* Prints the class with the largest log-probability, and its probability. */
static void put_label(results *r, const float *log_probs) {
    enum { DIGITS = 6 };
    int64_t best = 0;
    char number[WF_REAL_TEXT];
    for (int64_t i = 1; i < r->e->width; i++)
        if (log_probs[i] > log_probs[best]) best = i;
    const char *name = NULL;
    for (int64_t i = 0; i <= best; i++) name = wf_class_next(r->e->labels, name);
    if (name)
        fprintf(r->out, "%.*s\t", (int)strcspn(name, "\n"), name);
    else
        fprintf(r->out, "%" PRId64 "\t", best);
    fprintf(r->out, "%s\n", wf_format_real(wf_exp_of(log_probs[best]), DIGITS, number));
}

static void keep(results *r, int64_t n, const float *vectors) {
    const int64_t width = r->e->width;
    if (!wf_grow(&r->kept, &r->room, (size_t)(r->n + n), (size_t)width * sizeof *r->kept))
        fail(&self, "out of memory");
    memcpy(r->kept + r->n * width, vectors, (size_t)(n * width) * sizeof *vectors);
    r->n += n;
}

/* Writes the kept vectors as a .npy file, version 1.0. The length of its header is a multiple of
 * 64. */
static void put_npy(results *r) {
    const uint16_t one = 1;
    char little = *(const char *)&one ? '<' : '>', text[192];
    int n =
        snprintf(text, sizeof text,
                 "{'descr': '%cf4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                 little, r->n, r->e->width);
    int whole = (10 + n + 1 + 63) / 64 * 64 - 10;
    fwrite("\x93NUMPY\x01\x00", 1, 8, r->out);
    putc(whole & 255, r->out);
    putc(whole >> 8, r->out);
    fprintf(r->out, "%s%*s\n", text, whole - n - 1, "");
    if (r->n) fwrite(r->kept, sizeof *r->kept * (size_t)r->e->width, (size_t)r->n, r->out);
}

static void take(void *user, int64_t n, const float *vectors, char *const *text) {
    results *r = user;
    const int64_t width = r->e->width;
    (void)text;
    if (told.format == FORMAT_NPY) {
        keep(r, n, vectors);
        return;
    }
    for (int64_t i = 0; i < n && told.format == FORMAT_LABEL; i++)
        put_label(r, vectors + i * width);
    for (int64_t i = 0; i < n && told.format == FORMAT_TEXT; i++)
        put_text(r->out, vectors + i * width, width);
    if (told.format == FORMAT_F32)
        fwrite(vectors, sizeof *vectors * (size_t)width, (size_t)n, r->out);
    flush_or_fail(&self, r->out, told.output);
}

/* ---- search ---------------------------------------------------------------------------------- */

static void take_lines(void *user, int64_t n, const float *vectors, char *const *text) {
    results *r = user;
    if (!collection_add(&r->lines, n, vectors, text))
        fail(&self, "out of memory for the lines of %s", told.search);
}

static void open_search(results *r) {
    char message[WF_MESSAGE];
    r->lines.width = r->e->width;
    embed_file(r->e, told.search, told.search_prompt, true, take_lines, r);
    if (!r->lines.n) fail(&self, "%s has no lines", told.search);
    if (told.top > r->lines.n) told.top = r->lines.n;
    if (!collection_open(&r->lines, r->e->pool, message)) fail(&self, "%s", message);
    r->nearest = memory_or_fail(&self, calloc((size_t)told.top, sizeof *r->nearest));
    r->cosines = memory_or_fail(&self, calloc((size_t)told.top, sizeof *r->cosines));
}

static void take_queries(void *user, int64_t n, const float *vectors, char *const *text) {
    results *r = user;
    char message[WF_MESSAGE], number[WF_REAL_TEXT];
    (void)text;
    for (int64_t i = 0; i < n; i++) {
        int64_t found = collection_search(&r->lines, 1, vectors + i * r->e->width, told.top,
                                          r->nearest, r->cosines, message);
        if (found < 0) fail(&self, "%s", message);
        for (int64_t k = 0; k < found; k++)
            fprintf(r->out, "%s\t%" PRId64 "\t%s\n", wf_format_real(r->cosines[k], 6, number),
                    r->nearest[k] + 1, r->lines.text[r->nearest[k]]);
    }
    flush_or_fail(&self, r->out, told.output);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void check_options(void) {
    bool search = told.search != NULL;
    if (!told.model) usage_error(&self, "say which model: embed MODEL [FILE]");
    option_no_effect(&self, "format", search, "--search prints lines");
    option_no_effect(&self, "top|search-prompt", !search, "it is for --search");
    if (is_dash(told.input)) told.input = NULL;
    if (is_dash(told.output)) told.output = NULL;
    if (is_dash(told.search) && !told.input)
        usage_error(&self, "only one of --search and the input can be stdin");
}

static void tell(const embedder *e, double seconds) {
    char count[OPTION_TEXT_SIZE], rate[OPTION_TEXT_SIZE], time[OPTION_TEXT_SIZE];
    if (e->cut)
        warn(&self,
             "%" PRId64 " of %" PRId64 " lines have more than %" PRId64
             " tokens: only their beginnings were used",
             e->cut, e->lines, e->model->max_len);
    if (told.quiet || !e->lines) return;
    fprintf(stderr, "%s lines in %s, %s a second\n", thousands((double)e->lines, count),
            duration(seconds, time), thousands((double)e->lines / seconds, rate));
}

int main(int argc, char **argv) {
    char message[WF_MESSAGE];
    embedder e;
    output file = { .stream = stdout };
    terminal_open();
    options_parse(&self, argc, argv);
    check_options();
    const used_file in = { "stdin", NULL, STDIN_FILENO, told.input ? USE_NONE : USE_INPUT };
    check_uses(&self, &in, 1);
    embedder_open(&e, &self, &told);
    if (told.output && !output_open(&file, told.output, message)) fail(&self, "%s", message);
    if (told.format < 0) told.format = e.classes ? FORMAT_LABEL : FORMAT_TEXT;
    results r = { .e = &e, .out = file.stream };
    double start = wf_seconds_now();
    if (told.search) open_search(&r);
    int64_t searched = e.lines;
    embed_file(&e, told.input, told.prompt, false, told.search ? take_queries : take, &r);
    if (e.lines == searched && !told.quiet)
        warn(&self, "%s has no line: nothing was read, and nothing is written",
             told.input ? told.input : "stdin");
    if (told.format == FORMAT_NPY && !told.search) put_npy(&r);
    if (told.output && !output_close(&file, message)) fail(&self, "%s", message);
    tell(&e, wf_seconds_now() - start);
    if (told.search) collection_close(&r.lines);
    free(r.kept), free(r.nearest), free(r.cosines);
    embedder_close(&e);
    return close_stdout(&self, EXIT_DONE);
}
