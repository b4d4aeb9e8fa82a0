/* tools/train/telemetry.c - writes a training's report and events. See telemetry.h. */
#include "telemetry.h"
#include "core/run_internal.h"
#include "models/model_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "session.h"
#include "tools/cli/numbers.h"
#include "tools/history/run_page.h"

/* ---- what is measured ------------------------------------------------------------------------ */

static void add(session *s, const measured *m) {
    telemetry *t = &s->telemetry;
    history_add(&t->history, s->at.step, m);
    if (t->events && !tensorboard_add(t->events, s->at.step, m))
        report_failed(&s->report, "an event for TensorBoard could not be written");
}

void telemetry_step(session *s, const progress *p) {
    measured m = measured_nothing();
    m.of[TRAIN_LOSS] = p->loss;
    m.of[TRAIN_ACCURACY] = p->accuracy;
    m.of[TRAIN_RATE] = p->rate;
    m.of[TRAIN_NORM] = p->norm;
    m.of[counts_lines(p->unit) ? TRAIN_LINE_SPEED : TRAIN_SPEED] = p->speed;
    add(s, &m);
}

static measured measure_evaluation(const evaluation *v, bool is_text) {
    const metric_counts *text = &v->counts.text;
    measured m = measured_nothing();
    m.of[VALID_LOSS] = v->nll / v->tokens;
    m.of[VALID_ACCURACY] = v->correct / v->tokens;
    if (v->bytes > 0) m.of[VALID_BITS] = bits_per_byte(v);
    if (!v->counts.judged) return m;
    m.of[VALID_EXACT] = (double)v->counts.exact / (double)v->counts.judged;
    if (!is_text) return m;
    m.of[VALID_BLEU] = bleu_score(&text->bleu[BLEU_NONE]).score;
    m.of[VALID_BLEU_13A] = bleu_score(&text->bleu[BLEU_13A]).score;
    m.of[VALID_CHRF] = chrf_score(&text->chrf);
    m.of[VALID_CER] = error_rate(&text->characters);
    m.of[VALID_WER] = error_rate(&text->words);
    return m;
}

/* ---- the example ----------------------------------------------------------------------------- */

/* Chooses the held-out example, cut to `most` tokens on each side: of running text the first
 * window, after its start token; otherwise the sequence whose answer has about a dozen tokens. A
 * resumed training chooses the same one. */
static void choose_example(telemetry *t, const dataset *m, int64_t most) {
    enum { IDEAL = 12 };
    const bool running = m->kind->running;
    batch b = { 0 };
    int64_t best = INT64_MAX, n = m->kind->batches(m, STREAM_VALID);
    for (int64_t k = 0; k < n && best > 0; k++) {
        if (!m->kind->fill(m, STREAM_VALID, k, &b)) break;
        for (int64_t i = 0; i < b.B && best > 0; i++) {
            int64_t length = running ? b.T - 1 : b.answer_length[i];
            int64_t distance = running ? 0 : llabs((long long)length - IDEAL);
            if (distance >= best || !length) continue;
            best = distance;
            const int32_t *answer = running ? b.tgt + 1 : b.answer + i * (b.T - 1);
            t->length = length < most ? length : most;
            memcpy(t->answer, answer, (size_t)t->length * sizeof *t->answer);
            if (running) break;
            t->n = b.src_length[i] < most ? b.src_length[i] : most;
            if (t->n) memcpy(t->src, b.src + i * b.S, (size_t)t->n * sizeof *t->src);
        }
    }
    batch_free(&b);
}

/* Prepares the attention weights of the example, if the model has any. */
static void open_attention(session *s) {
    telemetry *t = &s->telemetry;
    char message[WF_MESSAGE];
    const dataset *m = &s->dataset;
    t->language = (language){ .text = m->kind->text,
                              .tokenizer = { m->tokenizer[0], m->tokenizer[1] },
                              .vocab = { m->vocab[0], m->vocab[1] },
                              .max_len = s->model->max_len };
    /* an encoder has no outputs; those for spans or hidden tokens are not shown */
    if (m->kind->encoder || m->kind->masks) return;
    int64_t half = s->model->max_len / 2 - 1, most = half < ALBUM_SIDE ? half : ALBUM_SIDE;
    if (most > 0) choose_example(t, m, most);
    if (!t->length) return;
    if (attention_new(&t->attention, s->model, &t->language, s->pool, message)) return;
    attention_free(&t->attention);
    t->attention = (attention){ 0 };
    t->length = 0;
}

/* Adds a frame to the album. It shows the outputs and, if an example was chosen, the model's
 * attention weights for this example. False: see message, which the caller has set to "out of
 * memory"; here it is changed only if the model could not run. */
static bool look(session *s, const char *const output[ALBUM_SAMPLES], char *message) {
    telemetry *t = &s->telemetry;
    attention *a = &t->attention;
    char title[80];
    bool cross = s->model->maps[s->model->n_maps - 1].source_keys;
    if (!t->length) return album_add(&t->album, s->at.step, output, NULL);
    if (!attention_run(a, t->n, t->src, t->length, t->answer, message)) return false;
    struct svg_heat_map seen = { .title = attention_title(a, title),
                                 .row_axis = "the token being written",
                                 .column_axis =
                                     cross ? "the source tokens" : "the tokens before it",
                                 .rows = a->t,
                                 .columns = attention_columns(a) };
    float *values = attention_picture(a, &seen.heads);
    const char **rows = attention_row_labels(a), **columns = attention_column_labels(a);
    seen.weights = values;
    seen.row_labels = rows;
    seen.column_labels = columns;
    bool ok = values && rows && columns && album_add(&t->album, s->at.step, output, &seen);
    free(values);
    free(rows);
    free(columns);
    return ok;
}

/* ---- a validation ---------------------------------------------------------------------------- */

/* Adds a frame with a text that the model writes, for running text. False as in `look`. */
static bool look_at_text(session *s, char *message) {
    enum { TOKENS = 60 };
    char *text = write_sample(&s->evaluator, TOKENS, (uint64_t)s->set->recipe.seed, message);
    const char *output[ALBUM_SAMPLES] = { text };
    bool ok = text && look(s, output, message);
    free(text);
    return ok;
}

static bool look_at_samples(session *s, const evaluation *v, char *message) {
    const char *texts[SAMPLE_TEXTS][ALBUM_SAMPLES];
    for (int i = 0; i < ALBUM_SAMPLES; i++)
        for (int k = 0; k < SAMPLE_TEXTS; k++)
            texts[k][i] = i < SAMPLES ? v->samples[i * SAMPLE_TEXTS + k] : NULL;
    return album_name(&s->telemetry.album, texts[SAMPLE_SOURCE], texts[SAMPLE_REFERENCE]) &&
           look(s, texts[SAMPLE_OUTPUT], message);
}

void telemetry_validation(session *s, const evaluation *v) {
    measured m = measure_evaluation(v, s->dataset.kind->text);
    char message[WF_MESSAGE] = "out of memory";
    add(s, &m);
    if (!s->set->run.page) return;
    /* the test at the end may evaluate this step again, so an older frame of it is replaced */
    album_cut(&s->telemetry.album, s->at.step - 1);
    if (v->bytes > 0 ? look_at_text(s, message) : look_at_samples(s, v, message)) return;
    report_failed_because(&s->report, "the report lacks a frame", message);
}

/* ---- the page -------------------------------------------------------------------------------- */

void telemetry_title(const settings *set, char title[RUN_TITLE]) {
    char word[OPTION_TEXT_SIZE];
    const char *file = set->data.train ? set->data.train : set->data.train_src;
    if (set->data.text) file = set->data.text;
    const char *slash = file ? strrchr(file, '/') : NULL;
    option_text(option_find(&train_program, "task"), word);
    if (file)
        snprintf(title, RUN_TITLE, "Learning from %.80s", slash ? slash + 1 : file);
    else
        snprintf(title, RUN_TITLE, "Learning to %s", word);
}

static bool write_page(session *s, bool ended, char *message) {
    char title[RUN_TITLE], model[WF_MESSAGE], numbers[2][OPTION_TEXT_SIZE], machine[80];
    char words[2][OPTION_TEXT_SIZE];
    telemetry_title(s->set, title);
    wf_model_text(s->model, model);
    snprintf(machine, sizeof machine, "%d threads of each of %d processes, %s kernels",
             wf_pool_threads(s->pool), wf_transport_size(s->transport), wf_isa());
    const run_fact facts[] = {
        { "model", model },
        { "parameters", thousands((double)wf_model_parameter_count(s->model), numbers[0]) },
        { "optimizer", option_text(option_find(&train_program, "optimizer"), words[0]) },
        { "peak rate", shortest(s->set->recipe.lr, numbers[1]) },
        { "schedule", option_text(option_find(&train_program, "lr-schedule"), words[1]) },
        { "machine", machine },
        { "weft", wf_version() },
    };
    run_page p = { .title = title,
                   .run = s->kept.run,
                   .facts = facts,
                   .n_facts = sizeof facts / sizeof *facts,
                   .step = s->at.step,
                   .total = s->set->run.max_steps,
                   .elapsed = wf_seconds_now() - s->work.started,
                   .ended = ended,
                   .history = &s->telemetry.history,
                   .album = &s->telemetry.album,
                   .plan = wf_trainer_plan(s->trainer) };
    return run_page_write(&p, s->set->run.page, message);
}

void telemetry_write(session *s, bool ended) {
    char message[WF_MESSAGE] = "the report could not be written: out of memory";
    if (!s->set->run.page) return;
    s->telemetry.lost = !saving_identity(s) || !write_page(s, ended, message);
    if (!s->telemetry.lost) return;
    warn(&train_program, "%s; the training goes on", message);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Opens the page. A resumed training continues an existing page. */
static void open_page(session *s) {
    char message[WF_MESSAGE];
    if (!s->set->run.resume) return;
    run_page_found found = run_page_read(s->set->run.page, s->kept.run, s->at.step,
                                         &s->telemetry.history, &s->telemetry.album, message);
    if (found == RUN_PAGE_BAD) fail(&train_program, "%s", message);
    if (found == RUN_PAGE_NONE)
        say(&s->report, "report   %s is not there: it begins at step %lld", s->set->run.page,
            (long long)s->at.step);
}

void telemetry_open(session *s) {
    char message[WF_MESSAGE];
    telemetry *t = &s->telemetry;
    if (s->set->run.dry_run) return;
    s->telemetry.history.of_lines = counts_lines(dataset_unit(&s->dataset));
    if (s->set->run.page) open_page(s);
    if (s->set->run.page && dataset_holds(&s->dataset)) open_attention(s);
    if (!s->set->run.tensorboard) return;
    t->events = tensorboard_open(s->set->run.tensorboard, s->at.step + 1, message);
    if (!t->events) fail(&train_program, "%s", message);
}

double telemetry_memory(session *s) {
    telemetry *t = &s->telemetry;
    const int64_t rows = t->length + 1;
    if (!t->length || !wf_model_bind(s->model, t->attention.plan, 1, t->n, rows)) return 0;
    return (double)wf_plan_memory(t->attention.plan);
}

bool telemetry_close(session *s) {
    telemetry *t = &s->telemetry;
    bool closed = tensorboard_close(t->events);
    t->events = NULL;
    if (!closed) warn(&train_program, "events for TensorBoard are missing: %s", strerror(errno));
    if (t->length) attention_free(&t->attention);
    t->length = 0;
    album_free(&t->album);
    history_free(&t->history);
    return closed;
}
