/* tests/tools/test_language.c - multilingual models: the tokens of languages, and where they are
 * put. */
#include <stdio.h>

#include "models/text_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "tools/data/language.h"

TESTS(language)

enum { END, UNKNOWN, FRA_TARGET, DEU, WORD, EN, HOLE, PIECES };
static const char *const pieces[PIECES] = { "</s>", "<unk>",  ">>fra<<", "deu_Latn",
                                            "en",   "__en__", NULL };

static wf_tokenizer *open_side(const int32_t *before, int n_before) {
    static char model[1 << 20];
    static const int32_t end = END;
    char path[512], message[WF_MESSAGE] = "";
    FILE *f = fopen(source_path("tests/data/words_en.spm", path, sizeof path), "rb");
    ck_assert_ptr_nonnull(f);
    size_t bytes = fread(model, 1, sizeof model, f);
    fclose(f);
    const wf_sentencepiece_options o = { .model = model,
                                         .bytes = bytes,
                                         .pieces = pieces,
                                         .n_pieces = PIECES,
                                         .special = { -1, UNKNOWN, -1, END },
                                         .before = before,
                                         .n_before = n_before,
                                         .after = &end,
                                         .n_after = 1 };
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert_msg(t, "%s", message);
    return t;
}

/* Asserts that "the" is encoded as unknown pieces and the end token, after the token `first` (-1:
 * after none). */
static void assert_begins(language *l, int side, int32_t first) {
    int32_t ids[16];
    char message[WF_MESSAGE];
    int64_t n = language_read(l, side, "the", 3, ids, 16, message);
    ck_assert_int_ge(n, 2);
    ck_assert_int_eq(ids[0], first >= 0 ? first : UNKNOWN);
    for (int64_t i = first >= 0; i < n - 1; i++) ck_assert_int_eq(ids[i], UNKNOWN);
    ck_assert_int_eq(ids[n - 1], END);
}

static language both(void) {
    static const int32_t before = EN;
    return (language){ .text = true, .tokenizer = { open_side(&before, 1), open_side(NULL, 0) } };
}

static int no_line(void *from, const char **line, size_t *bytes) {
    (void)from;
    (void)line;
    (void)bytes;
    return 0;
}

/* same_pieces compares the pieces of two tokenizers, and not what they put around a line. If it is
 * true, a shortlist also offers the tokens of the source. */
TEST(pieces_are_the_same_whatever_stands_around_a_line) {
    language l = both();
    const wf_tokenizer_options bytes = wf_tokenizer_defaults(WF_BYTES);
    wf_tokenizer *other = wf_tokenizer_learn(&bytes, no_line, NULL, NULL);
    ck_assert(other && l.tokenizer[0] != l.tokenizer[1]);
    ck_assert(same_pieces(l.tokenizer[0], l.tokenizer[1]));
    ck_assert(same_pieces(l.tokenizer[0], l.tokenizer[0]));
    ck_assert(!same_pieces(l.tokenizer[0], other) && !same_pieces(NULL, NULL));
    wf_tokenizer_free(other);
    language_close(&l);
}

TEST(a_target_is_named_in_front_of_the_source) {
    char message[WF_MESSAGE] = "";
    int32_t forced = 7;
    language l = { .text = true };
    l.tokenizer[0] = l.tokenizer[1] = open_side(NULL, 0); /* one object for both */
    ck_assert_msg(language_choose(&l, NULL, "fra", &forced, message), "%s", message);
    ck_assert_int_eq(forced, -1);
    assert_begins(&l, SIDE_SRC, FRA_TARGET);
    assert_begins(&l, SIDE_TGT, -1);
    language_close(&l);
}

TEST(a_target_begins_with_its_language) {
    char message[WF_MESSAGE] = "";
    int32_t forced = 7;
    language l = both();
    ck_assert(language_choose(&l, NULL, NULL, &forced, message) && forced == -1);
    assert_begins(&l, SIDE_SRC, EN);
    ck_assert(language_choose(&l, "deu_Latn", "en", &forced, message));
    ck_assert_int_eq(forced, EN);
    assert_begins(&l, SIDE_SRC, DEU);
    assert_begins(&l, SIDE_TGT, EN);
    language_close(&l);
}

/* An id without a piece is named by its number. */
TEST(an_id_without_a_piece_is_a_number) {
    char buffer[PIECE_TEXT];
    language l = { .text = true };
    l.tokenizer[0] = l.tokenizer[1] = open_side(NULL, 0);
    ck_assert_str_eq(language_piece(&l, SIDE_SRC, HOLE, buffer), "6");
    ck_assert_str_eq(language_piece(&l, SIDE_SRC, EN, buffer), "__en__");
    language_close(&l);
}

/* Added tokens behind the pieces of text, as imported models have them: codes of languages, without
 * the mark of a word's start. */
enum { ADDED = 2, XX = 4 };
static const char *const added_pieces[] = { "</s>", "<unk>", "en_XX", "de", "xx" };

static wf_tokenizer *open_added(const int32_t *after, int n_after, int32_t start) {
    wf_tokenizer *plain = open_side(NULL, 0);
    wf_sentencepiece_options o;
    char message[WF_MESSAGE] = "";
    ck_assert(wf_tokenizer_sentencepiece(plain, &o));
    o.pieces = added_pieces, o.n_pieces = 5, o.added = ADDED;
    o.after = after, o.n_after = n_after, o.special[WF_START_ID] = start;
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    ck_assert_msg(t, "%s", message);
    wf_tokenizer_free(plain);
    return t;
}

TEST(a_language_stays_behind_a_line) {
    static const int32_t behind[] = { END, ADDED };
    char message[WF_MESSAGE] = "";
    int32_t forced = 7, ids[16];
    language l = { .text = true,
                   .tokenizer = { open_added(behind, 2, END), open_added(NULL, 0, END) } };
    ck_assert(language_choose(&l, "de", "xx", &forced, message));
    ck_assert_int_eq(forced, XX);
    int64_t n = language_read(&l, SIDE_SRC, "the", 3, ids, 16, message);
    ck_assert(n > 2 && ids[0] == UNKNOWN && ids[n - 2] == END && ids[n - 1] == 3);
    n = language_read(&l, SIDE_TGT, "the", 3, ids, 16, message);
    ck_assert(n > 1 && ids[0] == XX && ids[n - 1] == UNKNOWN);
    ck_assert(!language_choose(&l, "<unk>", NULL, &forced, message));
    ck_assert_int_eq(wf_tokenizer_decode(l.tokenizer[0], (int32_t[]){ 3, 2, 4 }, 3, NULL, 0), 0);
    language_close(&l);
}

/* If the model's start token is the code of a language, no other language can be asked for. */
TEST(a_start_may_be_the_language) {
    char message[WF_MESSAGE] = "";
    int32_t forced = 7;
    language l = { .text = true,
                   .tokenizer = { open_added(NULL, 0, ADDED), open_added(NULL, 0, ADDED) } };
    ck_assert(language_choose(&l, NULL, "en_XX", &forced, message));
    ck_assert_int_eq(forced, -1);
    ck_assert(!language_choose(&l, NULL, "de", &forced, message));
    assert_contains(message, "its outputs start as 'en_XX', and can't as 'de'");
    language_close(&l);
}

TEST(unknown_languages_are_told) {
    char message[WF_MESSAGE] = "";
    int32_t forced;
    language l = both(), none = { 0 };
    ck_assert(!language_choose(&l, "tlh", NULL, &forced, message));
    assert_contains(message, "no piece for the language 'tlh'");
    ck_assert(!language_choose(&l, NULL, "tlh", &forced, message));
    assert_contains(message, "no piece for the language 'tlh'");
    ck_assert(!language_choose(&l, "<unk>", NULL, &forced, message));
    ck_assert(!language_choose(&l, "en", "fra", &forced, message));
    assert_contains(message, "the one that is read can't be told");
    ck_assert(!language_choose(&none, NULL, "fra", &forced, message));
    assert_contains(message, "no vocabulary of text");
    language_close(&l);
}
