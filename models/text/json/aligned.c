/* models/text/json/aligned.c - text with its places in the original; see aligned.h. */
#include "aligned.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/utf8.h"

/* A line and all its changed texts together may take LEAST + TIMES * its length bytes, however many
 * rules a file has. */
enum { TIMES = 64, LEAST = 1 << 20 };

static bool room(wf_aligned *a, size_t bytes) {
    if (bytes > a->most - a->used)
        return fail(a->message, "normalised, the line takes more than %zu bytes", a->most);
    size_t n = a->used + bytes + 1;
    if (n > a->text_capacity && !wf_grow(&a->text, &a->text_capacity, n, 1))
        return fail(a->message, "out of memory");
    if (n > a->places_capacity && !wf_grow(&a->places, &a->places_capacity, n, sizeof *a->places))
        return fail(a->message, "out of memory");
    return true;
}

bool wf_aligned_begin(wf_aligned *a, const char *line, size_t bytes, char *message) {
    a->message = message;
    a->used = a->pieces.n = a->next.n = 0;
    if (bytes > (INT32_MAX - LEAST) / TIMES)
        return fail(message, "the line has more than %d bytes", (INT32_MAX - LEAST) / TIMES);
    size_t good = wf_utf8_prefix(line, bytes);
    if (good < bytes) return fail(message, "not UTF-8 at byte %zu", good);
    a->most = LEAST + TIMES * bytes;
    if (!room(a, bytes)) return false;
    if (bytes) memcpy(a->text, line, bytes);
    for (size_t i = 0; i < bytes;) {
        size_t n = wf_utf8_announced(line + i, bytes - i);
        wf_place place = { (uint32_t)i, (uint32_t)(i + n) };
        for (size_t end = i + n; i < end; i++) a->places[i] = place;
    }
    a->used = bytes;
    return wf_piece_keep(a, (wf_piece){ 0, bytes, 0, (uint32_t)bytes, -1 }) &&
           (wf_pieces_swap(a), true);
}

void wf_aligned_free(wf_aligned *a) {
    free(a->text), free(a->places), free(a->changes), free(a->pieces.at), free(a->next.at);
    *a = (wf_aligned){ 0 };
}

wf_piece wf_piece_cut(const wf_aligned *a, const wf_piece *p, size_t begin, size_t end) {
    wf_piece part = { p->begin + begin, end - begin, p->from, p->from, -1 };
    assert(begin <= end && end <= p->bytes);
    if (begin == end) return part;
    part.from = a->places[part.begin].from;
    part.to = a->places[p->begin + end - 1].to;
    if (part.to < part.from) part.to = part.from;
    return part;
}

bool wf_piece_keep(wf_aligned *a, wf_piece p) {
    wf_pieces_list *l = &a->next;
    if (!p.bytes) return true;
    if (l->n == l->capacity && !wf_grow(&l->at, &l->capacity, l->n + 1, sizeof *l->at))
        return fail(a->message, "out of memory");
    l->at[l->n++] = p;
    return true;
}

void wf_pieces_swap(wf_aligned *a) {
    wf_pieces_list list = a->pieces;
    a->pieces = a->next;
    a->next = list;
    a->next.n = 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

void wf_change_begin(wf_aligned *a) {
    a->n_changes = 0;
}

bool wf_change_add(wf_aligned *a, uint32_t code, int32_t change) {
    if (a->n_changes == a->changes_capacity &&
        !wf_grow(&a->changes, &a->changes_capacity, a->n_changes + 1, sizeof *a->changes))
        return fail(a->message, "out of memory");
    a->changes[a->n_changes++] = (wf_change){ code, change };
    return true;
}

/* Finds the bytes [begin, end) of a piece that stand for its part of the original, as Hugging
 * Face's tokenizers library does: from the first byte with a non-empty place in that part, up to
 * the first whose place goes beyond it. If the part is empty, both are 0. False: there are none, so
 * the caller changes nothing. */
static bool bounds(const wf_aligned *a, const wf_piece *p, size_t *begin, size_t *end) {
    const wf_place *places = a->places + p->begin;
    bool found = false;
    *begin = *end = 0;
    if (p->from == p->to) return true;
    for (size_t i = 0; i < p->bytes && places[i].to <= p->to; i++) {
        if (!found && places[i].from >= p->from && places[i].from != places[i].to) {
            found = true;
            *begin = i;
        }
        *end = i + 1;
    }
    if (!found) *begin = *end;
    return *end > 0;
}

bool wf_piece_whole(const wf_aligned *a, const wf_piece *p) {
    size_t begin, end;
    return bounds(a, p, &begin, &end) && !begin && end == p->bytes;
}

static size_t skip_characters(wf_span s, size_t at, size_t n) {
    for (; n && at < s.bytes; n--) at += wf_utf8_announced(s.text + at, s.bytes - at);
    return at;
}

static void copy(wf_aligned *a, size_t from, size_t bytes) {
    if (!bytes) return;
    memcpy(a->text + a->used, a->text + from, bytes);
    memcpy(a->places + a->used, a->places + from, bytes * sizeof *a->places);
    a->used += bytes;
}

/* The place of a new character, where the old text is at byte `at` of the piece. */
static wf_place place_at(const wf_aligned *a, const wf_piece *p, size_t at, bool is_new) {
    if (is_new && at)
        at--;
    else if (is_new || !p->bytes)
        return (wf_place){ p->from, p->from };
    return a->places[p->begin + (at < p->bytes ? at : p->bytes - 1)];
}

static bool change_range(wf_aligned *a, wf_piece *p, size_t begin, size_t end, size_t dropped) {
    size_t start = a->used, most = p->bytes + WF_UTF8_MOST * a->n_changes;
    if (!room(a, most)) return false;
    wf_span old = { a->text + p->begin, end };
    copy(a, p->begin, begin);
    size_t at = skip_characters(old, begin, dropped);
    for (size_t i = 0; i < a->n_changes; i++) {
        wf_change c = a->changes[i];
        wf_place place = place_at(a, p, at, c.change > 0);
        size_t n = wf_utf8_put(a->text + a->used, (int32_t)c.code);
        for (size_t k = 0; k < n; k++) a->places[a->used++] = place;
        if (c.change <= 0) at = skip_characters(old, at, 1 + (size_t)-c.change);
    }
    copy(a, p->begin + end, p->bytes - end);
    p->begin = start;
    p->bytes = a->used - start;
    return true;
}

bool wf_change_all(wf_aligned *a, wf_piece *p, size_t dropped) {
    size_t begin, end;
    return !bounds(a, p, &begin, &end) || change_range(a, p, begin, end, dropped);
}

bool wf_piece_prepend(wf_aligned *a, wf_piece *p, wf_span text) {
    size_t first = wf_utf8_announced(a->text + p->begin, p->bytes);
    uint32_t code = (uint32_t)wf_utf8_code(a->text + p->begin, first);
    wf_change_begin(a);
    for (size_t at = 0; at < text.bytes;) {
        int32_t change = at > 0;
        if (!wf_change_add(a, (uint32_t)wf_utf8_next(text.text, text.bytes, &at), change))
            return false;
    }
    return wf_change_add(a, code, 1) && change_range(a, p, 0, first, 0);
}

/* ---- replacing ------------------------------------------------------------------------------- */

bool wf_match_refused(wf_match_result result, char *message) {
    if (result == NO_MEMORY) return fail(message, "out of memory");
    return fail(message, "an expression of the tokenizer takes too many steps for this line");
}

bool wf_piece_replace(wf_aligned *a, wf_piece *p, wf_expression *e, wf_span by) {
    size_t start = a->used, last = 0, begin, end;
    wf_match_result result;
    bool any = false;
    if (!p->bytes) return true;
    if (!room(a, p->bytes)) return false;
    /* room() may move the buffer, so the search is told its new address */
    for (wf_search s = wf_search_begin(e, piece_text(a, p));
         (result = wf_search_next(&s, &begin, &end)) == A_MATCH; last = end) {
        copy(a, p->begin + last, begin - last);
        if (!room(a, by.bytes + p->bytes - end)) return false;
        s.text.text = a->text + p->begin;
        wf_place place = place_at(a, p, end, true);
        if (by.bytes) memcpy(a->text + a->used, by.text, by.bytes);
        for (size_t k = 0; k < by.bytes; k++) a->places[a->used++] = place;
        any = true;
    }
    if (result > A_MATCH) return wf_match_refused(result, a->message);
    if (!any) return true;
    copy(a, p->begin + last, p->bytes - last);
    p->begin = start;
    p->bytes = a->used - start;
    return true;
}
