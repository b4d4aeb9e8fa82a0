/* tools/train/evaluate.c - evaluates loss, token accuracy, exact match and metrics of text on
 * unseen sequences. See evaluate.h. */
#include "evaluate.h"
#include "core/run_internal.h"
#include "models/model_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/base/scalars.h"
#include "tools/cli/refused.h"
#include "tools/data/language.h"

bool evaluator_new(evaluator *e, wf_model *m, wf_pool *pool, dataset *what, wf_transport *transport,
                   char *message) {
    *e = (evaluator){ .model = m, .dataset = what, .transport = transport };
    if (!what->kind->encoder) {
        e->decoder = wf_decoder_new(m, pool, message);
        if (!e->decoder) return false;
    }
    e->plan = wf_model_plan(m, WF_PLAN_EVALUATE, pool);
    if (wf_plan_ok(e->plan)) return true;
    return refused(message, "%s", wf_plan_error(e->plan));
}

void evaluator_free(evaluator *e) {
    wf_decoder_free(e->decoder);
    wf_plan_free(e->plan);
    batch_free(&e->batch);
    *e = (evaluator){ 0 };
}

/* Sums of one batch, in the plan's precision. */
typedef struct batch_loss {
    float nll, count, correct;
} batch_loss;

/* Computes the loss of one batch, with the reference targets fed. */
static bool find_loss(evaluator *e, batch_loss *loss, evaluation *v, char *message) {
    const wf_model *m = e->model;
    const batch *b = &e->batch;
    bool ok = batch_feed(b, e->plan, m) && wf_run(e->plan) &&
              wf_fetch(e->plan, m->loss.nll, &loss->nll, sizeof loss->nll) &&
              wf_fetch(e->plan, m->loss.count, &loss->count, sizeof loss->count) &&
              wf_fetch(e->plan, m->correct, &loss->correct, sizeof loss->correct);
    v->counts.sequences += b->B;
    return ok || refused(message, "%s", wf_plan_error(e->plan));
}

/* Keeps the texts of a sample, which evaluation_free frees. A text that is NULL means that memory
 * ran out; the result is then false. */
static bool keep_sample(evaluation *v, int64_t number, char *source, char *reference,
                        char *output) {
    char *texts[SAMPLE_TEXTS] = { source, reference, output };
    memcpy(v->samples + number * SAMPLE_TEXTS, texts, sizeof texts);
    return source && reference && output;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool compare_row(evaluator *e, int64_t row, int64_t number, const wf_hypothesis *h,
                        evaluation *v, char *message) {
    const batch *b = &e->batch;
    const int32_t *answer = b->answer + row * (b->T - 1);
    int64_t n = b->answer_length[row];
    v->counts.exact += h->length == n && memcmp(h->tokens, answer, (size_t)n * sizeof *answer) == 0;
    v->counts.judged++;
    if (number >= SAMPLES) return true;
    char *source = line_of_ids(NULL, b->src + row * b->S, b->src_length[row], NULL);
    char *reference = line_of_ids(NULL, answer, n, NULL);
    char *output = line_of_ids(NULL, h->tokens, h->length, NULL);
    return keep_sample(v, number, source, reference, output) || refused(message, "out of memory");
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool score_line(evaluator *e, const char *const text[2], int64_t number,
                       const wf_hypothesis *best, metrics *scores, evaluation *v, char *message) {
    int64_t forced = e->dataset->generation.n_forced;
    if (forced > best->length) forced = best->length;
    char *output = line_of_ids(e->dataset->tokenizer[SIDE_TGT], best->tokens + forced,
                               best->length - forced, NULL);
    const char *reference = text[1];
    bool ok = output && metrics_add(scores, output, strlen(output), reference, strlen(reference));
    if (ok) {
        v->counts.exact += strcmp(output, reference) == 0;
        v->counts.judged++;
    }
    if (ok && number < SAMPLES)
        ok = keep_sample(v, number, strdup(text[0]), strdup(reference), output);
    else
        free(output);
    return ok || refused(message, "out of memory");
}

/* ---- running text ---------------------------------------------------------------------------- */

double bits_per_byte(const evaluation *v) {
    assert(v->bytes > 0);
    return v->nll / wf_log_of(2) / v->bytes;
}

char *write_sample(evaluator *e, int64_t tokens, uint64_t seed, char *message) {
    static const int32_t none = 0;
    const wf_tokenizer *t = e->dataset->tokenizer[SIDE_TGT];
    int32_t banned[WF_SPECIAL_IDS];
    wf_decode_options o = wf_decode_defaults();
    wf_decoded result;
    o.sample = true;
    o.top_p = 0.9;
    o.seed = seed;
    o.max_len_a = 0;
    o.max_len_b = (double)tokens;
    o.banned = banned;
    o.n_banned = no_text(t, true, banned);
    if (!wf_decode(e->decoder, 1, 0, NULL, &none, NULL, &o, &result))
        return snprintf(message, WF_MESSAGE, "%s", wf_decoder_error(e->decoder)), NULL;
    char *text = line_of_ids(t, result.best->tokens, result.best->length, NULL);
    wf_decoded_free(&result, 1);
    if (!text) snprintf(message, WF_MESSAGE, "out of memory");
    return text;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

enum { COUNTS = sizeof(evaluation_counts) / sizeof(int64_t) };
static_assert(COUNTS * sizeof(int64_t) == sizeof(evaluation_counts), "numbers, and nothing else");

/* Gathers `bytes` bytes from each rank, in the order of ranks; the caller frees them. NULL: see
 * message. */
static void *gather(wf_transport *t, const void *mine, size_t bytes, char *message) {
    void *all = calloc((size_t)wf_transport_size(t), bytes);
    if (all && wf_allgather(t, mine, all, bytes)) return all;
    snprintf(message, WF_MESSAGE, "%s", all ? wf_transport_error(t) : "out of memory");
    free(all);
    return NULL;
}

/* Adds the losses of all ranks in the order of the batches, which were dealt to the ranks
 * round-robin. vectors: each pair is compared in both directions, so `count` is twice the number of
 * pairs. If a vector were equally near to all candidates, the loss of each comparison would be the
 * logarithm of their number, `count` / 2. */
static bool add_losses(wf_transport *t, const batch_loss *mine, int64_t n, bool vectors,
                       evaluation *v, char *message) {
    int64_t ranks = wf_transport_size(t), each = n / ranks + 1;
    batch_loss *all = gather(t, mine, (size_t)each * sizeof *all, message);
    for (int64_t k = 0; all && k < n; k++) {
        const batch_loss *b = &all[k % ranks * each + k / ranks];
        v->nll += b->nll;
        v->tokens += b->count;
        v->correct += b->correct;
        if (vectors && b->count > 0) v->chance += b->count * wf_log_of(b->count / 2);
    }
    bool ok = all;
    free(all);
    return ok;
}

static bool add_counts(wf_transport *t, evaluation_counts *counts, char *message) {
    int64_t sums[COUNTS] = { 0 }, *all = gather(t, counts, sizeof sums, message);
    for (int i = 0; all && i < COUNTS * wf_transport_size(t); i++) sums[i % COUNTS] += all[i];
    if (all) memcpy(counts, sums, sizeof sums);
    bool ok = all;
    free(all);
    return ok;
}

enum { TEXTS = SAMPLES * SAMPLE_TEXTS };

/* The bytes of the longest text on any rank, with its '\0'. 0: an error, see message. */
static size_t longest_text(wf_transport *t, char *const texts[TEXTS], char *message) {
    int64_t longest = 1;
    for (int i = 0; i < TEXTS; i++)
        if (texts[i] && (int64_t)strlen(texts[i]) >= longest)
            longest = (int64_t)strlen(texts[i]) + 1;
    int64_t *all = gather(t, &longest, sizeof longest, message);
    for (int r = 0; all && r < wf_transport_size(t); r++)
        if (all[r] > longest) longest = all[r];
    bool ok = all;
    free(all);
    return ok ? (size_t)longest : 0;
}

/* Shares the samples. Each text comes from one rank, and afterwards all ranks have it. A mark
 * before a text shows that it exists, because it may be empty. */
static bool share_samples(wf_transport *t, char *texts[TEXTS], char *message) {
    size_t size = longest_text(t, texts, message) + 1;
    char *mine = size > 1 ? calloc(TEXTS, size) : NULL;
    for (int i = 0; mine && i < TEXTS; i++)
        if (texts[i]) snprintf(mine + (size_t)i * size, size, "+%s", texts[i]);
    if (size > 1 && !mine) snprintf(message, WF_MESSAGE, "out of memory");
    char *all = mine ? gather(t, mine, TEXTS * size, message) : NULL;
    bool ok = all;
    for (int i = 0; ok && i < TEXTS * wf_transport_size(t); i++) {
        char **known = &texts[i % TEXTS], *text = all + (size_t)i * size;
        if (!*known && *text) ok = (*known = strdup(text + 1)) != NULL;
    }
    if (all && !ok) snprintf(message, WF_MESSAGE, "out of memory");
    free(mine);
    free(all);
    return ok;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Generates the model's outputs for the batch. */
static bool generate(evaluator *e, wf_decoded *results, char *message) {
    const batch *b = &e->batch;
    wf_decode_options o = wf_decode_defaults();
    o.max_len_b = e->dataset->longer;
    o.forced = e->dataset->generation.forced;
    o.n_forced = e->dataset->generation.n_forced;
    if (wf_decode(e->decoder, (int)b->B, (int)b->S, b->src, b->src_length, NULL, &o, results))
        return true;
    return refused(message, "%s", wf_decoder_error(e->decoder));
}

/* Compares batch k's outputs with its targets, if it has sources to decode. False: see message. */
static bool judge(evaluator *e, task_stream stream, int64_t k, metrics *scores, evaluation *v,
                  char *message) {
    const dataset *m = e->dataset;
    const char *text[2];
    int64_t B = e->batch.B;
    if (m->kind->sequence(m, stream, k, 0, text) < 0) return true;
    wf_decoded *results = calloc((size_t)B + 1, sizeof *results);
    if (!results) return refused(message, "out of memory");
    bool decoded = generate(e, results, message), ok = decoded;
    for (int64_t i = 0; i < B && ok; i++) {
        const wf_hypothesis *best = results[i].best;
        assert(best && best->length >= 0);
        int64_t number = m->kind->sequence(m, stream, k, i, text);
        ok = text[0] ? score_line(e, text, number, best, scores, v, message)
                     : compare_row(e, i, number, best, v, message);
    }
    if (decoded) wf_decoded_free(results, (int)B);
    free(results);
    return ok;
}

/* Evaluates this rank's batches. losses[k / ranks] is the loss of batch k. */
static bool examine(evaluator *e, task_stream stream, batch_loss *losses, evaluation *v,
                    char *message) {
    const dataset *m = e->dataset;
    int64_t n = m->kind->batches(m, stream);
    int rank = wf_transport_rank(e->transport), ranks = wf_transport_size(e->transport);
    metrics *scores = metrics_new();
    bool ok = scores || refused(message, "out of memory");
    for (int64_t k = rank; k < n && ok; k += ranks) {
        ok = (m->kind->fill(m, stream, k, &e->batch) || refused(message, "out of memory")) &&
             find_loss(e, &losses[k / ranks], v, message) &&
             judge(e, stream, k, scores, v, message);
    }
    if (ok) v->counts.text = *metrics_sums(scores);
    metrics_free(scores);
    return ok;
}

bool evaluate(evaluator *e, task_stream stream, evaluation *out, char *message) {
    int64_t n = e->dataset->kind->batches(e->dataset, stream);
    int ranks = wf_transport_size(e->transport);
    batch_loss *losses = calloc((size_t)(n / ranks) + 1, sizeof *losses);
    const source_kind *kind = e->dataset->kind;
    bool all = !kind->masks; /* every token is predicted */
    bool vectors = kind->encoder && all && !kind->classifies;
    *out = (evaluation){ .bytes = all ? (double)e->dataset->stream[HELD].bytes : 0 };
    bool ok = losses || refused(message, "out of memory");
    ok = ok && examine(e, stream, losses, out, message) &&
         add_losses(e->transport, losses, n, vectors, out, message) &&
         add_counts(e->transport, &out->counts, message) &&
         share_samples(e->transport, out->samples, message);
    wf_plan_release(e->plan);
    free(losses);
    return ok;
}

void evaluation_free(evaluation *v) {
    for (int i = 0; i < TEXTS; i++) free(v->samples[i]);
    *v = (evaluation){ 0 };
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool memory_of(evaluator *e, int64_t B, int64_t S, int64_t T, size_t most[2],
                      char *message) {
    wf_plan *p = e->plan;
    size_t loss = wf_model_bind(e->model, p, B, S, T) ? wf_plan_memory(p) : 0;
    if (!loss) return refused(message, "%s", wf_plan_error(p));
    if (loss > most[0]) most[0] = loss;
    if (!e->decoder) return true;
    size_t decoding =
        wf_decoder_memory(e->decoder, (int)B, (int)S, S + (int64_t)e->dataset->longer);
    if (!decoding) return refused(message, "%s", wf_decoder_error(e->decoder));
    if (decoding > most[1]) most[1] = decoding;
    return true;
}

bool evaluator_memory(evaluator *e, size_t most[2], char *message) {
    const dataset *m = e->dataset;
    bool ok = true;
    most[0] = most[1] = 0;
    for (int i = 0; ok && i < 6; i++) {
        int64_t B, S, T;
        task_stream stream = i < 3 ? STREAM_VALID : STREAM_TEST;
        if (m->kind->largest(m, stream, i % 3, &B, &S, &T))
            ok = memory_of(e, B, S, T, most, message);
    }
    wf_plan_release(e->plan);
    return ok;
}
