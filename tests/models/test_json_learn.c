/* tests/models/test_json_learn.c - learning a tokenizer.json: learned files are byte for byte the
 * recorded ones, which learn_peer.py compared with the library tokenizers (suite tokenizer compares
 * the ids of lines); sizes, special tokens, characters; refused options; failing allocations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/json_tokenizer.h"
#include "models/text_internal.h"
#include "tests/models/texts.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "tests/support/wall.h"

TESTS(json_learn)

static char *learned(const wf_json_learn_options *o, const char *text, char *message) {
    return wf_json_learn(o, next_of, &(lines){ text }, message);
}

static wf_json_learn_options sized(wf_json_learn_kind kind, int64_t size) {
    return (wf_json_learn_options){ .kind = kind, .vocab_size = size, .min_freq = 2 };
}

static const struct {
    const char *file;
    wf_json_learn_options o;
} recorded[] = {
    { "tokenizer/learned-bpe.json", { WF_LEARN_BPE, 400, 2, 0, false, NULL } },
    { "tokenizer/learned-unigram.json", { WF_LEARN_UNIGRAM, 130, 2, 0, false, NULL } },
    { "tokenizer/learned-wordpiece.json", { WF_LEARN_WORDPIECE, 150, 2, 1000, false, NULL } },
};

TEST_ROWS(files_are_the_recorded_ones, COUNT_OF(recorded)) {
    char message[WF_MESSAGE] = "";
    size_t text_bytes, wanted_bytes;
    char *text = data_text("bpe.txt", &text_bytes);
    char *wanted = data_text(recorded[_i].file, &wanted_bytes);
    char *json = learned(&recorded[_i].o, text, message);
    ck_assert_msg(json != NULL, "%s", message);
    ck_assert(strcmp(json, wanted) == 0); /* too long for a message */
    wf_json_tokenizer *t = wf_json_tokenizer_load(json, wanted_bytes, message);
    ck_assert_int_eq(wf_json_tokenizer_size(t), recorded[_i].o.vocab_size);
    wf_json_tokenizer_free(t);
    free(text), free(wanted), free(json);
}

/* ---- what is in a vocabulary ----------------------------------------------------------------- */

static const char *const story = "low low low lower lowest newer newer widest\n"
                                 "a low wide river is lower than a newer one\n"
                                 "the widest river is the lowest one\n";

static wf_json_tokenizer *learned_tokenizer(const wf_json_learn_options *o) {
    char message[WF_MESSAGE] = "";
    char *json = learned(o, story, message);
    ck_assert_msg(json != NULL, "%s", message);
    wf_json_tokenizer *t = wf_json_tokenizer_load(json, strlen(json), message);
    ck_assert_msg(t != NULL, "%s", message);
    free(json);
    return t;
}

static const char *shown(wf_json_tokenizer *t, const char *line) {
    static char text[512];
    wf_json_token tokens[64];
    size_t used = 0;
    int64_t n = wf_json_tokenizer_encode(t, line, strlen(line), NULL, 0, true, tokens, 64, NULL);
    for (int64_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? " %s" : "%s",
                                 wf_json_tokenizer_piece(t, tokens[i].id));
    return text;
}

/* "low" is the most frequent word, so that it is one piece. */
TEST(frequent_words_are_one_piece) {
    wf_json_learn_options o = sized(WF_LEARN_BPE, 270);
    wf_json_tokenizer *t = learned_tokenizer(&o);
    ck_assert_str_eq(wf_json_tokenizer_piece(t, 0), "<|endoftext|>");
    ck_assert_str_eq(wf_json_tokenizer_piece(t, 1), "!");
    ck_assert_str_eq(shown(t, "a low"), "a \xC4\xA0low");
    wf_json_tokenizer_free(t);
    o = sized(WF_LEARN_WORDPIECE, 50);
    t = learned_tokenizer(&o);
    ck_assert_str_eq(shown(t, "LOW lower"), "[CLS] low lower [SEP]");
    ck_assert_str_eq(shown(t, "lo\xE2\x82\xAC low"), "[CLS] [UNK] low [SEP]");
    wf_json_tokenizer_free(t);
    o = sized(WF_LEARN_UNIGRAM, 30);
    t = learned_tokenizer(&o);
    ck_assert_str_eq(shown(t, "low  river"), "<s> \xE2\x96\x81low \xE2\x96\x81river </s>");
    wf_json_tokenizer_free(t);
}

/* A text that is a special token is not learned as a piece, too. */
TEST(special_tokens_come_first) {
    wf_json_learn_options o = sized(WF_LEARN_UNIGRAM, 28);
    o.special = "<unk>,</s>,\xE2\x96\x81low,w";
    wf_json_tokenizer *t = learned_tokenizer(&o);
    for (int32_t id = 4; id < 28; id++) {
        ck_assert_str_ne(wf_json_tokenizer_piece(t, id), "\xE2\x96\x81low");
        ck_assert_str_ne(wf_json_tokenizer_piece(t, id), "w");
    }
    ck_assert_str_eq(shown(t, "one"), "\xE2\x96\x81one </s>");
    wf_json_tokenizer_free(t);
    o = sized(WF_LEARN_BPE, 270);
    o.special = "[SEP],[CLS]";
    t = learned_tokenizer(&o);
    ck_assert_str_eq(shown(t, "low"), "[CLS] low [SEP]");
    wf_json_tokenizer_free(t);
}

/* Characters outside the alphabet get no pieces, and a text that contains them is cut into <unk>
 * and pieces around them. */
TEST(the_alphabet_may_be_small) {
    wf_json_learn_options o = sized(WF_LEARN_UNIGRAM, 20);
    o.alphabet = 8;
    wf_json_tokenizer *t = learned_tokenizer(&o);
    int singles = 0;
    for (int32_t id = 5; id < 20; id++) singles += !wf_json_tokenizer_piece(t, id)[1];
    ck_assert_int_le(singles, 8);
    assert_contains(shown(t, "than"), "<unk>");
    wf_json_tokenizer_free(t);
}

/* A text without spaces is one long word. A vocabulary is learned from it all the same. */
TEST(words_may_be_long) {
    char message[WF_MESSAGE] = "", text[4000];
    wf_json_learn_options o = sized(WF_LEARN_UNIGRAM, 16);
    for (int i = 0; i < 3999; i++) text[i] = "abcabdabe"[i % 9];
    text[3999] = '\0';
    char *json = learned(&o, text, message);
    ck_assert_msg(json != NULL, "%s", message);
    free(json);
}

/* ---- refused --------------------------------------------------------------------------------- */

static const struct {
    wf_json_learn_options o;
    const char *text, *says;
} refused[] = {
    { { WF_LEARN_BPE, 1, 2, 0, false, NULL }, "a", "vocab_size is 1: 2 to 2147483647" },
    { { WF_LEARN_BPE, 300, 0, 0, false, NULL }, "a", "min_freq is 0: at least 1" },
    { { WF_LEARN_BPE, 300, 1, -1, false, NULL }, "a", "alphabet is -1: at least 0" },
    { { (wf_json_learn_kind)7, 300, 1, 0, false, NULL }, "a", "there is no kind 7" },
    { { WF_LEARN_BPE, 300, 2, 0, false, NULL }, "", "there is no text to learn" },
    { { WF_LEARN_WORDPIECE, 300, 2, 0, false, NULL }, " \n \n", "there is no text to learn" },
    { { WF_LEARN_BPE, 200, 2, 0, false, NULL },
      "a b",
      "vocab_size is 200, but the special tokens and single characters need 257 ids" },
    { { WF_LEARN_BPE, 300, 2, 0, false, NULL },
      "a b a b",
      "this text is enough for at most 258 ids" },
    { { WF_LEARN_UNIGRAM, 9, 2, 0, false, NULL }, "abcdefg", "single characters need 13 ids" },
    { { WF_LEARN_UNIGRAM, 900, 2, 0, false, NULL },
      "abc abc",
      "this text is enough for at most 10 ids" },
    { { WF_LEARN_WORDPIECE, 8, 2, 0, false, NULL }, "abc", "single characters need 10 ids" },
    { { WF_LEARN_UNIGRAM, 90, 2, 0, false, "<s>" },
      "a",
      "one of the special tokens must be <unk>" },
    { { WF_LEARN_WORDPIECE, 90, 2, 0, false, "x" },
      "a",
      "one of the special tokens must be [UNK]" },
    { { WF_LEARN_BPE, 300, 2, 0, false, "a,,b" }, "a", "a special token is empty" },
    { { WF_LEARN_BPE, 300, 2, 0, false, "a,b,a" }, "a", "the special token 'a' is there twice" },
    { { WF_LEARN_BPE, 300, 2, 0, false, "\xFF" }, "a", "a special token is not UTF-8" },
    { { WF_LEARN_BPE, 300, 2, 0, false, NULL }, "a\nb\xFF", "line 2: not UTF-8 at byte 1" },
};

TEST_ROWS(what_cannot_be_learned_is_refused, COUNT_OF(refused)) {
    char message[WF_MESSAGE] = "";
    ck_assert_ptr_null(learned(&refused[_i].o, refused[_i].text, message));
    assert_contains(message, refused[_i].says);
}

static int fails_at_once(void *from, const char **line, size_t *bytes) {
    (void)from;
    (void)line;
    (void)bytes;
    return -1;
}

static int zero_byte(void *from, const char **line, size_t *bytes) {
    *line = "a\0b";
    *bytes = 3;
    return !(*(int *)from)++;
}

TEST(lines_that_cannot_be_read_are_said) {
    char message[WF_MESSAGE] = "";
    int read = 0;
    const wf_json_learn_options o = sized(WF_LEARN_BPE, 300);
    ck_assert_ptr_null(wf_json_learn(&o, fails_at_once, NULL, message));
    assert_contains(message, "line 1 could not be read");
    ck_assert_ptr_null(wf_json_learn(&o, zero_byte, &read, message));
    assert_contains(message, "line 1: it has a zero byte");
    ck_assert_ptr_null(wf_json_learn(&o, NULL, NULL, message));
    assert_contains(message, "no lines to learn from");
}

/* ---- without memory -------------------------------------------------------------------------- */

static wf_json_learn_options failing;

static bool learn_once(void) {
    char message[WF_MESSAGE] = "";
    char *json = learned(&failing, "ab abc abc aabc\n", message);
    must(json || *message, "it failed without a sentence");
    if (json) wall_say(json, strlen(json));
    free(json);
    return json != NULL;
}

TEST_ROWS(every_failure_is_survived, 6) {
    const wall_work work = { "a vocabulary", learn_once, true };
    static const int64_t sizes[] = { 258, 10, 11 };
    failing = sized((wf_json_learn_kind)(_i / 2), sizes[_i / 2]);
    ck_assert_int_gt(wall_fail_each(&work, _i % 2), 10);
}
