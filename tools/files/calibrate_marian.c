/* tools/files/calibrate_marian.c - finds the scales of a model's activations by translating a text;
 * see convert_marian.h.
 *
 * A batch has 32 lines, and the search is greedy, as in Marian. A line that is empty, or too long
 * for the model, is left out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert_marian.h"
#include "models/generation.h"
#include "models/model_internal.h"
#include "tools/data/language.h"
#include "tools/data/lines.h"

enum { LINES = 32 };

typedef struct calibration {
    const program *p;
    const char *path;
    wf_model *m;
    language language;
    lines in;
    wf_generation generation;
    wf_decoder *decoder;
    wf_marian_scales *scales;
    int32_t *src, *tgt; /* [LINES,S], [LINES,T] */
    int32_t src_length[LINES], tgt_length[LINES];
    int n; /* lines of the batch */
    int64_t S, T, lines, left_out;
} calibration;

/* True if a line has blanks alone. A tokenizer would still give ids for it: the end, at least. */
static bool is_blank(const char *line, size_t bytes) {
    return strspn(line, " \t\r") == bytes;
}

/* Reads a line into the batch. False: there are no more. */
static bool read_line(calibration *c) {
    char message[WF_MESSAGE], *line;
    line_status status = lines_next(&c->in, true, &line);
    if (status == LINE_END) return false;
    if (status != LINE_READ)
        fail(c->p, "%s can't be read: %s", c->path,
             status == LINE_TOO_LONG ? "a line is too long" : lines_failure(&c->in));
    if (is_blank(line, c->in.length)) {
        c->left_out++;
        return true;
    }
    int32_t *to = c->src + c->n * c->S;
    int64_t n = language_read(&c->language, SIDE_SRC, line, c->in.length, to, c->S, message);
    if (n < 0)
        fail(c->p, "%s, line %lld: %s%s", c->path, (long long)c->in.number, message,
             lines_remedy(&c->in, message));
    if (n >= 1 && n <= c->S)
        c->src_length[c->n++] = (int32_t)n;
    else
        c->left_out++;
    return true;
}

/* Shortens n rows from `width` ids to `to` ids each, padded with zeros. */
static void close_up(int32_t *ids, const int32_t *length, int n, int64_t width, int64_t to) {
    for (int i = 0; i < n; i++) {
        memmove(ids + i * to, ids + i * width, (size_t)length[i] * sizeof *ids);
        for (int64_t k = length[i]; k < to; k++) ids[i * to + k] = 0;
    }
}

static int32_t longest(const int32_t *length, int n) {
    int32_t most = 1;
    for (int i = 0; i < n; i++) most = length[i] > most ? length[i] : most;
    return most;
}

/* Decodes the batch greedily, then runs sources and outputs through the model once more, to add
 * their activations to the scales. */
static void run_batch(calibration *c) {
    char message[WF_MESSAGE];
    wf_decoded results[LINES];
    wf_decode_options o = wf_generation_options(&c->generation);
    int32_t S = longest(c->src_length, c->n);
    o.beam = o.nbest = 1;
    o.sample = false;
    close_up(c->src, c->src_length, c->n, c->S, S);
    if (!wf_decode(c->decoder, c->n, S, c->src, c->src_length, NULL, &o, results))
        fail(c->p, "%s", wf_decoder_error(c->decoder));
    for (int i = 0; i < c->n; i++) {
        const wf_hypothesis *h = results[i].best;
        int32_t *to = c->tgt + i * c->T;
        to[0] = c->m->start_id;
        memcpy(to + 1, h->tokens, (size_t)h->length * sizeof *to);
        c->tgt_length[i] = (int32_t)h->length + 1;
    }
    int32_t T = longest(c->tgt_length, c->n);
    close_up(c->tgt, c->tgt_length, c->n, c->T, T);
    const wf_batch pairs = {
        .B = c->n, .S = S, .T = T, .src = c->src, .src_length = c->src_length, .tgt = c->tgt
    };
    if (!wf_marian_scales_add(c->scales, &pairs, c->tgt_length, message)) fail(c->p, "%s", message);
    wf_decoded_free(results, c->n);
    c->lines += c->n;
    c->n = 0;
}

static void open_calibration(calibration *c, const wf_file *f) {
    char message[WF_MESSAGE];
    c->generation.options = wf_decode_defaults();
    c->scales = wf_marian_scales_new(c->m, NULL, message);
    if (!c->scales || !language_open(&c->language, f, c->m, message) ||
        !wf_generation_from_meta(f, c->m, &c->generation, message))
        fail(c->p, "%s", message);
    c->decoder = wf_decoder_new(c->m, NULL, message);
    if (!c->decoder) fail(c->p, "%s", message);
    if (!lines_open(&c->in, c->path)) fail(c->p, "%s can't be read: %s", c->path, strerror(errno));
    c->S = wf_model_longest_source(c->m);
    c->T = c->m->max_len + 1;
    c->src = memory_or_fail(c->p, calloc((size_t)(LINES * c->S), sizeof *c->src));
    c->tgt = memory_or_fail(c->p, calloc((size_t)(LINES * c->T), sizeof *c->tgt));
}

wf_marian_scales *calibrate_marian(const program *p, const wf_file *f, wf_model *m,
                                   marian_form *form) {
    calibration c = { .p = p, .path = form->calibrate, .m = m };
    open_calibration(&c, f);
    while (read_line(&c))
        if (c.n == LINES) run_batch(&c);
    if (c.n) run_batch(&c);
    if (!c.lines) fail(p, "%s has no line to run the model on", c.path);
    snprintf(form->said, sizeof form->said,
             "scales of activations from %" PRId64 " lines of %.100s; %" PRId64
             " were empty or too long\n",
             c.lines, c.path, c.left_out);
    lines_close(&c.in);
    free(c.src), free(c.tgt);
    wf_decoder_free(c.decoder);
    language_close(&c.language);
    return c.scales;
}
