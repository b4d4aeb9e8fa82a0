/* tests/models/test_text.c - text to ids and back: lines, words, characters, vocabulary files, and
 * refused texts.
 *
 * Byte-pair encoding has its own suite, test_bpe.c. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdio.h>
#include <unistd.h>

#include "core/file_internal.h"
#include "models/text_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "tests/support/wall.h"
#include "texts.h"

TESTS(text)

static const wf_token_kind kinds[] = { WF_WORDS, WF_CHARACTERS, WF_BPE };

/* ---- lines ----------------------------------------------------------------------------------- */

static const struct {
    const char *line;
    size_t bytes;
    const char *says; /* NULL: fine */
} line_cases[] = {
#define LINE(text, says)                                                                           \
    { text, sizeof text - 1, says }
    LINE("", NULL),
    LINE("\n", NULL),
    LINE("\r\n", NULL),
    LINE("a\r", NULL),
    LINE("Straße Ω 日 😀\r\n", NULL),
    LINE("\xed\x9f\xbf\xee\x80\x80", NULL), /* U+D7FF U+E000: beside the surrogates */
    LINE("\xf4\x8f\xbf\xbf", NULL),         /* U+10FFFF */
    LINE("\xef\xbf\xbe\xef\xbf\xbf", NULL), /* noncharacters are scalar values */
    LINE("ab\xff", "not UTF-8 at byte 2"),
    LINE("\x80", "not UTF-8 at byte 0"),
    LINE("a\xc0\xaf", "not UTF-8 at byte 1"), /* overlong '/' */
    LINE("a\xc1\xbf", "not UTF-8 at byte 1"),
    LINE("\xe0\x9f\xbf", "not UTF-8 at byte 0"),     /* overlong U+07FF */
    LINE("\xf0\x8f\xbf\xbf", "not UTF-8 at byte 0"), /* overlong U+FFFF */
    LINE("xy\xed\xa0\x80", "not UTF-8 at byte 2"),   /* U+D800 */
    LINE("\xed\xbf\xbf", "not UTF-8 at byte 0"),     /* U+DFFF */
    LINE("\xf4\x90\x80\x80", "not UTF-8 at byte 0"), /* U+110000 */
    LINE("\xf5\x80\x80\x80", "not UTF-8 at byte 0"),
    LINE("\xf8\x88\x80\x80\x80", "not UTF-8 at byte 0"),
    LINE("ok\xe6\x97", "not UTF-8 at byte 2"), /* cut off */
    LINE("ok\xe6\x97\n", "not UTF-8 at byte 2"),
    LINE("\xc3(b", "not UTF-8 at byte 0"),
    LINE("ab\0c", "a zero byte (U+0000) at byte 2"),
    LINE("a\nb", "a line break inside the line, at byte 1"),
    LINE("a\rb\n", "a line break inside the line, at byte 1"),
    LINE("a\r\r\n", "a line break inside the line, at byte 1"),
    LINE("a\n\n", "a line break inside the line, at byte 1"),
#undef LINE
};

TEST_ROWS(lines_are_checked, COUNT_OF(line_cases)) {
    char message[MESSAGE] = "";
    const char *says = line_cases[_i].says;
    bool ok = wf_text_check(line_cases[_i].line, line_cases[_i].bytes, message);
    ck_assert_msg(ok == !says, "line %d: '%s'", _i, message);
    if (says) ck_assert_str_eq(message, says);
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        wf_tokenizer *t = learn_kind(kinds[k], "a b\n");
        int64_t n =
            wf_tokenizer_encode(t, line_cases[_i].line, line_cases[_i].bytes, NULL, 0, NULL);
        ck_assert_int_eq(n < 0, says != NULL);
        wf_tokenizer_free(t);
    }
}

/* ---- words and characters -------------------------------------------------------------------- */

TEST(words_by_frequency_then_bytes) {
    wf_tokenizer *t = learn_kind(WF_WORDS, "b c a\r\n \t\n  c  d b\nb\td\n");
    char *v = text_of(t, wf_tokenizer_vocabulary);
    ck_assert_str_eq(v, "<pad>\n<unk>\n<s>\n</s>\nb\nc\nd\na\n");
    ck_assert_int_eq(wf_tokenizer_size(t), 8);
    ck_assert_int_eq(wf_tokenizer_merges(t), 0);
    ck_assert_int_eq(wf_tokenizer_kind(t), WF_WORDS);
    ck_assert_str_eq(wf_tokenizer_piece(t, WF_START_ID), "<s>");
    ck_assert_str_eq(wf_tokenizer_piece(t, 5), "c");
    ck_assert_ptr_null(wf_tokenizer_piece(t, 8));
    ck_assert_ptr_null(wf_tokenizer_piece(t, -1));
    ck_assert_str_eq(there_and_back(t, "\t d  a\v\fb \r\n"), "d a b");
    ck_assert_str_eq(there_and_back(t, "d x a"), "d <unk> a");
    ck_assert_str_eq(there_and_back(t, " "), "");
    free(v), wf_tokenizer_free(t);
}

/* A word that looks like a special symbol keeps its id when the vocabulary is read again. */
TEST(words_like_special_symbols) {
    wf_tokenizer *t = learn_kind(WF_WORDS, "<blank> <blank> <s> a\n");
    char *v = text_of(t, wf_tokenizer_vocabulary);
    ck_assert_str_eq(v, "<pad>\n<unk>\n<s>\n</s>\n<blank>\n<s>\na\n");
    wf_tokenizer *again = wf_tokenizer_read(WF_WORDS, v, strlen(v), NULL, 0, NULL);
    int32_t ids[3];
    ck_assert_int_eq(wf_tokenizer_encode(again, "<s> <blank> a", 13, ids, 3, NULL), 3);
    ck_assert(ids[0] == 5 && ids[1] == 4 && ids[2] == 6);
    free(v), wf_tokenizer_free(t), wf_tokenizer_free(again);
}

TEST(rare_and_many_are_cut) {
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_WORDS);
    o.min_freq = 2;
    wf_tokenizer *t = learn(&o, "b c a\n c d b\nb d\n");
    ck_assert_str_eq(pieces_of(t, "a b c d"), "<unk> b c d");
    wf_tokenizer_free(t);
    o.vocab_size = 6;
    t = learn(&o, "b c a\n c d b\nb d\n");
    ck_assert_int_eq(wf_tokenizer_size(t), 6);
    ck_assert_str_eq(pieces_of(t, "a b c d"), "<unk> b c <unk>");
    wf_tokenizer_free(t);
    o = wf_tokenizer_defaults(WF_CHARACTERS), o.vocab_size = 5;
    t = learn(&o, "abcb\n");
    ck_assert_str_eq(pieces_of(t, "abx"), "<unk> b <unk>");
    wf_tokenizer_free(t);
}

/* German, Greek, Chinese, an emoji of seven code points, combining marks, right to left with
 * a mark of direction, no-break and ideographic spaces, a byte order mark, and literal marks. */
static const char multilingual[] =
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche .\n"
    "Ο κόσμος είναι μικρός\n"
    "我在 北京学习。\n"
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7\xe2\x80\x8d\xf0\x9f"
    "\x91\xa6 \xf0\x9f\x87\xa9\xf0\x9f\x87\xaa ok\n"
    "cafe\xcc\x81 a\xcc\x8a\xcc\xa3 \xcc\x81\n"
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xe2\x80\x8f\xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 abc\n"
    "10\xc2\xa0km \xe3\x80\x80 x\xe2\x80\xa8y \xef\xbb\xbfz\n"
    "<s> a </s> <pad><unk> <unk> <blank> </w> x</w> </w>y @@ @ a@@ b@@@@ @@a \\n\n";

TEST_ROWS(every_line_comes_back, COUNT_OF(kinds)) {
    wf_tokenizer_options o = wf_tokenizer_defaults(kinds[_i]);
    o.min_freq = 1;
    wf_tokenizer *t = learn(&o, multilingual);
    lines l = { multilingual };
    const char *line;
    size_t bytes;
    while (next_of(&l, &line, &bytes)) {
        char want[512];
        snprintf(want, sizeof want, "%.*s", (int)bytes - 1, line);
        ck_assert_str_eq(there_and_back(t, want), want);
        int32_t ids[512];
        int64_t n = wf_tokenizer_encode(t, line, bytes, ids, 512, NULL);
        for (int64_t i = 0; i < n; i++) ck_assert_int_ge(ids[i], WF_SPECIAL_IDS);
    }
    wf_tokenizer_free(t);
}

TEST(characters_keep_white_space) {
    wf_tokenizer *t = learn_kind(WF_CHARACTERS, " a\t b  \n");
    ck_assert_str_eq(there_and_back(t, "  b\ta  \r\n"), "  b\ta  ");
    ck_assert_str_eq(there_and_back(t, "a\vb"), "a<unk>b");
    ck_assert_str_eq(there_and_back(t, ""), "");
    char *v = text_of(t, wf_tokenizer_vocabulary);
    ck_assert_str_eq(v, "<pad>\n<unk>\n<s>\n</s>\n \n\t\na\nb\n");
    wf_tokenizer *again = wf_tokenizer_read(WF_CHARACTERS, v, strlen(v), NULL, 0, NULL);
    ck_assert_str_eq(there_and_back(again, "  b\ta  "), "  b\ta  ");
    free(v), wf_tokenizer_free(t), wf_tokenizer_free(again);
}

TEST(lengths_as_in_snprintf) {
    wf_tokenizer *t = learn_kind(WF_WORDS, "one two three\n");
    int32_t ids[3] = { -7, -7, -7 };
    char text[16] = "##############";
    ck_assert_int_eq(wf_tokenizer_encode(t, "three two one", 13, NULL, 0, NULL), 3);
    ck_assert_int_eq(wf_tokenizer_encode(t, "three two one", 13, ids, 2, NULL), 3);
    ck_assert(ids[0] == 5 && ids[1] == 6 && ids[2] == -7);
    ids[2] = WF_UNK_ID;
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, 3, NULL, 0), 15);
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, 3, text, 8), 15);
    ck_assert_str_eq(text, "three t");
    ck_assert_int_eq(text[8], '#');
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, 0, text, 8), 0);
    ck_assert_str_eq(text, "");
    int32_t padded[] = { WF_START_ID, 4, WF_PAD_ID, 6, WF_END_ID, WF_PAD_ID };
    ck_assert_int_eq(wf_tokenizer_decode(t, padded, 6, text, sizeof text), 7);
    ck_assert_str_eq(text, "one two");
    ids[1] = 7;
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, 3, text, 8), -1);
    ids[1] = -1;
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, 3, text, 8), -1);
    wf_tokenizer_free(t);
}

/* ---- what cannot be learned ------------------------------------------------------------------ */

static const struct {
    wf_tokenizer_options o;
    const char *text, *says;
} refused[] = {
    { { .kind = WF_WORDS, .min_freq = 1 }, "", "no text to learn a vocabulary from" },
    { { .kind = WF_BPE, .min_freq = 1 }, " \n\t\r\n", "no text to learn a vocabulary from" },
    { { .kind = WF_WORDS, .min_freq = 1 }, "a\nb \xff\n", "line 2: not UTF-8 at byte 2" },
    { { .kind = WF_WORDS, .min_freq = 3 }, "a a b\n", "nothing occurs 3 times: lower min_freq" },
    { { .kind = WF_WORDS }, "a\n", "min_freq is 0: at least 1" },
    { { .kind = WF_WORDS, .min_freq = 1, .vocab_size = 4 },
      "a\n",
      "vocab_size is 4: 0 for no limit" },
    { { .kind = WF_WORDS, .min_freq = 1, .vocab_size = -1 }, "a\n", "vocab_size is -1" },
    { { .kind = WF_WORDS, .min_freq = 1, .vocab_size = (int64_t)INT32_MAX + 1 },
      "a\n",
      "vocab_size is" },
    { { .kind = WF_WORDS, .min_freq = 1, .merges = 1 }, "a\n", "for byte-pair encoding alone" },
    { { .kind = WF_CHARACTERS, .min_freq = 1, .codes = "" },
      "a\n",
      "for byte-pair encoding alone" },
    { { .kind = WF_BPE, .min_freq = 1, .merges = -1 }, "a\n", "merges is -1: at least 0" },
    { { .kind = WF_BYTE_LEVEL, .vocab_size = 259, .min_freq = 1 }, "a\n", "bytes need 260 ids" },
    { { .kind = WF_JSON_TEXT, .min_freq = 1 }, "a\n", "json is not learned here" },
    { { .kind = (wf_token_kind)9, .min_freq = 1 }, "a\n", "kind 9 is not one of word|char|bpe" },
    { { .kind = WF_BPE, .min_freq = 1, .vocab_size = 9 },
      "abc\n",
      "vocab_size is 9, but the 3 characters need 10" },
    { { .kind = WF_BPE, .min_freq = 1, .codes = "a b\n", .codes_bytes = 4 },
      "a\n",
      "codes: the first line is not '#version: 0.2'" },
};

TEST_ROWS(learning_is_refused, COUNT_OF(refused)) {
    char message[MESSAGE] = "";
    ck_assert(learn_fails(&refused[_i].o, refused[_i].text, message));
    assert_contains(message, refused[_i].says);
}

static int broken(void *from, const char **line, size_t *bytes) {
    *line = "a", *bytes = 1;
    return ++*(int *)from < 3 ? 1 : -1;
}

TEST(a_reader_may_fail) {
    char message[MESSAGE] = "";
    int n = 0;
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_WORDS);
    ck_assert_ptr_null(wf_tokenizer_learn(&o, broken, &n, message));
    ck_assert_str_eq(message, "line 3 could not be read");
    ck_assert_ptr_null(wf_tokenizer_learn(NULL, broken, &n, message));
    assert_contains(message, "no options");
    ck_assert_ptr_null(wf_tokenizer_learn(&o, NULL, &n, message));
    assert_contains(message, "no lines to learn from");
    wf_tokenizer_free(NULL);
}

/* ---- vocabulary files ------------------------------------------------------------------------ */

static const struct {
    wf_token_kind kind;
    const char *vocabulary, *codes, *line, *pieces; /* of the line; NULL: refused */
    const char *says;
} files[] = {
#define CODES "#version: 0.2\n"
#define LONG_WORD                                                                                  \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    { WF_WORDS, "the 12\nof\t7\na\n", NULL, "a the x of", "a the <unk> of", NULL },
    { WF_WORDS, "<unk>\n<blank>\n<s>\n</s>\nthe 12\r\na 3", NULL, "a the <s>", "a the <unk>",
      NULL },
    { WF_WORDS, "<s> 0\n</s> 0\n<unk> 0\n<pad> 0\n<s> 9\n12 4\n<blank>\n", NULL, "12 <s> <blank> 4",
      "12 <s> <blank> <unk>", NULL },
    { WF_WORDS, "a\n<unk>\n", NULL, "<unk> a", "<unk> a", NULL },
    { WF_CHARACTERS, "  12\na 3\n3\n\t\n<\n", NULL, "a 3\tb<", "a   3 \t <unk> <", NULL },
    { WF_CHARACTERS, "<s>\n\xe6\x97\xa5\t5\n", NULL, "\xe6\x97\xa5s", "\xe6\x97\xa5 <unk>", NULL },
    { WF_BPE, "lo@@ 3\nw 2\nl@@\n", CODES "l o\n", "low lol", "lo@@ w lo@@ <unk>", NULL },
    { WF_BPE, "l@@\no@@\nw\n", CODES "l o\nlo w</w>\n\n", "low w", "l@@ o@@ w w", NULL },
    { WF_BPE, "ab@@\nc@@\na@@\nbc@@\nd\n", CODES "a b\nab c\nb c\na bc\n", "abcd", "ab@@ c@@ d",
      NULL },
    { WF_BPE, "a@@\na\n@\n@@@\n", CODES, "a@ a@a", "a@@ @ a@@ @@@ a", NULL },
    { WF_WORDS, "", NULL, NULL, NULL, "vocabulary: there is no piece in it" },
    { WF_WORDS, "<pad>\n<unk>\n", NULL, NULL, NULL, "vocabulary: there is no piece in it" },
    { WF_WORDS, "a\n\nb\n", NULL, NULL, NULL, "vocabulary: line 2: an empty line" },
    { WF_WORDS, "a\n b\n", NULL, NULL, NULL, "vocabulary: line 2: white space where a piece" },
    { WF_WORDS, "a b\n", NULL, NULL, NULL, "vocabulary: line 1: more than a piece and its count" },
    { WF_WORDS, "a  1\n", NULL, NULL, NULL, "vocabulary: line 1: more than a piece and its count" },
    { WF_WORDS, "a -1\n", NULL, NULL, NULL, "vocabulary: line 1: more than a piece and its count" },
    { WF_WORDS, "a 1\nb 2\na 3\n", NULL, NULL, NULL, "vocabulary: line 3: 'a' occurs twice" },
    { WF_WORDS, LONG_WORD "\n" LONG_WORD "\n", NULL, NULL, NULL, "line 2: 'xxxxx" },
    { WF_BPE, LONG_WORD "</w>@@\n", CODES, NULL, NULL, "line 1: 'xxxxx" },
    { WF_WORDS, "a\nb\xc3\n", NULL, NULL, NULL, "vocabulary: line 2: not UTF-8 at byte 1" },
    { WF_WORDS, "a\rb\n", NULL, NULL, NULL, "vocabulary: line 1: a line break inside" },
    { WF_CHARACTERS, "ab\n", NULL, NULL, NULL, "vocabulary: line 1: more than one character" },
    { WF_CHARACTERS, "a\n<pad>\n", NULL, NULL, NULL,
      "vocabulary: line 2: more than one character" },
    { WF_BPE, "a\n@@\n", CODES, NULL, NULL, "vocabulary: line 2: '@@' alone is no piece" },
    { WF_BPE, "x</w>@@\n", CODES, NULL, NULL, "vocabulary: line 1: 'x</w>@@' cannot be told" },
    { WF_BPE, "a\n", NULL, NULL, NULL, "byte-pair encoding needs codes" },
    { WF_WORDS, "a\n", CODES, NULL, NULL, "codes are for byte-pair encoding alone" },
    { WF_WORDS, NULL, NULL, NULL, NULL, "there is no vocabulary" },
    { WF_BPE, "a\n", "", NULL, NULL, "codes: the first line is not" },
    { WF_BPE, "a\n", "#version: 0.1\na b\n", NULL, NULL, "codes: the first line is not" },
    { WF_BPE, "a\n", CODES "a b\na\n", NULL, NULL, "codes: line 3: two symbols with one space" },
    { WF_BPE, "a\n", CODES "a b c\n", NULL, NULL, "codes: line 2: two symbols with one space" },
    { WF_BPE, "a\n", CODES "a  b\n", NULL, NULL, "codes: line 2: two symbols with one space" },
    { WF_BPE, "a\n", CODES " b\n", NULL, NULL, "codes: line 2: two symbols with one space" },
    { WF_BPE, "a\n", CODES "\na b\n", NULL, NULL, "codes: line 2: two symbols with one space" },
    { WF_BPE, "a\n", CODES "a\tb\n", NULL, NULL, "codes: line 2: two symbols with one space" },
    { WF_BPE, "a\n", CODES "a </w>\n", NULL, NULL,
      "codes: line 2: '</w>' is no symbol of its own" },
    { WF_BPE, "a\n", CODES "a</w> b\n", NULL, NULL,
      "codes: line 2: 'a</w> b' makes what cannot be told" },
    { WF_BPE, "a\n", CODES "@ @</w>\n", NULL, NULL,
      "codes: line 2: '@ @</w>' makes what cannot be told" },
    { WF_BPE, "a\n", CODES "</ w>\n", NULL, NULL,
      "codes: line 2: '</ w>' makes what cannot be told" },
    { WF_BPE, "a\n", CODES "a \xed\xa0\x80\n", NULL, NULL, "codes: line 2: not UTF-8 at byte 2" },
};

TEST_ROWS(files_are_read_strictly, COUNT_OF(files)) {
    char message[MESSAGE] = "";
    const char *v = files[_i].vocabulary, *c = files[_i].codes;
    wf_tokenizer *t =
        wf_tokenizer_read(files[_i].kind, v, v ? strlen(v) : 0, c, c ? strlen(c) : 0, message);
    if (files[_i].pieces) {
        ck_assert_msg(t != NULL, "%s", message);
        ck_assert_str_eq(pieces_of(t, files[_i].line), files[_i].pieces);
    } else {
        ck_assert_ptr_null(t);
        assert_contains(message, files[_i].says);
    }
    wf_tokenizer_free(t);
}

/* ---- in a model's file ----------------------------------------------------------------------- */

static char path[] = "/tmp/weft-text-XXXXXX";

static void make_path(void) {
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void remove_path(void) {
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
}

static wf_file *through_file(const wf_meta *pairs, int n) {
    char message[MESSAGE] = "";
    ck_assert_msg(wf_file_save(path, NULL, 0, pairs, n, message), "%s", message);
    wf_file *f = wf_file_open(path);
    ck_assert_msg(wf_file_ok(f), "%s", wf_file_error(f));
    return f;
}

SETUP(make_path, remove_path)

/* Tokenizers of one SentencePiece model share it, and each keeps its own ids around a line. The
 * model stays as long as one of them. A tokenizer beside another model has its own. */
TEST(tokenizers_share_a_model) {
    char message[MESSAGE] = "";
    size_t bytes, other_bytes;
    char place[512];
    char *file = file_text(source_path("tests/data/words_de.spm", place, sizeof place), &bytes);
    char *other =
        file_text(source_path("tests/data/words_en.spm", place, sizeof place), &other_bytes);
    int32_t end = 0, ids[2][16];
    wf_sentencepiece_options o;
    ck_assert(wf_sentencepiece_defaults(file, bytes, &o, message));
    o.n_before = o.n_after = 0;
    wf_tokenizer *plain = wf_tokenizer_from_sentencepiece(&o, message);
    o.after = &end;
    o.n_after = 1;
    wf_tokenizer *ended = wf_tokenizer_from_sentencepiece(&o, message);
    wf_meta pairs[3 * WF_TOKENIZER_META];
    int n = 0;
    ck_assert(wf_tokenizer_to_meta(ended, "src_tokenizer", pairs, &n, message));
    ck_assert(wf_tokenizer_to_meta(plain, "tgt_tokenizer", pairs, &n, message));
    ck_assert(wf_sentencepiece_defaults(other, other_bytes, &o, message));
    wf_tokenizer *apart = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert(wf_tokenizer_to_meta(apart, "other", pairs, &n, message));
    wf_file *f = through_file(pairs, n);
    wf_tokenizer *t[] = { wf_tokenizer_from_meta(f, "src_tokenizer", message), NULL, NULL };
    t[1] = wf_tokenizer_from_meta_beside(f, "tgt_tokenizer", t[0], message);
    t[2] = wf_tokenizer_from_meta_beside(f, "other", t[0], message);
    wf_sentencepiece_options of[3];
    for (int i = 0; i < 3; i++) ck_assert(wf_tokenizer_sentencepiece(t[i], &of[i]));
    ck_assert(of[0].model == of[1].model && of[0].model != of[2].model);
    int64_t length = wf_tokenizer_encode(t[0], "hallo welt", 10, ids[0], 16, message);
    wf_tokenizer_free(t[0]);
    ck_assert_int_eq(wf_tokenizer_encode(t[1], "hallo welt", 10, ids[1], 16, message), length - 1);
    ck_assert_mem_eq(ids[0], ids[1], (size_t)(length - 1) * sizeof **ids);
    ck_assert_int_eq(ids[0][length - 1], end);
    wf_file_free(f);
    wf_tokenizer *left[] = { plain, ended, apart, t[1], t[2] };
    for (int i = 0; i < COUNT_OF(left); i++) wf_tokenizer_free(left[i]);
    free(file);
    free(other);
}

TEST_ROWS(a_model_file_holds_two_tokenizers, COUNT_OF(kinds)) {
    char message[MESSAGE] = "";
    wf_tokenizer *src = learn_kind(kinds[_i], multilingual),
                 *tgt = learn_kind(kinds[_i], "a b ab\nb ab\n");
    wf_meta pairs[2 * WF_TOKENIZER_META];
    int n = 0, n_again = 0;
    ck_assert(wf_tokenizer_to_meta(src, "src_tokenizer", pairs, &n, message));
    ck_assert(wf_tokenizer_to_meta(tgt, "tgt_tokenizer", pairs, &n, message));
    ck_assert_int_eq(n, kinds[_i] == WF_BPE ? 6 : 4);
    wf_file *f = through_file(pairs, n);
    ck_assert(wf_tokenizer_in_file(f, "src_tokenizer") && !wf_tokenizer_in_file(f, "tokenizer"));
    wf_tokenizer *again = wf_tokenizer_from_meta(f, "src_tokenizer", message);
    ck_assert_msg(again != NULL, "%s", message);
    ck_assert_int_eq(wf_tokenizer_kind(again), kinds[_i]);
    wf_meta copies[WF_TOKENIZER_META];
    ck_assert(wf_tokenizer_to_meta(again, "src_tokenizer", copies, &n_again, message));
    for (int i = 0; i < n_again; i++) {
        ck_assert_str_eq(copies[i].key, pairs[i].key);
        ck_assert_str_eq(copies[i].value, pairs[i].value);
    }
    ck_assert_ptr_null(wf_tokenizer_from_meta(f, "tokenizer", message));
    assert_contains(message, "no 'tokenizer.kind' in the metadata");
    wf_file_free(f);
    wf_tokenizer_free(src), wf_tokenizer_free(tgt), wf_tokenizer_free(again);
}

static const struct {
    wf_meta pairs[3];
    int n;
    const char *says;
} lies[] = {
    { { { "t.kind", "words" } }, 1, "'t.kind' is 'words', not one of word|char|bpe" },
    { { { "t.kind", "word" } }, 1, "t: there is no vocabulary" },
    { { { "t.kind", "bpe" }, { "t.vocabulary", "a\n" } }, 2, "t: byte-pair encoding needs codes" },
    { { { "t.kind", "word" }, { "t.vocabulary", "a\na\n" } },
      2,
      "t: vocabulary: line 2: 'a' occurs twice" },
    { { { "t.kind", "char" }, { "t.vocabulary", "a\n" }, { "t.codes", CODES } },
      3,
      "t: codes are for byte-pair encoding alone" },
    { { { "t.kind", "bpe" }, { "t.vocabulary", "a\n" }, { "t.codes", "a b" } },
      3,
      "t: codes: the first line is not" },
};

TEST_ROWS(a_lying_model_file_is_told, COUNT_OF(lies)) {
    char message[MESSAGE] = "";
    wf_file *f = through_file(lies[_i].pairs, lies[_i].n);
    ck_assert_ptr_null(wf_tokenizer_from_meta(f, "t", message));
    assert_contains(message, lies[_i].says);
    wf_file_free(f);
    f = wf_file_parse("no", 2);
    ck_assert_ptr_null(wf_tokenizer_from_meta(f, "t", message));
    ck_assert_str_eq(message, wf_file_error(f));
    ck_assert(!wf_tokenizer_in_file(f, "t"));
    wf_file_free(f);
}

/* ---- without memory -------------------------------------------------------------------------- */

static bool says_why(bool ok, const char *message) {
    must(ok || message[0], "a failure without a message");
    return ok;
}

static wf_token_kind kind; /* by the row of the test */

static bool life(void) {
    char message[MESSAGE] = "", text[2048], codes[2048];
    int32_t ids[128];
    wf_meta pairs[WF_TOKENIZER_META];
    wf_tokenizer_options o = wf_tokenizer_defaults(kind);
    o.merges = kind == WF_BPE ? 40 : 0;
    wf_tokenizer *t = wf_tokenizer_learn(&o, next_of, &(lines){ multilingual }, message), *u = NULL;
    bool ok = says_why(t != NULL, message);
    const char *line = "abc café abc junge";
    int64_t n_ids = ok ? wf_tokenizer_encode(t, line, strlen(line), ids, 128, message) : -1;
    ok = ok && says_why(n_ids >= 0, message);
    if (ok) wall_say(ids, (size_t)n_ids * sizeof *ids);
    int64_t read = ok ? wf_tokenizer_decode(t, ids, n_ids, text, sizeof text) : -1;
    ok = ok && read >= 0;
    if (ok) wall_say(text, (size_t)read);
    int n_pairs = 0;
    ok = ok && says_why(wf_tokenizer_to_meta(t, "tokenizer", pairs, &n_pairs, message), message);
    for (int i = 0; i < n_pairs; i++) wall_say(pairs[i].value, strlen(pairs[i].value));
    if (ok) {
        size_t n = wf_tokenizer_vocabulary(t, text, sizeof text),
               m = wf_tokenizer_codes(t, codes, sizeof codes);
        u = wf_tokenizer_read(kind, text, n, kind == WF_BPE ? codes : NULL, m, message);
        ok = says_why(u != NULL, message);
        wall_say(text, n), wall_say(codes, m);
    }
    wf_tokenizer_free(t), wf_tokenizer_free(u);
    return ok;
}

SETUP(NULL, NULL)

TEST_ROWS(every_failure_is_survived, 2 * COUNT_OF(kinds)) {
    const wall_work work = { "tokenizer", life, false };
    kind = kinds[_i / 2];
    wall_fail_each(&work, _i % 2);
}
