/* tools/train/evaluate.c - loss, token accuracy, exact match and metrics of text on unseen
 * sequences. See evaluate.h. */
#include "evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/data/language.h"

enum { ROWS = 50, MESSAGE = 256 }; /* sequences of a task at a time */

bool evaluator_new(evaluator *e, wf_model *m, wf_pool *pool, dataset *what, char *message) {
    *e = (evaluator){ .model = m, .dataset = what };
    e->decoder = wf_decoder_new(m, pool, message);
    if (!e->decoder) return false;
    e->plan = wf_model_eval_plan(m, pool);
    int64_t longest = what->text ? 1 : what->numbers.max_len; /* of text: it grows */
    if (batch_new(&e->batch, ROWS, longest) && wf_plan_ok(e->plan)) return true;
    snprintf(message, MESSAGE, "%s",
             wf_plan_ok(e->plan) ? "out of memory" : wf_plan_error(e->plan));
    return false;
}

void evaluator_free(evaluator *e) {
    wf_decoder_free(e->decoder);
    wf_plan_free(e->plan);
    batch_free(&e->batch);
    *e = (evaluator){ 0 };
}

/* The loss of one batch, with the right targets fed. */
static bool add_loss(evaluator *e, evaluation *v, char *message) {
    const wf_model *m = e->model;
    const batch *b = &e->batch;
    float nll, count, correct;
    bool ok = batch_feed(b, e->plan, m) && wf_run(e->plan) &&
              wf_fetch(e->plan, m->loss.nll, &nll, sizeof nll) &&
              wf_fetch(e->plan, m->loss.count, &count, sizeof count) &&
              wf_fetch(e->plan, m->correct, &correct, sizeof correct);
    if (ok)
        v->nll += nll, v->tokens += count, v->correct += correct, v->sequences += b->B;
    else
        snprintf(message, MESSAGE, "%s", wf_plan_error(e->plan));
    return ok;
}

/* NULL: no memory. */
static char *sample_text(const char *source, const char *reference, const char *output) {
    if (!source || !reference || !output) return NULL;
    size_t size = strlen(source) + strlen(reference) + strlen(output) + sizeof " |  | ";
    char *text = malloc(size);
    if (text) snprintf(text, size, "%s | %s | %s", source, reference, output);
    return text;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool compare_row(evaluator *e, int64_t row, int64_t number, const wf_hypothesis *h,
                        evaluation *v) {
    const batch *b = &e->batch;
    const int32_t *answer = b->answer + row * (b->T - 1);
    int64_t n = b->answer_length[row];
    v->exact += h->length == n && memcmp(h->tokens, answer, (size_t)n * sizeof *answer) == 0;
    v->judged++;
    if (number >= SAMPLES) return true;
    char *source = line_of_ids(NULL, b->src + row * b->S, b->src_length[row], NULL);
    char *reference = line_of_ids(NULL, answer, n, NULL);
    char *output = line_of_ids(NULL, h->tokens, h->length, NULL);
    v->samples[number] = sample_text(source, reference, output);
    free(source), free(reference), free(output);
    return v->samples[number];
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool score_line(evaluator *e, const holdout *h, int64_t pair, const wf_hypothesis *best,
                       metrics *scores, evaluation *v, char *message) {
    int64_t forced = e->dataset->generation.n_forced;
    if (forced > best->length) forced = best->length;
    char *output = line_of_ids(e->dataset->tokenizer[SIDE_TGT], best->tokens + forced,
                               best->length - forced, NULL);
    const char *reference = h->reference[pair];
    bool ok = output && metrics_add(scores, output, strlen(output), reference, strlen(reference));
    if (ok) v->exact += strcmp(output, reference) == 0, v->judged++;
    if (ok && pair < SAMPLES)
        ok = (v->samples[pair] = sample_text(h->source[pair], reference, output)) != NULL;
    free(output);
    return ok || (snprintf(message, MESSAGE, "out of memory"), false);
}

/* ---- running text ---------------------------------------------------------------------------- */

double bits_per_byte(const evaluation *v) {
    return v->nll / log(2) / v->bytes;
}

/* What is held back, every token of it once. */
static bool evaluate_running(evaluator *e, evaluation *v, char *message) {
    const windows *w = &e->dataset->windows[HELD];
    for (int64_t k = 0; k < w->batches; k++) {
        if (!windows_fill(w, k, &e->batch))
            return snprintf(message, MESSAGE, "out of memory"), false;
        if (!add_loss(e, v, message)) return false;
    }
    v->bytes = (double)w->of->bytes;
    return true;
}

char *write_sample(evaluator *e, int64_t tokens, uint64_t seed, char *message) {
    static const int32_t none = 0;
    const wf_tokenizer *t = e->dataset->tokenizer[SIDE_TGT];
    int32_t banned[WF_SPECIAL_IDS];
    wf_decode_options o = wf_decode_defaults();
    wf_decoded result;
    o.sample = true, o.top_p = 0.9, o.seed = seed, o.max_len_a = 0, o.max_len_b = (double)tokens;
    o.banned = banned, o.n_banned = no_text(t, true, banned);
    if (!wf_decode(e->decoder, 1, 0, NULL, &none, NULL, &o, &result))
        return snprintf(message, MESSAGE, "%s", wf_decoder_error(e->decoder)), NULL;
    char *text = line_of_ids(t, result.best->tokens, result.best->length, NULL);
    wf_decoded_free(&result, 1);
    if (!text) snprintf(message, MESSAGE, "out of memory");
    return text;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* A token more than the answer has may come, so that one too many shows; of text, what may. */
static double longer_by(const dataset *m) {
    return m->text ? wf_decode_defaults().max_len_b : 1;
}

/* What the model generates for the batch. */
static bool generate(evaluator *e, wf_decoded *results, char *message) {
    const batch *b = &e->batch;
    wf_decode_options o = wf_decode_defaults();
    o.max_len_b = longer_by(e->dataset);
    o.forced = e->dataset->generation.forced, o.n_forced = e->dataset->generation.n_forced;
    if (wf_decode(e->decoder, (int)b->B, (int)b->S, b->src, b->src_length, NULL, &o, results))
        return true;
    return snprintf(message, MESSAGE, "%s", wf_decoder_error(e->decoder)), false;
}

static bool evaluate_numbers(evaluator *e, task_stream stream, int64_t n, evaluation *v,
                             char *message) {
    wf_decoded results[ROWS];
    for (int64_t first = 0; first < n; first += ROWS) {
        batch_fill(&e->batch, &e->dataset->numbers, stream, (uint64_t)first,
                   n - first < ROWS ? n - first : ROWS);
        if (!add_loss(e, v, message) || !generate(e, results, message)) return false;
        bool ok = true;
        for (int64_t i = 0; i < e->batch.B && ok; i++)
            ok = compare_row(e, i, first + i, results[i].best, v);
        wf_decoded_free(results, (int)e->batch.B);
        if (!ok) return snprintf(message, MESSAGE, "out of memory"), false;
    }
    return true;
}

static bool evaluate_text(evaluator *e, const holdout *h, evaluation *v, char *message) {
    metrics *scores = metrics_new();
    wf_decoded *results = calloc((size_t)h->order.limits.sentences, sizeof *results);
    bool ok = scores && results;
    if (!ok) snprintf(message, MESSAGE, "out of memory");
    for (int64_t k = 0; k < h->order.n && ok; k++) {
        ok = batches_fill(&h->order, k, e->dataset->ids, &e->batch);
        if (!ok) snprintf(message, MESSAGE, "out of memory");
        ok = ok && add_loss(e, v, message);
        if (!h->corpus.total[0]) continue; /* targets alone: there is nothing to go on from */
        bool decoded = ok && generate(e, results, message);
        ok = decoded;
        for (int64_t i = 0; i < e->batch.B && ok; i++)
            ok = score_line(e, h, batches_pair(&h->order, k, i), results[i].best, scores, v,
                            message);
        if (decoded) wf_decoded_free(results, (int)e->batch.B);
    }
    if (scores) v->text = *metrics_sums(scores);
    metrics_free(scores), free(results);
    return ok;
}

bool evaluate(evaluator *e, task_stream stream, int64_t n, evaluation *out, char *message) {
    dataset *m = e->dataset;
    *out = (evaluation){ 0 };
    if (m->running) return evaluate_running(e, out, message);
    if (!m->text) return evaluate_numbers(e, stream, n, out, message);
    return evaluate_text(e, stream == STREAM_TEST ? &m->test : &m->valid, out, message);
}

void evaluation_free(evaluation *v) {
    for (int i = 0; i < SAMPLES; i++) free(v->samples[i]);
    *v = (evaluation){ 0 };
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool memory_of(evaluator *e, int64_t B, int64_t S, int64_t T, size_t most[2],
                      char *message) {
    wf_plan *p = e->plan;
    size_t loss = wf_model_bind(e->model, p, B, S, T) ? wf_plan_memory(p) : 0;
    if (!loss) return snprintf(message, MESSAGE, "%s", wf_plan_error(p)), false;
    size_t decoding =
        wf_decoder_memory(e->decoder, (int)B, (int)S, S + (int64_t)longer_by(e->dataset));
    if (!decoding) return snprintf(message, MESSAGE, "%s", wf_decoder_error(e->decoder)), false;
    if (loss > most[0]) most[0] = loss;
    if (decoding > most[1]) most[1] = decoding;
    return true;
}

double evaluator_memory(evaluator *e, int64_t n, char *message) {
    const dataset *m = e->dataset;
    const holdout *const parts[] = { &m->valid, &m->test };
    size_t most[2] = { 0 };
    int64_t B = n < ROWS ? n : ROWS, S = m->numbers.max_len, T = S + 1;
    const windows *w = &m->windows[HELD];
    if (m->running) B = w->rows, S = 0, T = w->T;
    bool ok = (m->text && !m->running) || memory_of(e, B, S, T, most, message);
    for (int i = 0; m->text && ok && i < 6; i++) {
        const holdout *h = parts[i / 3];
        if (!h->corpus.pairs) continue;
        batches_largest(&h->order, i % 3, &B, &S, &T);
        ok = memory_of(e, B, S, T, most, message);
    }
    return ok ? (double)(most[0] + most[1]) : 0;
}
