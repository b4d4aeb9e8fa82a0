/* models/text/tables.h - inside models: data structures for counting text: strings numbered in the
 * order of insertion, a map from pairs of numbers to a number, and a heap.
 *
 * Initialise each with zeros. Strings are numbered 0..n-1. Functions fail only if memory runs out,
 * and then the table is unchanged. */
#ifndef WEFT_MODELS_TEXT_TABLES_H
#define WEFT_MODELS_TEXT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/memory.h"

typedef struct wf_span {
    const char *text;
    size_t bytes;
} wf_span;

/* Takes the first n bytes of a text: returns them, and *rest begins after them. */
static inline wf_span wf_span_take(wf_span *rest, size_t n) {
    wf_span taken = { rest->text, n };
    if (n) rest->text += n; /* an empty text may be NULL */
    rest->bytes -= n;
    return taken;
}

static inline bool wf_span_begins(wf_span s, wf_span with) {
    return !with.bytes || (s.bytes >= with.bytes && memcmp(s.text, with.text, with.bytes) == 0);
}

static inline bool wf_span_is(wf_span a, wf_span b) {
    return a.bytes == b.bytes && wf_span_begins(a, b);
}

typedef struct wf_strings {
    int32_t n;
    char *bytes; /* the strings one after the other, each with its '\0' */
    size_t used, bytes_capacity;
    struct wf_string *strings;
    size_t strings_capacity;
    struct wf_string_slot *slots; /* a hash table with linear probing */
    size_t n_slots;
} wf_strings;

int32_t wf_strings_find(const wf_strings *s, const char *text, size_t bytes); /* -1: not there */
int32_t wf_strings_add(wf_strings *s, const char *text, size_t bytes);        /* -1: no memory */
const char *wf_strings_at(const wf_strings *s, int32_t i);
wf_span wf_strings_span(const wf_strings *s, int32_t i);
/* Brings into the cache what finding or adding n <= 128 strings will read. Prefetching for many
 * strings at once takes less time than waiting for memory at each. */
enum { WF_STRINGS_AHEAD = 128 };
void wf_strings_prefetch(const wf_strings *s, const wf_span *strings, int n);
/* Makes room for n strings in all: adding them reallocates only the buffer of their bytes. */
bool wf_strings_reserve(wf_strings *s, size_t n);
void wf_strings_free(wf_strings *s); /* the table is all zeros again */

typedef struct wf_pairs {
    struct wf_pair_slot *slots;
    size_t n, n_slots;
} wf_pairs;

int32_t wf_pairs_find(const wf_pairs *p, int32_t left, int32_t right); /* -1: not there */
/* The pair must not be there yet. */
bool wf_pairs_add(wf_pairs *p, int32_t left, int32_t right, int32_t value);
void wf_pairs_prefetch(const wf_pairs *p, int32_t left, int32_t right);
bool wf_pairs_reserve(wf_pairs *p, size_t n); /* makes room for n pairs in all */
void wf_pairs_free(wf_pairs *p);

typedef struct wf_item {
    int64_t key;
    int32_t value;
} wf_item;

/* A heap. items[0] comes before all others. */
typedef struct wf_heap {
    wf_item *items;
    size_t n, capacity;
    bool (*before)(const void *context, const wf_item *a, const wf_item *b);
    const void *context;
} wf_heap;

bool wf_heap_push(wf_heap *h, wf_item item);
wf_item wf_heap_pop(wf_heap *h); /* the heap must not be empty */

#endif
