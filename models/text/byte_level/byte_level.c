/* models/text/byte_level/byte_level.c - the tokenizer with a vocabulary and merges in the form of
 * GPT-2: makes it, learns one, cuts text into chunks, encodes and decodes. See text.h,
 * byte_level.h. */
#include "byte_level.h"
#include "models/text_internal.h"

#include <stdlib.h>

#include "core/base/utf8.h"
#include "models/text/characters/characters.h"

/* ---- chunks ---------------------------------------------------------------------------------- */

wf_unicode_class wf_unicode_class_of(uint32_t code_point) {
    if (wf_is_space(code_point)) return UNICODE_BLANK;
    uint32_t category = wf_table_value(&wf_categories, code_point);
    if (category >= CATEGORY_LU && category <= CATEGORY_LO) return UNICODE_LETTER;
    return category >= CATEGORY_ND && category <= CATEGORY_NO ? UNICODE_NUMBER : UNICODE_OTHER;
}

static wf_unicode_class class_at(wf_span text, size_t at, size_t *bytes) {
    wf_span c = wf_code_point(text.text + at, text.bytes - at);
    *bytes = c.bytes;
    return wf_unicode_class_of((uint32_t)wf_utf8_code(c.text, c.bytes));
}

/* The end of the run of characters of this class from `at` on; *last: where its last character
 * begins. */
static size_t run_end(wf_span text, size_t at, wf_unicode_class class, size_t *last) {
    size_t bytes;
    for (*last = at; at < text.bytes && class_at(text, at, &bytes) == class; at += bytes)
        *last = at;
    return at;
}

static size_t contraction(wf_span text) {
    static const char *const tails[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    for (size_t i = 0; *text.text == '\'' && i < sizeof tails / sizeof *tails; i++) {
        size_t n = strlen(tails[i]);
        if (text.bytes > n && memcmp(text.text + 1, tails[i], n) == 0) return n + 1;
    }
    return 0;
}

/* The length of the first alternative of 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
 * ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ that matches. If other text follows a run of white space, the
 * run's last character is left to that text, unless it is the only one. */
size_t wf_byte_level_chunk(wf_span text) {
    size_t n = contraction(text), bytes, last;
    if (n) return n;
    size_t from = *text.text == ' ' && text.bytes > 1;
    wf_unicode_class class = class_at(text, from, &bytes);
    if (class != UNICODE_BLANK) return run_end(text, from, class, &last);
    n = run_end(text, 0, UNICODE_BLANK, &last);
    return n == text.bytes || !last ? n : last;
}

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

void wf_byte_level_free(wf_byte_level *b) {
    if (!b) return;
    wf_known_free(&b->pieces), wf_merges_free(&b->merges), wf_merger_free(&b->merger);
    free(b->merges_text), free(b->around), free(b);
}

/* Finds the id of each of the 256 bytes. False with message: a byte has no piece. */
static bool find_bytes(wf_byte_level *b, char *message) {
    for (int byte = 0; byte < 256; byte++) {
        char spelled[CODE_POINT];
        wf_span s = { spelled, wf_spell_byte((unsigned char)byte, spelled) };
        b->bytes[byte] = wf_known_id(&b->pieces, s);
        if (b->bytes[byte] < 0)
            return fail(message, "the vocabulary has no piece '%.*s', which is the byte %d",
                        (int)s.bytes, s.text, byte);
    }
    return true;
}

/* ---- merges ---------------------------------------------------------------------------------- */

static bool add_merge(wf_byte_level *b, wf_span left, wf_span right, wf_span both, char *message) {
    const wf_merge m = { wf_known_id(&b->pieces, left), wf_known_id(&b->pieces, right),
                         wf_known_id(&b->pieces, both) };
    wf_span missing = m.left < 0 ? left : m.right < 0 ? right : both;
    if (m.left < 0 || m.right < 0 || m.result < 0)
        return fail(message, "'%.*s' is not in the vocabulary",
                    missing.bytes < 80 ? (int)missing.bytes : 80, missing.text);
    if (wf_pairs_find(&b->merges.ranks, m.left, m.right) >= 0)
        return fail(message, "the merge is there twice");
    return wf_merges_add(&b->merges, m) || fail(message, "out of memory");
}

static bool read_line(wf_byte_level *b, wf_span line, char *message) {
    const char *space = line.bytes ? memchr(line.text, ' ', line.bytes) : NULL;
    if (!space) return fail(message, "two pieces with a space between them expected");
    size_t n = (size_t)(space - line.text), right = line.bytes - n - 1;
    char *both = malloc(line.bytes);
    if (!both) return fail(message, "out of memory");
    memcpy(both, line.text, n);
    memcpy(both + n, space + 1, right);
    bool ok = add_merge(b, (wf_span){ line.text, n }, (wf_span){ space + 1, right },
                        (wf_span){ both, n + right }, message);
    free(both);
    return ok;
}

/* Reads a merges.txt: one merge on each line. Lines that begin with "#version" are skipped. */
static bool read_merges(wf_byte_level *b, char *message) {
    wf_span rest = { b->merges_text, b->o.merges_bytes }, line;
    char why[WF_MESSAGE];
    if (rest.bytes && (wf_utf8_prefix(rest.text, rest.bytes) != rest.bytes ||
                       memchr(rest.text, '\0', rest.bytes)))
        return fail(message, "the merges are not UTF-8");
    for (long long n = 1; wf_line_next(&rest, &line); n++) {
        wf_span body = wf_line_body(line.text, line.bytes);
        if (body.bytes >= 8 && memcmp(body.text, "#version", 8) == 0) continue;
        if (!read_line(b, body, why)) return fail(message, "merges: line %lld: %.200s", n, why);
    }
    return true;
}

/* ---- made from options ----------------------------------------------------------------------- */

static bool check_ids(const wf_byte_level *b, const int32_t *ids, int n, int32_t least,
                      const char *of, char *message) {
    for (int i = 0; i < n; i++)
        if (ids[i] < least || ids[i] >= b->o.n_pieces)
            return fail(message, "the id of %s is %d: from 0 to %lld", of, (int)ids[i],
                        (long long)b->o.n_pieces - 1);
    return true;
}

/* Copies before, after and silent into memory of the tokenizer. */
static bool copy_around(wf_byte_level *b, char *message) {
    wf_byte_level_options *o = &b->o;
    const int32_t **lists[] = { &o->before, &o->after, &o->silent };
    const int counts[] = { o->n_before, o->n_after, o->n_silent };
    b->around = calloc((size_t)3 * WF_MOST_AROUND, sizeof *b->around);
    if (!b->around) return fail(message, "out of memory");
    for (int i = 0; i < 3; i++) {
        if (counts[i] < 0 || counts[i] > WF_MOST_AROUND || (counts[i] && !*lists[i]))
            return fail(message, "ids around a line, or silent ones: 0 to %d", WF_MOST_AROUND);
        int32_t *copy = b->around + (size_t)i * WF_MOST_AROUND;
        for (int k = 0; k < counts[i]; k++) copy[k] = (*lists[i])[k];
        *lists[i] = copy;
        if (!check_ids(b, copy, counts[i], 0, "what is no text", message)) return false;
    }
    return true;
}

static bool make(wf_byte_level *b, char *message) {
    wf_byte_level_options *o = &b->o;
    if (o->n_pieces < 1 || o->n_pieces > INT32_MAX)
        return fail(message, "a vocabulary of %lld pieces: 1 to %d", (long long)o->n_pieces,
                    INT32_MAX);
    if (!check_ids(b, o->special, WF_SPECIAL_IDS, -1, "a special symbol", message) ||
        !copy_around(b, message) || !wf_known_copy(&b->pieces, o->pieces, o->n_pieces, message) ||
        !find_bytes(b, message))
        return false;
    b->merges_text = wf_copy(o->merges, o->merges_bytes);
    if (!b->merges_text) return fail(message, "out of memory");
    o->pieces = b->pieces.at;
    o->merges = b->merges_text;
    return read_merges(b, message);
}

wf_tokenizer *wf_tokenizer_from_byte_level(const wf_byte_level_options *o, char *message) {
    if (!o || !o->pieces || (o->merges_bytes && !o->merges))
        return fail(message, "there is no vocabulary, or there are no merges"), NULL;
    wf_tokenizer *t = calloc(1, sizeof *t);
    if (t) t->byte_level = calloc(1, sizeof *t->byte_level);
    bool ok = (t && t->byte_level) || fail(message, "out of memory");
    if (ok) {
        t->kind = WF_BYTE_LEVEL;
        t->byte_level->o = *o;
        ok = make(t->byte_level, message);
    }
    if (ok) return t;
    wf_tokenizer_free(t);
    return NULL;
}

bool wf_tokenizer_byte_level(const wf_tokenizer *t, wf_byte_level_options *o) {
    if (!t || !t->byte_level || !o) return false;
    *o = t->byte_level->o;
    return true;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Merges within a chunk: every byte is a link of the chain at first. */
static bool merge_chunk(wf_byte_level *b, wf_span chunk) {
    const wf_merge_rule rule = wf_merges_rule(&b->merges, false);
    b->merger.n = 0;
    for (size_t i = 0; i < chunk.bytes; i++)
        if (!wf_merger_add(&b->merger, b->bytes[(unsigned char)chunk.text[i]], 1)) return false;
    return wf_merge_all(&b->merger, &rule);
}

/* Writes the ids of all chunks from index `at` on. Returns the end; -1: out of memory. */
static int64_t encode_chunks(wf_byte_level *b, wf_span text, int32_t *ids, int64_t capacity,
                             int64_t at) {
    while (text.bytes) {
        if (!merge_chunk(b, wf_span_take(&text, wf_byte_level_chunk(text)))) return -1;
        for (int32_t i = 0; i >= 0; i = b->merger.chain[i].after, at++)
            if (at < capacity) ids[at] = b->merger.chain[i].symbol;
    }
    return at;
}

/* Encodes a text. With prefix_space, a text that does not begin with a space gets one. */
static int64_t encode_text(wf_byte_level *b, wf_span line, int32_t *ids, int64_t capacity,
                           int64_t at) {
    if (!b->o.prefix_space || !line.bytes || *line.text == ' ')
        return encode_chunks(b, line, ids, capacity, at);
    char *spaced = malloc(line.bytes + 1);
    if (!spaced) return -1;
    *spaced = ' ';
    memcpy(spaced + 1, line.text, line.bytes);
    at = encode_chunks(b, (wf_span){ spaced, line.bytes + 1 }, ids, capacity, at);
    free(spaced);
    return at;
}

int64_t wf_byte_level_encode(wf_byte_level *b, wf_span line, int32_t *ids, int64_t capacity,
                             char *message) {
    const wf_byte_level_options *o = &b->o;
    if (!line.text && line.bytes) return fail(message, "there is no line"), -1;
    line = wf_line_body(line.text, line.bytes);
    size_t good = line.bytes ? wf_utf8_prefix(line.text, line.bytes) : 0;
    if (good != line.bytes) return fail(message, "not UTF-8 at byte %zu", good), -1;
    int64_t at = 0;
    for (int i = 0; i < o->n_before; i++, at++)
        if (at < capacity) ids[at] = o->before[i];
    at = encode_text(b, line, ids, capacity, at);
    if (at < 0) return fail(message, "out of memory"), -1;
    for (int i = 0; i < o->n_after; i++, at++)
        if (at < capacity) ids[at] = o->after[i];
    return at;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static bool among(const int32_t *ids, int n, int32_t id) {
    for (int i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

bool wf_byte_level_is_text(const wf_byte_level *b, int32_t id) {
    const wf_byte_level_options *o = &b->o;
    return !among(o->special, WF_SPECIAL_IDS, id) && !among(o->before, o->n_before, id) &&
           !among(o->after, o->n_after, id) && !among(o->silent, o->n_silent, id);
}

/* Writes the bytes that a piece spells, or the piece itself if it is not spelled that way. */
static size_t unspell(const char *piece, char *out) {
    size_t bytes = strlen(piece), n = 0;
    for (wf_span rest = { piece, bytes }; rest.bytes;) {
        wf_span c = wf_character_next(&rest);
        int byte = wf_character_byte((uint32_t)wf_utf8_code(c.text, c.bytes));
        if (byte < 0) {
            memcpy(out, piece, bytes);
            return bytes;
        }
        out[n++] = (char)byte;
    }
    return n;
}

/* Replaces invalid UTF-8 by U+FFFD, one for each sequence that could have begun a character. */
static void put_text(wf_sink *to, wf_span text) {
    while (text.bytes) {
        bool whole;
        wf_span part = wf_span_take(&text, wf_utf8_beginning(text.text, text.bytes, &whole));
        if (whole)
            put_span(to, part);
        else
            put(to, REPLACEMENT, strlen(REPLACEMENT));
    }
}

int64_t wf_byte_level_decode(const wf_byte_level *b, const int32_t *ids, int64_t n, wf_sink *to) {
    size_t bytes = 1, used = 0;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= b->o.n_pieces) return -1;
        const char *piece = b->o.pieces[ids[i]];
        bytes += piece ? strlen(piece) : 0;
    }
    char *text = malloc(bytes);
    if (!text) return -1;
    for (int64_t i = 0; i < n; i++)
        if (b->o.pieces[ids[i]] && wf_byte_level_is_text(b, ids[i]))
            used += unspell(b->o.pieces[ids[i]], text + used);
    put_text(to, (wf_span){ text, used });
    free(text);
    return (int64_t)to->used;
}

/* ---- fields of a model's file ---------------------------------------------------------------- */

size_t wf_byte_level_field(const wf_byte_level *b, const char *field, char *text, size_t size) {
    const wf_byte_level_options *o = &b->o;
    wf_sink to = sink(text, size);
    if (!strcmp(field, "vocabulary")) wf_put_pieces(&to, o->pieces, o->n_pieces);
    if (!strcmp(field, "codes")) put(&to, o->merges, o->merges_bytes);
    if (!strcmp(field, "special")) wf_put_ids(&to, o->special, WF_SPECIAL_IDS);
    if (!strcmp(field, "before")) wf_put_ids(&to, o->before, o->n_before);
    if (!strcmp(field, "after")) wf_put_ids(&to, o->after, o->n_after);
    if (!strcmp(field, "silent")) wf_put_ids(&to, o->silent, o->n_silent);
    if (!strcmp(field, "prefix") && o->prefix_space) put(&to, "space", strlen("space"));
    return to.used;
}

wf_tokenizer *wf_byte_level_from_fields(const wf_fields *f, char *message) {
    int32_t before[WF_MOST_AROUND], after[WF_MOST_AROUND], silent[WF_MOST_AROUND];
    const char *codes = wf_field_value(f, "codes"), *prefix = wf_field_value(f, "prefix");
    const char *vocabulary = wf_field_value(f, "vocabulary");
    wf_byte_level_options o = { .before = before, .after = after, .silent = silent };
    wf_pieces p = { 0 };
    if (!vocabulary) return fail(message, "there is no vocabulary"), NULL;
    if (prefix && strcmp(prefix, "space"))
        return fail(message, "the prefix is '%.40s', not 'space'", prefix), NULL;
    if (!wf_field_special(f, o.special, message) ||
        !wf_field_ids(f, "before", before, &o.n_before, message) ||
        !wf_field_ids(f, "after", after, &o.n_after, message) ||
        !wf_field_ids(f, "silent", silent, &o.n_silent, message))
        return NULL;
    o.merges = codes;
    o.merges_bytes = codes ? strlen(codes) : 0;
    o.prefix_space = prefix != NULL;
    wf_tokenizer *t = NULL;
    if (wf_pieces_read(&p, vocabulary, message)) {
        o.pieces = p.at;
        o.n_pieces = (int64_t)p.n;
        t = wf_tokenizer_from_byte_level(&o, message);
    }
    wf_pieces_free(&p);
    return t;
}

/* ---- what was learned within GPT-2's chunks, with BART's first ids --------------------------- */

/* Special ids in BART's order. As in BART, an output starts with the end token. */
enum { FIRST, PADDING, END, UNKNOWN };
static const char *const specials[WF_SPECIAL_IDS] = { "<s>", "<pad>", "</s>", "<unk>" };

/* Long chunks are cut between two characters, and merges are learned within each part. */
bool wf_byte_level_chunk_next(wf_span *rest, wf_span *chunk) {
    if (!rest->bytes) return false;
    size_t n = wf_byte_level_chunk(*rest);
    if (n > LONGEST_CHUNK)
        for (n = LONGEST_CHUNK; wf_utf8_continues(rest->text[n]);) n--;
    *chunk = wf_span_take(rest, n);
    return true;
}

/* The text of merges.txt, which the caller frees; NULL: out of memory. */
static char *merges_of(const wf_tokenizer *learned, size_t *bytes) {
    *bytes = wf_tokenizer_codes(learned, NULL, 0);
    char *merges = malloc(*bytes + 1);
    if (merges) wf_tokenizer_codes(learned, merges, *bytes + 1);
    return merges;
}

wf_tokenizer *wf_byte_level_learned(const wf_tokenizer *learned, char *message) {
    static const int32_t before = FIRST;
    wf_byte_level_options o = { .n_pieces = wf_tokenizer_size(learned),
                                .special = { PADDING, UNKNOWN, END, END },
                                .before = &before,
                                .n_before = 1 };
    const char **pieces = malloc((size_t)o.n_pieces * sizeof *pieces);
    char *merges = merges_of(learned, &o.merges_bytes);
    wf_tokenizer *t = NULL;
    for (int32_t id = 0; pieces && id < o.n_pieces; id++)
        pieces[id] = id < WF_SPECIAL_IDS ? specials[id] : wf_tokenizer_piece(learned, id);
    o.pieces = pieces;
    o.merges = merges;
    if (pieces && merges)
        t = wf_tokenizer_from_byte_level(&o, message);
    else
        fail(message, "out of memory");
    free(pieces), free(merges);
    return t;
}
