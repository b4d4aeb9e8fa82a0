/* models/text/tables.c - numbered strings, a map of pairs, a heap; see tables.h. */
#include "tables.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

/* The number of slots that a table of `slots` slots needs to hold n things: a power of two, and at
 * least 2 * n, so that half of them stay empty. 0: n is too large. */
static size_t slots_for(size_t slots, size_t n) {
    if (n > SIZE_MAX / 64) return 0;
    while (slots < 2 * n) slots = slots ? 2 * slots : 64;
    return slots;
}

/* ---- strings --------------------------------------------------------------------------------- */

struct wf_string {
    size_t start, bytes;
};

/* A slot has the low half of the string's hash, so that other strings are seldom looked at. */
struct wf_string_slot {
    uint32_t hash;
    int32_t number; /* of the string, plus 1; 0: the slot is free */
};

/* Hashes eight bytes at a time. The last 4 to 8 bytes enter as two words of four, which may
 * overlap; the last 1 to 3 as the first, the middle and the last of them. */
static uint32_t hash_of(const char *text, size_t bytes) {
    uint64_t h = bytes, word;
    uint32_t low, high;
    const unsigned char *c = (const unsigned char *)text;
    for (; bytes > 8; bytes -= 8, c += 8) {
        memcpy(&word, c, sizeof word);
        h = wf_mix_word(h, word);
    }
    if (bytes >= 4) {
        memcpy(&low, c, sizeof low);
        memcpy(&high, c + bytes - 4, sizeof high);
        return (uint32_t)wf_mix_word(h, (uint64_t)high << 32 | low);
    }
    if (bytes)
        h = wf_mix_word(h, (uint64_t)c[0] << 16 | (uint64_t)c[bytes / 2] << 8 | c[bytes - 1]);
    return (uint32_t)h;
}

const char *wf_strings_at(const wf_strings *s, int32_t i) {
    assert(i >= 0 && i < s->n);
    return s->bytes + s->strings[i].start;
}
wf_span wf_strings_span(const wf_strings *s, int32_t i) {
    return (wf_span){ wf_strings_at(s, i), s->strings[i].bytes };
}

static int32_t find(const wf_strings *s, const char *text, size_t bytes, uint32_t hash) {
    if (!s->n) return -1;
    for (size_t at = hash & (s->n_slots - 1); s->slots[at].number;
         at = (at + 1) & (s->n_slots - 1)) {
        if (s->slots[at].hash != hash) continue;
        const struct wf_string *string = &s->strings[s->slots[at].number - 1];
        if (string->bytes == bytes && memcmp(s->bytes + string->start, text, bytes) == 0)
            return s->slots[at].number - 1;
    }
    return -1;
}

int32_t wf_strings_find(const wf_strings *s, const char *text, size_t bytes) {
    return find(s, text, bytes, hash_of(text, bytes));
}

static void place(struct wf_string_slot *slots, size_t n_slots, struct wf_string_slot string) {
    size_t at = string.hash & (n_slots - 1);
    while (slots[at].number) at = (at + 1) & (n_slots - 1);
    slots[at] = string;
}

/* Makes room for `strings` strings; half of the slots stay empty. False: out of memory. */
static bool more_slots(wf_strings *s, size_t strings) {
    size_t n = slots_for(s->n_slots, strings);
    if (n == s->n_slots) return true;
    struct wf_string_slot *slots = n ? wf_memory_new(n * sizeof *slots) : NULL;
    if (!slots) return false;
    for (size_t at = 0; at < s->n_slots; at++)
        if (s->slots[at].number) place(slots, n, s->slots[at]);
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return true;
}

int32_t wf_strings_add(wf_strings *s, const char *text, size_t bytes) {
    uint32_t hash = hash_of(text, bytes);
    int32_t i = find(s, text, bytes, hash);
    if (i >= 0) return i;
    if (s->n == INT32_MAX || bytes >= SIZE_MAX / 2 - s->used || !more_slots(s, (size_t)s->n + 1) ||
        !wf_grow(&s->strings, &s->strings_capacity, (size_t)s->n + 1, sizeof *s->strings) ||
        !wf_grow(&s->bytes, &s->bytes_capacity, s->used + bytes + 1, 1))
        return -1;
    memcpy(s->bytes + s->used, text, bytes);
    s->bytes[s->used + bytes] = '\0';
    s->strings[s->n++] = (struct wf_string){ s->used, bytes };
    s->used += bytes + 1;
    place(s->slots, s->n_slots, (struct wf_string_slot){ hash, s->n });
    return s->n - 1;
}

void wf_strings_prefetch(const wf_strings *s, const wf_span *strings, int n) {
    struct wf_string_slot *slots[WF_STRINGS_AHEAD];
    uint32_t hashes[WF_STRINGS_AHEAD];
    assert(n <= WF_STRINGS_AHEAD);
    if (!s->n_slots) return;
    for (int i = 0; i < n; i++) {
        hashes[i] = hash_of(strings[i].text, strings[i].bytes);
        slots[i] = &s->slots[hashes[i] & (s->n_slots - 1)];
        __builtin_prefetch(slots[i]);
    }
    for (int i = 0; i < n; i++)
        if (slots[i]->hash == hashes[i] && slots[i]->number)
            __builtin_prefetch(&s->strings[slots[i]->number - 1]);
    for (int i = 0; i < n; i++)
        if (slots[i]->hash == hashes[i] && slots[i]->number)
            __builtin_prefetch(s->bytes + s->strings[slots[i]->number - 1].start);
}

bool wf_strings_reserve(wf_strings *s, size_t n) {
    return n <= INT32_MAX && more_slots(s, n) &&
           wf_grow(&s->strings, &s->strings_capacity, n, sizeof *s->strings);
}

void wf_strings_free(wf_strings *s) {
    free(s->bytes), free(s->strings), free(s->slots);
    *s = (wf_strings){ 0 };
}

/* ---- pairs ----------------------------------------------------------------------------------- */

struct wf_pair_slot {
    int32_t left, right;
    int32_t value; /* plus 1; 0: the slot is free */
};

static size_t hash_of_pair(int32_t left, int32_t right) {
    return (size_t)wf_mix_word(0, (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

static struct wf_pair_slot *slot_of(const wf_pairs *p, int32_t left, int32_t right) {
    size_t at = hash_of_pair(left, right) & (p->n_slots - 1);
    while (p->slots[at].value && (p->slots[at].left != left || p->slots[at].right != right))
        at = (at + 1) & (p->n_slots - 1);
    return &p->slots[at];
}

void wf_pairs_prefetch(const wf_pairs *p, int32_t left, int32_t right) {
    if (p->n_slots) __builtin_prefetch(&p->slots[hash_of_pair(left, right) & (p->n_slots - 1)]);
}

int32_t wf_pairs_find(const wf_pairs *p, int32_t left, int32_t right) {
    const struct wf_pair_slot *slot = p->n ? slot_of(p, left, right) : NULL;
    return slot ? slot->value - 1 : -1;
}

bool wf_pairs_reserve(wf_pairs *p, size_t n) {
    wf_pairs larger = { .n = p->n, .n_slots = slots_for(p->n_slots, n) };
    if (larger.n_slots == p->n_slots) return true;
    if (larger.n_slots) larger.slots = wf_memory_new(larger.n_slots * sizeof *larger.slots);
    if (!larger.slots) return false;
    for (size_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].value) *slot_of(&larger, p->slots[i].left, p->slots[i].right) = p->slots[i];
    free(p->slots);
    *p = larger;
    return true;
}

bool wf_pairs_add(wf_pairs *p, int32_t left, int32_t right, int32_t value) {
    assert(value >= 0 && value < INT32_MAX && wf_pairs_find(p, left, right) < 0);
    if (!wf_pairs_reserve(p, p->n + 1)) return false;
    *slot_of(p, left, right) = (struct wf_pair_slot){ left, right, value + 1 };
    p->n++;
    return true;
}

void wf_pairs_free(wf_pairs *p) {
    free(p->slots);
    *p = (wf_pairs){ 0 };
}

/* ---- heap ------------------------------------------------------------------------------------ */

bool wf_heap_push(wf_heap *h, wf_item item) {
    if (!wf_grow(&h->items, &h->capacity, h->n + 1, sizeof *h->items)) return false;
    size_t at = h->n++;
    for (; at && h->before(h->context, &item, &h->items[(at - 1) / 2]); at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = item;
    return true;
}

wf_item wf_heap_pop(wf_heap *h) {
    assert(h->n > 0);
    wf_item first = h->items[0], item = h->items[--h->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && h->before(h->context, &h->items[child + 1], &h->items[child]))
            child++;
        if (!h->before(h->context, &h->items[child], &item)) break;
        h->items[at] = h->items[child];
    }
    h->items[at] = item;
    return first;
}
