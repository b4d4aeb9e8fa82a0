/* models/emit/emit_rates.c - the constants of a training as C: shapes of batches, the learning rate
 * of a step, and the functions by which the step in plain_training.c runs the plans. */
#include <stdio.h>

#include "core/record/record.h"
#include "models/model_internal.h"
#include "training_emitter.h"

enum { MOST_NAME = 128 };

/* ---- room ------------------------------------------------------------------------------------ */

/* The bytes of the arrays in the type `training` of plain_training.c, and 1,024 for its other
 * fields, rounded up to a multiple of 64. */
int64_t wf_training_bytes(const training_emitter *e) {
    const wf_batch_shape *most = &e->most;
    int64_t ids = most->B * most->S + 1 + most->B + 2 * most->B * most->T;
    return (ids * 4 + 1024 + 63) / 64 * 64;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void write_sizes(training_emitter *e) {
    wf_text *t = &e->text;
    const wf_model *m = e->model;
    wf_text_print(t, "\n/* ---- numbers of the training ---- */\n\nenum {\n");
    wf_text_print(t, "    %s_MEMORY = %n, /* bytes of memory for %s_begin, aligned to 64 */\n",
                  e->name, e->memory, e->name);
    wf_text_print(t, "    WEIGHTS_AT = %n, /* bytes before the weights */\n", e->weights_at);
    wf_text_print(t, "    HAS_SOURCE = %d, /* 0: a row is one sequence of tokens */\n", !!m->src);
    wf_text_print(t,
                  "    MOST_ROWS = %n,\n    MOST_SOURCE = %n,\n    MOST_TARGET = %n,\n"
                  "    MOST_BATCHES = %n, /* of an update */\n",
                  e->most.B, e->most.S, e->most.T, e->parts.micro_batches);
    wf_text_print(t, "    START = %d,\n    END = %d,\n    NO_LABEL = %d,\n", (int)m->start_id,
                  (int)m->end_id, WF_IGNORE_LABEL);
    wf_text_print(
        t, "    STEPS_BEFORE = %n, /* updates that were made before */\n    SHAPES = %d\n};\n\n",
        e->parts.steps, e->n_shapes);
}

static void write_types(training_emitter *e) {
    const char *of = e->name;
    wf_text_print(
        &e->text,
        "/* B rows: sources [B,S] and their lengths [B], targets [B,T] and labels [B,T],\n"
        " * which are %d where nothing is counted. */\n"
        "typedef struct %s_batch {\n    int B, S, T;\n"
        "    const int32_t *src, *src_length, *tgt, *labels;\n} %s_batch;\n\n",
        WF_IGNORE_LABEL, of, of);
    wf_text_print(&e->text,
                  "/* An update: its number, the mean loss of a label, the number of labels, the\n"
                  " * norm of the gradient before clipping, and the learning rate. */\n"
                  "typedef struct %s_progress {\n    int64_t step;\n"
                  "    double loss, count, norm, rate;\n} %s_progress;\n\n",
                  of, of);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Append the name of the function that copies the fetched tensor t out of the plan `run`. The name
 * contains `run` if several plans fetch t, as the plans of several shapes do. */
static void add_getter(const training_emitter *e, const char *run, const wf_tensor *t, bool several,
                       wf_text *to) {
    char name[MOST_NAME];
    wf_identifier(called(t), name, sizeof name);
    wf_text_print(to, "%s_%s%sget_%s", e->name, several ? run : "", several ? "_" : "", name);
}

/* Write the function that runs the plan of shape i. A plan that draws random bits also takes the
 * numbers of the step and of the micro-batch. */
static void write_run(training_emitter *e, int i) {
    wf_text *t = &e->text;
    char member[MOST_NAME];
    snprintf(member, sizeof member, "%s_micro_batch", e->runs[i]);
    wf_text_print(t, "static int run_%d(%s *m, uint64_t step, uint32_t micro_batch) {\n", i + 1,
                  e->name);
    if (wf_find_word(e->plan, member))
        wf_text_print(t, "    m->%s_step = step;\n    m->%s = micro_batch;\n", e->runs[i], member);
    else
        wf_text_puts(t, "    (void)step;\n    (void)micro_batch;\n");
    wf_text_print(t, "    return %s_%s(m);\n}\n\n", e->name, e->runs[i]);
}

static bool norm_is_of_shape(const training_emitter *e) {
    return e->parts.norm && !e->parts.update;
}

static void write_shapes(training_emitter *e) {
    wf_text *t = &e->text;
    bool several = e->n_shapes > 1;
    for (int i = 0; i < e->n_shapes; i++) write_run(e, i);
    wf_text_print(t,
                  "/* Sizes of a batch, and functions that run its plan and copy results. */\n"
                  "typedef struct shape {\n    int B, S, T;\n"
                  "    int (*run)(%s *m, uint64_t step, uint32_t micro_batch);\n"
                  "    void (*loss)(const %s *m, float *to);\n"
                  "    void (*count)(const %s *m, float *to);\n%s",
                  e->name, e->name, e->name, norm_is_of_shape(e) ? "    void (*norm)(const " : "");
    if (norm_is_of_shape(e)) wf_text_print(t, "%s *m, float *to);\n", e->name);
    wf_text_puts(t, "} shape;\n\nstatic const shape shapes[] = {\n");
    for (int i = 0; i < e->n_shapes; i++) {
        const wf_batch_shape *s = &e->shapes[i];
        wf_text_print(t, "    { %n, %n, %n, run_%d, ", s->B, s->S, s->T, i + 1);
        add_getter(e, e->runs[i], e->parts.loss, several, t);
        wf_text_puts(t, ", ");
        add_getter(e, e->runs[i], e->parts.count, several, t);
        if (norm_is_of_shape(e)) wf_text_puts(t, ", ");
        if (norm_is_of_shape(e)) add_getter(e, e->runs[i], e->parts.norm, several, t);
        wf_text_puts(t, " },\n");
    }
    wf_text_puts(t, "};\n\n");
}

/* ---- inputs and results ---------------------------------------------------------------------- */

static void add_input(training_emitter *e, const wf_tensor *input, const char *value) {
    char name[MOST_NAME];
    if (!input) {
        wf_text_print(&e->text, "    (void)%s;\n", value);
        return;
    }
    wf_identifier(called(input), name, sizeof name);
    wf_text_print(&e->text, "    m->%s = %s;\n", name, value);
}

static void write_inputs(training_emitter *e) {
    wf_text *t = &e->text;
    const wf_model *m = e->model;
    wf_text_print(t,
                  "static void set_inputs(%s *m, const float *rates, const float *at,\n"
                  "                       const float *average_rate) {\n",
                  e->name);
    add_input(e, e->parts.rates, "rates");
    add_input(e, e->parts.at, "at");
    add_input(e, e->parts.average_rate, "average_rate");
    wf_text_print(
        t,
        "}\n\nstatic void set_batch(%s *m, const int32_t *src, const int32_t *src_length,\n"
        "                      const int32_t *tgt, const int32_t *labels) {\n",
        e->name);
    add_input(e, m->src, "src");
    add_input(e, m->src_length, "src_length");
    add_input(e, m->tgt, "tgt");
    add_input(e, m->labels, "labels");
    wf_text_puts(t, "}\n\n");
}

static void write_norm(training_emitter *e) {
    wf_text *t = &e->text;
    wf_text_print(t,
                  "/* The norm of the gradient, before clipping. */\n"
                  "static double norm_of(const %s *m, const shape *s) {\n",
                  e->name);
    if (!e->parts.norm) {
        wf_text_puts(t, "    (void)m;\n    (void)s;\n    return 0;\n}\n\n");
        return;
    }
    wf_text_puts(t, "    float norm;\n    ");
    if (norm_is_of_shape(e))
        wf_text_puts(t, "s->norm");
    else
        add_getter(e, "update", e->parts.norm, false, t);
    wf_text_print(t, "(m, &norm);\n%s    return (double)norm;\n}\n\n",
                  norm_is_of_shape(e) ? "" : "    (void)s;\n");
}

static void write_updates(training_emitter *e) {
    wf_text *t = &e->text;
    wf_text_print(t,
                  "/* Make the update from the sums of gradients, unless the last run made it. */\n"
                  "static int make_update(%s *m) {\n",
                  e->name);
    if (e->parts.update)
        wf_text_print(t, "    return %s_update(m);\n}\n\n", e->name);
    else
        wf_text_puts(t, "    (void)m;\n    return 0;\n}\n\n");
    wf_text_print(t, "static int update_averages(%s *m, int64_t step, float *average_rate) {\n",
                  e->name);
    if (e->parts.average)
        wf_text_print(t,
                      "    const double decay = %g;\n"
                      "    double power = pow_in_double(decay, (double)(step - %n));\n"
                      "    *average_rate = (float)((1 - decay) / (1 - power));\n"
                      "    return %s_average(m);\n}\n\n",
                      e->parts.options->average_decay, e->parts.averaged_since, e->name);
    else
        wf_text_puts(
            t, "    (void)m;\n    (void)step;\n    (void)average_rate;\n    return 0;\n}\n\n");
}

/* ---- rates ----------------------------------------------------------------------------------- */

static void write_progress(wf_text *t, const wf_schedule *s) {
    if (s->kind != WF_LINEAR_DECAY && s->kind != WF_COSINE) return;
    wf_text_print(t,
                  "/* How much of the decay has passed: 0 at the end of the warm-up, 1 from\n"
                  " * step %n on. */\n"
                  "static double progress_at(int64_t step) {\n"
                  "    if (step >= %n) return 1;\n"
                  "    return ((double)step - %g) / (%g - %g);\n}\n\n",
                  s->steps, s->steps, (double)s->warmup, (double)s->steps, (double)s->warmup);
}

/* Write the schedule of nn/train/schedule.c as C. */
static void write_schedule(training_emitter *e) {
    wf_text *t = &e->text;
    const wf_schedule *s = e->parts.schedule;
    write_progress(t, s);
    wf_text_print(t, "/* The learning rate of a step, counted from 1. */\n"
                     "static double rate_of(int64_t step) {\n");
    if (s->kind != WF_CONSTANT_RATE || s->warmup > 1)
        wf_text_print(t, "    const double peak = %g;\n", s->peak);
    if (s->warmup > 1)
        wf_text_print(t, "    if (step < %n) return peak * (double)step / %g;\n", s->warmup,
                      (double)s->warmup);
    switch (s->kind) {
    case WF_CONSTANT_RATE:
        wf_text_print(t, "%s    return %g;\n}\n\n", s->warmup > 1 ? "" : "    (void)step;\n",
                      s->peak);
        return;
    case WF_LINEAR_DECAY:
        wf_text_print(t, "    return peak + (%g - peak) * progress_at(step);\n}\n\n", s->floor);
        return;
    case WF_COSINE:
        wf_text_print(t,
                      "    double turn = 3.141592653589793 * progress_at(step);\n"
                      "    return %g + (peak - %g) * (1 + cos_in_double(turn)) / 2;\n}\n\n",
                      s->floor, s->floor);
        return;
    case WF_INVERSE_SQRT:
    case WF_NOAM:
        break;
    }
    wf_text_print(t, "    return peak * root_in_double(%g / (double)step);\n}\n\n",
                  (double)(s->warmup > 1 ? s->warmup : 1));
}

/* Write wf_optimizer_rates as C. */
static void write_rates(training_emitter *e) {
    wf_text *t = &e->text;
    const wf_optimizer_options *o = e->parts.options;
    bool adam = o->kind == WF_ADAM || o->kind == WF_ADAMW;
    bool dampens = o->kind == WF_SGD && o->dampening != 0;
    wf_text_print(t, "/* The rate, and corrections for the step. */\n"
                     "static void set_rates(int64_t step, float *rates) {\n"
                     "    rates[0] = (float)rate_of(step);\n");
    if (adam) {
        wf_text_print(t, "    rates[1] = (float)(1 / (1 - pow_in_double(%g, (double)step)));\n",
                      o->beta1);
        wf_text_print(t,
                      "    rates[2] = (float)(1 / (1 - pow_in_double(%g, (double)step)));\n}\n\n",
                      o->beta2);
        return;
    }
    wf_text_print(t, "    rates[1] = %s;\n    rates[2] = 1;\n}\n\n",
                  dampens ? "step > 1 ? 1.0f : 0.0f" : "1");
}

void wf_write_training_numbers(training_emitter *e) {
    write_sizes(e);
    write_types(e);
    write_shapes(e);
    write_inputs(e);
    write_norm(e);
    write_updates(e);
    write_schedule(e);
    write_rates(e);
}
