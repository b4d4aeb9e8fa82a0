/* tests/models/test_large_tokenizer.c - what reading a large tokenizer.json takes: JSON and UTF-8
 * that are read some bytes at a time, merges that are added some at a time, tables with room made
 * before, a trie of many strings. Short inputs reach none of this, so each is met at every length
 * and place around where the bytes or the entries are taken together. */
#include <math.h>
#include <stdio.h>

#include "core/base/random.h"
#include "core/base/utf8.h"
#include "core/base/utf8_long.h"
#include "core/file/json.h"
#include "models/json_tokenizer.h"
#include "models/text/json/json_tree.h"
#include "models/text/sentencepiece/spm.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(large_tokenizer)

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

static const char *const characters[] = { "a", "\xC3\xA9", "\xE4\xB8\x80", "\xF0\x9F\x98\x80" };
static const unsigned char bytes[] = { 0,    'a',  0x7F, 0x80, 0x8F, 0x90, 0x9F,
                                       0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
                                       0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF };
enum { LONG_TEXT = 420 };

TEST_ROWS(a_wrong_byte_ends_a_long_text_where_it_ends_a_short_one, COUNT_OF(characters)) {
    char text[LONG_TEXT + 4];
    size_t n = 0, size = strlen(characters[_i]), checked = 0;
    for (; n < LONG_TEXT; n += size) memcpy(text + n, characters[_i], size);
    for (size_t at = 0; at < n; at++) {
        char right = text[at];
        for (int i = 0; i < COUNT_OF(bytes); i++) {
            text[at] = (char)bytes[i];
            ck_assert_uint_eq(wf_utf8_valid(text, n), wf_utf8_prefix(text, n));
            checked++;
        }
        text[at] = right;
        ck_assert_uint_eq(wf_utf8_valid(text, at), at - at % size);
    }
    ck_assert_uint_eq(wf_utf8_valid(text, n), n);
    ck_assert_uint_ge(checked, (size_t)LONG_TEXT * COUNT_OF(bytes));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const struct {
    const char *json, *text; /* what stands in a string, and what it means; NULL: an error */
} parts[] = {
    { "\\\"", "\"" },
    { "\\\\", "\\" },
    { "\\n", "\n" },
    { "\\u0120", "\xC4\xA0" },
    { "\\uABCD\\uabcd", "\xEA\xAF\x8D\xEA\xAF\x8D" },
    { "\\ud83D\\uDE00", "\xF0\x9F\x98\x80" },
    { "\xE4\xB8\x80", "\xE4\xB8\x80" },
    { "/\x7F!#[]", "/\x7F!#[]" },
    { "\x1F", NULL },
    { "\\x", NULL },
    { "\\u00g0", NULL },
    { "\\u00@0", NULL },
    { "\\ud83d", NULL },
};

/* A part between plain characters, of which there are any number before it and after it. */
TEST_ROWS(a_string_is_read_wherever_its_escapes_are, COUNT_OF(parts)) {
    char json[128], wanted[128], *text;
    size_t n;
    struct wf_json j;
    for (int before = 0; before < 20; before++)
        for (int after = 0; after < 20; after++) {
            snprintf(json, sizeof json, "\"%.*s%s%.*s\"", before, "abcdefghijklmnopqrst",
                     parts[_i].json, after, "uvwxyzUVWXYZ01234567");
            snprintf(wanted, sizeof wanted, "%.*s%s%.*s", before, "abcdefghijklmnopqrst",
                     parts[_i].text ? parts[_i].text : "", after, "uvwxyzUVWXYZ01234567");
            ck_assert(wf_json_begin(&j, json, strlen(json)));
            bool ok = wf_json_text(&j, &text, &n);
            ck_assert_int_eq(ok, parts[_i].text != NULL);
            if (!ok) {
                ck_assert(*j.error && j.at >= j.start + 1 + before && j.at < j.end);
                continue;
            }
            ck_assert_uint_eq(n, strlen(wanted));
            ck_assert_str_eq(text, wanted);
            ck_assert(j.at == j.end);
        }
}

TEST(a_string_without_end_is_refused_at_every_length) {
    char json[64], *text;
    size_t n;
    struct wf_json j;
    for (size_t size = 1; size < 40; size++) {
        memset(json, 'a', size);
        json[0] = '"';
        ck_assert(wf_json_begin(&j, json, size));
        ck_assert(!wf_json_text(&j, &text, &n));
        ck_assert_msg(strstr(j.error, "a string without end"), "%s", j.error);
        ck_assert(j.at == j.end);
    }
}

/* White space of any length between the parts of an array, and none that JSON does not know. */
TEST(white_space_is_skipped_at_every_length) {
    static const char blanks[] = " \n\t\r    \n        \n            \t";
    char json[256], message[WF_MESSAGE] = "";
    json_tree t;
    for (int n = 0; n < (int)sizeof blanks; n++)
        for (int from = 0; from + n < (int)sizeof blanks; from++) {
            const char *blank = blanks + from;
            snprintf(json, sizeof json, "%.*s{\"a\"%.*s:%.*s[1%.*s,2]}%.*s", n, blank, n, blank, n,
                     blank, n, blank, n, blank);
            ck_assert_msg(wf_tree_read(&t, json, strlen(json), message), "%s", message);
            ck_assert_uint_eq(t.n, 5);
            wf_tree_free(&t);
            snprintf(json, sizeof json, "{%.*s\v\"a\":1}", n, blank);
            ck_assert(!wf_tree_read(&t, json, strlen(json), message));
            wf_tree_free(&t);
        }
}

/* Room is taken for a long text at once: texts with fewer and with more values than that. */
TEST_ROWS(a_long_text_has_all_its_values, 2) {
    enum { LONG = 3 << 20 };
    const char *value = _i ? "0," : "\"a value of some length\",";
    size_t size = strlen(value), n = 0, count = 0;
    char message[WF_MESSAGE] = "", *json = malloc(LONG + 64);
    json_tree t;
    n = (size_t)sprintf(json, "{\"a\":[");
    for (; n < LONG; n += size, count++) memcpy(json + n, value, size);
    memcpy(json + n - 1, "]}", 2);
    ck_assert_msg(wf_tree_read(&t, json, n + 1, message), "%s", message);
    ck_assert_uint_eq(t.n, count + 3);
    ck_assert_uint_eq(wf_tree_at_most(&t, 0), count + 2);
    ck_assert_uint_eq(wf_tree_at_most(&t, wf_tree_find(&t, 0, "a")), count);
    wf_tree_free(&t), free(json);
}

/* Powers of ten that are exact take another way than those that are not. */
TEST(numbers_are_those_of_the_c_library) {
    static const char *const digits[] = { "1", "-7.25", "123456789.012345", "-0.001",
                                          "9007199254740993" };
    char json[64], message[WF_MESSAGE] = "", number[40];
    json_tree t;
    for (int i = 0; i < COUNT_OF(digits); i++)
        for (int exponent = -40; exponent <= 40; exponent++) {
            double x, wanted;
            snprintf(number, sizeof number, "%se%d", digits[i], exponent);
            snprintf(json, sizeof json, "{\"a\":%s}", number);
            wanted = strtod(number, NULL);
            ck_assert_msg(wf_tree_read(&t, json, strlen(json), message), "%s", message);
            ck_assert(wf_tree_real(&t, 2, &x));
            ck_assert_msg(fabs(x - wanted) <= 4e-16 * fabs(wanted), "%s: %.17g", number, x);
            if (i < 2 && exponent >= -20 && exponent <= 22) ck_assert(x == wanted);
            wf_tree_free(&t);
        }
}

/* ---- many merges ----------------------------------------------------------------------------- */

enum { LETTERS = 24, PAIRS = LETTERS * LETTERS };

/* The place of a merge in the file: in the order of what merges give, or mixed up. */
static int place(int i, bool mixed) {
    return mixed ? (i * 7 + 5) % PAIRS : i;
}

/* A vocabulary of letters and their pairs. Merge `odd` is another text. */
static char *pairs_file(bool mixed, bool pairs, int odd, const char *text, int last,
                        const char *last_text) {
    static char json[1 << 16];
    char *to = json;
    to += sprintf(to, "{\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < LETTERS; i++) to += sprintf(to, "\"%c\":%d,", 'a' + i, i);
    for (int i = 0; i < PAIRS; i++)
        to += sprintf(to, "\"%c%c\":%d%s", 'a' + i / LETTERS, 'a' + i % LETTERS, LETTERS + i,
                      i + 1 < PAIRS ? "," : "},\"merges\":[");
    for (int i = 0; i < PAIRS; i++) {
        int at = place(i, mixed), a = 'a' + at / LETTERS, b = 'a' + at % LETTERS;
        if (i == odd || i == last)
            to += sprintf(to, "%s", i == odd ? text : last_text);
        else
            to += sprintf(to, pairs ? "[\"%c\",\"%c\"]" : "\"%c %c\"", a, b);
        to += sprintf(to, i + 1 < PAIRS ? "," : "]}}");
    }
    return json;
}

TEST_ROWS(many_merges_apply_in_their_order, 4) {
    char message[WF_MESSAGE] = "", line[4] = "abc";
    bool mixed = _i & 1;
    int ranks[PAIRS];
    wf_json_token tokens[4];
    char *json = pairs_file(mixed, _i & 2, -1, NULL, -1, NULL);
    wf_json_tokenizer *t = wf_json_tokenizer_load(json, strlen(json), message);
    ck_assert_msg(t != NULL, "%s", message);
    for (int i = 0; i < PAIRS; i++) ranks[place(i, mixed)] = i;
    for (int i = 0; i < PAIRS; i++) {
        int first = i, next = i % LETTERS * LETTERS + (i * 5 + 1) % LETTERS;
        bool left = ranks[first] <= ranks[next];
        line[0] = (char)('a' + first / LETTERS);
        line[1] = (char)('a' + first % LETTERS);
        line[2] = (char)('a' + next % LETTERS);
        int64_t n = wf_json_tokenizer_encode(t, line, 3, NULL, 0, false, tokens, 4, message);
        ck_assert_int_eq(n, 2);
        ck_assert_int_eq(tokens[0].id, left ? LETTERS + first : line[0] - 'a');
        ck_assert_int_eq(tokens[1].id, left ? line[2] - 'a' : LETTERS + next);
    }
    wf_json_tokenizer_free(t);
}

static const struct {
    const char *text, *says;
} wrong[] = {
    { "\"a zz\"", "'a' 'zz' is of a part that is not in the vocabulary" },
    { "[\"ab\",\"c\"]", "'ab' 'c' gives what is not in the vocabulary" },
    { "\"b a c\"", "'b a c' '' has not two parts" },
    { "[\"a\"]", "a merge is no pair of texts" },
};

/* If a file has two errors, the first one is reported, wherever both are. */
TEST_ROWS(the_first_wrong_merge_is_reported, COUNT_OF(wrong)) {
    static const int places[] = { 0, 1, 62, 63, 64, 65, 127, 128, PAIRS - 2 };
    char message[WF_MESSAGE];
    for (int i = 0; i < COUNT_OF(places); i++)
        for (int other = 0; other < COUNT_OF(wrong); other++)
            for (int far = 1; far < 200; far += 66) {
                char *json = pairs_file(other & 1, far & 1, places[i], wrong[_i].text,
                                        places[i] + far, wrong[other].text);
                *message = '\0';
                ck_assert_ptr_null(wf_json_tokenizer_load(json, strlen(json), message));
                ck_assert_msg(strstr(message, wrong[_i].says), "%d %d: it says '%s'", places[i],
                              far, message);
            }
}

TEST(a_merge_that_is_there_twice_is_refused_wherever_it_is) {
    static const int places[] = { 1, 63, 64, 200, PAIRS - 1 };
    char message[WF_MESSAGE];
    for (int i = 0; i < COUNT_OF(places); i++) {
        char *json = pairs_file(false, false, places[i], "\"a a\"", -1, NULL);
        *message = '\0';
        ck_assert_ptr_null(wf_json_tokenizer_load(json, strlen(json), message));
        ck_assert_msg(strstr(message, "'a' 'a' is there twice"), "it says '%s'", message);
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum { MANY = 5000, MOST_BYTES = 12 };

/* Texts of all bytes, or of few of them, so that many begin alike. Returns how many bytes. */
static size_t some_text(int i, int letters, char *to) {
    wf_philox r = wf_philox4x32((uint64_t)letters, (uint64_t)i, 0);
    size_t n = 1 + r.v[0] % MOST_BYTES;
    for (size_t k = 0; k < n; k++)
        to[k] =
            (char)(wf_philox4x32((uint64_t)letters, (uint64_t)i, 1 + k).v[0] % (unsigned)letters);
    return n;
}

/* Adds the texts, which may repeat; numbers[i] is that of text i. */
static void add_texts(wf_strings *s, int letters, int32_t *numbers) {
    char text[MOST_BYTES];
    for (int i = 0; i < MANY; i++) {
        size_t n = some_text(i, letters, text);
        int32_t before = s->n, known = wf_strings_find(s, text, n);
        numbers[i] = wf_strings_add(s, text, n);
        ck_assert_int_eq(numbers[i], known >= 0 ? known : before);
    }
}

static const int alphabets[] = { 2, 3, 20, 256 };

TEST_ROWS(texts_have_the_same_numbers_with_room_made_before, COUNT_OF(alphabets)) {
    static int32_t numbers[MANY], again[MANY];
    wf_strings s = { 0 }, roomy = { 0 };
    wf_span ahead[2] = { { "", 0 }, { "ab", 2 } };
    ck_assert(wf_strings_reserve(&roomy, MANY));
    wf_strings_prefetch(&s, ahead, 2);
    wf_strings_prefetch(&roomy, ahead, 2);
    size_t slots = roomy.n_slots;
    add_texts(&s, alphabets[_i], numbers);
    add_texts(&roomy, alphabets[_i], again);
    wf_strings_prefetch(&s, ahead, 2);
    ck_assert_mem_eq(numbers, again, sizeof numbers);
    ck_assert_uint_eq(roomy.n_slots, slots);
    ck_assert_int_eq(wf_strings_find(&s, "", 0), -1);
    ck_assert(!wf_strings_reserve(&s, (size_t)INT32_MAX + 1));
    wf_strings_free(&s), wf_strings_free(&roomy);
}

TEST(pairs_are_found_with_room_made_before) {
    wf_pairs p = { 0 };
    wf_pairs_prefetch(&p, 1, 2);
    ck_assert(wf_pairs_reserve(&p, MANY));
    size_t slots = p.n_slots;
    for (int32_t i = 0; i < MANY; i++) ck_assert(wf_pairs_add(&p, i, MANY - i, i));
    ck_assert_uint_eq(p.n_slots, slots);
    wf_pairs_prefetch(&p, 1, 2);
    for (int32_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(wf_pairs_find(&p, i, MANY - i), i);
        ck_assert_int_eq(wf_pairs_find(&p, i, MANY - i + 1), -1);
    }
    ck_assert(!wf_pairs_reserve(&p, SIZE_MAX / 2));
    ck_assert_int_eq(wf_pairs_find(&p, 7, MANY - 7), 7);
    wf_pairs_free(&p);
}

/* The value of a text in a trie; -1: it is not there. */
static int32_t value_of(const wf_trie *t, const char *text, size_t n) {
    int32_t node = 0;
    for (size_t i = 0; i < n && node >= 0; i++) node = trie_step(t, node, text[i]);
    return node < 0 ? -1 : t->nodes[node].value;
}

TEST_ROWS(a_trie_holds_the_texts_and_no_others, COUNT_OF(alphabets)) {
    static int32_t numbers[MANY];
    char text[MOST_BYTES];
    wf_strings s = { 0 };
    wf_trie t = { 0 };
    add_texts(&s, alphabets[_i], numbers);
    wf_trie_key *keys = malloc((size_t)s.n * sizeof *keys);
    for (int32_t i = 0; i < s.n; i++) keys[i] = (wf_trie_key){ wf_strings_span(&s, i), i };
    ck_assert(wf_trie_build(&t, keys, (size_t)s.n));
    for (int32_t i = 0; i < s.n; i++)
        ck_assert_int_eq(value_of(&t, wf_strings_at(&s, i), wf_strings_span(&s, i).bytes), i);
    for (int i = MANY; i < 2 * MANY; i++) {
        size_t n = some_text(i, alphabets[_i], text);
        ck_assert_int_eq(value_of(&t, text, n), wf_strings_find(&s, text, n));
    }
    wf_trie_free(&t), wf_strings_free(&s), free(keys);
}
