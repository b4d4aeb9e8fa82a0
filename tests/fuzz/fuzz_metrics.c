/* tests/fuzz/fuzz_metrics.c - any lines, alternately an output and a reference: every score is
 * within its bounds, counts add up, and a text scored against itself gets the best score. */
#include <math.h>

#include "fuzz.h"
#include "tools/metrics/metrics.h"

static void bounds(const metric_counts *c) {
    fuzz_must(c->exact >= 0 && c->exact <= c->lines);
    for (int k = 0; k < BLEU_TOKENIZERS; k++) {
        char line[METRIC_TEXT];
        const bleu_counts *b = &c->bleu[k];
        bleu_result r = bleu_score(b);
        fuzz_must(r.score >= 0 && r.score <= 100.000001);
        fuzz_must(r.brevity_penalty >= 0 && r.brevity_penalty <= 1);
        for (int n = 0; n < BLEU_ORDER; n++) {
            fuzz_must(b->match[n] >= 0 && b->match[n] <= b->total[n]);
            fuzz_must(r.precision[n] >= 0 && r.precision[n] <= 100);
        }
        fuzz_must_say(bleu_text(b, (bleu_tokenizer)k, line));
    }
    for (int n = 0; n < CHRF_ORDER; n++)
        fuzz_must(c->chrf.match[n] <= c->chrf.output[n] &&
                  c->chrf.match[n] <= c->chrf.reference[n] && c->chrf.match[n] >= 0);
    fuzz_must(chrf_score(&c->chrf) >= 0 && chrf_score(&c->chrf) <= 100.000001);
    fuzz_must(!(error_rate(&c->characters) < 0) && !(error_rate(&c->words) < 0));
}

static void perfect(const char *line, size_t bytes) {
    metrics *m = metrics_new();
    fuzz_must(m && metrics_add(m, line, bytes, line, bytes));
    const metric_counts *c = metrics_sums(m);
    fuzz_must(c->exact == 1 && c->characters.edits == 0 && c->words.edits == 0);
    for (int n = 0; n < CHRF_ORDER; n++)
        fuzz_must(c->chrf.match[n] == c->chrf.output[n] &&
                  c->chrf.match[n] == c->chrf.reference[n]);
    for (int n = 0; n < BLEU_ORDER; n++) fuzz_must(c->bleu[0].match[n] == c->bleu[0].total[n]);
    metrics_free(m);
}

/* The number of bytes of the first line, without its '\n'. */
static size_t line_of(const char *at, size_t left) {
    const char *end = memchr(at, '\n', left);
    return end ? (size_t)(end - at) : left;
}

FUZZ_TARGET(metrics) {
    metrics *m = metrics_new();
    fuzz_must(m);
    const char *at = (const char *)data;
    int64_t pairs = 0;
    for (size_t left = size; left; pairs++) {
        size_t n = line_of(at, left), k = 0;
        const char *output = at, *reference = at + n;
        if (n < left) k = line_of(++reference, left - n - 1);
        fuzz_must(metrics_add(m, output, n, reference, k));
        if (pairs == 0) perfect(output, n);
        size_t used = (size_t)(reference - at) + k;
        used += used < left;
        at += used, left -= used;
    }
    fuzz_must(metrics_sums(m)->lines == pairs);
    bounds(metrics_sums(m));
    metrics_free(m);
    return 0;
}
