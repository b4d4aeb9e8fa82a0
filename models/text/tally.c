/* models/text/tally.c - strings, and how often each was seen; see tally.h. */
#include "tally.h"

#include <stdlib.h>

bool wf_tally_add(wf_tally *c, wf_span s, int64_t times) {
    if (!wf_grow(&c->counts, &c->capacity, (size_t)c->strings.n + 1, sizeof *c->counts))
        return false;
    int32_t before = c->strings.n, i = wf_strings_add(&c->strings, s.text, s.bytes);
    if (i == before) c->counts[i] = 0;
    if (i >= 0) c->counts[i] += times;
    return i >= 0;
}

bool wf_tally_characters(wf_tally *c, wf_span text, int64_t times) {
    while (text.bytes)
        if (!wf_tally_add(c, wf_character_next(&text), times)) return false;
    return true;
}

bool wf_tally_alphabet(wf_tally *c, const wf_tally *words) {
    for (int32_t i = 0; i < words->strings.n; i++)
        if (!wf_tally_characters(c, wf_strings_span(&words->strings, i), words->counts[i]))
            return false;
    return true;
}

void wf_tally_free(wf_tally *c) {
    wf_strings_free(&c->strings);
    free(c->counts);
    *c = (wf_tally){ 0 };
}

static int by_count(const void *a, const void *b) {
    const wf_ranked *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1)
                                : strcmp(x->text.text, y->text.text);
}

wf_ranked *wf_tally_rank(const wf_tally *c) {
    wf_ranked *r = malloc(((size_t)c->strings.n + 1) * sizeof *r);
    for (int32_t i = 0; r && i < c->strings.n; i++)
        r[i] = (wf_ranked){ wf_strings_span(&c->strings, i), c->counts[i] };
    if (r) qsort(r, (size_t)c->strings.n, sizeof *r, by_count);
    return r;
}
