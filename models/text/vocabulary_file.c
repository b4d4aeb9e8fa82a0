/* models/text/vocabulary_file.c - reads and writes a vocabulary: as text with one piece per line,
 * and as metadata of a model's file. The same code reads both, and checks everything. */
#include "models/choices.h"
#include "models/text/byte_level/byte_level.h"
#include "models/text/json/json_text.h"
#include "models/text/sentencepiece/sentencepiece.h"
#include "models/text_internal.h"

#include <stdlib.h>

/* "<blank>" is OpenNMT's name for "<pad>". */
static const char *const specials[] = { "<pad>", UNKNOWN_PIECE, "<s>", "</s>", "<blank>" };
enum { NAMES = sizeof specials / sizeof *specials };

/* ---- a line ---------------------------------------------------------------------------------- */

static bool is_count(wf_span s) {
    for (size_t i = 0; i < s.bytes; i++)
        if (s.text[i] < '0' || s.text[i] > '9') return false;
    return s.bytes > 0;
}

/* Finds the piece that begins a line; its count may follow. The piece may be a space, if pieces are
 * characters. */
static bool cut(const wf_tokenizer *t, wf_span line, wf_span *piece, char *message) {
    size_t n = 0;
    if (!line.bytes) return fail(message, "an empty line where a piece is expected");
    if (t->kind != WF_WORDS && !wf_has_merges(t->kind))
        n = wf_code_point(line.text, line.bytes).bytes;
    else
        while (n < line.bytes && !wf_is_blank(line.text[n])) n++;
    *piece = (wf_span){ line.text, n };
    if (n == 0) return fail(message, "white space where a piece is expected");
    if (n == line.bytes) return true;
    wf_span count = { line.text + n + 1, line.bytes - n - 1 };
    if ((line.text[n] == ' ' || line.text[n] == '\t') && is_count(count)) return true;
    return fail(message, t->kind != WF_WORDS && !wf_has_merges(t->kind)
                             ? "more than one character, and it is no count"
                             : "more than a piece and its count");
}

/* True if byte-pair encoding could have written this piece. */
static bool is_part(wf_span p, char *message) {
    bool more = p.bytes >= MORE && memcmp(p.text + p.bytes - MORE, MORE_OF_WORD, MORE) == 0;
    size_t n = more ? p.bytes - MORE : p.bytes;
    if (!n) return fail(message, "'" MORE_OF_WORD "' alone is no piece");
    if (more && n >= MARK && memcmp(p.text + n - MARK, END_OF_WORD, MARK) == 0)
        return fail(message, "'%.*s' cannot be told from the mark '" END_OF_WORD "'",
                    p.bytes < 80 ? (int)p.bytes : 80, p.text);
    return true;
}

static bool add_line(wf_tokenizer *t, wf_span line, char *message) {
    wf_span piece = { 0 };
    int32_t before = t->pieces.n;
    if (!wf_text_check(line.text, line.bytes, message)) return false;
    if (!cut(t, wf_line_body(line.text, line.bytes), &piece, message)) return false;
    if (t->kind == WF_BPE && !is_part(piece, message)) return false;
    if (before >= INT32_MAX - WF_SPECIAL_IDS ||
        wf_strings_add(&t->pieces, piece.text, piece.bytes) < 0)
        return fail(message, "out of memory");
    return t->pieces.n > before || fail(message, "'%.*s' occurs twice",
                                        piece.bytes < 80 ? (int)piece.bytes : 80, piece.text);
}

/* ---- all lines ------------------------------------------------------------------------------- */

static bool same(wf_span s, const char *name) {
    return strlen(name) == s.bytes && memcmp(name, s.text, s.bytes) == 0;
}

/* True if the line names a special symbol for the first time, and stands before all pieces. Then
 * *taken gets the bit of this symbol. */
static bool takes_special(const wf_tokenizer *t, wf_span line, unsigned *taken) {
    wf_span rest = wf_line_body(line.text, line.bytes), name, number;
    if (t->pieces.n || !wf_word_next(&rest, &name) || name.text != line.text) return false;
    if (wf_word_next(&rest, &number) && !is_count(number)) return false;
    for (int i = 0; i < NAMES; i++) {
        unsigned bit = 1u << i % WF_SPECIAL_IDS;
        if (!same(name, specials[i]) || *taken & bit) continue;
        *taken |= bit;
        return true;
    }
    return false;
}

static bool read_vocabulary(wf_tokenizer *t, wf_span rest, char *message) {
    char why[WF_MESSAGE];
    wf_span line;
    unsigned taken = 0;
    for (long long n = 1; wf_line_next(&rest, &line); n++)
        if (!takes_special(t, line, &taken) && !add_line(t, line, why))
            return fail(message, "vocabulary: line %lld: %.200s", n, why);
    return t->pieces.n || fail(message, "vocabulary: there is no piece in it");
}

wf_tokenizer *wf_tokenizer_read(wf_token_kind kind, const char *vocabulary, size_t bytes,
                                const char *codes, size_t codes_bytes, char *message) {
    if (!wf_token_kind_name((int)kind))
        return fail(message, "kind %d is not one of %s", (int)kind, WF_NAMES(WF_TOKEN_NAMES)), NULL;
    if (kind == WF_SENTENCEPIECE)
        return fail(message, "sentencepiece has no vocabulary file: it is read from a .spm file"),
               NULL;
    if (kind == WF_BYTE_LEVEL)
        return fail(message,
                    "byte-level has no vocabulary file: it is read from a vocab.json and a "
                    "merges.txt"),
               NULL;
    if (kind == WF_JSON_TEXT)
        return fail(message, "json has no vocabulary file: it is read from a tokenizer.json"), NULL;
    if (!vocabulary) return fail(message, "there is no vocabulary"), NULL;
    if (wf_has_merges(kind) != (codes != NULL))
        return fail(message, codes ? "codes are for byte-pair encoding alone"
                                   : "byte-pair encoding needs codes beside its vocabulary"),
               NULL;
    wf_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return fail(message, "out of memory"), NULL;
    t->kind = kind;
    bool ok = read_vocabulary(t, (wf_span){ vocabulary, bytes }, message);
    if (ok && codes) {
        ok = wf_read_codes(t, codes, codes_bytes, 0, message);
        if (ok && !wf_link_pieces(t)) ok = fail(message, "out of memory");
    }
    if (ok) return t;
    wf_tokenizer_free(t);
    return NULL;
}

size_t wf_tokenizer_vocabulary(const wf_tokenizer *t, char *text, size_t size) {
    wf_sink s = sink(text, size);
    if (t && (t->sentencepiece || t->byte_level || t->json)) return 0;
    for (int32_t id = 0; id < wf_tokenizer_size(t); id++) {
        const char *piece = wf_tokenizer_piece(t, id);
        put(&s, piece, strlen(piece));
        put(&s, "\n", 1);
    }
    return s.used;
}

/* ---- in a model's file ----------------------------------------------------------------------- */

static const char *const fields[] = { "kind",    "vocabulary", "codes", "model",
                                      "special", "before",     "after", "added",
                                      "silent",  "prefix",     "rows" };
enum { KIND, VOCABULARY, CODES, LONGEST_PREFIX = 64 };

/* Writes the value of a field; 0: there is no such field. */
static size_t value_of(const wf_tokenizer *t, int field, char *text, size_t size) {
    if (field == KIND) return (size_t)snprintf(text, size, "%s", wf_token_kind_name((int)t->kind));
    if (t->sentencepiece)
        return wf_sentencepiece_field(t->sentencepiece, fields[field], text, size);
    if (t->byte_level) return wf_byte_level_field(t->byte_level, fields[field], text, size);
    if (t->json) return wf_json_text_field(t->json, fields[field], text, size);
    if (field == VOCABULARY) return wf_tokenizer_vocabulary(t, text, size);
    return field == CODES && wf_has_merges(t->kind) ? wf_tokenizer_codes(t, text, size) : 0;
}

bool wf_tokenizer_to_meta(wf_tokenizer *t, const char *prefix, wf_meta *pairs, int *n,
                          char *message) {
    if (!t || !prefix || !pairs || !n)
        return fail(message, "there is no tokenizer, no prefix, or no room for the pairs");
    int more = 0;
    for (int i = 0; i < WF_TOKENIZER_META; i++) {
        size_t key = strlen(prefix) + strlen(fields[i]) + 2, value = value_of(t, i, NULL, 0);
        free(t->stored[i]);
        t->stored[i] = NULL;
        if (!value) continue;
        t->stored[i] = malloc(key + value + 1);
        if (!t->stored[i]) return fail(message, "out of memory");
        snprintf(t->stored[i], key, "%s.%s", prefix, fields[i]);
        value_of(t, i, t->stored[i] + key, value + 1);
        pairs[*n + more++] = (wf_meta){ t->stored[i], t->stored[i] + key };
    }
    *n += more;
    return true;
}

static const char *find_field(const wf_file *f, const char *prefix, const char *field) {
    char key[LONGEST_PREFIX + 16];
    snprintf(key, sizeof key, "%.*s.%s", LONGEST_PREFIX, prefix, field);
    return wf_file_meta(f, key);
}

bool wf_tokenizer_in_file(const wf_file *f, const char *prefix) {
    return wf_file_ok(f) && prefix && find_field(f, prefix, fields[KIND]);
}

static wf_tokenizer *read_fields(wf_token_kind kind, const char *const *text,
                                 const wf_tokenizer *beside, char *message) {
    const wf_fields f = { fields, text, WF_TOKENIZER_META };
    if (kind == WF_SENTENCEPIECE)
        return wf_sentencepiece_from_fields(&f, beside ? beside->sentencepiece : NULL, message);
    if (kind == WF_BYTE_LEVEL) return wf_byte_level_from_fields(&f, message);
    if (kind == WF_JSON_TEXT) return wf_json_text_from_fields(&f, message);
    return wf_tokenizer_read(kind, text[VOCABULARY],
                             text[VOCABULARY] ? strlen(text[VOCABULARY]) : 0, text[CODES],
                             text[CODES] ? strlen(text[CODES]) : 0, message);
}

wf_tokenizer *wf_tokenizer_from_meta_beside(const wf_file *f, const char *prefix,
                                            const wf_tokenizer *beside, char *message) {
    if (!wf_file_ok(f)) return fail(message, "%s", wf_file_error(f)), NULL;
    if (!prefix) return fail(message, "there is no prefix to look for"), NULL;
    const char *text[WF_TOKENIZER_META];
    char why[WF_MESSAGE];
    int kind = 0;
    for (int i = 0; i < WF_TOKENIZER_META; i++) text[i] = find_field(f, prefix, fields[i]);
    if (!text[KIND])
        return fail(message, "no '%.*s.kind' in the metadata: the model has no vocabulary of text",
                    LONGEST_PREFIX, prefix),
               NULL;
    const char *name;
    while ((name = wf_token_kind_name(kind)) && strcmp(name, text[KIND])) kind++;
    if (!name)
        return fail(message, "'%.*s.kind' is '%.40s', not one of %s", LONGEST_PREFIX, prefix,
                    text[KIND], WF_NAMES(WF_TOKEN_NAMES)),
               NULL;
    wf_tokenizer *t = read_fields((wf_token_kind)kind, text, beside, why);
    if (!t) fail(message, "%.*s: %.180s", LONGEST_PREFIX, prefix, why);
    return t;
}

wf_tokenizer *wf_tokenizer_from_meta(const wf_file *f, const char *prefix, char *message) {
    return wf_tokenizer_from_meta_beside(f, prefix, NULL, message);
}
