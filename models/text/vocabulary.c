/* models/text/vocabulary.c - learns a tokenizer from lines: counts, and assigns ids. */
#include "models/choices.h"
#include "models/text/byte_level/byte_level.h"
#include "models/text_internal.h"
#include "tally.h"

#include <stdlib.h>

/* ---- reading --------------------------------------------------------------------------------- */

static bool count_spelled(wf_tally *c, wf_span text) {
    char spelled[CODE_POINT];
    while (text.bytes) {
        wf_span s = wf_spell_character(wf_character_next(&text), spelled);
        if (s.bytes && !wf_tally_add(c, s, 1)) return false;
    }
    return true;
}

static bool count_chunks(wf_tally *c, wf_token_kind kind, wf_span text) {
    char spelled[CODE_POINT * LONGEST_CHUNK];
    bool gpt2 = kind == WF_BYTE_LEVEL;
    for (wf_span chunk;
         gpt2 ? wf_byte_level_chunk_next(&text, &chunk) : wf_chunk_next(&text, &chunk);)
        if (!wf_tally_add(c, wf_spell_bytes(chunk, spelled), 1)) return false;
    return true;
}

static bool count_line(wf_tally *c, wf_token_kind kind, wf_span line) {
    wf_span word;
    if (kind == WF_TEXT_CHARACTERS) return count_spelled(c, line);
    if (kind == WF_BYTE_BPE || kind == WF_BYTE_LEVEL) return count_chunks(c, kind, line);
    if (kind == WF_CHARACTERS) return wf_tally_characters(c, line, 1);
    while (wf_word_next(&line, &word))
        if (!wf_tally_add(c, word, 1)) return false;
    return true;
}

static bool count_lines(wf_tally *c, wf_token_kind kind, wf_line_reader next, void *from,
                        char *message) {
    char why[WF_MESSAGE];
    const char *line = NULL;
    size_t bytes = 0;
    int status;
    for (long long n = 1; (status = next(from, &line, &bytes)) != 0; n++) {
        if (status < 0) return fail(message, "line %lld could not be read", n);
        wf_span all = { line, bytes };
        bool running = wf_is_running(kind);
        if (!(running ? wf_running_check(kind, all, why) : wf_text_check(line, bytes, why)))
            return fail(message, "line %lld: %.200s", n, why);
        if (!count_line(c, kind, running ? all : wf_line_body(line, bytes)))
            return fail(message, "out of memory");
    }
    return c->strings.n || fail(message, "there is no text to learn a vocabulary from");
}

/* ---- what gets an id ------------------------------------------------------------------------- */

static bool has_room(const wf_tokenizer *t, const wf_tokenizer_options *o) {
    return !o->vocab_size || wf_tokenizer_size(t) < o->vocab_size;
}

static bool take_frequent(wf_tokenizer *t, const wf_tally *c, const wf_tokenizer_options *o,
                          char *message) {
    wf_ranked *r = wf_tally_rank(c);
    bool ok = r != NULL;
    for (int32_t i = 0; ok && i < c->strings.n && r[i].count >= o->min_freq && has_room(t, o); i++)
        ok = wf_strings_add(&t->pieces, r[i].text.text, r[i].text.bytes) >= 0;
    free(r);
    if (!ok) return fail(message, "out of memory");
    return t->pieces.n ||
           fail(message, "nothing occurs %lld times: lower min_freq", (long long)o->min_freq);
}

/* ---- byte-pair encoding ---------------------------------------------------------------------- */

static bool take_character(wf_tokenizer *t, wf_span c) {
    int32_t inside, last;
    return wf_add_character(t, c, false, &inside) && wf_symbol_piece(t, inside) &&
           wf_add_character(t, c, true, &last) && wf_symbol_piece(t, last);
}

/* Adds every byte, so that nothing in a text is unknown. */
static bool take_bytes(wf_tokenizer *t, const wf_tokenizer_options *o, char *message) {
    char spelled[CODE_POINT];
    int32_t symbol;
    for (int byte = 0; byte < 256; byte++) {
        wf_span s = { spelled, wf_spell_byte((unsigned char)byte, spelled) };
        bool ok = t->kind == WF_BYTES
                      ? wf_strings_add(&t->pieces, s.text, s.bytes) >= 0
                      : wf_add_character(t, s, false, &symbol) && wf_symbol_piece(t, symbol);
        if (!ok) return fail(message, "out of memory");
    }
    return !o->vocab_size || wf_tokenizer_size(t) <= o->vocab_size ||
           fail(message, "vocab_size is %lld, but bytes need %lld ids", (long long)o->vocab_size,
                (long long)wf_tokenizer_size(t));
}

static bool take_alphabet(wf_tokenizer *t, const wf_tally *words, const wf_tokenizer_options *o,
                          char *message) {
    wf_tally c = { 0 };
    bool ok = wf_tally_alphabet(&c, words);
    wf_ranked *r = ok ? wf_tally_rank(&c) : NULL;
    ok = r != NULL;
    for (int32_t i = 0; ok && i < c.strings.n; i++) ok = take_character(t, r[i].text);
    free(r), wf_tally_free(&c);
    if (!ok) return fail(message, "out of memory");
    return !o->vocab_size || wf_tokenizer_size(t) <= o->vocab_size ||
           fail(message,
                "vocab_size is %lld, but the %lld characters need %lld ids before any merge",
                (long long)o->vocab_size, (long long)t->pieces.n / 2,
                (long long)wf_tokenizer_size(t));
}

static bool take_given_merges(wf_tokenizer *t, const wf_tokenizer_options *o, char *message) {
    if (!wf_read_codes(t, o->codes, o->codes_bytes, o->merges, message)) return false;
    for (size_t i = 0; i < t->merges.n && has_room(t, o); i++)
        if (!wf_symbol_piece(t, t->merges.at[i].result)) return fail(message, "out of memory");
    return true;
}

static bool take_parts(wf_tokenizer *t, const wf_tally *words, const wf_tokenizer_options *o,
                       char *message) {
    if (!(t->kind == WF_BYTE_BPE ? take_bytes(t, o, message) : take_alphabet(t, words, o, message)))
        return false;
    bool ok = o->codes ? take_given_merges(t, o, message)
                       : wf_learn_merges(t, &words->strings, words->counts, o) ||
                             fail(message, "out of memory");
    return ok && (wf_link_pieces(t) || fail(message, "out of memory"));
}

/* ---- options --------------------------------------------------------------------------------- */

static bool learns_merges(wf_token_kind kind) {
    return wf_has_merges(kind) || kind == WF_BYTE_LEVEL;
}

wf_tokenizer_options wf_tokenizer_defaults(wf_token_kind kind) {
    if (learns_merges(kind))
        return (wf_tokenizer_options){ .kind = kind, .vocab_size = 8000, .min_freq = 2 };
    return (wf_tokenizer_options){ .kind = kind, .min_freq = 1 };
}

static bool check_options(const wf_tokenizer_options *o, wf_line_reader next, char *message) {
    if (!o || !next) return fail(message, "there are no options or no lines to learn from");
    if (!wf_token_kind_name((int)o->kind))
        return fail(message, "kind %d is not one of %s", (int)o->kind, WF_NAMES(WF_TOKEN_NAMES));
    if (o->kind == WF_JSON_TEXT)
        return fail(message, "json is not learned here: it is read from a tokenizer.json");
    if (o->kind == WF_SENTENCEPIECE)
        return fail(message, "sentencepiece is not learned here: it is read from a .spm file");
    if (o->vocab_size && (o->vocab_size <= WF_SPECIAL_IDS || o->vocab_size > INT32_MAX))
        return fail(message, "vocab_size is %lld: 0 for no limit, or %d to %d",
                    (long long)o->vocab_size, WF_SPECIAL_IDS + 1, INT32_MAX);
    if (o->min_freq < 1)
        return fail(message, "min_freq is %lld: at least 1", (long long)o->min_freq);
    if (o->merges < 0) return fail(message, "merges is %lld: at least 0", (long long)o->merges);
    return learns_merges(o->kind) || (!o->merges && !o->codes) ||
           fail(message, "merges and codes are for byte-pair encoding alone");
}

static bool learn(wf_tokenizer *t, const wf_tally *c, const wf_tokenizer_options *o,
                  char *message) {
    if (o->kind == WF_BYTES) return take_bytes(t, o, message);
    return (learns_merges(o->kind) ? take_parts : take_frequent)(t, c, o, message);
}

/* Converts a learned byte-bpe tokenizer if `kind` is byte-level, which learns the same merges and
 * stores them differently; t is then freed, also on failure: NULL with message. Else returns t. */
static wf_tokenizer *finish(wf_tokenizer *t, wf_token_kind kind, char *message) {
    if (kind != WF_BYTE_LEVEL) return t;
    wf_tokenizer *kept = wf_byte_level_learned(t, message);
    wf_tokenizer_free(t);
    return kept;
}

wf_tokenizer *wf_tokenizer_learn(const wf_tokenizer_options *o, wf_line_reader next, void *from,
                                 char *message) {
    if (!check_options(o, next, message)) return NULL;
    wf_tally c = { 0 };
    wf_tokenizer *t = calloc(1, sizeof *t);
    bool ok = t || fail(message, "out of memory");
    if (ok) t->kind = o->kind == WF_BYTE_LEVEL ? WF_BYTE_BPE : o->kind;
    ok = ok && (o->kind == WF_BYTES || count_lines(&c, o->kind, next, from, message)) &&
         learn(t, &c, o, message);
    wf_tally_free(&c);
    if (ok) return finish(t, o->kind, message);
    wf_tokenizer_free(t);
    return NULL;
}
