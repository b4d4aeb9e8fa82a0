/* models/text/learn/unigram_seeds.c - frequent substrings of words, with which a Unigram model
 * begins; see json_learn.h.
 *
 * All suffixes of the words are sorted, so that suffixes with the same beginning are neighbours.
 * Such a beginning is a substring, and its run of neighbours gives its count. A run goes on while
 * the next suffix has the same beginning, and ends otherwise. If a longer beginning has the same
 * count, it occurs at the same places, and the shorter one is left out. */
#include <stdlib.h>

#include "json_learn.h"

typedef struct suffix {
    const char *text; /* the rest of the word, but at most WF_LONGEST_PIECE characters */
    uint32_t bytes;
    int64_t count; /* of its word */
} suffix;

typedef struct seed {
    wf_span text;
    int64_t weight; /* count times length */
} seed;

typedef struct seeds {
    suffix *suffixes;
    size_t n_suffixes, suffixes_capacity;
    seed *at;
    size_t n, capacity;
} seeds;

/* ---- suffixes -------------------------------------------------------------------------------- */

static bool add_suffixes(seeds *s, wf_span word, int64_t count) {
    size_t first = s->n_suffixes, n = 0, at = 0;
    for (; at < word.bytes; n++) {
        if (!wf_grow(&s->suffixes, &s->suffixes_capacity, s->n_suffixes + 1, sizeof *s->suffixes))
            return false;
        s->suffixes[s->n_suffixes++] =
            (suffix){ word.text + at, (uint32_t)(word.bytes - at), count };
        at += wf_code_point(word.text + at, word.bytes - at).bytes;
        if (n >= WF_LONGEST_PIECE - 1) {
            suffix *old = &s->suffixes[first + n - (WF_LONGEST_PIECE - 1)];
            old->bytes = (uint32_t)(word.text + at - old->text);
        }
    }
    return true;
}

static int by_text(const void *a, const void *b) {
    const suffix *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* ---- beginnings ------------------------------------------------------------------------------ */

/* A beginning that the current suffix shares with the suffixes before it, in sorted order. */
typedef struct open_run {
    int64_t before; /* sum of the counts of all suffixes before its first one */
    uint32_t bytes;
} open_run;

typedef struct runs {
    open_run at[WF_LONGEST_PIECE + 1]; /* at[n]: the beginning of n characters */
    int n;                             /* characters of the longest beginning */
    int64_t sum;                       /* sum of the counts of the suffixes so far */
} runs;

static bool add_seed(seeds *s, wf_span text, int64_t count, int characters) {
    if (!wf_grow(&s->at, &s->capacity, s->n + 1, sizeof *s->at)) return false;
    s->at[s->n++] = (seed){ text, count * characters };
    return true;
}

/* Closes the runs of suffixes that share more than `shared` characters; `text` is the last suffix
 * in them. What they share becomes a seed if it has two characters or more, and occurs at least
 * twice and more often than the seed that is a character longer. */
static bool end_runs(seeds *s, runs *r, const char *text, int shared) {
    int64_t longer = -1; /* count of the beginning that has one character more */
    for (; r->n > shared; r->n--) {
        const open_run *run = &r->at[r->n];
        int64_t count = r->sum - run->before;
        bool stands = count > longer && r->n >= 2 && count >= 2;
        if (stands && !add_seed(s, (wf_span){ text, run->bytes }, count, r->n)) return false;
        longer = count;
    }
    return true;
}

/* How many characters two texts share from the beginning. */
static int shared_characters(const suffix *a, const suffix *b) {
    uint32_t at = 0;
    int n = 0;
    while (at < a->bytes && at < b->bytes) {
        size_t bytes = wf_code_point(a->text + at, a->bytes - at).bytes;
        if (bytes > b->bytes - at || memcmp(a->text + at, b->text + at, bytes) != 0) break;
        at += (uint32_t)bytes;
        n++;
    }
    return n;
}

static void begin_runs(runs *r, const suffix *x) {
    uint32_t at = r->n ? r->at[r->n].bytes : 0;
    while (at < x->bytes) {
        at += (uint32_t)wf_code_point(x->text + at, x->bytes - at).bytes;
        r->at[++r->n] = (open_run){ r->sum, at };
    }
    r->sum += x->count;
}

static bool find(seeds *s) {
    runs r = { .n = 0 };
    for (size_t i = 0; i < s->n_suffixes; i++) {
        const suffix *x = &s->suffixes[i];
        if (i && !end_runs(s, &r, x[-1].text, shared_characters(&x[-1], x))) return false;
        begin_runs(&r, x);
    }
    return !s->n_suffixes || end_runs(s, &r, s->suffixes[s->n_suffixes - 1].text, 0);
}

static int by_weight(const void *a, const void *b) {
    const seed *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    int order = memcmp(x->text.text, y->text.text,
                       x->text.bytes < y->text.bytes ? x->text.bytes : y->text.bytes);
    return order ? order : (x->text.bytes > y->text.bytes) - (x->text.bytes < y->text.bytes);
}

bool wf_unigram_seeds(wf_tally *to, const wf_tally *words) {
    seeds s = { 0 };
    bool ok = true;
    for (int32_t i = 0; ok && i < words->strings.n; i++) {
        wf_span word = wf_strings_span(&words->strings, i);
        ok = add_suffixes(&s, word, words->counts[i]);
    }
    if (ok && s.n_suffixes) qsort(s.suffixes, s.n_suffixes, sizeof *s.suffixes, by_text);
    ok = ok && find(&s);
    if (ok && s.n) qsort(s.at, s.n, sizeof *s.at, by_weight);
    for (size_t i = 0; ok && i < s.n && to->strings.n < WF_MOST_SEEDS; i++)
        ok = wf_tally_add(to, s.at[i].text, s.at[i].weight);
    free(s.suffixes), free(s.at);
    return ok;
}
