/* tests/models/test_bpe.c - byte-pair encoding: an example by hand, and agreement with subword-nmt.
 *
 * What subword-nmt makes of a small corpus is recorded in data/bpe*, by record_bpe.py. */
#include <stdio.h>

#include "models/text_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "texts.h"

TESTS(bpe)

static wf_tokenizer_options merges(int64_t n) {
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_BPE);
    o.vocab_size = 0, o.merges = n;
    return o;
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* The example of Sennrich et al. 2016: low 5 times, lower 2, newest 6, widest 3. First (e, s) and
 * (s, t</w>) occur 9 times, and s is greater than e; then (e, st</w>) 9 times; (l, o) 7; of the
 * three pairs in newest, 6 times, (w, est</w>) is the greatest, then (n, e), then (ne, west</w>);
 * (lo, w</w>) 5; in widest, 3 times, (w, i), (wi, d), (wid, est</w>); and in lower, twice, (w, e),
 * (we, r</w>), (lo, wer</w>). */
static const char example[] = "low low low low low lower lower newest newest newest\n"
                              "newest newest newest widest widest widest\n";

TEST(the_example_by_hand) {
    wf_tokenizer_options o = merges(0);
    wf_tokenizer *t = learn(&o, example);
    char *codes = text_of(t, wf_tokenizer_codes);
    ck_assert_str_eq(codes, "#version: 0.2\ns t</w>\ne st</w>\nl o\nw est</w>\nn e\nne west</w>\n"
                            "lo w</w>\nw i\nwi d\nwid est</w>\nw e\nwe r</w>\nlo wer</w>\n");
    ck_assert_int_eq(wf_tokenizer_merges(t), 13);
    ck_assert_str_eq(pieces_of(t, "lowest newer widen low"), "lo@@ west ne@@ wer wid@@ e@@ n low");
    ck_assert_str_eq(there_and_back(t, "lowest  newer widen low"), "lowest newer widen low");
    ck_assert_str_eq(pieces_of(t, "lo\xc3\xb6w"), "lo@@ <unk> w");
    ck_assert_str_eq(there_and_back(t, "lo\xc3\xb6w"), "lo<unk> w");
    free(codes), wf_tokenizer_free(t);
}

TEST(limits_of_merges_and_ids) {
    wf_tokenizer_options o = merges(2);
    wf_tokenizer *t = learn(&o, example);
    ck_assert_int_eq(wf_tokenizer_merges(t), 2);
    ck_assert_int_eq(wf_tokenizer_size(t), WF_SPECIAL_IDS + 2 * 10 + 2);
    ck_assert_str_eq(pieces_of(t, "best low"), "<unk> est l@@ o@@ w");
    wf_tokenizer_free(t);
    o = merges(0), o.vocab_size = 30;
    t = learn(&o, example);
    ck_assert_int_eq(wf_tokenizer_size(t), 30);
    wf_tokenizer_free(t);
    o = merges(0), o.min_freq = 7;
    t = learn(&o, example);
    ck_assert_int_eq(wf_tokenizer_merges(t), 3);
    wf_tokenizer_free(t);
}

/* Limits hold for given merges, too. */
TEST(given_merges_have_limits_too) {
    static const char codes[] = "#version: 0.2\ne s\nes t</w>\nl o\n";
    wf_tokenizer_options o = merges(2);
    o.codes = codes, o.codes_bytes = strlen(codes);
    wf_tokenizer *t = learn(&o, example);
    ck_assert_int_eq(wf_tokenizer_merges(t), 2);
    ck_assert_str_eq(pieces_of(t, "best low"), "<unk> est l@@ o@@ w");
    wf_tokenizer_free(t);
    o = merges(0), o.codes = codes, o.codes_bytes = strlen(codes);
    o.vocab_size = WF_SPECIAL_IDS + 2 * 10 + 1;
    t = learn(&o, example);
    ck_assert_int_eq(wf_tokenizer_merges(t), 3);
    ck_assert_int_eq(wf_tokenizer_size(t), o.vocab_size);
    ck_assert_str_eq(pieces_of(t, "west low"), "w@@ es@@ t l@@ o@@ w");
    wf_tokenizer_free(t);
}

TEST(repeats_overlap) {
    wf_tokenizer_options o = merges(0);
    wf_tokenizer *t = learn(&o, "aaaaa aaaaa aaa\n");
    char *codes = text_of(t, wf_tokenizer_codes);
    ck_assert_str_eq(codes, "#version: 0.2\na a\naa a</w>\naa aaa</w>\n");
    ck_assert_str_eq(pieces_of(t, "aaaaaa aa a aaa"), "aa@@ aa@@ a@@ a a@@ a a aaa");
    free(codes), wf_tokenizer_free(t);
}

TEST(order_of_lines_is_nothing) {
    static const char turned[] = "widest widest newest newest newest widest\r\n"
                                 "\tlower low newest newest low low low newest lower low\n";
    wf_tokenizer_options o = merges(0);
    wf_tokenizer *t = learn(&o, example), *u = learn(&o, turned);
    char *a = text_of(t, wf_tokenizer_codes), *b = text_of(u, wf_tokenizer_codes);
    char *v = text_of(t, wf_tokenizer_vocabulary), *w = text_of(u, wf_tokenizer_vocabulary);
    ck_assert_str_eq(a, b);
    ck_assert_str_eq(v, w);
    free(a), free(b), free(v), free(w), wf_tokenizer_free(t), wf_tokenizer_free(u);
}

/* Merges never make a symbol that ends in a literal "</w>" inside a word, or in a literal "@@" at a
 * word's end: in the files these marks would mean something else. */
TEST(literal_marks_are_not_merged) {
    wf_tokenizer_options o = merges(0);
    wf_tokenizer *t = learn(&o, "a</w>b a</w>b a</w>b x@@ x@@ x@@\n");
    char *codes = text_of(t, wf_tokenizer_codes), *v = text_of(t, wf_tokenizer_vocabulary);
    char message[MESSAGE] = "";
    wf_tokenizer *u = wf_tokenizer_read(WF_BPE, v, strlen(v), codes, strlen(codes), message);
    ck_assert_msg(u != NULL, "%s", message);
    const char *line = "a</w>b x@@ </w> x@ @@ @ xa</w> <s> w";
    ck_assert_str_eq(there_and_back(t, line), "a</w>b x@@ </w> x@ @@ @ xa</w> <<unk> > w");
    char *pieces = strdup(pieces_of(t, line));
    ck_assert_str_eq(pieces_of(u, line), pieces);
    free(pieces), free(codes), free(v), wf_tokenizer_free(t), wf_tokenizer_free(u);
}

/* ---- subword-nmt ----------------------------------------------------------------------------- */

TEST(learns_what_subword_nmt_learns) {
    size_t n;
    char *text = data_text("bpe.txt", &n), *want = data_text("bpe.codes", &n);
    wf_tokenizer_options o = merges(300);
    wf_tokenizer *t = learn(&o, text);
    char *codes = text_of(t, wf_tokenizer_codes);
    ck_assert_str_eq(codes, want);
    free(text), free(want), free(codes), wf_tokenizer_free(t);
}

static char *next_line(char **rest) {
    char *line = *rest, *end = strchr(line, '\n');
    ck_assert_ptr_nonnull(end);
    *end = '\0', *rest = end + 1;
    return line;
}

/* Asserts that weft's pieces `have` are those of subword-nmt, `want`. A piece that the vocabulary
 * lacks is written as it is by subword-nmt, and is the unknown token in weft. */
static void assert_same_pieces(const wf_tokenizer *t, const char *have, char *want) {
    char *have_copy = strdup(have), *h = NULL, *w = NULL;
    const char *p = strtok_r(have_copy, " ", &h), *q = strtok_r(want, " ", &w);
    for (; p && q; p = strtok_r(NULL, " ", &h), q = strtok_r(NULL, " ", &w)) {
        if (strcmp(p, q) == 0) continue;
        ck_assert_msg(strcmp(p, "<unk>") == 0, "'%s' for '%s'", p, q);
        for (int32_t id = WF_SPECIAL_IDS; id < wf_tokenizer_size(t); id++)
            ck_assert_str_ne(wf_tokenizer_piece(t, id), q);
    }
    ck_assert_msg(!p && !q, "%s: not as many pieces", have);
    free(have_copy);
}

/* Segments the text twice: the second time every word comes from the cache. */
static void assert_segments(wf_tokenizer *t, const char *segmented) {
    size_t n;
    for (int twice = 0; twice < 2; twice++) {
        char *text = data_text("bpe.txt", &n), *want = data_text(segmented, &n), *a = text,
             *b = want;
        int count = 0;
        for (; *a; count++) {
            const char *line = next_line(&a);
            assert_same_pieces(t, pieces_of(t, line), next_line(&b));
        }
        ck_assert_int_eq(count, 399);
        free(text), free(want);
    }
    wf_tokenizer_free(t);
}

static wf_tokenizer *with_codes(const char *name) {
    size_t n;
    char *text = data_text("bpe.txt", &n), *codes = data_text(name, &n);
    wf_tokenizer_options o = merges(0);
    o.codes = codes, o.codes_bytes = n;
    wf_tokenizer *t = learn(&o, text);
    char *written = text_of(t, wf_tokenizer_codes);
    ck_assert_str_eq(written, codes);
    free(text), free(codes), free(written);
    return t;
}

TEST(applies_as_subword_nmt_applies) {
    assert_segments(with_codes("bpe.codes"), "bpe.segmented");
}

TEST(applies_merges_in_any_order) {
    assert_segments(with_codes("bpe_shuffled.codes"), "bpe_shuffled.segmented");
}

TEST(takes_apart_what_the_vocabulary_lacks) {
    size_t n, m;
    char message[MESSAGE] = "";
    char *v = data_text("bpe_limited.vocabulary", &n), *codes = data_text("bpe.codes", &m);
    wf_tokenizer *t = wf_tokenizer_read(WF_BPE, v, n, codes, m, message);
    ck_assert_msg(t != NULL, "%s", message);
    assert_segments(t, "bpe_limited.segmented");
    free(v), free(codes);
}

/* ---- long words, many words ------------------------------------------------------------------ */

/* A word of a megabyte is encoded in seconds, because a merge does not search the whole word. */
TEST(a_long_word_is_no_trap) {
    enum { LONG = 1 << 20 };
    wf_tokenizer_options o = merges(0);
    wf_tokenizer *t = learn(&o, "abaabbabb abaabbabb a b\n");
    char *word = malloc(LONG), *text = malloc(LONG + 1);
    int32_t *ids = malloc(LONG * sizeof *ids);
    ck_assert(word && text && ids);
    for (int i = 0; i < LONG; i++) word[i] = number(5, (uint64_t)i) < 0.5 ? 'a' : 'b';
    int64_t n = wf_tokenizer_encode(t, word, LONG, ids, LONG, NULL);
    ck_assert(n > LONG / 8 && n < LONG);
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, n, text, LONG + 1), LONG);
    ck_assert_int_eq(memcmp(word, text, LONG), 0);
    free(word), free(text), free(ids), wf_tokenizer_free(t);
}

/* More different words than the cache holds: words are dropped from it, and encoded the same
 * again. */
TEST(what_is_remembered_is_bounded) {
    wf_tokenizer_options o = merges(0);
    wf_tokenizer *t = learn(&o, "0123456789 01 01 23 23 45 45\n");
    char line[256], text[256];
    int32_t ids[256];
    for (int i = 0; i < 300000; i++) { /* a new word and an older one in turn */
        int n = snprintf(line, sizeof line, "%0200d", i % 2 ? i / 2 : i);
        int64_t k = wf_tokenizer_encode(t, line, (size_t)n, ids, 256, NULL);
        ck_assert_int_eq(wf_tokenizer_decode(t, ids, k, text, sizeof text), n);
        if (memcmp(line, text, (size_t)n)) ck_abort_msg("%s: %s", line, text);
    }
    wf_tokenizer_free(t);
}
