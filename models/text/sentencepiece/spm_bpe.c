/* models/text/sentencepiece/spm_bpe.c - byte-pair encoding as in SentencePiece. Of all neighbours
 * that together are a piece, those with the highest score are merged, and of equal scores the
 * leftmost, until there are none. See spm.h. */
#include "spm.h"

#include "core/base/utf8.h"

/* Symbols without an id. UNMERGED: a single character that was not merged yet. FROZEN: a symbol
 * that the user defined, which is never merged. */
enum { UNMERGED = -1, FROZEN = -2 };

/* A key that is smaller for a higher score. The bits of a float ascend with its magnitude, so those
 * of negative scores are inverted; then all keys are negated. -0 comes after +0. */
static int64_t key_of(float score) {
    int32_t bits;
    memcpy(&bits, &score, sizeof bits);
    int32_t ascending = bits < 0 ? bits ^ INT32_MAX : bits;
    return -1 - (int64_t)ascending;
}

static bool split(wf_spm *m, wf_span line) {
    m->merger.n = 0;
    while (line.bytes) {
        size_t bytes = wf_spm_symbol(m->normalizer.symbols, line);
        int32_t symbol = bytes ? FROZEN : UNMERGED;
        if (!bytes) bytes = wf_utf8_announced(line.text, line.bytes);
        if (!wf_merger_add(&m->merger, symbol, bytes)) return false;
        wf_span_take(&line, bytes);
    }
    return true;
}

static wf_span text_of(const wf_spm *m, const wf_link *link) {
    return (wf_span){ m->line.at + link->begin, (size_t)link->bytes };
}

/* The piece that two neighbours make together. */
static int32_t find_piece(void *model, const wf_link *left, const wf_link *right, int64_t *key) {
    wf_spm *m = model;
    wf_span text = text_of(m, left);
    text.bytes += (size_t)right->bytes;
    if (left->symbol == FROZEN || right->symbol == FROZEN || text.bytes > m->longest) return -1;
    int32_t piece = wf_strings_find(&m->normal, text.text, text.bytes);
    if (piece < 0) return -1;
    int32_t id = m->normal_ids[piece];
    if (m->pieces[id].type == SPM_UNUSED) m->split[id] = left->bytes;
    *key = key_of(m->pieces[id].score);
    return id;
}

/* Splits an unused piece into the two parts that were merged, and these again, as long as they are
 * unused. */
static bool take_apart(wf_spm *m, wf_span text) {
    size_t n = 0;
    for (;;) {
        int32_t i = wf_strings_find(&m->normal, text.text, text.bytes);
        int32_t id = i < 0 ? m->unknown : m->normal_ids[i];
        size_t left = m->pieces[id].type == SPM_UNUSED ? (size_t)m->split[id] : 0;
        if (left) {
            if (!wf_grow(&m->stack, &m->stack_capacity, n + 1, sizeof *m->stack)) return false;
            m->stack[n++] = (wf_spm_token){ { text.text + left, text.bytes - left }, id };
            text.bytes = left;
            continue;
        }
        if (m->pieces[id].type == SPM_UNUSED) id = m->unknown;
        if (!wf_spm_add(m, text, id)) return false;
        if (!n) return true;
        text = m->stack[--n].text;
    }
}

static bool take(wf_spm *m, const wf_link *link) {
    int32_t id = link->symbol;
    if (id >= 0 && m->pieces[id].type != SPM_UNUSED) return wf_spm_add(m, text_of(m, link), id);
    return take_apart(m, text_of(m, link));
}

/* The line must be the one in m->line. */
bool wf_spm_bpe(wf_spm *m, wf_span line) {
    const wf_merge_rule rule = { .find = find_piece, .context = m };
    if (m->split) memset(m->split, 0, m->n * sizeof *m->split);
    if (!split(m, line) || !wf_merge_all(&m->merger, &rule)) return false;
    for (int32_t i = m->merger.n ? 0 : -1; i >= 0; i = m->merger.chain[i].after)
        if (!take(m, &m->merger.chain[i])) return false;
    return true;
}
