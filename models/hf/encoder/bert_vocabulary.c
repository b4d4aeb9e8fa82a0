/* models/hf/encoder/bert_vocabulary.c - makes the text of a tokenizer.json out of the vocab.txt of
 * BERT or DistilBERT, which older folders have instead. See bert_family.h.
 *
 * Each line is a token, and its number from 0 is the id. tokenizer_config.json says how lines are
 * normalized; settings that it leaves out have the defaults of transformers' BertTokenizer. */
#include <stdlib.h>
#include <string.h>

#include "bert_family.h"
#include "models/message.h"

#define FILE_NAME "vocab.txt"
#define SETTINGS "tokenizer_config.json"

/* Special tokens, in the order of their ids in bert-base. */
static const char *const specials[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
enum { UNKNOWN = 1, START, END, MASK, SPECIALS };

typedef struct normalization {
    bool lower, chinese;
    int strip; /* 1: remove accents; 0: keep them; -1: remove them if `lower` is true */
} normalization;

/* ---- tokenizer_config.json ------------------------------------------------------------------- */

static bool read_flag(const hf_object *o, const char *key, bool *out, char *message) {
    const hf_value *v = wf_hf_find(o, key);
    return !v || wf_hf_bool(v, out) ||
           fail(message, SETTINGS ": '%s' is neither true nor false", key);
}

/* True if tokenizer_config.json names a class of transformers that reads a vocab.txt in this way,
 * or names none. */
static bool is_known_class(const hf_object *o) {
    static const char *const known[] = { "BertTokenizer", "BertTokenizerFast",
                                         "DistilBertTokenizer", "DistilBertTokenizerFast" };
    const hf_value *v = wf_hf_find(o, "tokenizer_class");
    char name[64];
    if (!v) return true;
    return wf_hf_string(v, name, sizeof name) && HF_LISTED(known, name);
}

static bool read_settings(const hf_object *o, normalization *n, char *message) {
    const hf_value *strip = wf_hf_find(o, "strip_accents");
    bool stripped = false;
    if (!is_known_class(o))
        return fail(message, FILE_NAME ": 'tokenizer_class' of " SETTINGS " is not BertTokenizer "
                                       "or DistilBertTokenizer");
    if (!read_flag(o, "do_lower_case", &n->lower, message) ||
        !read_flag(o, "tokenize_chinese_chars", &n->chinese, message) ||
        !read_flag(o, "strip_accents", &stripped, message))
        return false;
    if (strip) n->strip = stripped;
    return true;
}

static bool find_settings(const char *folder, normalization *n, char *message) {
    hf_object o = { 0 };
    *n = (normalization){ .lower = true, .chinese = true, .strip = -1 };
    bool ok = wf_hf_object_read_if(&o, folder, SETTINGS, message) && read_settings(&o, n, message);
    wf_hf_object_free(&o);
    return ok;
}

/* ---- vocab.txt ------------------------------------------------------------------------------- */

/* Writes the object of tokens and their ids, and finds the ids of the special tokens. */
static void put_vocabulary(wf_text *t, char *text, int64_t id_of[SPECIALS]) {
    int64_t id = 0;
    wf_hf_put_as(t, "\"vocab\": {");
    for (char *at = text, *end; *at; at = end, id++) {
        size_t n = strcspn(at, "\n");
        end = at + n + (at[n] == '\n');
        if (n && at[n - 1] == '\r') at[n - 1] = '\0';
        at[n] = '\0';
        wf_hf_put_as(t, id ? ", " : "");
        wf_hf_put_string(t, at);
        wf_hf_put_as(t, ": %lld", (long long)id);
        for (int i = 0; i < SPECIALS; i++)
            if (strcmp(at, specials[i]) == 0) id_of[i] = id;
    }
    wf_hf_put_as(t, "}");
}

static void put_around(wf_text *t, const int64_t id_of[SPECIALS]) {
    wf_hf_put_as(t,
                 ", \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", %lld], "
                 "\"cls\": [\"[CLS]\", %lld]}",
                 (long long)id_of[END], (long long)id_of[START]);
    wf_hf_put_as(t, ", \"added_tokens\": [");
    for (int i = 0, n = 0; i < SPECIALS; i++) {
        if (id_of[i] < 0) continue;
        wf_hf_put_as(t,
                     "%s{\"id\": %lld, \"content\": \"%s\", \"single_word\": false, \"lstrip\": "
                     "false, \"rstrip\": false, \"normalized\": false, \"special\": true}",
                     n++ ? ", " : "", (long long)id_of[i], specials[i]);
    }
    wf_hf_put_as(t, "]");
}

static void put_normalizer(wf_text *t, const normalization *n) {
    static const char *const flags[] = { "null", "false", "true" };
    wf_hf_put_as(t,
                 ", \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, "
                 "\"handle_chinese_chars\": %s, \"strip_accents\": %s, \"lowercase\": %s}",
                 flags[1 + n->chinese], flags[1 + n->strip], flags[1 + n->lower]);
    wf_hf_put_as(t, ", \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"decoder\": "
                    "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}}");
}

static bool put_file(wf_text *t, char *text, const normalization *n, char *message) {
    int64_t id_of[SPECIALS] = { -1, -1, -1, -1, -1 };
    wf_hf_put_as(t, "{\"version\": \"1.0\", \"model\": {\"type\": \"WordPiece\", \"unk_token\": "
                    "\"[UNK]\", \"continuing_subword_prefix\": \"##\", "
                    "\"max_input_chars_per_word\": 100, ");
    put_vocabulary(t, text, id_of);
    wf_hf_put_as(t, "}");
    for (int i = UNKNOWN; i < MASK; i++)
        if (id_of[i] < 0) return fail(message, FILE_NAME ": there is no %s", specials[i]);
    put_around(t, id_of);
    put_normalizer(t, n);
    return !t->lacks || fail(message, "out of memory");
}

bool wf_hf_bert_has_vocabulary(const char *folder) {
    return wf_hf_exists(folder, FILE_NAME);
}

char *wf_hf_bert_vocabulary(const char *folder, size_t *bytes, char *message) {
    normalization n;
    wf_text t = { 0 };
    if (!find_settings(folder, &n, message)) return NULL;
    char *text = wf_hf_read(folder, FILE_NAME, bytes, message);
    bool ok = text != NULL;
    if (ok && memchr(text, '\0', *bytes)) ok = fail(message, FILE_NAME ": it has a zero byte");
    ok = ok && put_file(&t, text, &n, message);
    free(text);
    *bytes = t.length;
    if (ok) return t.at;
    free(t.at);
    return NULL;
}
