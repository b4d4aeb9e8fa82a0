/* tools/metrics/metrics.h - compares outputs with their references: BLEU, chrF, CER, WER, exact
 * match.
 *
 * Adding a line only changes counts, and scores are functions of the counts. So a corpus has a
 * score of its own, which is not the mean over its lines. BLEU and chrF are sacreBLEU's with its
 * defaults and one reference:
 *   BLEU  (Papineni et al. 2002), runs of 1..4 words, exponential smoothing, brevity penalty, no
 *         effective order. Words are those of mteval-v13a (13a), or what spaces separate (none).
 *   chrF2 (Popovic 2015), runs of 1..6 characters without white space, recall counts double.
 *   CER   edit distance of code points over those of the reference, white space included.
 *   WER   edit distance of words between white space over those of the reference.
 * A line is text without its newline. Each byte of it that is not valid UTF-8 counts as one
 * character. */
#ifndef WEFT_TOOLS_METRICS_METRICS_H
#define WEFT_TOOLS_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLEU_ORDER = 4, CHRF_ORDER = 6, METRIC_TEXT = 256 };
typedef enum { BLEU_13A, BLEU_NONE, BLEU_TOKENIZERS } bleu_tokenizer;

typedef struct bleu_counts {
    /* [k]: runs of k + 1 words in the outputs: those that the references have, too; all */
    int64_t match[BLEU_ORDER], total[BLEU_ORDER];
    int64_t output, reference; /* words */
} bleu_counts;

typedef struct chrf_counts {
    int64_t output[CHRF_ORDER], reference[CHRF_ORDER], match[CHRF_ORDER];
} chrf_counts;

typedef struct edit_counts {
    int64_t edits, reference; /* symbols */
} edit_counts;

typedef struct metric_counts {
    int64_t lines, exact; /* exact: the same bytes */
    bleu_counts bleu[BLEU_TOKENIZERS];
    chrf_counts chrf;
    edit_counts characters, words;
} metric_counts;

typedef struct metrics metrics;
metrics *metrics_new(void); /* NULL: out of memory */
void metrics_free(metrics *m);
bool metrics_add(metrics *m, const char *output, size_t output_bytes, const char *reference,
                 size_t reference_bytes); /* false: out of memory, and the line is not counted */
const metric_counts *metrics_sums(const metrics *m);

typedef struct bleu_result {
    double score, precision[BLEU_ORDER], brevity_penalty; /* 0..100, 0..100, 0..1 */
} bleu_result;
bleu_result bleu_score(const bleu_counts *c);
double chrf_score(const chrf_counts *c); /* 0..100 */
double error_rate(const edit_counts *c); /* 0 is best; may be above 1; NaN without a reference */

/* Each writes the line that sacreBLEU prints, but with weft's version, to a buffer of METRIC_TEXT
 * bytes, and returns the buffer. bleu_text writes
 * "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-0.1.0 = 36.52 65.1/43.2/30.1/21.0
 * (BP = 1.000 ratio = 1.004 hyp_len = 1004 ref_len = 1000)", chrf_text
 * "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-0.1.0 = 58.31". */
const char *bleu_text(const bleu_counts *c, bleu_tokenizer tokenizer, char *buffer);
const char *chrf_text(const chrf_counts *c, char *buffer);

/* The edit distance (Levenshtein): how many symbols must be inserted, deleted or exchanged to
 * turn one sequence into the other. Symbols are in 0..symbols-1. It takes time n * m / 64, and a
 * byte of memory for each symbol of b and eight for each of `symbols`. Returns -1 if there is no
 * memory. */
int64_t edit_distance(const int32_t *a, int64_t n, const int32_t *b, int64_t m, int64_t symbols);

#endif
