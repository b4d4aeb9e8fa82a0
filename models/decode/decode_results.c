/* models/decode/decode_results.c - the results of a search: one block of memory for each
 * sentence. */
#include <stdlib.h>

#include "search.h"

static size_t block_size(const sentence *s, int n) {
    size_t bytes = (size_t)n * sizeof(wf_hypothesis);
    for (int i = 0; i < n; i++) {
        size_t tokens = (size_t)s->ended[i].length;
        bytes += (tokens + 1) * sizeof(double) + tokens * sizeof(int32_t);
    }
    return bytes;
}

/* Follows the trace backwards, from the last token to the first. */
static void write_down(const search *q, const ended *e, int32_t *tokens, double *log_probs) {
    int32_t at = e->last;
    log_probs[e->length] = e->end_log_prob;
    for (int64_t i = e->length; i-- > 0; at = q->traces[at].before) {
        tokens[i] = q->traces[at].token;
        log_probs[i] = q->traces[at].log_prob;
    }
}

static bool make_result(const search *q, const sentence *s, wf_decoded *result) {
    int n = s->n_ended < q->o->nbest ? s->n_ended : q->o->nbest;
    wf_hypothesis *best = malloc(block_size(s, n) + 1);
    if (!best) return wf_decoder_fail(q->d, "out of memory");
    *result = (wf_decoded){ n, best };
    double *log_probs = (double *)(best + n); /* doubles come first, because of their alignment */
    int32_t *tokens = (int32_t *)log_probs;
    for (int i = 0; i < n; i++) tokens += 2 * (s->ended[i].length + 1);
    for (int i = 0; i < n; i++) {
        const ended *e = &s->ended[i];
        write_down(q, e, tokens, log_probs);
        best[i] = (wf_hypothesis){ tokens, log_probs, e->length, e->total, e->score, e->cut };
        log_probs += e->length + 1;
        tokens += e->length;
    }
    return true;
}

bool wf_make_results(search *q, wf_decoded *results) {
    for (int i = 0; i < q->b; i++)
        if (!make_result(q, &q->sentences[i], &results[i])) return false;
    return true;
}

void wf_decoded_free(wf_decoded *results, int b) {
    for (int i = 0; results && i < b; i++) {
        free(results[i].best);
        results[i] = (wf_decoded){ 0 };
    }
}
