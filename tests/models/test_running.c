/* tests/models/test_running.c - tokenizers of running text: decoding gives back every byte, in
 * whatever parts the text is encoded; vocabularies and files. */
#include <stdio.h>
#include <stdlib.h>

#include "models/text_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "texts.h"

TESTS(running)

static char message[MESSAGE];

static const wf_token_kind running_kinds[] = { WF_BYTES, WF_TEXT_CHARACTERS, WF_BYTE_BPE };

#define PROSE                                                                                        \
    "The cat sat.\n\n\tIt  sat on 12 mats;  the\r\nmats (all 12) were  Straße, Ω, 日本, 😀.\n" \
    "    cat the cat the cats  \n"

/* In static memory. */
static const char *back(const wf_tokenizer *t, const int32_t *ids, int64_t n) {
    static char text[4096];
    ck_assert_int_lt(wf_tokenizer_decode(t, ids, n, text, sizeof text), (int)sizeof text);
    return text;
}

static wf_tokenizer *learn_running(int i, const char *text) {
    wf_tokenizer_options o = wf_tokenizer_defaults(running_kinds[i]);
    if (o.kind == WF_BYTE_BPE) o.vocab_size = 300;
    return learn(&o, text);
}

TEST_ROWS(all_of_a_text_comes_back, 3) {
    int32_t ids[512];
    wf_tokenizer *t = learn_running(_i, PROSE);
    ck_assert(wf_tokenizer_running(t) && wf_tokenizer_kind(t) == running_kinds[_i]);
    int64_t n = wf_tokenizer_encode(t, PROSE, strlen(PROSE), ids, 512, message);
    ck_assert_msg(n > 0, "%s", message);
    ck_assert_str_eq(back(t, ids, n), PROSE);
    for (int64_t i = 0; i < n; i++) ck_assert_int_ge(ids[i], WF_SPECIAL_IDS);
    if (running_kinds[_i] == WF_BYTES) ck_assert_int_eq(n, (int64_t)strlen(PROSE));
    if (running_kinds[_i] == WF_BYTE_BPE) ck_assert_int_lt(n, (int64_t)strlen(PROSE) * 3 / 4);
    wf_tokenizer_free(t);
}

/* A text that is encoded line by line has the same ids as in one piece. */
TEST_ROWS(lines_are_read_apart, 3) {
    int32_t ids[512], parts[512];
    wf_tokenizer *t = learn_running(_i, PROSE);
    int64_t n = wf_tokenizer_encode(t, PROSE, strlen(PROSE), ids, 512, NULL), m = 0;
    const char *at = PROSE;
    for (size_t bytes; *at; at += bytes) {
        bytes = (size_t)(strchr(at, '\n') - at) + 1;
        m += wf_tokenizer_encode(t, at, bytes, parts + m, 512 - m, NULL);
    }
    ck_assert_int_eq(n, m);
    ck_assert_int_eq(memcmp(ids, parts, (size_t)n * sizeof *ids), 0);
    wf_tokenizer_free(t);
}

/* Text that was never seen, invalid UTF-8 and zero bytes have no unknown ids, and decode to the
 * same bytes. */
TEST_ROWS(bytes_are_never_unknown, 2) {
    static const char odd[] = "\0\xff\xc3(\x01\xed\xa0\x80 never@@ seen</w> ✓\x7f\xa0\xad\r";
    int32_t ids[64];
    char text[64];
    wf_tokenizer *t = learn_running(2 * _i, "a b\n");
    int64_t n = wf_tokenizer_encode(t, odd, sizeof odd - 1, ids, 64, NULL);
    ck_assert_int_gt(n, 0);
    for (int64_t i = 0; i < n; i++) ck_assert_int_ne(ids[i], WF_UNK_ID);
    ck_assert_int_eq(wf_tokenizer_decode(t, ids, n, text, sizeof text), (int)sizeof odd - 1);
    ck_assert_int_eq(memcmp(text, odd, sizeof odd - 1), 0);
    wf_tokenizer_free(t);
}

TEST(every_byte_and_its_piece) {
    wf_tokenizer *t = learn_running(0, "");
    ck_assert_int_eq(wf_tokenizer_size(t), 260);
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + ' '), "Ġ"); /* as in GPT-2 */
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + '\n'), "Ċ");
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + 'a'), "a");
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + 0), "Ā");
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + 0xA0), "ł");
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + 0xAD), "Ń");
    ck_assert_str_eq(wf_tokenizer_piece(t, 4 + 0xFF), "ÿ");
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        int32_t id = -1;
        ck_assert_int_eq(wf_tokenizer_encode(t, &one, 1, &id, 1, NULL), 1);
        ck_assert_int_eq(id, WF_SPECIAL_IDS + byte);
    }
    wf_tokenizer_free(t);
}

TEST(characters_that_were_not_seen_are_unknown) {
    wf_tokenizer *t = learn_running(1, "ab\n");
    int32_t ids[8];
    ck_assert_int_eq(wf_tokenizer_encode(t, "a?\n", 3, ids, 8, NULL), 3);
    ck_assert(ids[1] == WF_UNK_ID && ids[2] != WF_UNK_ID);
    ck_assert_str_eq(back(t, ids, 3), "a<unk>\n");
    ck_assert_int_eq(wf_tokenizer_encode(t, "␊", 3, ids, 8, NULL), 1); /* not a line break */
    ck_assert_int_eq(ids[0], WF_UNK_ID);
    ck_assert(wf_tokenizer_encode(t, "a\xff", 2, ids, 8, message) == -1);
    ck_assert_str_eq(message, "not UTF-8 at byte 1");
    wf_tokenizer_free(t);
}

/* Merges stay within chunks: a space belongs to the following word, and a line break ends a
 * chunk. */
TEST(chunks_are_what_merges_stay_within) {
    wf_tokenizer_options o = wf_tokenizer_defaults(WF_BYTE_BPE);
    o.min_freq = 2;
    wf_tokenizer *t = learn(&o, "  the end.\n  the end.\n  the end.\n");
    ck_assert_str_eq(pieces_of(t, "  the end.\n"), "Ġ Ġthe Ġend . Ċ");
    ck_assert_str_eq(pieces_of(t, " the  end\n\n"), "Ġthe Ġ Ġend Ċ Ċ");
    wf_tokenizer_free(t);
}

/* A tokenizer that is read from the texts of its vocabulary and merges gives the same ids. The
 * first pair that wf_tokenizer_to_meta makes for a model's file is the tokenizer's kind. */
TEST_ROWS(files_hold_it, 3) {
    wf_tokenizer *t = learn_running(_i, PROSE "\x01\x7f");
    char *v = text_of(t, wf_tokenizer_vocabulary), *c = text_of(t, wf_tokenizer_codes);
    bool merges = running_kinds[_i] == WF_BYTE_BPE;
    wf_tokenizer *u = wf_tokenizer_read(running_kinds[_i], v, strlen(v), merges ? c : NULL,
                                        merges ? strlen(c) : 0, message);
    ck_assert_msg(u != NULL, "%s", message);
    int32_t ids[2][512];
    const char *text = PROSE "never seen: \x01\x7f\n";
    int64_t n = wf_tokenizer_encode(t, text, strlen(text), ids[0], 512, NULL);
    ck_assert_int_eq(wf_tokenizer_encode(u, text, strlen(text), ids[1], 512, NULL), n);
    ck_assert_int_eq(memcmp(ids[0], ids[1], (size_t)n * sizeof **ids), 0);
    wf_meta pairs[WF_TOKENIZER_META];
    int n_pairs = 0;
    ck_assert(wf_tokenizer_to_meta(t, "tokenizer", pairs, &n_pairs, NULL));
    ck_assert_int_eq(n_pairs, merges ? 3 : 2);
    ck_assert_str_eq(pairs[0].value, ((const char *[]){ "byte", "text-char", "byte-bpe" })[_i]);
    free(v), free(c), wf_tokenizer_free(t), wf_tokenizer_free(u);
}

TEST_ROWS(too_few_ids_are_refused, 2) {
    wf_tokenizer_options o = wf_tokenizer_defaults(running_kinds[2 * _i]);
    o.vocab_size = 259;
    ck_assert(learn_fails(&o, PROSE, message));
    ck_assert_str_eq(message, "vocab_size is 259, but bytes need 260 ids");
}
