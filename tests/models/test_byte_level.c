/* tests/models/test_byte_level.c - byte-level BPE with a vocabulary and merges as in GPT-2: refused
 * files, the metadata in a model's file, the order of merges. Recorded ids of lines of all kinds
 * are compared in test_hf.c, folder "bart". */
#include <stdio.h>
#include <unistd.h>

#include "models/text/byte_level/byte_level.h"
#include "models/text_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(byte_level)

/* ---- classes --------------------------------------------------------------------------------- */

TEST(classes_are_those_of_unicode_16) {
    int64_t n[4] = { 0 };
    for (uint32_t c = 0; c < 0x110000; c++) n[wf_unicode_class_of(c)]++;
    ck_assert_int_eq(n[UNICODE_LETTER], 141028);
    ck_assert_int_eq(n[UNICODE_NUMBER], 1911);
    ck_assert_int_eq(n[UNICODE_BLANK], 25);
    ck_assert_int_eq(wf_unicode_class_of('Z'), UNICODE_LETTER);
    ck_assert_int_eq(wf_unicode_class_of('_'), UNICODE_OTHER);
    ck_assert_int_eq(wf_unicode_class_of(0x2167), UNICODE_NUMBER); /* a Roman eight */
    ck_assert_int_eq(wf_unicode_class_of(0x10FFFF), UNICODE_OTHER);
}

#define WIDE_SPACE "\xE3\x80\x80"
#define ACUTE "\xCC\x81"
static const struct {
    const char *text;
    size_t first;
} chunks[] = {
    { "abc1", 3 },
    { " abc", 4 },
    { "  abc", 1 },
    { "\t abc", 1 },
    { "\tabc", 1 },
    { "   ", 3 },
    { "'s", 2 },
    { "'re ", 3 },
    { "'S", 1 },
    { " 's", 2 },
    { "'ll", 3 },
    { "'lx", 1 },
    { "12a", 2 },
    { "!? a", 2 },
    { " ", 1 },
    { WIDE_SPACE WIDE_SPACE "a", 3 },
    { "e" ACUTE, 1 },
    { ACUTE ACUTE " ", 4 },
    { " " WIDE_SPACE, 4 },
};

TEST_ROWS(chunks_end_where_gpt2_ends_them, COUNT_OF(chunks)) {
    const char *text = chunks[_i].text;
    ck_assert_uint_eq(wf_byte_level_chunk((wf_span){ text, strlen(text) }), chunks[_i].first);
}

/* ---- a vocabulary of all bytes and a few pieces more ----------------------------------------- */

enum { MORE_FROM = 260, PIECES = 270 };
static char spelled[256][CODE_POINT + 1];
static const char *pieces[PIECES];
static const int32_t first = 0, last = 2, mask = MORE_FROM + 5;

static wf_byte_level_options options(const char *merges) {
    static const char *const specials[] = { "<s>", "<pad>", "</s>", "<unk>" };
    static const char *const more[] = { "ab", "bc", "abc", "aa", "aab", "<mask>" };
    memset(pieces, 0, sizeof pieces);
    for (int i = 0; i < 4; i++) pieces[i] = specials[i];
    for (int i = 0; i < 256; i++) {
        spelled[i][wf_spell_byte((unsigned char)i, spelled[i])] = '\0';
        pieces[4 + i] = spelled[i];
    }
    for (int i = 0; i < COUNT_OF(more); i++) pieces[MORE_FROM + i] = more[i];
    return (wf_byte_level_options){ .pieces = pieces,
                                    .n_pieces = PIECES,
                                    .merges = merges,
                                    .merges_bytes = strlen(merges),
                                    .special = { 1, 3, 2, 2 },
                                    .before = &first,
                                    .n_before = 1,
                                    .after = &last,
                                    .n_after = 1 };
}

static wf_tokenizer *open_with(const char *merges) {
    char message[WF_MESSAGE] = "";
    wf_byte_level_options o = options(merges);
    wf_tokenizer *t = wf_tokenizer_from_byte_level(&o, message);
    ck_assert_msg(t, "%s", message);
    return t;
}

/* Asserts that the line has these pieces, written with spaces between, between the ids that begin
 * and end every line. */
static void assert_pieces(wf_tokenizer *t, const char *line, const char *want) {
    char message[WF_MESSAGE] = "", text[256] = "";
    int32_t ids[64];
    int64_t n = wf_tokenizer_encode(t, line, strlen(line), ids, 64, message);
    ck_assert_msg(n >= 2, "%s", message);
    ck_assert(ids[0] == first && ids[n - 1] == last);
    for (int64_t i = 1; i < n - 1; i++) {
        strcat(text, i > 1 ? " " : "");
        strcat(text, wf_tokenizer_piece(t, ids[i]));
    }
    ck_assert_str_eq(text, want);
}

#define SPACE "\xC4\xA0" /* U+0120, as it is spelled */

/* Earlier merges apply first, and at the leftmost place first; two merges can make "abc". */
TEST(merges_apply_in_their_order) {
    wf_tokenizer *t = open_with("#version: 0.2\nb c\na b\na bc\nab c\n");
    assert_pieces(t, "abc", "abc");
    assert_pieces(t, "ab c", "ab " SPACE " c");
    wf_tokenizer_free(t);
    t = open_with("a b\nb c\nab c\n");
    assert_pieces(t, "abcbc", "abc bc");
    wf_tokenizer_free(t);
    t = open_with("a a\naa b\n");
    assert_pieces(t, "aaaaab", "aa aa a b");
    assert_pieces(t, "aab", "aab");
    assert_pieces(t, "", "");
    wf_tokenizer_free(t);
}

/* With prefix_space, a line that begins without a space gets one. */
TEST(a_line_may_get_a_space) {
    wf_byte_level_options o = options("a b\n");
    o.prefix_space = true;
    wf_tokenizer *t = wf_tokenizer_from_byte_level(&o, NULL);
    assert_pieces(t, "ab", SPACE " ab");
    assert_pieces(t, " ab", SPACE " ab");
    wf_tokenizer_free(t);
}

/* Invalid UTF-8 decodes to one U+FFFD for each longest part that could begin a character. */
#define BAD "\xEF\xBF\xBD"
static const struct {
    const char *bytes, *text;
} broken_text[] = {
    { "a\x80", "a" BAD },
    { "\xE2\x82", BAD },
    { "\xE2\x82\xAC", "\xE2\x82\xAC" },
    { "\xE2"
      "A",
      BAD "A" },
    { "\xED\xA0\x80", BAD BAD BAD },
    { "\xF0\x9F\x98", BAD },
    { "\xF4\x90\x80\x80", BAD BAD BAD BAD },
    { "\xC0\x80\xFF", BAD BAD BAD },
};

TEST_ROWS(what_is_not_utf8_is_replaced, COUNT_OF(broken_text)) {
    wf_tokenizer *t = open_with("");
    char text[64];
    int32_t ids[16];
    int64_t n = (int64_t)strlen(broken_text[_i].bytes);
    for (int64_t i = 0; i < n; i++) ids[i] = 4 + (unsigned char)broken_text[_i].bytes[i];
    ck_assert_int_lt(wf_tokenizer_decode(t, ids, n, text, sizeof text), sizeof text);
    ck_assert_str_eq(text, broken_text[_i].text);
    wf_tokenizer_free(t);
}

TEST(special_ids_read_as_nothing) {
    char text[64], message[WF_MESSAGE];
    wf_byte_level_options o = options("a b\n"), again;
    o.silent = &mask, o.n_silent = 1;
    wf_tokenizer *t = wf_tokenizer_from_byte_level(&o, message);
    wf_tokenizer_decode(t, (int32_t[]){ 0, MORE_FROM, 1, 2, 3, mask, PIECES - 1, 4 + 'c' }, 8, text,
                        sizeof text);
    ck_assert_str_eq(text, "abc");
    ck_assert_int_eq(wf_tokenizer_decode(t, (int32_t[]){ PIECES }, 1, NULL, 0), -1);
    ck_assert_int_eq(wf_tokenizer_decode(t, (int32_t[]){ -1 }, 1, NULL, 0), -1);
    ck_assert_int_eq(wf_tokenizer_encode(t, "a\xFF", 2, NULL, 0, message), -1);
    ck_assert_str_eq(message, "not UTF-8 at byte 1");
    ck_assert_int_eq(wf_tokenizer_encode(t, NULL, 2, NULL, 0, message), -1);
    ck_assert_int_eq(wf_tokenizer_encode(t, "a\0\nb\n", 5, NULL, 0, message), 6);
    ck_assert(wf_tokenizer_byte_level(t, &again) && again.n_silent == 1 && again.silent[0] == mask);
    ck_assert(!wf_tokenizer_byte_level(NULL, &again));
    ck_assert_int_eq(wf_tokenizer_size(t), PIECES);
    ck_assert_int_eq(wf_tokenizer_special(t, WF_UNK_ID), 3);
    ck_assert_uint_eq(wf_tokenizer_vocabulary(t, NULL, 0) + wf_tokenizer_codes(t, NULL, 0), 0);
    wf_tokenizer_free(t);
}

/* ---- learned --------------------------------------------------------------------------------- */

typedef struct few_lines {
    const char *const *line;
    int n;
} few_lines;

static int next_line(void *from, const char **line, size_t *bytes) {
    few_lines *f = from;
    if (!f->n) return 0;
    *line = *f->line++;
    *bytes = strlen(*line);
    return f->n--, 1;
}

static wf_tokenizer *learn(const char *const *line, int n, int64_t size, char *message) {
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_BYTE_LEVEL);
    o.vocab_size = size;
    return wf_tokenizer_learn(&o, next_line, &(few_lines){ line, n }, message);
}

/* Merges stay within GPT-2's chunks, which separate a Roman numeral and a contraction from
 * letters. */
static const char *const book[] = { "it's it's it's", "abab abab", "ab\xE2\x85\xA7 ab\xE2\x85\xA7",
                                    "na\xC3\xAFve na\xC3\xAFve \t", "" };

TEST(a_vocabulary_is_learned_as_bart_has_it) {
    static const char *const specials[] = { "<s>", "<pad>", "</s>", "<unk>" };
    char message[WF_MESSAGE] = "", text[256];
    int32_t ids[256];
    wf_byte_level_options o;
    wf_tokenizer *t = learn(book, COUNT_OF(book), 0, message);
    ck_assert_msg(t, "%s", message);
    ck_assert_int_eq(wf_tokenizer_kind(t), WF_BYTE_LEVEL);
    for (int i = 0; i < 4; i++) ck_assert_str_eq(wf_tokenizer_piece(t, i), specials[i]);
    ck_assert(wf_tokenizer_byte_level(t, &o));
    ck_assert(o.n_before == 1 && o.before[0] == 0 && o.n_after == 0 && !o.prefix_space);
    ck_assert(o.special[WF_PAD_ID] == 1 && o.special[WF_UNK_ID] == 3);
    ck_assert(o.special[WF_START_ID] == 2 && o.special[WF_END_ID] == 2);
    ck_assert(strncmp(o.merges, "#version: 0.2\na b\n", 18) == 0);
    ck_assert_ptr_null(strstr(o.merges, "t '"));
    for (int i = 0; i < COUNT_OF(book); i++) {
        int64_t n = wf_tokenizer_encode(t, book[i], strlen(book[i]), ids, 256, message);
        ck_assert(n >= 1 && ids[0] == 0);
        ck_assert_int_ge(wf_tokenizer_decode(t, ids, n, text, sizeof text), 0);
        ck_assert_str_eq(text, book[i]);
    }
    ck_assert_int_eq(wf_tokenizer_encode(t, "abab it's", 9, ids, 256, message), 5);
    wf_tokenizer_free(t);
}

TEST(what_is_learned_has_the_size_that_was_asked) {
    char message[WF_MESSAGE] = "", longest[1200];
    for (size_t i = 0; i < sizeof longest; i++) longest[i] = "\xC3\xA9"[i % 2];
    longest[1000] = '\0';
    wf_tokenizer *t = learn(book, COUNT_OF(book), 265, message);
    ck_assert_int_eq(wf_tokenizer_size(t), 265);
    wf_tokenizer_free(t);
    t = learn((const char *const[]){ longest }, 1, 0, message); /* one chunk, cut between letters */
    ck_assert_int_ge(wf_tokenizer_size(t), 267);
    wf_tokenizer_free(t);
    ck_assert_ptr_null(learn(book, COUNT_OF(book), 259, message));
    assert_contains(message, "vocab_size is 259, but bytes need 260 ids");
    ck_assert_ptr_null(learn(book, 0, 0, message));
    assert_contains(message, "there is no text to learn a vocabulary from");
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    const char *merges, *sentence;
} refused[] = {
    { "a b\nq z\n", "merges: line 2: 'qz' is not in the vocabulary" },
    { "a zz\n", "merges: line 1: 'zz' is not in the vocabulary" },
    { "zz a\n", "merges: line 1: 'zz' is not in the vocabulary" },
    { "a b\na b\n", "merges: line 2: the merge is there twice" },
    { "ab\n", "merges: line 1: two pieces with a space between them expected" },
    { "a b\n\n", "merges: line 2: two pieces with a space" },
    { "a b c\n", "'b c' is not in the vocabulary" },
    { "a \xFF\n", "the merges are not UTF-8" },
};

TEST_ROWS(merges_that_are_none_are_refused, COUNT_OF(refused)) {
    char message[WF_MESSAGE] = "";
    wf_byte_level_options o = options(refused[_i].merges);
    ck_assert(!wf_tokenizer_from_byte_level(&o, message));
    assert_contains(message, refused[_i].sentence);
}

static void assert_refused(const wf_byte_level_options *o, const char *sentence) {
    char message[WF_MESSAGE] = "";
    ck_assert(!wf_tokenizer_from_byte_level(o, message));
    assert_contains(message, sentence);
}

TEST(a_vocabulary_that_is_none_is_refused) {
    wf_byte_level_options o = options("");
    assert_refused(NULL, "there is no vocabulary");
    pieces[4 + 'x'] = NULL;
    assert_refused(&o, "the vocabulary has no piece 'x', which is the byte 120");
    pieces[4 + 'x'] = "w";
    assert_refused(&o, "'w', is there twice");
    o = options(""), pieces[PIECES - 1] = "\xFF";
    assert_refused(&o, "piece 269 of the vocabulary is not UTF-8");
    o = options(""), o.n_pieces = 0;
    assert_refused(&o, "a vocabulary of 0 pieces");
    o = options(""), o.special[WF_PAD_ID] = PIECES;
    assert_refused(&o, "the id of a special symbol is 270");
    o = options(""), o.n_after = WF_MOST_AROUND + 1;
    assert_refused(&o, "ids around a line, or silent ones: 0 to 64");
    o = options(""), o.silent = &(int32_t){ -1 }, o.n_silent = 1;
    assert_refused(&o, "the id of what is no text is -1");
    o = options(""), o.merges = NULL, o.merges_bytes = 3;
    assert_refused(&o, "there are no merges");
}

/* ---- in a model's file ----------------------------------------------------------------------- */

static char path[64];
static void make_path(void) {
    strcpy(path, "/tmp/weft-byte-level-XXXXXX");
    close(mkstemp(path));
}
static void remove_path(void) {
    remove(path);
}

SETUP(make_path, remove_path)

static wf_file *through_file(const wf_meta *pairs, int n) {
    char message[WF_MESSAGE] = "";
    ck_assert_msg(wf_file_save(path, NULL, 0, pairs, n, message), "%s", message);
    return wf_file_open(path);
}

static wf_tokenizer *open_full(wf_meta pairs[WF_TOKENIZER_META], int *n) {
    char message[WF_MESSAGE] = "";
    wf_byte_level_options o = options("#version: 0.2\na b\nab c\n");
    o.silent = &mask, o.n_silent = 1, o.prefix_space = true;
    wf_tokenizer *t = wf_tokenizer_from_byte_level(&o, message);
    ck_assert_msg(t, "%s", message);
    *n = 0;
    ck_assert(wf_tokenizer_to_meta(t, "tokenizer", pairs, n, message));
    return t;
}

TEST(it_comes_back_from_a_file) {
    char message[WF_MESSAGE] = "";
    wf_meta pairs[WF_TOKENIZER_META], again[WF_TOKENIZER_META];
    int n;
    wf_tokenizer *t = open_full(pairs, &n);
    ck_assert_int_eq(n, 8);
    wf_file *f = through_file(pairs, n);
    wf_tokenizer *u = wf_tokenizer_from_meta(f, "tokenizer", message);
    ck_assert_msg(u, "%s", message);
    ck_assert_int_eq(wf_tokenizer_kind(u), WF_BYTE_LEVEL);
    int n_again = 0;
    ck_assert(wf_tokenizer_to_meta(u, "tokenizer", again, &n_again, message));
    ck_assert_int_eq(n_again, n);
    for (int i = 0; i < n; i++) ck_assert_str_eq(pairs[i].value, again[i].value);
    assert_pieces(u, "abc", SPACE " abc");
    wf_file_free(f), wf_tokenizer_free(t), wf_tokenizer_free(u);
}

/* Fields that are missing (value NULL) or have a wrong value, and the messages about them. */
static const struct {
    const char *field, *value, *sentence;
} fields[] = {
    { "tokenizer.vocabulary", NULL, "there is no vocabulary" },
    { "tokenizer.vocabulary", "[\"a\"", "the vocabulary: " },
    { "tokenizer.vocabulary", "[]", "there is no vocabulary" },
    { "tokenizer.special", NULL, "0 special ids: 4" },
    { "tokenizer.special", "1,2", "2 special ids: 4" },
    { "tokenizer.special", "1,2,3,x", "'1,2,3,x' are not some ids" },
    { "tokenizer.prefix", "blank", "the prefix is 'blank', not 'space'" },
    { "tokenizer.codes", "a b c", "merges: line 1" },
    { "tokenizer.silent", "270", "the id of what is no text is 270" },
};

TEST_ROWS(a_damaged_field_is_told, COUNT_OF(fields)) {
    char message[WF_MESSAGE] = "";
    wf_meta pairs[WF_TOKENIZER_META];
    int n;
    wf_tokenizer *t = open_full(pairs, &n);
    for (int i = 0; i < n; i++) {
        if (strcmp(pairs[i].key, fields[_i].field) != 0) continue;
        pairs[i].value = fields[_i].value;
        if (!fields[_i].value) pairs[i--] = pairs[--n];
    }
    wf_file *f = through_file(pairs, n);
    ck_assert(!wf_tokenizer_from_meta(f, "tokenizer", message));
    assert_contains(message, fields[_i].sentence);
    wf_file_free(f), wf_tokenizer_free(t);
}
