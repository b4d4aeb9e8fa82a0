/* models/text/json/normal_forms.c - NFC, NFD, NFKC and NFKD of Unicode 9.0 with the changes that
 * the crate unicode-normalization-alignments reports; see text_steps.h. */
#include <stdlib.h>

#include "core/base/utf8.h"
#include "models/text/characters/characters.h"
#include "text_steps.h"

/* Text below these code points stays as it is. */
static uint32_t unchanged_below(bool compatible, bool compose) {
    if (compatible) return 0xA0;
    return compose ? 0x300 : 0xC0;
}

static bool stays(const wf_aligned *a, const wf_piece *p, uint32_t below) {
    wf_span s = piece_text(a, p);
    for (size_t at = 0; at < s.bytes;)
        if ((uint32_t)wf_utf8_next(s.text, s.bytes, &at) >= below) return false;
    return wf_piece_whole(a, p);
}

/* Sorts the marks after a starter, which are the changes from `from` on, by combining class; equal
 * ones stay in order. A long run of marks, which only hostile text has, gets a counting sort
 * instead of an insertion sort. */
static bool sort_marks(wf_aligned *a, size_t from) {
    enum { FEW = 16, CLASSES = 256 };
    size_t n = a->n_changes - from, starts[CLASSES + 1] = { 0 };
    if (n < 2) return true; /* there may be no list yet */
    wf_change *c = a->changes + from;
    for (size_t i = 1; i < n && n <= FEW; i++) {
        wf_change mark = c[i];
        unsigned class = wf_combining_class(mark.code);
        size_t at = i;
        for (; at && wf_combining_class(c[at - 1].code) > class; at--) c[at] = c[at - 1];
        c[at] = mark;
    }
    if (n <= FEW) return true;
    wf_change *sorted = malloc(n * sizeof *sorted);
    if (!sorted) return fail(a->message, "out of memory");
    for (size_t i = 0; i < n; i++) starts[wf_combining_class(c[i].code) + 1]++;
    for (int i = 0; i < CLASSES; i++) starts[i + 1] += starts[i];
    for (size_t i = 0; i < n; i++) sorted[starts[wf_combining_class(c[i].code)]++] = c[i];
    memcpy(c, sorted, n * sizeof *sorted);
    free(sorted);
    return true;
}

static bool decompose(wf_aligned *a, const wf_piece *p, bool compatible) {
    uint32_t codes[MOST_DECOMPOSED];
    size_t starter = 0;
    wf_change_begin(a);
    for (size_t at = 0; at < p->bytes;) {
        wf_span s = piece_text(a, p);
        size_t n =
            wf_decomposition((uint32_t)wf_utf8_next(s.text, s.bytes, &at), compatible, codes);
        for (size_t i = 0; i < n; i++) {
            if (!wf_combining_class(codes[i])) {
                if (!sort_marks(a, starter)) return false;
                starter = a->n_changes;
            }
            if (!wf_change_add(a, codes[i], i > 0)) return false;
        }
    }
    return sort_marks(a, starter);
}

/* The state of composing: a starter at `out`, and after it the marks that did not join it. Composed
 * text is never longer, so it is written over what was read. */
typedef struct composer {
    wf_change *c;
    size_t out, marks; /* the starter's place, and how many marks follow it */
    bool open;         /* there is a starter */
    unsigned last;     /* class of the last mark; 0: none */
} composer;

static void next_starter(composer *s, wf_change c) {
    s->out += 1 + s->marks;
    s->c[s->out] = c;
    s->marks = 0;
    s->last = 0;
}

static void compose_one(composer *s, wf_change c) {
    unsigned class = wf_combining_class(c.code);
    if (!s->open) {
        s->c[s->out] = c;
        s->open = !class;
        s->out += class > 0;
        return;
    }
    wf_change *starter = &s->c[s->out];
    bool blocked = s->last && s->last >= class;
    uint32_t joined = blocked ? 0 : wf_composition(starter->code, c.code);
    if (joined) {
        *starter = (wf_change){ joined, starter->change + c.change - 1 };
        return;
    }
    if (!class) {
        next_starter(s, c);
        return;
    }
    s->c[s->out + ++s->marks] = c;
    s->last = class;
}

bool wf_piece_normal(wf_aligned *a, wf_piece *p, bool compatible, bool compose) {
    if (stays(a, p, unchanged_below(compatible, compose))) return true;
    if (!decompose(a, p, compatible)) return false;
    if (compose) {
        composer s = { .c = a->changes };
        for (size_t i = 0; i < a->n_changes; i++) compose_one(&s, a->changes[i]);
        a->n_changes = s.out + (s.open ? 1 + s.marks : 0);
    }
    return wf_change_all(a, p, 0);
}
