/* models/text/tables.c - numbered strings, a map of pairs, a heap; see tables.h. */
#include "tables.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

/* ---- strings --------------------------------------------------------------------------------- */

struct wf_string {
    size_t start, bytes;
    uint64_t hash;
};

/* Hashes eight bytes at a time. The last 4 to 8 bytes enter as two words of four, which may
 * overlap; the last 1 to 3 as the first, the middle and the last of them. */
static uint64_t hash_of(const char *text, size_t bytes) {
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
        return wf_mix_word(h, (uint64_t)high << 32 | low);
    }
    return bytes ? wf_mix_word(h, (uint64_t)c[0] << 16 | (uint64_t)c[bytes / 2] << 8 | c[bytes - 1])
                 : h;
}

const char *wf_strings_at(const wf_strings *s, int32_t i) {
    assert(i >= 0 && i < s->n);
    return s->bytes + s->strings[i].start;
}
size_t wf_strings_bytes(const wf_strings *s, int32_t i) {
    assert(i >= 0 && i < s->n);
    return s->strings[i].bytes;
}

static int32_t find(const wf_strings *s, const char *text, size_t bytes, uint64_t hash) {
    if (!s->n) return -1;
    for (size_t at = hash & (s->n_slots - 1); s->slots[at]; at = (at + 1) & (s->n_slots - 1)) {
        const struct wf_string *string = &s->strings[s->slots[at] - 1];
        if (string->hash == hash && string->bytes == bytes &&
            memcmp(s->bytes + string->start, text, bytes) == 0)
            return s->slots[at] - 1;
    }
    return -1;
}

int32_t wf_strings_find(const wf_strings *s, const char *text, size_t bytes) {
    return find(s, text, bytes, hash_of(text, bytes));
}

static void place(const wf_strings *s, int32_t *slots, size_t n_slots, int32_t i) {
    size_t at = s->strings[i].hash & (n_slots - 1);
    while (slots[at]) at = (at + 1) & (n_slots - 1);
    slots[at] = i + 1;
}

/* Makes room for one more string; at least half of the slots stay empty. */
static bool more_slots(wf_strings *s) {
    size_t n = s->n_slots ? 2 * s->n_slots : 64;
    if (2 * ((size_t)s->n + 1) <= s->n_slots) return true;
    int32_t *slots = calloc(n, sizeof *slots);
    if (!slots) return false;
    for (int32_t i = 0; i < s->n; i++) place(s, slots, n, i);
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return true;
}

int32_t wf_strings_add(wf_strings *s, const char *text, size_t bytes) {
    uint64_t hash = hash_of(text, bytes);
    int32_t i = find(s, text, bytes, hash);
    if (i >= 0) return i;
    if (s->n == INT32_MAX || bytes >= SIZE_MAX / 2 - s->used || !more_slots(s) ||
        !wf_grow(&s->strings, &s->strings_capacity, (size_t)s->n + 1, sizeof *s->strings) ||
        !wf_grow(&s->bytes, &s->bytes_capacity, s->used + bytes + 1, 1))
        return -1;
    memcpy(s->bytes + s->used, text, bytes);
    s->bytes[s->used + bytes] = '\0';
    s->strings[s->n] = (struct wf_string){ s->used, bytes, hash };
    s->used += bytes + 1;
    place(s, s->slots, s->n_slots, s->n);
    return s->n++;
}

void wf_strings_free(wf_strings *s) {
    free(s->bytes), free(s->strings), free(s->slots);
    *s = (wf_strings){ 0 };
}

/* ---- pairs ----------------------------------------------------------------------------------- */

struct wf_pair_slot {
    int32_t left, right, value;
    bool taken;
};

static struct wf_pair_slot *slot_of(const wf_pairs *p, int32_t left, int32_t right) {
    uint64_t h = wf_mix_word(0, (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
    size_t at = (size_t)h & (p->n_slots - 1);
    while (p->slots[at].taken && (p->slots[at].left != left || p->slots[at].right != right))
        at = (at + 1) & (p->n_slots - 1);
    return &p->slots[at];
}

int32_t wf_pairs_find(const wf_pairs *p, int32_t left, int32_t right) {
    const struct wf_pair_slot *slot = p->n ? slot_of(p, left, right) : NULL;
    return slot && slot->taken ? slot->value : -1;
}

bool wf_pairs_add(wf_pairs *p, int32_t left, int32_t right, int32_t value) {
    assert(wf_pairs_find(p, left, right) < 0);
    if (2 * (p->n + 1) > p->n_slots) {
        wf_pairs larger = { .n = p->n, .n_slots = p->n_slots ? 2 * p->n_slots : 64 };
        larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
        if (!larger.slots) return false;
        for (size_t i = 0; i < p->n_slots; i++)
            if (p->slots[i].taken)
                *slot_of(&larger, p->slots[i].left, p->slots[i].right) = p->slots[i];
        free(p->slots);
        *p = larger;
    }
    *slot_of(p, left, right) = (struct wf_pair_slot){ left, right, value, true };
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
