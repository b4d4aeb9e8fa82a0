/* models/text/spm_bpe.c - byte-pair encoding as SentencePiece has it: of the pairs of neighbours that
 * make a piece the one with the highest score is merged, of several the leftmost; until there is
 * none. See spm.h.
 *
 * A pair is known by its left symbol and the piece that it makes: when one of the two has changed
 * meanwhile, they are no longer as long as the piece. */
#include "spm.h"

#include "core/base/utf8.h"

struct wf_spm_link {
    wf_span text;          /* empty: merged into the one before */
    int32_t before, after; /* -1: none */
    int32_t id;            /* what it was merged to; -1: nothing yet */
    bool frozen;           /* the user's: it is not merged */
};

static bool comes_before(const void *context, const wf_item *a, const wf_item *b) {
    (void)context;
    return a->key < b->key;
}

/* Descending scores, then from left to right. The bits of a float, but for the sign, ascend with
 * it; so -0 comes after +0. */
static int64_t key_of(float score, int32_t left) {
    int32_t bits;
    memcpy(&bits, &score, sizeof bits);
    int32_t ascending = bits < 0 ? bits ^ INT32_MAX : bits;
    return (-1 - (int64_t)ascending) * ((int64_t)1 << 32) + left;
}

static bool split(wf_spm *m, wf_span line, size_t *n) {
    for (*n = 0; line.bytes; ++*n) {
        size_t bytes = wf_spm_symbol(m->normalizer.symbols, line);
        bool frozen = bytes > 0;
        if (!frozen) bytes = wf_utf8_announced(line.text, line.bytes);
        if (*n >= INT32_MAX || !wf_grow(&m->chain, &m->chain_capacity, *n + 1, sizeof *m->chain))
            return false;
        int32_t at = (int32_t)*n;
        m->chain[at] = (wf_spm_link){ { line.text, bytes }, at - 1, at + 1, -1, frozen };
        line.text += bytes, line.bytes -= bytes;
    }
    if (*n) m->chain[*n - 1].after = -1;
    return true;
}

/* Do these two make a piece? Then they wait for their turn. */
static bool add_pair(wf_spm *m, int32_t left, int32_t right) {
    if (left < 0 || right < 0 || m->chain[left].frozen || m->chain[right].frozen) return true;
    wf_span text = m->chain[left].text;
    text.bytes += m->chain[right].text.bytes;
    if (text.bytes > m->longest) return true;
    int32_t piece = wf_strings_find(&m->normal, text.text, text.bytes);
    if (piece < 0) return true;
    int32_t id = m->normal_ids[piece];
    if (m->pieces[id].type == SPM_UNUSED) m->split[id] = (int32_t)m->chain[left].text.bytes;
    return wf_heap_push(&m->heap, (wf_item){ key_of(m->pieces[id].score, left), id });
}

static bool merge(wf_spm *m, wf_item item) {
    int32_t left = (int32_t)(item.key & INT32_MAX), right = m->chain[left].after;
    wf_spm_link *l = &m->chain[left];
    if (!l->text.bytes || right < 0) return true;
    wf_spm_link *r = &m->chain[right];
    if (l->text.bytes + r->text.bytes != m->pieces[item.value].text.bytes) return true;
    l->text.bytes += r->text.bytes, r->text.bytes = 0;
    l->id = item.value;
    l->after = r->after;
    if (r->after >= 0) m->chain[r->after].before = left;
    return add_pair(m, l->before, left) && add_pair(m, left, l->after);
}

/* An unused piece is taken apart again, as it was put together. */
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

static bool take(wf_spm *m, const wf_spm_link *s) {
    if (s->id >= 0 && m->pieces[s->id].type != SPM_UNUSED) return wf_spm_add(m, s->text, s->id);
    return take_apart(m, s->text);
}

bool wf_spm_bpe(wf_spm *m, wf_span line) {
    size_t n;
    m->heap.n = 0, m->heap.before = comes_before;
    if (m->split) memset(m->split, 0, m->n * sizeof *m->split);
    if (!split(m, line, &n)) return false;
    for (size_t i = 1; i < n; i++)
        if (!add_pair(m, (int32_t)i - 1, (int32_t)i)) return false;
    while (m->heap.n)
        if (!merge(m, wf_heap_pop(&m->heap))) return false;
    for (int32_t i = n ? 0 : -1; i >= 0; i = m->chain[i].after)
        if (!take(m, &m->chain[i])) return false;
    return true;
}
