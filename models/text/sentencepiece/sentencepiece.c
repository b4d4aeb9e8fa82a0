/* models/text/sentencepiece/sentencepiece.c - the tokenizer of a SentencePiece model: maps pieces
 * to ids, adds ids around a line, decodes. See text.h. */
#include "sentencepiece.h"
#include "models/text_internal.h"

#include <stdlib.h>

#include "core/base/utf8.h"

/* ---- made from options ----------------------------------------------------------------------- */

void wf_sentencepiece_free(wf_sentencepiece *s) {
    if (!s) return;
    wf_spm_free(s->model);
    wf_known_free(&s->known);
    free(s->ids), free(s->around), free(s);
}

/* Copies the given pieces, and maps the model's ids to theirs. */
static bool copy_given(wf_sentencepiece *s, char *message) {
    const wf_spm *m = s->model;
    if (!wf_known_copy(&s->known, s->o.pieces, s->n, message)) return false;
    s->ids = calloc(m->n, sizeof *s->ids);
    if (!s->ids) return fail(message, "out of memory");
    for (size_t i = 0; i < m->n; i++) {
        int32_t id = wf_known_id(&s->known, m->pieces[i].text);
        s->ids[i] = id < 0 ? s->o.special[WF_UNK_ID] : id;
    }
    return true;
}

static bool check_id(const wf_sentencepiece *s, int32_t id, const char *of, char *message) {
    return (id >= 0 && id < s->n) ||
           fail(message, "the id of %s is %d: from 0 to %lld", of, (int)id, (long long)s->n - 1);
}

/* Checks an id that stands in encoded lines: if pieces were given, the id must have one. */
static bool check_written(const wf_sentencepiece *s, int32_t id, const char *of, char *message) {
    if (!check_id(s, id, of, message)) return false;
    return !s->o.pieces || s->o.pieces[id] ||
           fail(message, "the id of %s is %d, which has no piece", of, (int)id);
}

static bool check_special(wf_sentencepiece *s, char *message) {
    static const char *const names[] = { "padding", "the unknown piece", "the start", "the end" };
    int32_t *special = s->o.special;
    if (!s->o.pieces && special[WF_UNK_ID] == -1) special[WF_UNK_ID] = s->model->unknown;
    if (s->o.added < 0 || s->o.added >= s->n || (s->o.added && !s->o.pieces))
        return fail(message, "the first added piece is %d: from 0 to %lld of given pieces",
                    (int)s->o.added, (long long)s->n - 1);
    for (int i = 0; i < WF_SPECIAL_IDS; i++)
        if ((special[i] != -1 || i == WF_UNK_ID) && !check_id(s, special[i], names[i], message))
            return false;
    return s->o.pieces || special[WF_UNK_ID] == s->model->unknown ||
           fail(message, "the id of the unknown piece is %d, but the model has %d",
                (int)special[WF_UNK_ID], (int)s->model->unknown);
}

static bool copy_around(wf_sentencepiece *s, char *message) {
    wf_sentencepiece_options *o = &s->o;
    if (o->n_before > WF_MOST_AROUND || o->n_after > WF_MOST_AROUND)
        return fail(message, "more than %d ids before a line, or after it", WF_MOST_AROUND);
    if (o->n_before < 0 || o->n_after < 0 || (o->n_before && !o->before) ||
        (o->n_after && !o->after))
        return fail(message, "there are no ids to put around a line");
    s->around = calloc((size_t)o->n_before + (size_t)o->n_after + 1, sizeof *s->around);
    if (!s->around) return fail(message, "out of memory");
    for (int i = 0; i < o->n_before; i++) s->around[i] = o->before[i];
    for (int i = 0; i < o->n_after; i++) s->around[o->n_before + i] = o->after[i];
    for (int i = 0; i < o->n_before + o->n_after; i++)
        if (!check_written(s, s->around[i], "what stands around a line", message)) return false;
    o->before = s->around;
    o->after = s->around + o->n_before;
    return true;
}

/* The model in the options: that of `beside` if its bytes are the same. NULL with message. */
static wf_spm *model_of(const wf_sentencepiece_options *o, const wf_sentencepiece *beside,
                        char *message) {
    bool same =
        beside && beside->o.bytes == o->bytes && memcmp(beside->o.model, o->model, o->bytes) == 0;
    if (!same) return wf_spm_read(o->model, o->bytes, message);
    beside->model->others++;
    return beside->model;
}

static bool make(wf_sentencepiece *s, const wf_sentencepiece *beside, char *message) {
    wf_sentencepiece_options *o = &s->o;
    if (!(s->model = model_of(o, beside, message))) return false;
    s->n = o->pieces ? o->n_pieces : (int64_t)s->model->n;
    if (s->n < 1 || s->n > INT32_MAX)
        return fail(message, "a vocabulary of %lld pieces: 1 to %d", (long long)s->n, INT32_MAX);
    if (!check_special(s, message) || !copy_around(s, message) ||
        (o->pieces && !copy_given(s, message)))
        return false;
    s->pieces = o->pieces ? s->known.at : s->model->texts;
    o->model = s->model->file;
    o->pieces = s->known.at;
    o->n_pieces = o->pieces ? s->n : 0;
    return true;
}

wf_tokenizer *wf_sentencepiece_beside(const wf_sentencepiece_options *o,
                                      const wf_sentencepiece *beside, char *message) {
    if (!o || !o->model) return fail(message, "there is no SentencePiece model"), NULL;
    wf_tokenizer *t = calloc(1, sizeof *t);
    if (t) t->sentencepiece = calloc(1, sizeof *t->sentencepiece);
    bool ok = (t && t->sentencepiece) || fail(message, "out of memory");
    if (ok) {
        t->kind = WF_SENTENCEPIECE;
        t->sentencepiece->o = *o;
        ok = make(t->sentencepiece, beside, message);
    }
    if (ok) return t;
    wf_tokenizer_free(t);
    return NULL;
}

wf_tokenizer *wf_tokenizer_from_sentencepiece(const wf_sentencepiece_options *o, char *message) {
    return wf_sentencepiece_beside(o, NULL, message);
}

bool wf_tokenizer_sentencepiece(const wf_tokenizer *t, wf_sentencepiece_options *o) {
    if (!t || !t->sentencepiece || !o) return false;
    *o = t->sentencepiece->o;
    return true;
}

bool wf_sentencepiece_defaults(const void *model, size_t bytes, wf_sentencepiece_options *o,
                               char *message) {
    if (!model || !o) return fail(message, "there is no SentencePiece model");
    wf_spm *m = wf_spm_read(model, bytes, message);
    if (!m) return false;
    *o = (wf_sentencepiece_options){ .model = model, .bytes = bytes };
    for (int i = 0; i < WF_SPECIAL_IDS; i++) {
        int32_t id = m->special[i];
        bool there = id >= 0 && (size_t)id < m->n && m->pieces[id].type == SPM_CONTROL;
        o->special[i] = i == WF_UNK_ID ? m->unknown : there ? id : -1;
    }
    wf_spm_free(m);
    return true;
}

/* ---- encoding -------------------------------------------------------------------------------- */

static int32_t id_of_text(const wf_sentencepiece *s, wf_span text) {
    if (!s->ids) return wf_spm_id(s->model, text);
    int32_t id = wf_known_id(&s->known, text);
    return id < 0 ? s->o.special[WF_UNK_ID] : id;
}

static int32_t id_of(const wf_sentencepiece *s, const wf_spm_token *token) {
    if (!s->ids) return token->id;
    return token->id == s->model->unknown ? id_of_text(s, token->text) : s->ids[token->id];
}

/* The length of the code ">>fra<<" at the start of the line; 0: there is none. */
static size_t language_code(wf_span line) {
    for (size_t i = 2; line.bytes > 3 && !memcmp(line.text, ">>", 2) && i + 1 < line.bytes; i++)
        if (line.text[i] == '<' && line.text[i + 1] == '<') return i + 2;
    return 0;
}

int64_t wf_sentencepiece_encode(wf_sentencepiece *s, wf_span line, int32_t *ids, int64_t capacity,
                                char *message) {
    const wf_sentencepiece_options *o = &s->o;
    if (!line.text && line.bytes) return fail(message, "there is no line"), -1;
    line = wf_line_body(line.text, line.bytes);
    wf_span code = wf_span_take(&line, o->language_codes ? language_code(line) : 0);
    int64_t n = wf_spm_encode(s->model, line, message), at = 0;
    if (n < 0) return -1;
    for (int i = 0; i < o->n_before; i++, at++)
        if (at < capacity) ids[at] = o->before[i];
    if (code.bytes && at++ < capacity) ids[at - 1] = id_of_text(s, code);
    for (int64_t i = 0; i < n && at + i < capacity; i++)
        ids[at + i] = id_of(s, &s->model->tokens[i]);
    at += n;
    for (int i = 0; i < o->n_after; i++, at++)
        if (at < capacity) ids[at] = o->after[i];
    return at;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* The bytes of the white-space character, as in Python's str.strip, with which the text begins;
 * 0: it begins with none. */
static size_t white(wf_span s) {
    static const int32_t above[] = { 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000 };
    size_t at = 0;
    int32_t c = wf_utf8_next(s.text, s.bytes, &at);
    bool found = c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F) ||
                 (c >= 0x2000 && c <= 0x200A);
    for (size_t i = 0; i < sizeof above / sizeof *above; i++) found = found || c == above[i];
    return found ? at : 0;
}

static wf_span strip(wf_span s) {
    for (size_t n; s.bytes && (n = white(s)); s.bytes -= n) s.text += n;
    while (s.bytes) {
        size_t n = 1;
        while (n < s.bytes && n < WF_UTF8_MOST && wf_utf8_continues(s.text[s.bytes - n])) n++;
        if (white((wf_span){ s.text + s.bytes - n, n }) != n) break;
        s.bytes -= n;
    }
    return s;
}

/* Turns space symbols into spaces. Pieces that the model lacks still contain these symbols. */
static void show_spaces(wf_spm_text *text) {
    size_t to = 0;
    for (size_t i = 0; i < text->bytes; to++) {
        bool space = text->bytes - i >= SPACE_SYMBOL_BYTES &&
                     !memcmp(text->at + i, SPACE_SYMBOL, SPACE_SYMBOL_BYTES);
        text->at[to] = space ? ' ' : text->at[i];
        i += space ? SPACE_SYMBOL_BYTES : 1;
    }
    text->bytes = to;
}

bool wf_sentencepiece_special(const wf_sentencepiece *s, int32_t id) {
    const wf_sentencepiece_options *o = &s->o;
    if (o->added && id >= o->added) return true;
    for (int i = 0; i < WF_SPECIAL_IDS; i++)
        if (id == o->special[i] && (i != WF_UNK_ID || o->pieces)) return true;
    for (int i = 0; i < o->n_before + o->n_after; i++)
        if (id == s->around[i]) return true;
    return false;
}

int64_t wf_sentencepiece_decode(const wf_sentencepiece *s, const int32_t *ids, int64_t n,
                                wf_sink *to) {
    wf_spm_decoder d = wf_spm_decode(s->model);
    bool there = true;
    for (int64_t i = 0; i < n && there; i++) {
        there = ids[i] >= 0 && ids[i] < s->n;
        const char *piece = there ? s->pieces[ids[i]] : NULL;
        if (piece && !wf_sentencepiece_special(s, ids[i]))
            wf_spm_decode_piece(&d, s->o.pieces ? -1 : ids[i], (wf_span){ piece, strlen(piece) });
    }
    bool ok = wf_spm_decode_end(&d, NULL) && there;
    wf_span text = { d.text.at, d.text.bytes };
    if (ok && s->o.pieces) {
        show_spaces(&d.text);
        text = strip((wf_span){ d.text.at, d.text.bytes });
    }
    if (ok) put_span(to, text);
    free(d.text.at);
    return ok ? (int64_t)to->used : -1;
}
