/* tests/models/test_tokenizer.c - tokenizer.json: recorded files and texts give the tokens of the
 * library tokenizers, unknown settings are refused by name, hostile files and regular expressions
 * end in bounded time, and every allocation may fail. record_tokenizer.py made the files, and
 * tokenizer_peer.py compares more. */
#include <stdio.h>
#include <time.h>

#include "models/json_tokenizer.h"
#include "models/text/characters/characters.h"
#include "models/text/expressions/expression.h"
#include "models/text/json/json_tree.h"
#include "tests/models/texts.h"
#include "tests/suites.h"
#include "tests/support/support.h"
#include "tests/support/wall.h"

TESTS(tokenizer)

/* ---- recorded files -------------------------------------------------------------------------- */

static const char *const recorded[] = {
    "gpt2",
    "roberta",
    "llama3",
    "qwen2",
    "clip",
    "kimi",
    "oddities",
    "bert-uncased",
    "bert-multilingual",
    "llama2",
    "gemma",
    "t5",
    "xlm-r",
    "unigram-nmt",
    "words-digits",
    "pieces-digits",
    "scripts",
    "chars-fused",
    "bytes-nfkd",
    "split-removed",
    "replace",
    "decode-replace",
    "added-bert",
    "cut",
    "cut-left",
    "ctc-words",
    "untagged",
    "learned-bpe",
    "learned-unigram",
    "learned-wordpiece",
};

static char *read_recorded(const char *name, const char *ending, size_t *bytes) {
    char path[256];
    snprintf(path, sizeof path, "tokenizer/%s%s", name, ending);
    return data_text(path, bytes);
}

enum { MOST = 4096 };

static int64_t number_in(const json_tree *t, size_t list, int i) {
    int64_t n = -1;
    size_t at = wf_tree_first(t, list);
    for (; i; i--) at = wf_tree_next(t, list, at);
    ck_assert(wf_tree_size(t, at, INT32_MAX, &n));
    return n;
}

static void decodes_to(wf_json_tokenizer *tokenizer, const json_tree *t, size_t value,
                       const int32_t *ids, int64_t n, bool skip) {
    static char text[1 << 16];
    wf_span wanted = wf_tree_text(t, value);
    int64_t bytes = wf_json_tokenizer_decode(tokenizer, ids, n, skip, text, sizeof text, NULL);
    ck_assert_uint_eq((uint64_t)bytes, wanted.bytes);
    ck_assert_mem_eq(text, wanted.text, wanted.bytes);
}

static void case_holds(wf_json_tokenizer *tokenizer, const json_tree *t, size_t at) {
    static wf_json_token tokens[MOST];
    static int32_t ids[MOST];
    char message[WF_MESSAGE] = "";
    size_t pair = wf_tree_find(t, at, "pair"), list = wf_tree_find(t, at, "tokens");
    wf_span a = wf_tree_text(t, wf_tree_find(t, at, "text")), b = wf_tree_text(t, pair);
    bool special = wf_tree_kind(t, wf_tree_find(t, at, "special")) == JSON_TRUE;
    if (wf_tree_kind(t, pair) == JSON_NULL) b = (wf_span){ NULL, 0 };
    int64_t n = wf_json_tokenizer_encode(tokenizer, a.text, a.bytes, b.text, b.bytes, special,
                                         tokens, MOST, message);
    ck_assert_msg(n >= 0 && n <= MOST, "%s", message);
    int64_t i = 0;
    for (size_t k = wf_tree_first(t, list); k; k = wf_tree_next(t, list, k), i++) {
        ck_assert_int_lt(i, n);
        ck_assert_int_eq(tokens[i].id, number_in(t, k, 0));
        ck_assert_int_eq(tokens[i].type, number_in(t, k, 1));
        ck_assert_int_eq(tokens[i].begin, number_in(t, k, 2));
        ck_assert_int_eq(tokens[i].end, number_in(t, k, 3));
        ids[i] = tokens[i].id;
    }
    ck_assert_int_eq(i, n);
    decodes_to(tokenizer, t, wf_tree_find(t, at, "decoded"), ids, n, false);
    decodes_to(tokenizer, t, wf_tree_find(t, at, "skipped"), ids, n, true);
}

TEST_ROWS(tokens_are_those_of_the_library, COUNT_OF(recorded)) {
    char message[WF_MESSAGE] = "";
    json_tree t;
    size_t bytes;
    int n = 0;
    char *json = read_recorded(recorded[_i], ".json", &bytes);
    wf_json_tokenizer *tokenizer = wf_json_tokenizer_load(json, bytes, message);
    ck_assert_msg(tokenizer != NULL, "%s", message);
    char *cases = read_recorded(recorded[_i], ".cases.json", &bytes);
    ck_assert_msg(wf_tree_read(&t, cases, bytes, message), "%s", message);
    size_t list = wf_tree_find(&t, 0, "cases");
    for (size_t i = wf_tree_first(&t, list); i; i = wf_tree_next(&t, list, i), n++)
        case_holds(tokenizer, &t, i);
    ck_assert_int_ge(n, 15);
    wf_tree_free(&t), wf_json_tokenizer_free(tokenizer);
    free(json), free(cases);
}

/* ---- what is refused ------------------------------------------------------------------------- */

#define MODEL                                                                                      \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define PART(what, json) "{\"" what "\":" json "," MODEL "}"
#define SPLIT(pattern)                                                                             \
    PART("pre_tokenizer", "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"        \
                          "\"pattern\":{\"Regex\":\"" pattern "\"}}")
#define ADDED(content)                                                                             \
    PART("added_tokens", "[{\"id\":3,\"content\":" content                                         \
                         ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"               \
                         "\"normalized\":true,\"special\":false}]")

static const struct {
    const char *json, *says;
} refused[] = {
    { "", "no object" },
    { "[]", "no object" },
    { "{}", "the file has no model" },
    { "{\"model\":3}", "the file has no model" },
    { "{\"version\":\"2.0\"," MODEL "}", "version '2.0'" },
    { "{" MODEL, "'," },
    { "{\"a\":\"\xFF\"}", "not UTF-8" },
    { "{\"model\":{\"type\":\"Neural\"}}", "the model 'Neural' is not known here" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "is of a part" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}",
      "gives what is not" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}",
      "has not two parts" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "no pair" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "no whole number" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":2000000000},\"merges\":[]}}", "too far" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "'merges' is missing" },
    { "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{},\"merges\":[]}}", "dropout" },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}", "no text with a score" },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1e999]]}}", "no text with a score" },
    { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1]],\"unk_id\":1}}", "unknown id" },
    { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "'unk_token' is missing" },
    { PART("normalizer", "{\"type\":\"Invert\"}"), "the normalizer 'Invert' is not known here" },
    { PART("normalizer", "{}"), "the normalizer 'without a type'" },
    { PART("normalizer", "3"), "a normalizer is no object" },
    { PART("normalizer", "{\"type\":\"Strip\",\"strip_left\":1}"), "not true or false" },
    { PART("normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"?\"}"), "base 64" },
    { PART("normalizer", "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA=\"}"),
      "cut off" },
    { PART("pre_tokenizer", "{\"type\":\"Words\"}"),
      "the pre-tokenizer 'Words' is not known here" },
    { PART("pre_tokenizer", "{\"type\":\"Punctuation\",\"behavior\":\"Odd\"}"),
      "none of the words" },
    { PART("pre_tokenizer", "{\"type\":\"FixedLength\",\"length\":0}"), "from 1 on" },
    { PART("pre_tokenizer", "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"ab\"}"),
      "one character" },
    { PART("pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
                            "\"first\",\"add_prefix_space\":false}"),
      "does not match" },
    { PART("post_processor", "{\"type\":\"Shuffle\"}"), "the post-processor 'Shuffle'" },
    { PART("post_processor",
           "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
           "\"x\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{}}"),
      "the template's special token 'x' is not there" },
    { PART("post_processor", "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":"
                             "\"B\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{}}"),
      "has a second one" },
    { PART("decoder", "{\"type\":\"Reverse\"}"), "the decoder 'Reverse' is not known here" },
    { PART("padding", "{\"strategy\":{\"Fixed\":99999999},\"direction\":\"Left\",\"pad_id\":0,"
                      "\"pad_type_id\":0}"),
      "padding to more than" },
    { ADDED("3"), "'content' is no string" },
    { SPLIT("(a"), "a group without its end" },
    { SPLIT("a)"), "a ')' without its '('" },
    { SPLIT("[a"), "an empty class, or one without its end" },
    { SPLIT("*a"), "a repeat of nothing" },
    { SPLIT("(a*)*"), "a repeat of what may be empty" },
    { SPLIT("\\\\p{Klingon}"), "\\p{Klingon}" },
    { SPLIT("(a)\\\\1"), "an escape that is not known here" },
    { SPLIT("(?<name>a)"), "a kind of group" },
    { SPLIT("(?<=ab)c"), "a look-behind of more than one character" },
    { SPLIT("[[:alpha:]]"), "a POSIX bracket" },
    { SPLIT("(?i:straSSe)"), "whose cases have several lengths" },
    { SPLIT("((a{999}){999}){999}"), "too long with its repeats" },
};

TEST_ROWS(what_is_not_known_is_refused_by_name, COUNT_OF(refused)) {
    char message[WF_MESSAGE] = "";
    const char *json = refused[_i].json;
    ck_assert_ptr_null(wf_json_tokenizer_load(json, strlen(json), message));
    ck_assert_msg(strstr(message, refused[_i].says), "it says '%s'", message);
}

TEST(nothing_is_refused_with_a_sentence) {
    char message[WF_MESSAGE] = "";
    wf_json_token token;
    int32_t id = 0;
    ck_assert_ptr_null(wf_json_tokenizer_load(NULL, 0, message));
    ck_assert_str_eq(message, "there is no text");
    ck_assert_int_eq(wf_json_tokenizer_encode(NULL, "", 0, NULL, 0, true, &token, 1, message), -1);
    ck_assert_str_eq(message, "there is no tokenizer");
    ck_assert_int_eq(wf_json_tokenizer_decode(NULL, &id, 1, true, NULL, 0, message), -1);
    ck_assert_ptr_null(wf_json_tokenizer_piece(NULL, 0));
    ck_assert_int_eq(wf_json_tokenizer_size(NULL), 0);
    wf_json_tokenizer_free(NULL);
}

static wf_json_tokenizer *loaded(const char *json) {
    char message[WF_MESSAGE] = "";
    wf_json_tokenizer *t = wf_json_tokenizer_load(json, strlen(json), message);
    ck_assert_msg(t != NULL, "%s", message);
    return t;
}

static void says(wf_json_tokenizer *t, const char *line, size_t bytes, const char *wanted) {
    char message[WF_MESSAGE] = "";
    ck_assert_int_eq(wf_json_tokenizer_encode(t, line, bytes, NULL, 0, true, NULL, 0, message), -1);
    ck_assert_msg(strstr(message, wanted), "it says '%s'", message);
}

TEST(a_text_may_be_refused) {
    wf_json_tokenizer *t = loaded("{" MODEL "}");
    says(t, "ab\xFFz", 4, "not UTF-8 at byte 2");
    says(t, NULL, 3, "there is no text");
    wf_json_tokenizer_free(t);
    t = loaded("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]]}}");
    says(t, "aba", 3, "which has no unknown id");
    wf_json_tokenizer_free(t);
    t = loaded("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"[UNK]\"}}");
    says(t, "b", 1, "the unknown token '[UNK]' is not in the vocabulary");
    wf_json_tokenizer_free(t);
}

TEST(a_tokenizer_json_has_no_vocabulary_file_and_no_codes) {
    char message[WF_MESSAGE] = "", text[32] = "";
    const char json[] = "{" MODEL "}";
    const wf_json_text_options o = { json, strlen(json), 0, { -1, -1, -1, -1 } };
    wf_tokenizer *t = wf_tokenizer_from_json(&o, message);
    ck_assert_msg(t != NULL, "%s", message);
    ck_assert_uint_eq(wf_tokenizer_vocabulary(t, text, sizeof text), 0);
    ck_assert_uint_eq(wf_tokenizer_codes(t, text, sizeof text), 0);
    wf_tokenizer_free(t);
}

/* The first of two added tokens strips the spaces behind it, which are the second one's text. The
 * second is then not found; the library tokenizers panics here. */
TEST(a_token_whose_spaces_are_taken_is_none) {
    static const char flags[] = "\"single_word\":false,\"normalized\":false,\"special\":false";
    char json[1024];
    snprintf(json, sizeof json,
             "{\"added_tokens\":[{\"id\":3,\"content\":\"A\",\"lstrip\":false,\"rstrip\":true,%s},"
             "{\"id\":4,\"content\":\" \",\"lstrip\":true,\"rstrip\":false,%s}]," MODEL "}",
             flags, flags);
    wf_json_tokenizer *t = loaded(json);
    wf_json_token tokens[8];
    ck_assert_int_eq(wf_json_tokenizer_encode(t, "A   ab", 6, NULL, 0, true, tokens, 8, NULL), 2);
    ck_assert(tokens[0].id == 3 && tokens[0].end == 4);
    ck_assert(tokens[1].id == 2 && tokens[1].begin == 4);
    wf_json_tokenizer_free(t);
}

/* A long run of spaces is encoded in a short time if the added tokens are spaces that strip white
 * space, although each could read all the others. */
TEST(a_run_of_spaces_is_read_once) {
    enum { SPACES = 100000 };
    static const char *const strips[] = { "\"lstrip\":true,\"rstrip\":false",
                                          "\"lstrip\":false,\"rstrip\":true",
                                          "\"lstrip\":true,\"rstrip\":true" };
    char json[1024], *line = malloc(SPACES);
    memset(line, ' ', SPACES);
    for (int i = 0; i < COUNT_OF(strips); i++) {
        snprintf(json, sizeof json,
                 "{\"added_tokens\":[{\"id\":3,\"content\":\" \",%s,\"single_word\":false,"
                 "\"normalized\":false,\"special\":false}]," MODEL "}",
                 strips[i]);
        wf_json_tokenizer *t = loaded(json);
        clock_t start = clock();
        int64_t n = wf_json_tokenizer_encode(t, line, SPACES, NULL, 0, true, NULL, 0, NULL);
        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
        ck_assert_int_eq(n, i == 2 ? 1 : SPACES);
        ck_assert_msg(took < 5, "%s: %g s", strips[i], took); /* 22 s if it is quadratic */
        wf_json_tokenizer_free(t);
    }
    free(line);
}

TEST(what_is_unknown_without_a_token_is_dropped) {
    wf_json_tokenizer *t = loaded("{" MODEL "}");
    wf_json_token tokens[8];
    ck_assert_int_eq(wf_json_tokenizer_encode(t, "xabya", 5, NULL, 0, true, tokens, 8, NULL), 2);
    ck_assert_int_eq(tokens[0].id, 2);
    ck_assert_int_eq(tokens[1].id, 0);
    ck_assert_str_eq(wf_json_tokenizer_piece(t, 2), "ab");
    ck_assert_ptr_null(wf_json_tokenizer_piece(t, 3));
    ck_assert_int_eq(wf_json_tokenizer_size(t), 3);
    wf_json_tokenizer_free(t);
}

/* ---- hostile files --------------------------------------------------------------------------- */

/* A regular expression with exponential backtracking is stopped after a limited number of steps. */
TEST(a_hostile_expression_ends) {
    enum { LINE = 4096 };
    static char line[LINE];
    wf_json_tokenizer *t = loaded(SPLIT("(?:a|a|a|aa)+b|(?:a+)+c"));
    memset(line, 'a', LINE);
    clock_t start = clock();
    says(t, line, LINE, "takes too many steps");
    double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    ck_assert_msg(took < 0.1, "%g s", took); /* 2.5 ms without sanitizers */
    wf_json_tokenizer_free(t);
}

/* Each rule doubles the text. */
TEST(a_text_does_not_grow_without_limit) {
    static char json[8192];
    int n = snprintf(json, sizeof json, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 60; i++)
        n += snprintf(json + n, sizeof json - (size_t)n,
                      "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}",
                      i ? "," : "");
    snprintf(json + n, sizeof json - (size_t)n, "]}," MODEL "}");
    wf_json_tokenizer *t = loaded(json);
    says(t, "a", 1, "takes more than");
    wf_json_tokenizer_free(t);
}

TEST(deep_nesting_is_refused) {
    enum { DEEP = 100000 };
    char message[WF_MESSAGE] = "";
    char *json = malloc(2 * DEEP);
    strcpy(json, "{\"model\":");
    memset(json + 9, '[', DEEP);
    ck_assert_ptr_null(wf_json_tokenizer_load(json, DEEP, message));
    ck_assert_msg(strstr(message, "nested deeper"), "it says '%s'", message);
    for (int i = 0; i < 500; i++) memcpy(json + 9 + 16 * i, "{\"normalizers\":[", 16);
    memcpy(json + 1, "\"normal\":", 8);
    ck_assert_ptr_null(wf_json_tokenizer_load(json, 9 + 16 * 500, message));
    ck_assert(*message);
    free(json);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static const struct {
    const char *pattern, *text;
    int begin, end; /* of the first match; -1: none */
} matches[] = {
    { "b", "abc", 1, 2 },
    { "a|ab", "ab", 0, 1 },
    { "a*?b", "aab", 0, 3 },
    { "a++a", "aaa", -1, -1 },
    { "(?>a+)b", "aab", 0, 3 },
    { "a{2,3}", "aaaa", 0, 3 },
    { "a{2,3}?", "aaaa", 0, 2 },
    { "a{,2}", "aaa", 0, 2 },
    { "a{x", "a{x", 0, 3 },
    { "\\s+(?!\\S)", "   a", 0, 2 },
    { "(?<=b)a", "aaba", 3, 4 },
    { "(?<!b)a\\z", "ba", -1, -1 },
    { "^b", "a\nb", 2, 3 },
    { "a$", "ba\nc", 1, 2 },
    { "\\bc", "ab c", 3, 4 },
    { "[a-c&&[^b]]+", "bcab", 1, 3 },
    { "[^\\s\\p{L}]", "a 1", 2, 3 },
    { "(?i:'LL)", "x'll", 1, 4 },
    { "(?i)s", "\xC5\xBF", 0, 2 },
    { "a(?i)b|c", "aC", 0, 2 },
    { "\\x{e4}", "\xC3\xA4", 0, 2 },
    { "\\u4e00", "\xE4\xB8\x80", 0, 3 },
    { ".", "\n", -1, -1 },
    { "(?m:.)", "\n", 0, 1 },
    { "\\p{^L}\\P{L}", "1a12", 2, 4 },
    { "[]a]+", "a]", 0, 2 },
    { "(?:ab){2}c", "abababc", 2, 7 },
    { "", "a", 0, 0 },
};

TEST_ROWS(expressions_match_as_onigurumas, COUNT_OF(matches)) {
    char message[WF_MESSAGE] = "";
    wf_expression e;
    const char *pattern = matches[_i].pattern, *text = matches[_i].text;
    size_t begin = 0, end = 0;
    bool ok = wf_expression_compile(&e, (wf_span){ pattern, strlen(pattern) }, message);
    ck_assert_msg(ok, "%s", message);
    wf_search s = wf_search_begin(&e, (wf_span){ text, strlen(text) });
    wf_match_result result = wf_search_next(&s, &begin, &end);
    ck_assert_int_eq(result, matches[_i].begin < 0 ? NO_MATCH : A_MATCH);
    if (result == A_MATCH) {
        ck_assert_int_eq((int)begin, matches[_i].begin);
        ck_assert_int_eq((int)end, matches[_i].end);
    }
    wf_expression_free(&e);
}

/* Each "(?i)" opens a group that reaches to the end of the group around it, so options are limited
 * like nested groups. */
TEST_ROWS(options_in_expressions_are_limited, 3) {
    static const int numbers[] = { 32, 33, 1300 };
    static char pattern[4 * 1300 + 2];
    char message[WF_MESSAGE] = "";
    wf_expression e;
    for (int i = 0; i < numbers[_i]; i++) memcpy(pattern + 4 * i, "(?i)", 4);
    strcpy(pattern + 4 * numbers[_i], "a");
    bool ok = wf_expression_compile(&e, (wf_span){ pattern, strlen(pattern) }, message);
    ck_assert(ok == (numbers[_i] <= 32));
    if (ok) wf_expression_free(&e);
    if (!ok) ck_assert_ptr_nonnull(strstr(message, "groups nested deeper than 32"));
}

/* ---- characters ------------------------------------------------------------------------------ */

TEST(unicode_data_is_that_of_the_library) {
    int64_t letters = 0, lower = 0, composed = 0;
    for (uint32_t c = 0; c <= LAST_CODE_POINT; c++) {
        uint32_t category = wf_table_value(&wf_categories, c), second, parts[MOST_DECOMPOSED];
        letters += category >= CATEGORY_LU && category <= CATEGORY_LO;
        lower += wf_lower_case(c, &second) != c;
        if (wf_decomposition(c, false, parts) == 2)
            composed += wf_composition(parts[0], parts[1]) == c;
    }
    ck_assert_int_eq(letters, 141028);
    ck_assert_int_eq(lower, 1488);
    ck_assert_int_eq(composed, 1087);
}

static const struct {
    const char *text;
    size_t bytes;
} clusters[] = {
    { "ab", 1 },
    { "a\xCC\x81z", 3 },
    { "\r\n", 2 },
    { "\n\r", 1 },
    { "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8z", 9 },
    { "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\xF0\x9F\x87\xA9", 8 },
    { "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9z", 11 },
    { "\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7z", 9 },
};

TEST_ROWS(clusters_are_those_of_unicode, COUNT_OF(clusters)) {
    ck_assert_uint_eq(wf_cluster(clusters[_i].text, strlen(clusters[_i].text)), clusters[_i].bytes);
}

/* ---- without memory -------------------------------------------------------------------------- */

static const char *work_json;
static size_t work_bytes;

static bool told(bool ok, const char *message) {
    must(ok || *message, "it failed without a sentence");
    return ok;
}

static bool life(void) {
    static const char line[] = "Das Gr\xC3\xB6\xC3\x9F"
                               "te <mask> e\xCC\x81 1996 'll \xE4\xB8\x80 x";
    char message[WF_MESSAGE] = "", text[256];
    wf_json_token tokens[128];
    int32_t ids[128];
    wf_json_tokenizer *t = wf_json_tokenizer_load(work_json, work_bytes, message);
    if (!told(t != NULL, message)) return false;
    int64_t n =
        wf_json_tokenizer_encode(t, line, sizeof line - 1, NULL, 0, true, tokens, 128, message);
    bool ok = told(n >= 0, message);
    if (ok) wall_say(tokens, (size_t)n * sizeof *tokens);
    for (int64_t i = 0; ok && i < n; i++) ids[i] = tokens[i].id;
    int64_t bytes = ok ? wf_json_tokenizer_decode(t, ids, n, false, text, sizeof text, message) : 0;
    ok = ok && told(bytes >= 0, message);
    if (ok) wall_say(text, strlen(text));
    wf_json_tokenizer_free(t);
    return ok;
}

/* The files are small, because a large vocabulary would only repeat the same allocations many
 * times. */
static const char *const failing[] = {
    PART("normalizer",
         "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"Lowercase\"}]}"),
    SPLIT("(?i:'ll)|[^\\\\s\\\\p{L}]+(?!a)|\\\\w+"),
    ADDED("\"<mask>\""),
    "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"},\"decoder\":{\"type\":"
    "\"WordPiece\","
    "\"prefix\":\"#\",\"cleanup\":true},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":["
    "\"s\",1],"
    "\"cls\":[\"c\",0]},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-"
    "1.5],[\"_x\",-2]]}}",
    "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":"
    "true,"
    "\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":"
    "\"ByteLevel\","
    "\"add_prefix_space\":true,\"trim_offsets\":true},\"model\":{\"type\":\"WordPiece\",\"unk_"
    "token\":\"?\","
    "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":9,\"vocab\":{\"?\":0,"
    "\"das\":1,\"e\":2,\"##x\":3}}}",
};

TEST_ROWS(every_failure_is_survived, 2 * COUNT_OF(failing)) {
    const wall_work work = { "tokenizer.json", life, true };
    work_json = failing[_i / 2];
    work_bytes = strlen(work_json);
    ck_assert_int_gt(wall_fail_each(&work, _i % 2), 10);
}
