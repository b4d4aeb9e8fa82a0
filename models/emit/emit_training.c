/* models/emit/emit_training.c - the training of a model as one C file: what model_emit.h promises.
 *
 * The file has the trainer's own plans. The plan of a micro-batch stands in it once for each shape,
 * because the rounding of sums and the random bits depend on the sizes of a batch. Plans of the
 * update and of the averages follow, if the trainer has them. Plans run one at a time, so all use
 * the same memory. */
#include <stdlib.h>
#include <string.h>

#include "core/emit.h"
#include "core/plan/plan.h"
#include "model_emitter.h"
#include "models/message.h"
#include "models/model_internal.h"
#include "training_emitter.h"

enum { MOST_ROWS = 1 << 20 };

/* ---- what can be written --------------------------------------------------------------------- */

/* Shapes with room for the fewest tokens first. */
static int by_size(const void *a, const void *b) {
    const wf_batch_shape *x = a, *y = b;
    int64_t p = x->B * (x->S + x->T), q = y->B * (y->S + y->T);
    return p == q ? (x->T > y->T) - (x->T < y->T) : (p > q) - (p < q);
}

static bool shape_ok(const wf_model *m, const wf_batch_shape *s, char *message) {
    int64_t most = wf_model_longest_source(m);
    bool source = m->src ? s->S >= 1 && s->S <= most : s->S == 0;
    bool rows = s->B >= 1 && s->B <= MOST_ROWS;
    if (source && rows && s->T >= 1 && s->T <= m->max_len) return true;
    return fail(
        message,
        "batches of %lld rows, sources of %lld tokens and targets of %lld, but there is room "
        "for 1 to %d, %lld to %lld and 1 to %lld",
        (long long)s->B, (long long)s->S, (long long)s->T, MOST_ROWS, (long long)(m->src != NULL),
        (long long)(m->src ? most : 0), (long long)m->max_len);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static bool take_shapes(training_emitter *e, char *message) {
    const wf_training_emit_options *o = e->options;
    if (o->n_shapes < 1 || o->n_shapes > WF_MOST_SHAPES || !o->shapes)
        return fail(message, "%d shapes of batches, not 1 to %d", o->n_shapes, WF_MOST_SHAPES);
    for (int i = 0; i < o->n_shapes; i++) {
        const wf_batch_shape *s = &o->shapes[i];
        bool known = false;
        if (!shape_ok(e->model, s, message)) return false;
        for (int k = 0; k < e->n_shapes && !known; k++)
            known = e->shapes[k].B == s->B && e->shapes[k].S == s->S && e->shapes[k].T == s->T;
        if (known) continue;
        e->shapes[e->n_shapes++] = *s;
        e->most.B = larger(e->most.B, s->B);
        e->most.S = larger(e->most.S, s->S);
        e->most.T = larger(e->most.T, s->T);
    }
    qsort(e->shapes, (size_t)e->n_shapes, sizeof *e->shapes, by_size);
    return true;
}

static bool open_emitter(training_emitter *e, char *message) {
    const wf_model *m = e->model;
    if (!m) return fail(message, "there is no model");
    if (!wf_ok(m->graph)) return fail(message, "%s", wf_error(m->graph));
    if (wf_encoder_of(m)) return fail(message, "an encoder has no form in C yet");
    if (!wf_trainer_ok(e->trainer)) return fail(message, "%s", wf_trainer_error(e->trainer));
    if (!wf_trainer_parts_of(e->trainer, &e->parts))
        return fail(message, "a training of several ranks has no form in C");
    if (e->parts.loss != m->loss.loss || e->parts.count != m->loss.count)
        return fail(message, "the trainer is not of this model and its loss");
    if (e->options->file && !wf_file_ok(e->options->file))
        return fail(message, "%s", wf_file_error(e->options->file));
    e->name = e->options->name ? e->options->name : "model";
    return take_shapes(e, message);
}

/* Refuse a prefix that is already an identifier of the C file. */
static bool name_is_free(const training_emitter *e, char *message) {
    const char *const *const texts[] = { wf_training_text,    wf_checkpoint_text,
                                         wf_stdin_text,       wf_training_main_text,
                                         wf_begin_array_text, wf_begin_file_text,
                                         wf_weights_text };
    if (strcmp(e->name, "model") == 0) return true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && e->name[0]; i++)
        if (wf_plain_has_word(texts[i], e->name))
            return fail(message, "'%.80s' is a name that the file has for something else", e->name);
    return true;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* The plans of a file: one for each shape, then those of the update and of the averages, which the
 * trainer owns. */
typedef struct plan_list {
    wf_plan *plans[WF_MOST_SHAPES + 2];
    const char *names[WF_MOST_SHAPES + 2];
    int n;
} plan_list;

/* Refuse a plan that needs more inputs than a batch and the rates, which are all that the C file
 * sets. */
static bool knows_inputs(const training_emitter *e, const wf_plan *p, char *message) {
    const wf_model *m = e->model;
    const wf_tensor *const known[] = { m->src,    m->src_length,  m->tgt,
                                       m->labels, e->parts.rates, e->parts.at };
    for (int i = 0; i < p->n_feeds; i++) {
        bool found = !p->feeds[i].needed;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found |= known[k] == p->feeds[i].tensor;
        if (!found)
            return fail(message,
                        "the training needs the input '%.150s', which is no part of a "
                        "batch",
                        p->feeds[i].tensor->name);
    }
    return true;
}

/* Give a fetched tensor a label, unless it has one: the C file has a function named after each. */
static bool name_result(const wf_tensor *of, const char *name, int number, char *message) {
    wf_graph *g = of->graph;
    char full[64];
    if (of->label || of->kind != WF_COMPUTED) return true;
    snprintf(full, sizeof full, number ? "training.%s_%d" : "training.%s", name, number);
    if (wf_find(g, full)) return fail(message, "'%s' is the name of another tensor", full);
    wf_named(wf_node(g, of->id), full);
    return wf_ok(g) || fail(message, "%s", wf_error(g));
}

static bool name_results(training_emitter *e, const wf_plan *p, char *message) {
    const wf_trainer_parts *of = &e->parts;
    bool ok = name_result(of->loss, "loss", 0, message) &&
              name_result(of->count, "count", 0, message) &&
              (!of->norm || name_result(of->norm, "norm", 0, message));
    for (int i = 0; ok && i < p->n_nodes; i++) {
        const wf_tensor *t = e->model->graph->nodes[p->nodes[i].node->id];
        if (p->nodes[i].fetched && !(t->op && t->op->writes))
            ok = name_result(t, "sum", i, message);
    }
    return ok;
}

static void name_run(training_emitter *e, int i) {
    const wf_batch_shape *s = &e->shapes[i];
    if (s->S)
        snprintf(e->runs[i], sizeof e->runs[i], "step_%dx%dx%d", (int)s->B, (int)s->S, (int)s->T);
    else
        snprintf(e->runs[i], sizeof e->runs[i], "step_%dx%d", (int)s->B, (int)s->T);
}

static void add_plan(plan_list *l, wf_plan *p, const char *name) {
    if (!p) return;
    l->plans[l->n] = p;
    l->names[l->n++] = name;
}

static bool make_plans(training_emitter *e, plan_list *l, char *message) {
    for (int i = 0; i < e->n_shapes; i++) {
        const wf_batch_shape *s = &e->shapes[i];
        wf_plan *p = wf_trainer_step_plan(e->trainer);
        if (!p) return fail(message, "out of memory");
        name_run(e, i);
        add_plan(l, p, e->runs[i]);
        if (!wf_plan_ok(p) || !wf_model_bind(e->model, p, s->B, s->S, s->T))
            return fail(message, "%s", wf_plan_error(p));
        if (!knows_inputs(e, p, message) || !name_results(e, p, message)) return false;
    }
    add_plan(l, e->parts.update, "update");
    add_plan(l, e->parts.average, "average");
    return true;
}

static char *emit_plans(training_emitter *e, char *message) {
    plan_list l = { .n = 0 };
    char *text = NULL;
    if (make_plans(e, &l, message))
        text = wf_emit(l.plans, l.n,
                       &(wf_emit_options){ .name = e->name,
                                           .runs = l.names,
                                           .one_at_a_time = true,
                                           .arena_bytes = &e->arena,
                                           .n_weights = &e->weights,
                                           .weights_file = e->options->weights_file },
                       message);
    for (int i = 0; i < l.n && i < e->n_shapes; i++) wf_plan_free(l.plans[i]);
    return text;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_head(training_emitter *e) {
    wf_text *t = &e->text;
    const char *of = e->name;
    char about[WF_MESSAGE];
    wf_model_text(e->model, about);
    wf_text_print(t, "/* %s, and its training, as C that needs no library.\n *\n", about);
    wf_text_print(t, " *     static _Alignas(64) unsigned char memory[%s_MEMORY];\n", of);
    wf_text_print(t, " *     %s m;\n *     %s_begin(&m, memory%s);\n", of, of,
                  e->options->weights_file ? ", weights, size" : "");
    wf_text_print(t, " *     %s_batch batch = { B, S, T, src, src_length, tgt, labels };\n", of);
    wf_text_print(t, " *     while (...) %s_step(&m, &batch, 1, &progress);\n", of);
    if (e->options->file) wf_text_print(t, " *     %s_save(&m, write, context);\n", of);
    wf_text_print(
        t,
        " *\n * makes updates after number %n; %s_step returns 1, and updates nothing, if\n"
        " * the data are bad or the gradient is not finite. With -DMODEL_MAIN this file\n"
        " * is a program, whose output is the trained model's file if it saves one. */\n",
        e->parts.steps, of);
}

static bool write_file(training_emitter *e, const char *const *batches, char *message) {
    wf_text code = { 0 };
    bool apart = e->options->weights_file != NULL;
    e->weights_at = e->arena + wf_training_bytes(e);
    e->memory = e->weights_at + (e->weights * 4 + 63) / 64 * 64;
    if (e->memory > INT32_MAX - 64)
        return fail(message, "its memory is 2^31 bytes or more, which has no form in C");
    size_t before_values = wf_code_length(e->plan);
    write_head(e);
    wf_text_add(&e->text, e->plan, before_values);
    size_t begin = e->text.length;
    wf_write_training_numbers(e);
    if (e->options->file && !wf_write_checkpoint_tables(e, message)) return false;
    wf_add_plain_file(&e->text, wf_training_text, e->name);
    wf_add_plain_file(&e->text, apart ? wf_begin_file_text : wf_begin_array_text, e->name);
    if (e->options->file) wf_add_plain_file(&e->text, wf_checkpoint_text, e->name);
    if (e->text.lacks) return fail(message, "out of memory");
    wf_text_puts(&code, e->text.at + begin);
    e->text.length = begin;
    e->text.at[begin] = 0;
    bool ok = wf_add_plain(&code, e->text.at);
    if (ok) wf_text_puts(&e->text, code.at);
    wf_text_free(&code);
    wf_add_plain_file(&e->text, batches ? batches : wf_stdin_text, e->name);
    if (apart) wf_write_weights_reader(&e->text, e->options->weights_name, e->name);
    wf_add_plain_file(&e->text, wf_training_main_text, e->name);
    wf_add_plain_file(&e->text, apart ? wf_training_file_text : wf_training_array_text, e->name);
    wf_text_print(&e->text, "\n%s", e->plan + before_values);
    return (ok && !e->text.lacks) || fail(message, "out of memory");
}

char *wf_model_emit_training_on(wf_model *m, wf_trainer *t, const wf_training_emit_options *options,
                                const char *const *batches, char *message) {
    static const wf_training_emit_options defaults = { 0 };
    training_emitter e = { .model = m, .trainer = t, .options = options ? options : &defaults };
    wf_emit_weights *file = e.options->weights_file;
    if (file) *file = (wf_emit_weights){ 0 };
    if (!open_emitter(&e, message) || !name_is_free(&e, message)) return NULL;
    char *plan = emit_plans(&e, message);
    e.plan = plan;
    bool ok = plan && write_file(&e, batches, message);
    if (ok && e.options->memory_bytes) *e.options->memory_bytes = e.memory;
    if (ok && e.options->weight_bytes) *e.options->weight_bytes = e.weights * 4;
    free(plan);
    if (ok) return e.text.at;
    if (file) free(file->bytes);
    if (file) *file = (wf_emit_weights){ 0 };
    wf_text_free(&e.text);
    return NULL;
}

char *wf_model_emit_training(wf_model *m, wf_trainer *t, const wf_training_emit_options *options,
                             char *message) {
    return wf_model_emit_training_on(m, t, options, NULL, message);
}
