/* models/emit/emit_search.c - the constants of a search, and the functions by which it runs the
 * model. */
#include "model_emitter.h"
#include "models/decode/search.h"
#include "models/model_internal.h"

/* ---- room ------------------------------------------------------------------------------------ */

/* The bytes of `searches` in plain_search.c: the sum of its fields, with the padding of its
 * structs. */
int64_t wf_search_bytes(const model_emitter *e) {
    int64_t beam = e->search.beam, output = e->output + 1;
    int64_t candidates = beam * (beam + 1) * 16, outputs = 2 * beam * 24 + 2 * beam * 16;
    int64_t tokens = beam * output * 8;
    int64_t logits = e->sees_logits ? 0 : e->batch * beam * e->model->tgt_vocab * 4;
    int64_t numbers = (3 * beam + e->source + 1 + 16) * 4;
    int64_t all = e->batch * (candidates + outputs + tokens + numbers + 8);
    return (all + logits + 63) / 64 * 64;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const char *const stop_names[] = { "STOP_FULL", "STOP_PRESENT", "STOP_LONGEST",
                                          "STOP_SHRINK" };
static const char *const stop_rules[] = {
    "BEAM outputs have ended",
    "the same, and none that goes on beats the worst, at its own length",
    "no other can become better than the best one that has ended, as with every rule",
    "BEAM outputs have ended, each of which keeps its place in the beam",
};
static const char *const limit_names[] = { "LIMIT_END", "LIMIT_FREE_END", "LIMIT_NO_END" };
static const char *const limit_rules[] = { "END follows, with its probability",
                                           "END follows for nothing", "nothing follows" };

static void write_sizes(model_emitter *e) {
    wf_text *t = &e->text;
    const char *of = e->name;
    wf_text_print(t, "\n/* ---- numbers of the search ---- */\n\nenum {\n");
    wf_text_print(t, "    %s_SOURCE = %n, /* most tokens of a source */\n", of, e->source);
    wf_text_print(t, "    %s_OUTPUT = %n, /* most tokens of an output */\n", of, e->output);
    if (e->batch > 1)
        wf_text_print(t, "    %s_BATCH = %n, /* sources that are decoded at once */\n", of,
                      e->batch);
    wf_text_print(t,
                  "    %s_MEMORY = %n, /* bytes of memory for %s_start and %s_generate, "
                  "aligned to 64 */\n};\n\n",
                  of, e->memory, of, of);
}

static void write_rules(model_emitter *e) {
    wf_text *t = &e->text;
    const wf_model *m = e->model;
    const wf_decode_options *o = &e->search;
    int64_t source_vocabulary = m->src ? m->src_vocab : m->tgt_vocab;
    wf_text_print(t,
                  "enum {\n    COPIED_LOGITS = %n, /* logits that are copied before the search "
                  "reads them */\n",
                  e->sees_logits ? 0 : e->batch * e->search.beam * m->tgt_vocab);
    wf_text_puts(t, "    DECODER_ONLY = ");
    wf_text_print(t, "%d, /* 1: a source and its output are one sequence */\n", !m->src);
    wf_text_print(t, "    START_FIRST = %d,  /* 1: START stands before the source in it */\n",
                  m->start_first);
    wf_text_print(t, "    START_IF_EMPTY = %d, /* 1: it stands there only without a source */\n",
                  m->start_if_empty);
    wf_text_print(
        t,
        "    LONGEST = %n, /* tokens of a sequence, with START, that the model can read */\n"
        "    SOURCE_VOCABULARY = %n, /* ids of a source are below it */\n"
        "    VOCABULARY = %n, /* and of an output below this */\n",
        m->max_len, source_vocabulary, m->tgt_vocab);
    wf_text_print(t,
                  "    START = %d, /* the id that stands before an output */\n"
                  "    END = %d, /* the id with which it ends */\n"
                  "    BEAM = %d, /* hypotheses that are kept at every step */\n"
                  "    MIN_LENGTH = %n, /* fewest tokens of an output */\n",
                  (int)m->start_id, (int)m->end_id, o->beam, o->min_len);
    wf_text_print(t, "    BATCH = %n, /* sources that are decoded at once */\n", e->batch);
    wf_text_print(t, "    BANNED = %d, /* tokens that are never chosen */\n", o->n_banned);
    for (int i = 0; i < 4; i++)
        wf_text_print(t, "    %s = %d, /* %s */\n", stop_names[i], i, stop_rules[i]);
    wf_text_print(t, "    STOP = %s, /* when the search is over */\n", stop_names[o->stop]);
    for (int i = 0; i < 3; i++)
        wf_text_print(t, "    %s = %d, /* %s */\n", limit_names[i], i, limit_rules[i]);
    wf_text_print(t, "    AT_LIMIT = %s /* how an output ends at its limit */\n};\n\n",
                  limit_names[o->at_limit]);
    wf_text_print(t,
                  "/* The most tokens of an output for n of a source: LIMIT_A n + LIMIT_B. */\n"
                  "static const double LIMIT_A = %g, LIMIT_B = %g;\n\n",
                  o->max_len_a, o->max_len_b);
    wf_text_puts(t, "static const int32_t banned[] = {");
    for (int i = 0; i < o->n_banned; i++) wf_text_print(t, " %d,", (int)o->banned[i]);
    wf_text_puts(t, o->n_banned ? " };\n\n" : " -1 };\n\n");
}

/* Lengths go up to output + 1, because the length of an output counts its end token. */
static void write_penalty(model_emitter *e) {
    wf_text *t = &e->text;
    bool none = e->search.penalty == WF_PENALTY_NONE;
    if (!none) wf_text_puts(t, "static const double penalties[] = {");
    for (int64_t i = 0; !none && i <= e->output + 1; i++)
        wf_text_print(t, i % 4 ? " %g," : "\n    %g,", wf_length_penalty_of(&e->search, i));
    if (!none) wf_text_puts(t, "\n};\n\n");
    wf_text_print(t,
                  "/* The length penalty, which divides an output's total log-probability. */\n"
                  "static double penalty(int length) {\n%s}\n\n",
                  none ? "    (void)length;\n    return 1;\n" : "    return penalties[length];\n");
}

/* ---- what the search asks of the model ------------------------------------------------------- */

static void write_encode(model_emitter *e) {
    wf_text_print(&e->text,
                  "static int encode_source(%s *m, const int32_t *source, const int32_t *n) {\n",
                  e->name);
    if (e->model->src)
        wf_text_print(&e->text,
                      "    m->src = source;\n    m->src_length = n;\n"
                      "    return %s_encode(m%s);\n}\n\n",
                      e->name, e->sized ? ", *n < 2 ? 2 : *n" : "");
    else
        wf_text_puts(&e->text, "    (void)m;\n    (void)source;\n    (void)n;\n"
                               "    return 0;\n}\n\n");
}

static void write_keep(model_emitter *e) {
    wf_text *t = &e->text;
    wf_text_print(
        t,
        "/* Keep what the last encode_source computed: steps read it for source `number`. */\n"
        "static void keep_source(const %s *m, int number) {\n",
        e->name);
    if (e->model->src)
        wf_text_print(t, "    %s_encode_keep(m, number);\n}\n\n", e->name);
    else
        wf_text_puts(t, "    (void)m;\n    (void)number;\n}\n\n");
}

static void write_requests(model_emitter *e) {
    wf_text *t = &e->text;
    write_encode(e);
    wf_text_print(t,
                  "/* Read the token of every row. Returns the logits of the next tokens; a null "
                  "pointer:\n * the step failed. */\n"
                  "static const float *run_step(%s *m, const int32_t *ids, int position, "
                  "float *copy) {\n"
                  "    m->tgt = ids;\n    if (%s_step(m, position)) return 0;\n",
                  e->name, e->name);
    if (e->sees_logits)
        wf_text_print(t, "    (void)copy;\n    return %s_see_logits(m);\n}\n\n", e->name);
    else
        wf_text_print(t, "    %s_get_logits(m, copy);\n    return copy;\n}\n\n", e->name);
    if (e->batch > 1) write_keep(e);
    wf_text_print(t, "static void copy_row(const %s *m, int from, int to) {\n", e->name);
    if (e->search.beam > 1)
        wf_text_print(t, "    %s_step_copy(m, from, to);\n}\n\n", e->name);
    else
        wf_text_puts(t, "    (void)m;\n    (void)from;\n    (void)to;\n}\n\n");
}

void wf_write_search_numbers(model_emitter *e) {
    write_sizes(e);
    write_rules(e);
    write_penalty(e);
    write_requests(e);
}
