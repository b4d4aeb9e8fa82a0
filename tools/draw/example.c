/* tools/draw/example.c - example inputs for the graph that is drawn. See example.h. */
#include "example.h"
#include "models/model_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/decode.h"
#include "tools/cli/refused.h"

enum { LINE_TOKENS = 5, OUTPUT_TOKENS = 16 };

/* ---- a model's line and output --------------------------------------------------------------- */

static bool is_special(const example *e, int32_t id) {
    const wf_model *m = e->subject->model;
    const wf_tokenizer *t = e->language.tokenizer[SIDE_SRC];
    if (id == m->start_id || id == m->end_id) return true;
    for (int which = WF_PAD_ID; which < WF_SPECIAL_IDS; which++)
        if (t && wf_tokenizer_special(t, which) == id) return true;
    return false;
}

/* Takes some ids from the whole vocabulary, none of them special. */
static int64_t make_line(const example *e, int32_t *ids, int64_t most) {
    static const int order[LINE_TOKENS] = { 3, 1, 5, 2, 4 };
    int64_t n = 0, vocab = e->language.vocab[SIDE_SRC];
    for (int k = 0; k < LINE_TOKENS && n < most; k++) {
        int32_t id = (int32_t)(vocab * order[k] / (LINE_TOKENS + 1));
        while (id < vocab && is_special(e, id)) id++;
        if (id < vocab) ids[n++] = id;
    }
    return n;
}

/* Reads a given line. Returns the number of its ids; -1: more than `most`, or an error, see
 * message. */
static int64_t read_line(example *e, int side, const char *line, int32_t *ids, int64_t most,
                         char *message) {
    char reason[WF_MESSAGE];
    const char *name = side == SIDE_SRC ? "--source" : "--target";
    int64_t n = language_read(&e->language, side, line, strlen(line), ids, most, reason);
    if (n > most) language_too_long(side, n, most, reason);
    if (n < 0 || n > most) snprintf(message, WF_MESSAGE, "%s: %.200s", name, reason);
    return n > most ? -1 : n;
}

/* Writes the ids of the model's greedy output, and returns their number. -1: see message. */
static int64_t decode(wf_model *m, int64_t n_src, const int32_t *src, int32_t *out, int64_t most,
                      char *message) {
    wf_decoder *d = wf_decoder_new(m, NULL, message);
    int32_t length = (int32_t)n_src, made = 0;
    if (!d) return -1;
    bool ok = wf_decode_greedy(d, 1, (int)n_src, src, &length, (int)most, out, &made);
    if (!ok) snprintf(message, WF_MESSAGE, "%s", wf_decoder_error(d));
    wf_decoder_free(d);
    return ok ? made : -1;
}

static bool keep_texts(example *e, int64_t n_src, const int32_t *src, int64_t n_tgt,
                       const int32_t *tgt) {
    e->source = line_of_ids(e->language.tokenizer[SIDE_SRC], src, n_src, NULL);
    e->target = line_of_ids(e->language.tokenizer[SIDE_TGT], tgt, n_tgt, NULL);
    return e->source && e->target;
}

static bool fill_batch(example *e, const char *source, const char *target, int32_t *src,
                       int32_t *tgt, char *message) {
    wf_model *m = e->subject->model;
    int64_t longest = wf_model_longest_source(m);
    int64_t n_src =
        source ? read_line(e, SIDE_SRC, source, src, longest, message) : make_line(e, src, longest);
    if (n_src < 0) return false;
    int64_t room = wf_model_room(m, n_src);
    int64_t greedy = room < OUTPUT_TOKENS ? room : OUTPUT_TOKENS;
    int64_t n_tgt = target ? read_line(e, SIDE_TGT, target, tgt, room, message)
                           : decode(m, n_src, src, tgt, greedy, message);
    if (n_tgt < 0) return false;
    if (!batch_shape(&e->batch, 1, n_src, n_tgt + 1) || !keep_texts(e, n_src, src, n_tgt, tgt))
        return refused(message, "out of memory");
    batch_ids ids = { m->start_id, m->end_id, m->end_id };
    batch_row(&e->batch, 0, ids, n_src, src, n_tgt, tgt);
    return true;
}

static bool open_model(example *e, const wf_file *f, const char *source, const char *target,
                       char *message) {
    const wf_model *m = e->subject->model;
    e->language = (language){ .vocab = { m->src_vocab, m->tgt_vocab }, .max_len = m->max_len };
    if (f && !language_open(&e->language, f, m, message)) return false;
    int32_t *src = calloc((size_t)m->max_len + LINE_TOKENS, sizeof *src);
    int32_t *tgt = calloc((size_t)m->max_len + OUTPUT_TOKENS, sizeof *tgt);
    bool ok = src && tgt ? fill_batch(e, source, target, src, tgt, message)
                         : refused(message, "out of memory");
    free(src);
    free(tgt);
    return ok;
}

bool example_new(example *e, const subject *s, const wf_file *f, const char *source,
                 const char *target, char *message) {
    *e = (example){ .subject = s, .sentences = e->sentences, .length = e->length };
    return !s->model || open_model(e, f, source, target, message);
}

void example_free(example *e) {
    batch_free(&e->batch);
    language_close(&e->language);
    free(e->source);
    free(e->target);
    *e = (example){ 0 };
}

/* ---- feeding --------------------------------------------------------------------------------- */

/* Feeds random numbers with mean 0 and variance 1, or ones to a mask. Graphs of layers are f32. */
static bool feed_numbers(wf_plan *p, const wf_tensor *input) {
    size_t bytes = wf_bound_bytes(p, input);
    float *x = malloc(bytes + 1);
    if (!x) return false;
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        x[i] = subject_is_mask(input) ? 1 : (float)wf_random_normal((uint64_t)input->id, i);
    bool fed = wf_feed(p, input, x, bytes);
    free(x);
    return fed;
}

bool example_feed(const example *e, wf_plan *p) {
    const subject *s = e->subject;
    int64_t shape[WF_MAX_DIMS];
    if (s->model) return batch_feed(&e->batch, p, s->model);
    if (!subject_bind(s, p, e->sentences, e->length)) return false;
    for (int id = 0; id < wf_node_count(s->graph); id++) {
        const wf_tensor *t = wf_node(s->graph, id);
        if (t->kind != WF_INPUT || wf_bound_shape(p, t, shape) < 0) continue;
        if (!feed_numbers(p, t)) return false;
    }
    return true;
}
