/* models/emit/model_emit.c - a model and its search as one C file: what model_emit.h promises.
 *
 * The file has the plans of a decoder (decode/decoder.c), then the search. The plan `encode`, which
 * a decoder-only model lacks, is for one source, and `step` for `beam` rows of each of `batch`
 * sources. The decoder sees sources padded to the most tokens that one may have, since padding
 * changes no bit. */
#include <stdlib.h>
#include <string.h>

#include "core/emit/emit_status.h"
#include "model_emitter.h"
#include "models/decode/decoder.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "text_emitter.h"

enum {
    MOST_BEAM = 64,
    MOST_BATCH = 1024,
    LEAST_POSITIONS = 4,
    LEAST_SIZED = 5,
    LONGEST_LINE = 1 << 24
};

/* ---- what can be written --------------------------------------------------------------------- */

/* Refuse options of a search that the C file does not implement. */
static bool search_fits(const wf_decode_options *o, char *message) {
    if (o->sample) return fail(message, "a search that draws at random has no form in C");
    if (o->beam > MOST_BEAM)
        return fail(message, "a beam of %d has no form in C: 1 to %d", o->beam, MOST_BEAM);
    if (o->nbest > 1) return fail(message, "%d outputs of a source have no form in C: 1", o->nbest);
    if (o->n_forced) return fail(message, "forced tokens have no form in C");
    if (o->no_repeat_ngram || o->repetition_penalty != 1 || o->decay != 1 || o->n_begin_banned)
        return fail(message, "rules of repetition, of the beginning and of the end's decay have no "
                             "form in C");
    if (o->renormalize) return fail(message, "renormalized probabilities have no form in C");
    return (!o->heard && !o->watched) || fail(message, "a listener has no form in C");
}

/* If all tokens but the end are banned, every output is empty, so min_len must be 0. */
static bool leaves_tokens(const model_emitter *e, char *message) {
    const wf_decode_options *o = &e->search;
    int64_t left = 0;
    for (int32_t token = 0; token < e->model->tgt_vocab; token++) {
        bool banned = token == e->model->end_id;
        for (int i = 0; i < o->n_banned && !banned; i++) banned = o->banned[i] == token;
        left += !banned;
    }
    return left > 0 || o->min_len == 0 ||
           fail(message, "a minimum length of %lld, but every token is banned",
                (long long)o->min_len);
}

static bool search_is_ok(model_emitter *e, char *message) {
    wf_decoder d = { .model = e->model };
    return wf_options_ok(&d, &e->search, 1)
               ? search_fits(&e->search, message) && leaves_tokens(e, message)
               : fail(message, "%s", d.error);
}

static int64_t lower(int64_t asked, int64_t most) {
    return asked && asked < most ? asked : most;
}

/* Find the most tokens of a source and of an output, and the positions in a row of the KV
 * caches. */
static bool take_lengths(model_emitter *e, const wf_model_emit_options *o, char *message) {
    const wf_model *m = e->model;
    int64_t most = wf_model_longest_source(m), room = wf_model_room(m, 0);
    if (o->max_source < 0 || o->max_output < 0)
        return fail(message, "sources of %lld tokens and outputs of %lld: both are 0 or more",
                    (long long)o->max_source, (long long)o->max_output);
    e->source = lower(o->max_source, most);
    e->output = lower(o->max_output, room);
    double longest = e->search.max_len_a * (double)e->source + e->search.max_len_b;
    if (longest < (double)e->output) e->output = (int64_t)longest;
    e->positions = wf_model_begin(m, e->source) + e->output + 1;
    if (e->positions < LEAST_POSITIONS) e->positions = LEAST_POSITIONS;
    e->attended = m->src ? e->output + 1 : lower(e->positions, m->max_len);
    return true;
}

static bool take_text(model_emitter *e, const wf_model_emit_options *o, char *message) {
    bool has_both = (o->source_text != NULL) == (o->target_text != NULL);
    e->tokenizers[0] = o->source_text;
    e->tokenizers[1] = o->target_text;
    e->line = o->max_line;
    e->has_line = o->max_line > 0;
    if (!has_both) return fail(message, "a tokenizer of one side alone has no form in C");
    return (o->max_line >= 0 && o->max_line <= LONGEST_LINE) ||
           fail(message, "lines of %lld bytes: 1 to %d", (long long)o->max_line, LONGEST_LINE);
}

static bool open_emitter(model_emitter *e, const wf_model_emit_options *o, char *message) {
    if (!e->model) return fail(message, "there is no model");
    if (!wf_ok(e->model->graph)) return fail(message, "%s", wf_error(e->model->graph));
    if (wf_encoder_of(e->model)) return fail(message, "an encoder has no form in C yet");
    e->name = o->name ? o->name : "model";
    e->attention = o->attention;
    e->batch = o->batch ? o->batch : 1;
    if (e->batch < 1 || e->batch > MOST_BATCH)
        return fail(message, "%lld sources at once have no form in C: 1 to %d", (long long)e->batch,
                    MOST_BATCH);
    if (e->attention && e->batch > 1)
        return fail(message, "attention of several sources at once has no form in C");
    e->recomputed = o->recomputed;
    e->search = o->search ? *o->search : wf_decode_defaults();
    return take_text(e, o, message) && search_is_ok(e, message) && take_lengths(e, o, message);
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The plans, in the order in which they run. */
typedef struct model_plans {
    wf_plan *at[3];
    const char *names[3];
    int64_t rows[3], tokens[3]; /* extents B and T; tokens 0: the plan has no T */
    int n;
} model_plans;

static void add_plan(model_plans *p, wf_plan *plan, const char *name, int64_t rows,
                     int64_t tokens) {
    p->at[p->n] = plan;
    p->names[p->n] = name;
    p->rows[p->n] = rows;
    p->tokens[p->n++] = tokens;
}

static bool bind(wf_plan *p, const char *extent, int64_t size, char *message) {
    return wf_bind(p, extent, size) || fail(message, "%s", wf_plan_error(p));
}

static bool bind_all(const model_emitter *e, const model_plans *p, char *message) {
    bool ok = true;
    for (int i = 0; i < p->n && ok; i++)
        ok = bind(p->at[i], "B", p->rows[i], message) &&
             (!p->tokens[i] || bind(p->at[i], "T", p->tokens[i], message)) &&
             (!e->model->src || bind(p->at[i], "S", e->source, message));
    return ok;
}

/* Write the plans as C, with as many cache positions as the search needs. Where possible, the
 * encoder takes the length of a source and computes only its positions. */
static char *emit_plans(model_emitter *e, model_plans *p, char *message) {
    bool lacks = false;
    wf_emit_options options = { .name = e->name,
                                .runs = p->names,
                                .positions = e->positions,
                                .recomputed = e->recomputed,
                                .arena_bytes = &e->arena,
                                .in_order = true,
                                .kept_runs = e->batch,
                                .n_weights = &e->weights,
                                .n_int8 = &e->int8,
                                .weights_file = e->file };
    char *text = NULL;
    if (!bind_all(e, p, message)) return NULL;
    e->sized = e->model->src && e->source >= LEAST_SIZED && !e->attention;
    if (e->sized) {
        options.sized_by = "S";
        text = wf_emit_or_lack(p->at, p->n, &options, message, &lacks);
        options.sized_by = NULL;
        e->sized = text != NULL;
        /* Some graphs cannot be written with a size that each run chooses: they get the fixed size
         * below. Out of memory is an error, so that a model always gives the same text. */
        if (!text && lacks) return NULL;
    }
    return text ? text : wf_emit(p->at, p->n, &options, message);
}

static char *emit_model(model_emitter *e, char *message) {
    model_plans p = { .n = 0 };
    bool lacks = false;
    char *text = NULL;
    /* encode: one source; step: one token of each hypothesis of all sources; attention: a whole
     * output at once */
    if (e->model->src) add_plan(&p, wf_model_encode_plan(e->model, NULL), "encode", 1, 0);
    add_plan(&p, wf_model_step_plan(e->model, NULL), "step", e->batch * e->search.beam, 1);
    if (e->attention) add_plan(&p, wf_attention_values_plan(e), "attention", 1, e->attended);
    for (int i = 0; i < p.n; i++) lacks = lacks || !p.at[i];
    if (lacks)
        fail(message, "out of memory");
    else
        text = emit_plans(e, &p, message);
    for (int i = 0; i < p.n; i++) wf_plan_free(p.at[i]);
    return text;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_head(model_emitter *e) {
    wf_text *t = &e->text;
    const char *of = e->name;
    char about[WF_MESSAGE];
    wf_model_text(e->model, about);
    wf_text_print(t, "/* %s, and its search, as C that needs no library.\n *\n", about);
    wf_text_print(t, " *     static _Alignas(64) unsigned char memory[%s_MEMORY];\n", of);
    wf_text_print(t, " *     %s m;\n *     %s_start(&m, memory%s);\n", of, of,
                  e->file ? ", weights, size" : "");
    wf_text_print(t, " *     int length = %s_generate(&m, source, n, output);\n", of);
    wf_text_print(t, " *     int bytes = %s_translate(&m, line, length, text, sizeof text);\n *\n",
                  of);
    wf_text_print(
        t,
        " * %s_generate reads n ids, at most %s_SOURCE, and writes those of the best output, at\n"
        " * most %s_OUTPUT. It returns their number, or -1 if it cannot read the source or the\n"
        " * logits are not finite; %s_score(&m) is the score of the output.\n",
        of, of, of, of);
    wf_text_print(
        t,
        " * %s_translate reads a line of at most %s_LINE bytes, and writes %s that\n"
        " * `generate` gives for it, with a zero at its end, into at most %s_TEXT bytes. "
        "It returns\n"
        " * the number of bytes before the zero, or one of the errors below 0.\n"
        " * With -DMODEL_MAIN this file is a program: lines in, lines out. It needs no libm:\n"
        " *     cc -O2 -DMODEL_MAIN %s.c -o %s && ./%s%s < LINES\n *\n",
        of, of, e->tokenizers[0] ? "the text" : "the ids", of, of, of, of,
        e->file ? " WEIGHTS" : "");
    if (e->batch > 1)
        wf_text_print(
            t,
            " * %s_generate_batch and %s_translate_batch do that for any number of sources\n"
            " * or lines, %s_BATCH of them at once. Their outputs are the same.\n *\n",
            of, of, of);
    wf_text_print(
        t,
        " * The model stands first, then its search (%s_generate), the text\n"
        " * (%s_translate), and at the end the weights, unless they are a file of their own.\n *\n"
        " * Attention is in the modules with attn in their names, which count layers from 0:\n"
        " * self_attn is self-attention%s\n"
        " * attention_head computes one head, which its caller chooses. A comment in it says\n"
        " * where the attention weights of a query are. */\n",
        of, of,
        e->model->src ? ", and multihead_attn is cross-attention, whose keys and\n"
                        " * values are computed once for a source, by the functions of the encoder."
                      : ".");
}

/* Refuse a prefix that is already an identifier of the C file. */
static bool name_is_free(const model_emitter *e, char *message) {
    const char *const *const texts[] = {
        wf_search_text,    wf_generate_text,  wf_batch_text,           wf_blocks_text,
        wf_translate_text, wf_main_text,      wf_main_lines_text,      wf_main_file_text,
        wf_weights_text,   wf_attention_text, wf_translate_batch_text, wf_main_batch_text
    };
    static const char *const tables[] = { "source_", "target_", "known_" };
    bool own = strcmp(e->name, "model") == 0 || !e->name[0], taken = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !own; i++)
        taken = taken || wf_plain_has_word(texts[i], e->name);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        taken = taken || strncmp(e->name, tables[i], strlen(tables[i])) == 0;
    return !taken ||
           fail(message, "'%.80s' is a name that the file has for something else", e->name);
}

static bool write_parts(model_emitter *e, text_emitter *x, const char *model, char *message) {
    wf_text code = { 0 };
    size_t before_values = wf_code_length(model);
    wf_add_plain_file(&code, wf_search_text, e->name);
    wf_add_plain_file(&code, e->batch > 1 ? wf_batch_text : wf_generate_text, e->name);
    write_head(e);
    wf_text_add(&e->text, model, before_values);
    wf_write_search_numbers(e);
    bool ok = !e->text.lacks && wf_add_plain(&code, e->text.at);
    if (ok) wf_text_puts(&e->text, code.at);
    wf_text_free(&code);
    if (ok && e->attention && !wf_write_attention(e, model, message)) return false;
    if (ok && !wf_write_text(x, message)) return false;
    if (ok) wf_text_print(&e->text, "\n%s", model + before_values);
    return (ok && !e->text.lacks) || fail(message, "out of memory");
}

static bool write_file(model_emitter *e, const char *model, char *message) {
    text_emitter x = { 0 };
    bool ok = wf_begin_text(&x, e, message);
    e->memory = e->arena + wf_search_bytes(e);
    /* text buffers are needed only before and after the model runs, so they share its arena if they
     * fit */
    e->text_at = x.bytes <= e->arena ? 0 : e->memory;
    if (e->text_at) e->memory += x.bytes;
    if (ok && e->memory > INT32_MAX - 64)
        ok = fail(message, "its memory is 2^31 bytes or more, which has no form in C");
    ok = ok && write_parts(e, &x, model, message);
    wf_free_text(&x);
    return ok;
}

char *wf_model_emit(wf_model *m, const wf_model_emit_options *options, char *message) {
    static const wf_model_emit_options defaults = { 0 };
    const wf_model_emit_options *o = options ? options : &defaults;
    char unread[WF_MESSAGE];
    if (!message) message = unread;
    model_emitter e = { .model = m, .file = o->weights_file, .file_name = o->weights_name };
    if (o->weights_file) *o->weights_file = (wf_emit_weights){ 0 };
    if (!open_emitter(&e, o, message) || !name_is_free(&e, message)) return NULL;
    char *model = emit_model(&e, message);
    e.sees_logits = model && strstr(model, "_see_logits(");
    bool ok = model && write_file(&e, model, message);
    if (ok && o->memory_bytes) *o->memory_bytes = e.memory;
    if (ok && o->weight_bytes) *o->weight_bytes = e.weights * 4 + e.int8;
    free(model);
    if (ok) return e.text.at;
    if (o->weights_file) free(o->weights_file->bytes);
    if (o->weights_file) *o->weights_file = (wf_emit_weights){ 0 };
    wf_text_free(&e.text);
    return NULL;
}
