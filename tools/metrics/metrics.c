/* tools/metrics/metrics.c - counts in lines, and scores from the counts. See metrics.h. */
#include "metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "ops/base/scalars.h"
#include "words.h"

struct metrics {
    metric_counts sums;
    ngrams trie;
    codes line[2]; /* output and reference, as code points */
    codes text[2], symbols[2], spare;
};

metrics *metrics_new(void) {
    return calloc(1, sizeof(metrics));
}

void metrics_free(metrics *m) {
    if (!m) return;
    for (int i = 0; i < 2; i++)
        codes_free(&m->line[i]), codes_free(&m->text[i]), codes_free(&m->symbols[i]);
    codes_free(&m->spare);
    ngrams_free(&m->trie);
    free(m);
}

const metric_counts *metrics_sums(const metrics *m) {
    return &m->sums;
}

/* ---- edits ----------------------------------------------------------------------------------- */

/* The edit distance, 64 rows at a time.
 *
 * D[i][j], the distance of the first i symbols of a to the first j of b, differs by -1, 0 or +1
 * from its neighbours. Myers (1999) keeps the vertical differences of a column of 64 rows as two
 * words, and computes the next column with a dozen operations on them. Hyyro (2003) passes the
 * horizontal differences at the lower edge of a block to the block below. Here a block processes
 * all of b before the next block begins, so only one difference per symbol of b is stored. */

enum { ROWS = 64 };

typedef struct column {
    uint64_t up, down; /* rows in which D[i][j] - D[i - 1][j] is +1; rows in which it is -1 */
} column;

/* Moves a block one column to the right, from column j of D to column j + 1. `equal`: the rows i of
 * the block with a[i - 1] == b[j]. `above`: D[i][j + 1] - D[i][j] in the row above the block.
 * Returns this difference in the row whose bit is `last`. */
static int advance(column *c, uint64_t equal, int above, uint64_t last) {
    uint64_t vertical = equal | c->down;
    if (above < 0) equal |= 1;
    uint64_t horizontal = (((equal & c->up) + c->up) ^ c->up) | equal;
    uint64_t up = c->down | ~(horizontal | c->up), down = c->up & horizontal;
    int below = ((up & last) != 0) - ((down & last) != 0);
    up = up << 1 | (above > 0);
    down = down << 1 | (above < 0);
    c->up = down | ~(vertical | up);
    c->down = up & vertical;
    return below;
}

/* Processes the rows a[0..rows-1], at most 64. step[j] is the difference above them, and becomes
 * that in the last row. */
static void block(const int32_t *a, int64_t rows, const int32_t *b, int64_t m, uint64_t *equal,
                  signed char *step) {
    column c = { .up = ~(uint64_t)0 };
    uint64_t last = (uint64_t)1 << (rows - 1);
    for (int64_t i = 0; i < rows; i++) equal[a[i]] |= (uint64_t)1 << i;
    for (int64_t j = 0; j < m; j++) step[j] = (signed char)advance(&c, equal[b[j]], step[j], last);
    for (int64_t i = 0; i < rows; i++) equal[a[i]] = 0;
}

int64_t edit_distance(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int64_t symbols) {
    while (n > 0 && m > 0 && *a == *b) {
        a++;
        b++;
        n--;
        m--;
    }
    while (n > 0 && m > 0 && a[n - 1] == b[m - 1]) {
        n--;
        m--;
    }
    if (n == 0 || m == 0) return n + m;
    uint64_t *equal = calloc((size_t)symbols, sizeof *equal);
    signed char *step = malloc((size_t)m);
    int64_t distance = -1;
    if (equal && step) {
        memset(step, 1, (size_t)m); /* D[0][j] = j */
        for (int64_t i = 0; i < n; i += ROWS)
            block(a + i, n - i < ROWS ? n - i : ROWS, b, m, equal, step);
        distance = n; /* D[n][0], to which the differences in the last row are added */
        for (int64_t j = 0; j < m; j++) distance += step[j];
    }
    free(equal), free(step);
    return distance;
}

/* ---- one line -------------------------------------------------------------------------------- */

/* True if no memory ran out while m->symbols and the trie were filled. */
static bool complete(const metrics *m) {
    return !m->trie.failed && !m->symbols[0].failed && !m->symbols[1].failed;
}

static void add_to(int64_t *sums, const int64_t *counts, int n) {
    for (int k = 0; k < n; k++) sums[k] += counts[k];
}

static bool count_bleu(metrics *m, bleu_tokenizer tokenizer, bleu_counts *sums) {
    int64_t output[BLEU_ORDER], reference[BLEU_ORDER], both[BLEU_ORDER];
    ngrams_clear(&m->trie);
    for (int i = 0; i < 2; i++) {
        if (tokenizer == BLEU_13A) codes_13a(&m->line[i], &m->text[i], &m->spare);
        codes_words(tokenizer == BLEU_13A ? &m->text[i] : &m->line[i], &m->trie, &m->symbols[i]);
    }
    for (int i = 0; i < 2; i++)
        ngrams_count(&m->trie, i, m->symbols[i].at, m->symbols[i].n, BLEU_ORDER);
    ngrams_totals(&m->trie, BLEU_ORDER, output, reference, both);
    add_to(sums->match, both, BLEU_ORDER);
    add_to(sums->total, output, BLEU_ORDER);
    sums->output += m->symbols[SIDE_OUTPUT].n;
    sums->reference += m->symbols[SIDE_REFERENCE].n;
    return complete(m);
}

static bool count_chrf(metrics *m, chrf_counts *sums) {
    int64_t output[CHRF_ORDER], reference[CHRF_ORDER], both[CHRF_ORDER];
    ngrams_clear(&m->trie);
    for (int i = 0; i < 2; i++) {
        codes_without_space(&m->line[i], &m->symbols[i]);
        ngrams_count(&m->trie, i, m->symbols[i].at, m->symbols[i].n, CHRF_ORDER);
    }
    ngrams_totals(&m->trie, CHRF_ORDER, output, reference, both);
    /* if the reference has no runs of this length, those of the output do not count */
    for (int k = 0; k < CHRF_ORDER; k++)
        if (!reference[k]) output[k] = 0;
    add_to(sums->output, output, CHRF_ORDER);
    add_to(sums->reference, reference, CHRF_ORDER);
    add_to(sums->match, both, CHRF_ORDER);
    return complete(m);
}

/* Adds the edits from the output to the reference, counted in symbols: `cut` makes nodes of the
 * trie of a line's words or characters. */
static bool count_edits(metrics *m, void (*cut)(const codes *in, ngrams *trie, codes *out),
                        edit_counts *sums) {
    const codes *output = &m->symbols[SIDE_OUTPUT], *reference = &m->symbols[SIDE_REFERENCE];
    ngrams_clear(&m->trie);
    for (int i = 0; i < 2; i++) cut(&m->line[i], &m->trie, &m->symbols[i]);
    if (!complete(m)) return false;
    int64_t edits = edit_distance(output->at, output->n, reference->at, reference->n, m->trie.n);
    sums->edits += edits;
    sums->reference += reference->n;
    return edits >= 0;
}

bool metrics_add(metrics *m, const char *output, size_t output_bytes, const char *reference,
                 size_t reference_bytes) {
    /* a copy, so that m keeps its sums if the line cannot be counted completely */
    metric_counts sums = m->sums;
    codes_decode(&m->line[SIDE_OUTPUT], output, output_bytes);
    codes_decode(&m->line[SIDE_REFERENCE], reference, reference_bytes);
    for (int i = 0; i < BLEU_TOKENIZERS; i++)
        if (!count_bleu(m, (bleu_tokenizer)i, &sums.bleu[i])) return false;
    if (!count_chrf(m, &sums.chrf) || !count_edits(m, codes_words, &sums.words) ||
        !count_edits(m, codes_letters, &sums.characters))
        return false;
    sums.lines++;
    sums.exact += output_bytes == reference_bytes && memcmp(output, reference, output_bytes) == 0;
    m->sums = sums;
    return true;
}

/* ---- the scores ------------------------------------------------------------------------------ */

/* exp(mean of log p_k) times the brevity penalty, where p_k is the share of the output's runs of k
 * words that the reference has. Smoothing: the first p without a match is 1 / (2 total), the next 1
 * / (4 total), ... (NIST's, Chen and Cherry 2014, method 3). The score is 0 if an order has no run,
 * or if nothing matches. */
bleu_result bleu_score(const bleu_counts *c) {
    bleu_result r = { .brevity_penalty = 1 };
    double halvings = 1, logarithms = 0;
    if (c->output < c->reference)
        r.brevity_penalty = c->output ? wf_exp_of(1 - (double)c->reference / (double)c->output) : 0;
    bool any = false;
    for (int k = 0; k < BLEU_ORDER; k++) any = any || c->match[k];
    for (int k = 0; k < BLEU_ORDER && any && c->total[k]; k++) {
        if (!c->match[k]) halvings *= 2;
        r.precision[k] = c->match[k] ? 100.0 * (double)c->match[k] / (double)c->total[k]
                                     : 100.0 / (halvings * (double)c->total[k]);
    }
    for (int k = 0; k < BLEU_ORDER; k++) {
        if (r.precision[k] == 0) return r;
        logarithms += wf_log_of(r.precision[k]);
    }
    r.score = r.brevity_penalty * wf_exp_of(logarithms / BLEU_ORDER);
    return r;
}

/* F_2 of precision and recall; each is the mean over the orders that both sides have. */
double chrf_score(const chrf_counts *c) {
    double precision = 0, recall = 0, beta = 2, orders = 0;
    for (int k = 0; k < CHRF_ORDER; k++) {
        if (!c->output[k] || !c->reference[k]) continue;
        precision += (double)c->match[k] / (double)c->output[k];
        recall += (double)c->match[k] / (double)c->reference[k];
        orders++;
    }
    if (precision + recall == 0) return 0;
    precision /= orders;
    recall /= orders;
    double factor = beta * beta;
    return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

double error_rate(const edit_counts *c) {
    return c->reference ? (double)c->edits / (double)c->reference : NAN;
}

const char *bleu_text(const bleu_counts *c, bleu_tokenizer tokenizer, char *buffer) {
    bleu_result r = bleu_score(c);
    double ratio = c->reference ? (double)c->output / (double)c->reference : 0;
    snprintf(buffer, METRIC_TEXT,
             "BLEU|nrefs:1|case:mixed|eff:no|tok:%s|smooth:exp|version:weft-%s = %.2f "
             "%.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)",
             tokenizer == BLEU_13A ? "13a" : "none", wf_version(), r.score, r.precision[0],
             r.precision[1], r.precision[2], r.precision[3], r.brevity_penalty, ratio,
             (long long)c->output, (long long)c->reference);
    return buffer;
}

const char *chrf_text(const chrf_counts *c, char *buffer) {
    snprintf(buffer, METRIC_TEXT,
             "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-%s = %.2f",
             wf_version(), chrf_score(c));
    return buffer;
}
