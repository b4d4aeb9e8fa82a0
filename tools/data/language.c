/* tools/data/language.c - converts between lines and token ids for a model. See language.h. */
#include "language.h"
#include "models/text_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/utf8.h"
#include "lines.h"
#include "tools/cli/refused.h"

static const char *const side_names[] = { "source", "target" };

bool tokenizers_open(wf_tokenizer *t[2], const wf_file *f, char *message) {
    if (wf_tokenizer_in_file(f, "tokenizer"))
        return (t[SIDE_TGT] = t[SIDE_SRC] = wf_tokenizer_from_meta(f, "tokenizer", message));
    t[SIDE_TGT] = NULL;
    t[SIDE_SRC] = wf_tokenizer_from_meta(f, "src_tokenizer", message);
    if (t[SIDE_SRC])
        t[SIDE_TGT] = wf_tokenizer_from_meta_beside(f, "tgt_tokenizer", t[SIDE_SRC], message);
    return t[SIDE_TGT] != NULL;
}

bool vocabulary_fits(int side, int64_t size, int64_t of_model, char *message) {
    if (size == of_model) return true;
    return refused(message, "the %s vocabulary has %lld entries and the model %lld",
                   side_names[side], (long long)size, (long long)of_model);
}

bool language_open(language *l, const wf_file *f, const wf_model *m, char *message) {
    *l = (language){ .vocab = { m->src_vocab, m->tgt_vocab }, .max_len = m->max_len };
    l->text = wf_tokenizer_in_file(f, "tokenizer") || wf_tokenizer_in_file(f, "src_tokenizer");
    if (!l->text) return true;
    if (!tokenizers_open(l->tokenizer, f, message)) return false;
    for (int i = 0; i < 2; i++)
        if (!vocabulary_fits(i, wf_tokenizer_size(l->tokenizer[i]), l->vocab[i], message))
            return false;
    return true;
}

void tokenizers_close(wf_tokenizer *t[2]) {
    if (t[SIDE_TGT] != t[SIDE_SRC]) wf_tokenizer_free(t[SIDE_TGT]);
    wf_tokenizer_free(t[SIDE_SRC]);
}

void language_close(language *l) {
    tokenizers_close(l->tokenizer);
    *l = (language){ 0 };
}

bool same_pieces(const wf_tokenizer *a, const wf_tokenizer *b) {
    bool same = a && b && wf_tokenizer_size(a) == wf_tokenizer_size(b);
    for (int32_t id = 0; same && a != b && id < wf_tokenizer_size(a); id++) {
        const char *of_a = wf_tokenizer_piece(a, id), *of_b = wf_tokenizer_piece(b, id);
        same = of_a && of_b ? strcmp(of_a, of_b) == 0 : of_a == of_b;
    }
    return same;
}

int no_text(const wf_tokenizer *t, bool unknown, int32_t ids[WF_SPECIAL_IDS]) {
    int32_t end = wf_tokenizer_special(t, WF_END_ID);
    int n = 0;
    for (int which = WF_PAD_ID; which <= WF_START_ID; which++) {
        int32_t id = wf_tokenizer_special(t, which);
        if (id >= 0 && id != end && (unknown || which != WF_UNK_ID)) ids[n++] = id;
    }
    return n;
}

/* ---- models of many languages ---------------------------------------------------------------- */

/* The first id that is not a piece of text, such as a language code. 0: the vocabulary does not
 * tell. */
static int32_t added(const wf_tokenizer *t) {
    wf_sentencepiece_options o;
    return wf_tokenizer_sentencepiece(t, &o) ? o.added : 0;
}

static int32_t piece_id(const wf_tokenizer *t, const char *left, const char *name,
                        const char *right) {
    char piece[80];
    if (strlen(name) > 64) return -1;
    snprintf(piece, sizeof piece, "%s%s%s", left, name, right);
    for (int32_t id = added(t); id < wf_tokenizer_size(t); id++)
        if (wf_tokenizer_piece(t, id) && strcmp(wf_tokenizer_piece(t, id), piece) == 0) return id;
    return -1;
}

/* A code without underscores, such as "de", may also be a piece of a word, so it counts only where
 * the vocabulary marks its languages. */
static int32_t language_id(const wf_tokenizer *t, const char *name) {
    int32_t id = piece_id(t, "__", name, "__");
    bool sure = added(t) || strchr(name, '_');
    return id >= 0 || !sure ? id : piece_id(t, "", name, "");
}

/* Replaces the side's tokenizer by one that adds this language id: after a line if the old one adds
 * a language there, else before it. */
static bool put_around(language *l, int side, int32_t id, char *message) {
    wf_tokenizer *old = l->tokenizer[side];
    wf_sentencepiece_options o;
    int32_t after[WF_MOST_AROUND];
    bool behind = false;
    if (!wf_tokenizer_sentencepiece(old, &o))
        return refused(message, "its vocabulary is not one of SentencePiece");
    for (int i = 0; i < o.n_after; i++) {
        bool added_one = o.added && o.after[i] >= o.added;
        after[i] = added_one ? id : o.after[i];
        behind |= added_one;
    }
    if (behind)
        o.after = after;
    else {
        o.before = &id;
        o.n_before = 1;
    }
    wf_tokenizer *t = wf_tokenizer_from_sentencepiece(&o, message);
    if (!t) return false;
    l->tokenizer[side] = t;
    if (l->tokenizer[!side] != old) wf_tokenizer_free(old);
    return true;
}

/* A language whose code begins with this name: "fra" of fra_Latn, "pt" of pt_XX. */
static const char *nearest_language(const wf_tokenizer *t, const char *name) {
    size_t n = strlen(name);
    for (int32_t id = added(t); added(t) && n > 1 && id < wf_tokenizer_size(t); id++) {
        const char *piece = wf_tokenizer_piece(t, id);
        if (piece && strncasecmp(piece + strspn(piece, "_"), name, n) == 0) return piece;
    }
    return NULL;
}

static bool unknown_language(const wf_tokenizer *t, const char *name, char *message) {
    const char *nearest = nearest_language(t, name);
    return refused(message, "its vocabulary has no piece for the language '%.64s'%s%.64s", name,
                   nearest ? "; the nearest is " : "", nearest ? nearest : "");
}

static bool choose_target(language *l, const char *name, int32_t *forced, char *message) {
    int32_t code = piece_id(l->tokenizer[SIDE_SRC], ">>", name, "<<");
    if (code >= 0) return put_around(l, SIDE_SRC, code, message);
    const wf_tokenizer *t = l->tokenizer[SIDE_TGT];
    int32_t id = language_id(t, name), start = wf_tokenizer_special(t, WF_START_ID);
    if (id < 0) return unknown_language(t, name, message);
    if (added(t) && start >= added(t))
        return id == start ||
               (snprintf(message, WF_MESSAGE, "its outputs start as '%.64s', and can't as '%.64s'",
                         wf_tokenizer_piece(t, start), name),
                false);
    *forced = id;
    return put_around(l, SIDE_TGT, id, message);
}

bool language_choose(language *l, const char *source, const char *target, int32_t *forced,
                     char *message) {
    *forced = -1;
    if (!source && !target) return true;
    if (!l->text) return refused(message, "it has no vocabulary of text");
    int32_t from = source ? language_id(l->tokenizer[SIDE_SRC], source) : 0;
    if (from < 0) return unknown_language(l->tokenizer[SIDE_SRC], source, message);
    if (source && target && piece_id(l->tokenizer[SIDE_SRC], ">>", target, "<<") >= 0)
        return refused(message, "its sources begin with the language that is written, "
                                "so the one that is read can't be told");
    return (!source || put_around(l, SIDE_SRC, from, message)) &&
           (!target || choose_target(l, target, forced, message));
}

/* ---- lines ----------------------------------------------------------------------------------- */

void language_too_long(int side, int64_t n, int64_t most, char *message) {
    snprintf(message, WF_MESSAGE, "the %s has %lld tokens, and %lld is the most the model takes",
             side_names[side], (long long)n, (long long)most);
}

/* The ids behind a line's text, found by the ids of the text alone. */
static int64_t behind_text(wf_tokenizer *t, const char *line, size_t bytes, const int32_t *ids,
                           int64_t n) {
    char message[WF_MESSAGE];
    int32_t *text = malloc((size_t)n * sizeof *text + 1);
    int64_t k = text ? wf_tokenizer_encode_text(t, line, bytes, text, n, message) : -1, before = 0;
    while (k >= 0 && before + k <= n && memcmp(ids + before, text, (size_t)k * sizeof *ids) != 0)
        before++;
    free(text);
    return k >= 0 && before + k <= n ? n - k - before : 0;
}

int64_t language_behind(language *l, int side, const char *line, size_t bytes, const int32_t *ids,
                        int64_t n) {
    wf_tokenizer *t = l->tokenizer[side];
    wf_sentencepiece_options s;
    wf_byte_level_options b;
    if (!l->text) return 0;
    if (wf_tokenizer_sentencepiece(t, &s)) return s.n_after;
    if (wf_tokenizer_byte_level(t, &b)) return b.n_after;
    return behind_text(t, line, bytes, ids, n);
}

static int64_t read_ids(const language *l, int side, const char *line, size_t bytes, int32_t *ids,
                        int64_t capacity, char *message) {
    if (strlen(line) != bytes)
        return snprintf(message, WF_MESSAGE, "a zero byte is no token id"), -1;
    return parse_ids(line, l->vocab[side], capacity, ids, message);
}

int64_t language_read(language *l, int side, const char *line, size_t bytes, int32_t *ids,
                      int64_t capacity, char *message) {
    if (!l->text) return read_ids(l, side, line, bytes, ids, capacity, message);
    wf_tokenizer *t = l->tokenizer[side];
    /* a target continues the text before it, so no special tokens are put around it */
    return side == SIDE_TGT ? wf_tokenizer_encode_text(t, line, bytes, ids, capacity, message)
                            : wf_tokenizer_encode(t, line, bytes, ids, capacity, message);
}

static char *number_line(const int32_t *ids, int64_t n) {
    char *line = malloc((size_t)n * PIECE_TEXT + 1), *at = line;
    if (!line) return NULL;
    *line = '\0';
    for (int64_t i = 0; i < n; i++)
        at += snprintf(at, PIECE_TEXT, "%s%d", i ? " " : "", (int)ids[i]);
    return line;
}

static char *text_line(const wf_tokenizer *t, const int32_t *ids, int64_t n, size_t *bytes) {
    int64_t size = wf_tokenizer_decode(t, ids, n, NULL, 0);
    char *line = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (!line) return NULL;
    *bytes = (size_t)size;
    /* decoding allocates memory, so it may fail the second time even if it succeeded before */
    if (wf_tokenizer_decode(t, ids, n, line, (size_t)size + 1) == size) return line;
    free(line);
    return NULL;
}

char *line_of_ids(const wf_tokenizer *t, const int32_t *ids, int64_t n, size_t *bytes) {
    size_t length = 0;
    char *line = t ? text_line(t, ids, n, &length) : number_line(ids, n);
    if (line && !t) length = strlen(line);
    if (bytes) *bytes = length;
    return line;
}

const char *language_piece(const language *l, int side, int32_t id, char buffer[PIECE_TEXT]) {
    const char *piece = l->text ? wf_tokenizer_piece(l->tokenizer[side], id) : NULL;
    if (piece) return piece; /* an id of the embedding table may have no piece in the vocabulary */
    snprintf(buffer, PIECE_TEXT, "%d", (int)id);
    return buffer;
}

/* ---- labels ---------------------------------------------------------------------------------- */

#define OPEN_BOX "\xE2\x90\xA3"
#define BENT_ARROW "\xE2\x86\xB5"
#define TAB_ARROW "\xE2\x87\xA5"

/* True if the text is not empty, and is UTF-8 without a replacement character, which stands for
 * bytes that are not UTF-8. */
static bool is_readable(const char *text, size_t n) {
    for (size_t at = 0; at < n;) {
        int32_t c = wf_utf8_next(text, n, &at);
        if (c < 0 || c == 0xFFFD) return false;
    }
    return n > 0;
}

static const char *seen(const char *c) {
    if (*c == ' ') return OPEN_BOX;
    if (*c == '\n') return BENT_ARROW;
    return *c == '\t' ? TAB_ARROW : NULL;
}

/* Copies as many whole characters as fit. Blanks become visible characters. */
static void show_blanks(const char *text, size_t n, char label[LABEL_TEXT]) {
    size_t used = 0;
    for (size_t at = 0, from = 0; at < n; from = at) {
        wf_utf8_next(text, n, &at);
        const char *shown = seen(text + from);
        size_t bytes = shown ? strlen(shown) : at - from;
        if (used + bytes >= LABEL_TEXT) break;
        memcpy(label + used, shown ? shown : text + from, bytes);
        used += bytes;
    }
    label[used] = '\0';
}

const char *language_label(const language *l, int side, int32_t id, char label[LABEL_TEXT]) {
    char buffer[PIECE_TEXT];
    size_t bytes;
    const wf_tokenizer *t = l->text ? l->tokenizer[side] : NULL;
    const char *piece = language_piece(l, side, id, buffer);
    bool spelled =
        wf_tokenizer_running(t) ||
        (t && (wf_tokenizer_kind(t) == WF_BYTE_LEVEL || wf_tokenizer_kind(t) == WF_JSON_TEXT));
    char *text = spelled ? line_of_ids(t, &id, 1, &bytes) : NULL;
    if (spelled && !text) return NULL;
    bool readable = text && is_readable(text, bytes);
    show_blanks(readable ? text : piece, readable ? bytes : strlen(piece), label);
    free(text);
    return label;
}
