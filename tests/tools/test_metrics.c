/* tests/tools/test_metrics.c - BLEU and chrF against sacreBLEU's values, the edit distance against
 * its recurrence, and difficult lines: long, empty, or not text.
 *
 * metric_cases.inc holds the lines and the values; record_metrics.py wrote it. */
#include "core/base/random.h"
#include "tests/suites.h"
#include "tests/support/faults.h"
#include "tests/support/support.h"
#include "tools/metrics/metrics.h"
#include "tools/metrics/words.h"

#include <stdio.h>

TESTS(metrics)

enum { MOST_LINES = 16 };

static const struct {
    const char *name;
    double bleu_13a, bleu_none, chrf;
    const char *text[3];
    struct {
        const char *output, *reference;
    } line[MOST_LINES];
} cases[] = {
#define LINE(output, reference) { output, reference },
#define CASE(name, bleu_13a, bleu_none, chrf, text_13a, text_none, text_chrf, ...)                 \
    { name, bleu_13a, bleu_none, chrf, { text_13a, text_none, text_chrf }, { __VA_ARGS__ } },
#include "metric_cases.inc"
#undef CASE
#undef LINE
};

static metrics *new_metrics(void) {
    metrics *m = metrics_new();
    ck_assert_ptr_nonnull(m);
    return m;
}

static void add(metrics *m, const char *output, const char *reference) {
    ck_assert(metrics_add(m, output, strlen(output), reference, strlen(reference)));
}

/* ---- sacreBLEU ------------------------------------------------------------------------------- */

static void assert_close(double got, double wanted, const char *what, const char *name) {
    ck_assert_msg(fabs(got - wanted) <= 1e-10, "%s of %s: %.17g, not %.17g", what, name, got,
                  wanted);
}

/* Compares a text with sacreBLEU's, in which weft's name and version replace sacreBLEU's
 * version. */
static void assert_text(const char *got, const char *recorded) {
    char wanted[METRIC_TEXT];
    const char *version = strstr(recorded, "VERSION");
    ck_assert_ptr_nonnull(version);
    snprintf(wanted, sizeof wanted, "%.*sweft-%s%s", (int)(version - recorded), recorded,
             wf_version(), version + 7);
    ck_assert_str_eq(got, wanted);
}

TEST_ROWS(values_are_those_of_sacrebleu, COUNT_OF(cases)) {
    char text[METRIC_TEXT];
    const char *name = cases[_i].name;
    metrics *m = new_metrics();
    int64_t n = 0;
    for (; n < MOST_LINES && cases[_i].line[n].output; n++)
        add(m, cases[_i].line[n].output, cases[_i].line[n].reference);
    const metric_counts *sums = metrics_sums(m);
    ck_assert_int_eq(sums->lines, n);
    assert_close(bleu_score(&sums->bleu[BLEU_13A]).score, cases[_i].bleu_13a, "BLEU 13a", name);
    assert_close(bleu_score(&sums->bleu[BLEU_NONE]).score, cases[_i].bleu_none, "BLEU none", name);
    assert_close(chrf_score(&sums->chrf), cases[_i].chrf, "chrF2", name);
    assert_text(bleu_text(&sums->bleu[BLEU_13A], BLEU_13A, text), cases[_i].text[0]);
    assert_text(bleu_text(&sums->bleu[BLEU_NONE], BLEU_NONE, text), cases[_i].text[1]);
    assert_text(chrf_text(&sums->chrf, text), cases[_i].text[2]);
    metrics_free(m);
}

/* Scores of a corpus do not depend on the order of its lines, to the last bit. */
TEST(order_of_lines_does_not_matter) {
    metrics *forwards = new_metrics(), *backwards = new_metrics();
    for (int c = 0; c < COUNT_OF(cases); c++)
        for (int i = 0; i < MOST_LINES && cases[c].line[i].output; i++)
            add(forwards, cases[c].line[i].output, cases[c].line[i].reference);
    for (int c = COUNT_OF(cases) - 1; c >= 0; c--)
        for (int i = MOST_LINES - 1; i >= 0; i--)
            if (cases[c].line[i].output)
                add(backwards, cases[c].line[i].output, cases[c].line[i].reference);
    ck_assert_mem_eq(metrics_sums(forwards), metrics_sums(backwards), sizeof(metric_counts));
    ck_assert_int_gt(metrics_sums(forwards)->exact, 0);
    metrics_free(forwards), metrics_free(backwards);
}

/* ---- edit distance --------------------------------------------------------------------------- */

enum { LONGEST = 300 };

/* The edit distance by its recurrence. */
static int64_t plain_distance(const int32_t *a, int64_t n, const int32_t *b, int64_t m) {
    static int64_t d[LONGEST + 1][LONGEST + 1];
    for (int64_t i = 0; i <= n; i++)
        for (int64_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int64_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

TEST(distance_is_that_of_the_recurrence) {
    static const int64_t lengths[] = { 0, 1, 2, 17, 63, 64, 65, 127, 128, 129, 191, 192, 193, 300 };
    static const int32_t alphabets[] = { 1, 2, 4, 30, 500 };
    int32_t a[LONGEST], b[LONGEST];
    for (int x = 0; x < COUNT_OF(lengths) * COUNT_OF(lengths) * COUNT_OF(alphabets); x++) {
        int64_t n = lengths[x % COUNT_OF(lengths)];
        int64_t m = lengths[x / COUNT_OF(lengths) % COUNT_OF(lengths)];
        int32_t symbols = alphabets[x / COUNT_OF(lengths) / COUNT_OF(lengths)];
        for (int64_t i = 0; i < n; i++)
            a[i] = (int32_t)(number(1, (uint64_t)(x * 600 + i)) * symbols);
        for (int64_t i = 0; i < m; i++) /* half of the time a copy of a with noise */
            b[i] = x % 2 && i < n && number(3, (uint64_t)(x * 600 + i)) < 0.8
                       ? a[i]
                       : (int32_t)(number(2, (uint64_t)(x * 600 + i)) * symbols);
        ck_assert_int_eq(edit_distance(a, n, b, m, symbols), plain_distance(a, n, b, m));
    }
}

/* The code points that Python's str.split() takes as white space. */
TEST(white_space_is_pythons) {
    static const int32_t spaces[][2] = { { 0x09, 0x0D },     { 0x1C, 0x20 },     { 0x85, 0x85 },
                                         { 0xA0, 0xA0 },     { 0x1680, 0x1680 }, { 0x2000, 0x200A },
                                         { 0x2028, 0x2029 }, { 0x202F, 0x202F }, { 0x205F, 0x205F },
                                         { 0x3000, 0x3000 } };
    for (int32_t code = 0, i = 0; code < 0x110000; code++) {
        if (i < COUNT_OF(spaces) && code > spaces[i][1]) i++;
        bool space = i < COUNT_OF(spaces) && code >= spaces[i][0];
        if (code_is_space(code) != space) ck_abort_msg("U+%04X", (unsigned)code);
    }
}

TEST(rates_of_errors) {
    static const struct {
        const char *output, *reference;
        int64_t characters, of_characters, words, of_words;
    } rows[] = {
        { "kitten", "sitting", 3, 7, 1, 1 },
        { "", "abc de", 6, 6, 2, 2 },
        { "one two three", "one three", 4, 9, 1, 2 },
        { "fur Elise", "für Élise", 2, 9, 2, 2 },
        { "a  b", "a b", 1, 3, 0, 2 },
        { "語", "言語", 1, 2, 1, 1 },
        { "ab ba ab", "ba ab ba", 6, 8, 2, 3 },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        metrics *m = new_metrics();
        add(m, rows[i].output, rows[i].reference);
        const metric_counts *sums = metrics_sums(m);
        ck_assert_int_eq(sums->characters.edits, rows[i].characters);
        ck_assert_int_eq(sums->characters.reference, rows[i].of_characters);
        ck_assert_int_eq(sums->words.edits, rows[i].words);
        ck_assert_int_eq(sums->words.reference, rows[i].of_words);
        ck_assert_double_eq(error_rate(&sums->words),
                            (double)rows[i].words / (double)rows[i].of_words);
        metrics_free(m);
    }
    ck_assert(isnan(error_rate(&(edit_counts){ 3, 0 })));
}

TEST(exact_matches_are_of_bytes) {
    metrics *m = new_metrics();
    add(m, "same", "same"), add(m, "same ", "same"), add(m, "", "");
    ck_assert(metrics_add(m, "a\0b", 3, "a\0b", 3));
    ck_assert(metrics_add(m, "a\0b", 3, "a\0c", 3));
    ck_assert_int_eq(metrics_sums(m)->exact, 3);
    ck_assert_int_eq(metrics_sums(m)->lines, 5);
    metrics_free(m);
}

/* ---- long lines, and lines that are not text ------------------------------------------------- */

TEST(a_thousand_long_lines) {
    enum { LINES = 1000, BYTES = 1000 };
    char output[BYTES], reference[BYTES];
    metrics *m = new_metrics();
    for (int line = 0; line < LINES; line++) {
        for (int i = 0; i < BYTES; i++) {
            double u = number(7, (uint64_t)(line * BYTES + i));
            reference[i] = (char)(u < 0.15 ? ' ' : 'a' + (int)(u * 26));
            output[i] = i % 10 == 5 ? '#' : reference[i]; /* never in a reference */
        }
        ck_assert(metrics_add(m, output, BYTES, reference, BYTES));
    }
    ck_assert_int_eq(metrics_sums(m)->characters.edits, LINES * BYTES / 10);
    ck_assert_int_eq(metrics_sums(m)->characters.reference, LINES * BYTES);
    ck_assert_int_eq(metrics_sums(m)->exact, 0);
    metrics_free(m);
}

TEST(a_line_of_a_megabyte) {
    size_t n = 1 << 20;
    char *reference = malloc(n), *output = malloc(n);
    ck_assert(reference && output);
    for (size_t i = 0; i < n; i++)
        reference[i] = output[i] = i % 7 ? (char)('a' + i / 7 % 26) : ' ';
    output[n / 2] = '#', output[n / 2 + 1] = '#';
    metrics *m = new_metrics();
    ck_assert(metrics_add(m, output, n, reference, n));
    ck_assert_int_eq(metrics_sums(m)->characters.edits, 2);
    add(m, "and a short one after it", "and a short one after it");
    ck_assert_int_eq(metrics_sums(m)->exact, 1);
    metrics_free(m);
    free(reference), free(output);
}

/* Any bytes are counted: random lines score below 20, and a line is equal to itself. */
TEST(any_bytes_are_counted) {
    char line[2][80];
    metrics *m = new_metrics(), *same = new_metrics();
    for (uint64_t k = 0; k < 3000; k++) {
        size_t n[2];
        for (int side = 0; side < 2; side++) {
            n[side] = (size_t)(number(k, (uint64_t)(1000 + side)) * 80);
            for (size_t i = 0; i < n[side]; i++)
                line[side][i] = (char)(number(k, (uint64_t)side * 100 + i) * 256);
        }
        ck_assert(metrics_add(m, line[0], n[0], line[1], n[1]));
        ck_assert(metrics_add(same, line[0], n[0], line[0], n[0]));
    }
    const metric_counts *sums = metrics_sums(m);
    double bleu = bleu_score(&sums->bleu[BLEU_13A]).score, chrf = chrf_score(&sums->chrf);
    ck_assert(bleu >= 0 && bleu < 20 && chrf > 0 && chrf < 20);
    ck_assert_int_eq(metrics_sums(same)->exact, 3000);
    ck_assert_int_eq(metrics_sums(same)->words.edits + metrics_sums(same)->characters.edits, 0);
    ck_assert_double_eq_tol(chrf_score(&metrics_sums(same)->chrf), 100, 1e-10);
    metrics_free(m), metrics_free(same);
}

TEST(bad_bytes_are_characters) {
    codes c = { 0 };
    codes_decode(&c, "a\xC3\xA9\xFF\xED\xA0\x80\xE8", 8);
    const int32_t wanted[] = { 'a', 0xE9, 0xDCFF, 0xDCED, 0xDCA0, 0xDC80, 0xDCE8 };
    ck_assert_int_eq(c.n, COUNT_OF(wanted));
    ck_assert_mem_eq(c.at, wanted, sizeof wanted);
    codes_free(&c);
}

/* ---- no memory ------------------------------------------------------------------------------- */

#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) faults_pause(true), ck_abort_msg(__VA_ARGS__);                           \
    } while (0)

/* Scores a line that is long enough to make every array grow. Returns true if nothing failed. */
static bool scenario(void) {
    static char output[600], reference[600];
    for (size_t i = 0; i < sizeof output; i++) {
        output[i] = i % 5 ? (char)('a' + i % 23) : ' ';
        reference[i] = i % 6 ? (char)('a' + i % 19) : '.';
    }
    metrics *m = metrics_new();
    if (!m) return false;
    bool ok = metrics_add(m, output, sizeof output, reference, sizeof reference);
    must(metrics_sums(m)->lines == ok, "%lld lines", (long long)metrics_sums(m)->lines);
    bool was = faults_pause(true);
    must(metrics_add(m, output, sizeof output, reference, sizeof reference), "not usable again");
    must(metrics_sums(m)->characters.reference == (ok ? 1200 : 600), "a failed line was counted");
    faults_pause(was);
    metrics_free(m);
    return ok;
}

TEST_ROWS(every_failure_is_survived, 2) {
    for (long at = 1;; at++) {
        long left;
        faults_begin(at, _i);
        bool ok = scenario();
        long asked = faults_end(&left);
        ck_assert_msg(left == 0, "request %ld: %ld blocks leak", at, left);
        ck_assert_msg(ok == (asked < at), "request %ld of %ld", at, asked);
        if (ok) break;
        tally_note(TALLY_FAULTS, 0);
    }
}
