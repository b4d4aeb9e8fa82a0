/* models/text/sentencepiece/spm_encode.c - cuts any bytes into pieces, and turns pieces into text;
 * see spm.h. */
#include "spm.h"

#include <stdlib.h>

#include "core/base/utf8.h"

static const wf_span space_symbol = { SPACE_SYMBOL, SPACE_SYMBOL_BYTES };

/* ---- two simple kinds ------------------------------------------------------------------------ */

/* Cuts at spaces: words begin with a space. */
static bool cut_words(wf_spm *m, wf_span line) {
    while (line.bytes) {
        wf_span word = { line.text, 0 };
        do word.bytes += wf_character_next(&line).bytes;
        while (line.bytes && !wf_span_begins(line, space_symbol));
        if (!wf_spm_add(m, word, wf_spm_encode_id(m, word))) return false;
    }
    return true;
}

static bool cut_characters(wf_spm *m, wf_span line) {
    while (line.bytes) {
        size_t bytes = wf_spm_symbol(m->normalizer.symbols, line);
        wf_span text = bytes ? wf_span_take(&line, bytes) : wf_character_next(&line);
        if (!wf_spm_add(m, text, wf_spm_encode_id(m, text))) return false;
    }
    return true;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Joins consecutive unknown pieces into one. */
static void join_unknown(wf_spm *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_tokens; i++)
        if (n && m->tokens[i].id == m->unknown && m->tokens[n - 1].id == m->unknown)
            m->tokens[n - 1].text.bytes += m->tokens[i].text.bytes;
        else
            m->tokens[n++] = m->tokens[i];
    m->n_tokens = n;
}

/* With byte fallback, replaces unknown pieces by the pieces of their bytes. The additional pieces
 * are counted first, and written from the end, so that they do not overwrite others. */
static bool spell_unknown(wf_spm *m) {
    size_t n = m->n_tokens, all = n;
    for (size_t i = 0; i < n; i++)
        if (m->tokens[i].id == m->unknown) all += m->tokens[i].text.bytes - 1;
    if (!wf_grow(&m->tokens, &m->tokens_capacity, all, sizeof *m->tokens)) return false;
    m->n_tokens = all;
    for (size_t i = n; i-- > 0;) {
        wf_spm_token token = m->tokens[i];
        if (token.id != m->unknown) {
            m->tokens[--all] = token;
            continue;
        }
        for (size_t b = token.text.bytes; b-- > 0;) {
            int32_t id = m->bytes[(unsigned char)token.text.text[b]];
            m->tokens[--all] = (wf_spm_token){ m->pieces[id].text, id };
        }
    }
    return true;
}

int64_t wf_spm_encode(wf_spm *m, wf_span line, char *message) {
    m->n_tokens = 0;
    if (!wf_spm_normalize(&m->normalizer, line, &m->line, message)) return -1;
    wf_span text = { m->line.at, m->line.bytes };
    if (!text.bytes) return 0;
    if (text.bytes >= INT32_MAX) return fail(message, "the line is too long"), -1;
    bool ok = m->kind == SPM_UNIGRAM ? wf_spm_unigram(m, text)
              : m->kind == SPM_BPE   ? wf_spm_bpe(m, text)
              : m->kind == SPM_WORD  ? cut_words(m, text)
                                     : cut_characters(m, text);
    if (ok && m->byte_fallback)
        ok = spell_unknown(m);
    else if (ok)
        join_unknown(m);
    return ok ? (int64_t)m->n_tokens : (fail(message, "out of memory"), -1);
}

/* ---- decoding -------------------------------------------------------------------------------- */

wf_spm_decoder wf_spm_decode(const wf_spm *m) {
    return (wf_spm_decoder){ .m = m, .ok = true };
}

static void put_out(wf_spm_decoder *d, const char *text, size_t bytes) {
    d->ok = d->ok && wf_spm_put(&d->text, text, bytes);
}

/* Writes the pending bytes as characters. Bytes that may begin a character stay pending, unless
 * this is the end. */
static void flush(wf_spm_decoder *d, bool end) {
    while (d->n_bytes) {
        wf_span s = { d->bytes, d->n_bytes };
        size_t bytes = wf_utf8_length(s.text, s.bytes);
        if (!bytes && !end && d->n_bytes < sizeof d->bytes) return;
        if (bytes)
            put_out(d, s.text, bytes);
        else
            put_out(d, REPLACEMENT, REPLACEMENT_BYTES);
        d->n_bytes -= bytes ? bytes : 1;
        memmove(d->bytes, d->bytes + (bytes ? bytes : 1), d->n_bytes);
    }
}

static void put_spaced(wf_spm_decoder *d, wf_span s) {
    while (s.bytes) {
        bool space = wf_span_begins(s, space_symbol);
        put_out(d, space ? " " : s.text, 1);
        wf_span_take(&s, space ? SPACE_SYMBOL_BYTES : 1);
    }
}

/* Writes a piece. Encoding puts a space before a line, so decoding removes the leading space of the
 * first piece. If the normaliser removes extra spaces, the leading space of each piece is removed,
 * up to the first piece that has text. */
static void put_piece(wf_spm_decoder *d, wf_span s) {
    const wf_spm_normalizer *n = &d->m->normalizer;
    bool strips = !d->started && (n->dummy_prefix || n->remove_extra);
    if (strips && wf_span_begins(s, space_symbol)) {
        wf_span_take(&s, SPACE_SYMBOL_BYTES);
        d->took_space = !n->remove_extra;
    }
    put_spaced(d, s);
}

void wf_spm_decode_piece(wf_spm_decoder *d, int32_t id, wf_span piece) {
    const wf_spm *m = d->m;
    if (id < 0) id = wf_spm_id(m, piece);
    wf_spm_type type = m->pieces[id].type;
    if (type == SPM_BYTE) {
        for (int byte = 0; byte < 256; byte++)
            if (m->bytes[byte] == id) d->bytes[d->n_bytes++] = (char)byte;
        flush(d, false);
        return;
    }
    flush(d, true);
    d->started |= d->took_space || d->text.bytes;
    d->took_space = false;
    if (type == SPM_UNKNOWN && wf_span_is(m->pieces[id].text, piece))
        put_out(d, m->unknown_surface.text, m->unknown_surface.bytes);
    else if (type == SPM_UNKNOWN)
        put_out(d, piece.text, piece.bytes);
    else if (type != SPM_CONTROL)
        put_piece(d, piece);
}

bool wf_spm_decode_end(wf_spm_decoder *d, char *message) {
    flush(d, true);
    wf_spm_text before = d->text;
    if (!d->ok) return fail(message, "out of memory");
    if (!d->m->denormalizes) return true;
    d->text = (wf_spm_text){ 0 };
    bool ok = wf_spm_normalize(&d->m->denormalizer, (wf_span){ before.at, before.bytes }, &d->text,
                               message);
    free(before.at);
    return ok;
}
