/* tools/evaluate.c - loss, token accuracy and exact match on unseen sequences. See evaluate.h. */
#include "evaluate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 50 }; /* sequences at a time */

bool evaluator_new(evaluator *e, wf_transformer *m, wf_pool *pool, int64_t max_len, char *message) {
    *e = (evaluator){ .model = m };
    e->decoder = wf_decoder_new(m, pool, message);
    if (!e->decoder) return false;
    e->plan = wf_transformer_eval_plan(m, pool);
    e->out = calloc(ROWS * (size_t)(max_len + 1), sizeof *e->out);
    e->out_length = calloc(ROWS, sizeof *e->out_length);
    if (batch_new(&e->batch, ROWS, max_len) && e->out && e->out_length && wf_plan_ok(e->plan))
        return true;
    snprintf(message, 256, "%s", wf_plan_ok(e->plan) ? "out of memory" : wf_plan_error(e->plan));
    return false;
}

void evaluator_free(evaluator *e) {
    wf_decoder_free(e->decoder);
    wf_plan_free(e->plan);
    batch_free(&e->batch);
    free(e->out);
    free(e->out_length);
    *e = (evaluator){ 0 };
}

/* The loss of one batch, with the right targets fed. */
static bool add_loss(evaluator *e, evaluation *v) {
    const wf_transformer *m = e->model;
    const batch *b = &e->batch;
    float nll, count, correct;
    bool ok = batch_feed(b, e->plan, m) && wf_run(e->plan) &&
              wf_fetch(e->plan, m->loss.nll, &nll) && wf_fetch(e->plan, m->loss.count, &count) &&
              wf_fetch(e->plan, m->correct, &correct);
    if (ok) v->nll += nll, v->tokens += count, v->correct += correct;
    return ok;
}

static void print_tokens(FILE *out, const int32_t *tokens, int64_t n) {
    for (int64_t i = 0; i < n; i++) fprintf(out, "%s%d", i ? " " : "", (int)tokens[i]);
}

static char *sample_text(const batch *b, int64_t row, const int32_t *out, int64_t n) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return NULL;
    print_tokens(stream, b->src + row * b->S, b->src_length[row]);
    fputs(" | ", stream);
    print_tokens(stream, b->answer + row * b->S, b->src_length[row]);
    fputs(" | ", stream);
    print_tokens(stream, out, n);
    fclose(stream);
    return text;
}

/* What the model generates for one batch; out_length counts up to S + 1, so that one too many
 * shows. */
static bool add_exact(evaluator *e, int64_t first, evaluation *v) {
    const batch *b = &e->batch;
    int64_t width = b->S + 1;
    if (!wf_decode_greedy(e->decoder, (int)b->B, (int)b->S, b->src, b->src_length, (int)width,
                          e->out, e->out_length))
        return false;
    for (int64_t i = 0; i < b->B; i++) {
        const int32_t *out = e->out + i * width;
        int64_t n = b->src_length[i];
        v->exact += e->out_length[i] == n &&
                    memcmp(out, b->answer + i * b->S, (size_t)n * sizeof *out) == 0;
        v->sequences++;
        if (first + i < SAMPLES) v->samples[first + i] = sample_text(b, i, out, e->out_length[i]);
    }
    return true;
}

bool evaluate(evaluator *e, const task *t, task_stream stream, int64_t n, evaluation *out,
              char *message) {
    *out = (evaluation){ 0 };
    for (int64_t first = 0; first < n; first += ROWS) {
        batch_fill(&e->batch, t, stream, (uint64_t)first, n - first < ROWS ? n - first : ROWS);
        if (!add_loss(e, out)) return snprintf(message, 256, "%s", wf_plan_error(e->plan)), false;
        if (!add_exact(e, first, out))
            return snprintf(message, 256, "%s", wf_decoder_error(e->decoder)), false;
    }
    return true;
}

void evaluation_free(evaluation *v) {
    for (int i = 0; i < SAMPLES; i++) free(v->samples[i]);
    *v = (evaluation){ 0 };
}
