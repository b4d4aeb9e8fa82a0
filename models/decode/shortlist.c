/* models/decode/shortlist.c - reads lexical shortlists, and lists the candidates of a source. See
 * models/shortlist.h.
 *
 * A file has, low byte first: u64 mark, u64 checksum, u64 first, u64 best, u64 number of offsets,
 * u64 number of ids, u64 offsets, u32 ids. The list of source token w has the ids from index
 * offsets[w] up to offsets[w + 1]. There are no offsets after the last source token that has a
 * list. Ids below `first` are candidates of every source. `best` is the most ids in a list, and is
 * not used. */
#include "narrow.h"

#include <stdlib.h>
#include <string.h>

#include "models/message.h"
#include "models/model_internal.h"

enum { HEAD = 48, AT_CHECKSUM = 8, AT_FIRST = 16, AT_OFFSETS = 32, AT_IDS = 40, GROUP = 8 };
static const uint64_t mark = 0xF11A48D5013417F5;

struct wf_shortlist {
    int64_t src_vocab, tgt_vocab;
    bool shared;
    int64_t first;    /* ids below this are candidates of every source */
    int64_t words;    /* number of source tokens that have lists */
    int64_t *offsets; /* [words + 1] */
    int32_t *ids;     /* [offsets[words]] */
};

static uint64_t u64_at(const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 8; i-- > 0;) value = value << 8 | at[i];
    return value;
}

static uint32_t u32_at(const unsigned char *at) {
    uint32_t value = 0;
    for (int i = 4; i-- > 0;) value = value << 8 | at[i];
    return value;
}

/* The checksum of the whole words of 64 bits that follow its own field. */
static uint64_t checksum(const unsigned char *data, size_t bytes) {
    uint64_t sum = 0;
    for (size_t at = AT_FIRST; at + 8 <= bytes; at += 8)
        sum ^= u64_at(data + at) + 0x9e3779b9u + (sum << 6) + (sum >> 2);
    return sum;
}

/* Checks the head, the length and the checksum of the file, and that it has no lists for more
 * source tokens than src_vocab. */
static bool head_ok(const unsigned char *data, size_t bytes, int64_t src_vocab, char *message) {
    if (bytes < HEAD || u64_at(data) != mark)
        return fail(message, "it does not begin as a binary shortlist (lex.s2t.bin)");
    uint64_t offsets = u64_at(data + AT_OFFSETS), ids = u64_at(data + AT_IDS);
    size_t left = bytes - HEAD;
    if (offsets < 1 || offsets > left / 8 || ids != (left - 8 * offsets) / 4 ||
        (left - 8 * offsets) % 4)
        return fail(message, "it has %zu bytes, and says that it has others: it was cut or joined",
                    bytes);
    if (checksum(data, bytes) != u64_at(data + AT_CHECKSUM))
        return fail(message, "its checksum is not that of its content: it is damaged");
    if (offsets - 1 > (uint64_t)src_vocab)
        return fail(message, "it has lists for %llu source tokens, and the vocabulary has %lld",
                    (unsigned long long)(offsets - 1), (long long)src_vocab);
    return true;
}

static bool take_offsets(wf_shortlist *l, const unsigned char *at, uint64_t n_ids, char *message) {
    uint64_t before = 0;
    for (int64_t w = 0; w <= l->words; w++) {
        uint64_t offset = u64_at(at + 8 * w);
        if (offset < before || offset > n_ids || (w == l->words && offset != n_ids))
            return fail(message, "its list for source token %lld ends at %llu of %llu ids",
                        (long long)w - 1, (unsigned long long)offset, (unsigned long long)n_ids);
        l->offsets[w] = (int64_t)offset;
        before = offset;
    }
    return true;
}

static bool take_ids(wf_shortlist *l, const unsigned char *at, uint64_t n_ids, char *message) {
    for (uint64_t i = 0; i < n_ids; i++) {
        uint32_t id = u32_at(at + 4 * i);
        if (id >= (uint64_t)l->tgt_vocab)
            return fail(message, "it has token %u, and the vocabulary has %lld", id,
                        (long long)l->tgt_vocab);
        l->ids[i] = (int32_t)id;
    }
    return true;
}

static bool take(wf_shortlist *l, const unsigned char *data, char *message) {
    uint64_t first = u64_at(data + AT_FIRST), n_ids = u64_at(data + AT_IDS);
    l->words = (int64_t)u64_at(data + AT_OFFSETS) - 1;
    l->first = first < (uint64_t)l->tgt_vocab ? (int64_t)first : l->tgt_vocab;
    l->offsets = calloc((size_t)l->words + 1, sizeof *l->offsets);
    l->ids = calloc((size_t)n_ids + 1, sizeof *l->ids);
    if (!l->offsets || !l->ids) return fail(message, "out of memory");
    const unsigned char *offsets = data + HEAD;
    return take_offsets(l, offsets, n_ids, message) &&
           take_ids(l, offsets + 8 * (l->words + 1), n_ids, message);
}

wf_shortlist *wf_shortlist_read(const void *data, size_t bytes, int64_t src_vocab,
                                int64_t tgt_vocab, bool shared, char *message) {
    if (!data || src_vocab < 1 || tgt_vocab < 1 || src_vocab > INT32_MAX || tgt_vocab > INT32_MAX)
        return fail(message, "there are no bytes, or no vocabulary"), NULL;
    if (!head_ok(data, bytes, src_vocab, message)) return NULL;
    wf_shortlist *l = calloc(1, sizeof *l);
    if (!l) return fail(message, "out of memory"), NULL;
    *l = (wf_shortlist){ .src_vocab = src_vocab, .tgt_vocab = tgt_vocab, .shared = shared };
    if (take(l, data, message)) return l;
    wf_shortlist_free(l);
    return NULL;
}

void wf_shortlist_free(wf_shortlist *l) {
    if (!l) return;
    free(l->offsets);
    free(l->ids);
    free(l);
}

/* ---- candidates ------------------------------------------------------------------------------ */

bool wf_shortlist_fits(const wf_shortlist *l, const wf_model *m) {
    return l->src_vocab == m->src_vocab && l->tgt_vocab == m->tgt_vocab;
}

/* Marks the candidates for one token of a source. */
static void mark_token(const wf_shortlist *l, int32_t token, bool *chosen) {
    if (l->shared && token < l->tgt_vocab) chosen[token] = true;
    for (int64_t i = token < l->words ? l->offsets[token] : 0;
         token < l->words && i < l->offsets[token + 1]; i++)
        chosen[l->ids[i]] = true;
}

/* Marks further frequent tokens until the number of marks is a multiple of eight. */
static void fill_up(const wf_shortlist *l, bool *chosen) {
    int64_t n = 0;
    for (int64_t id = 0; id < l->tgt_vocab; id++) n += chosen[id];
    for (int64_t id = l->first; id < l->tgt_vocab && n % GROUP; id++) {
        n += !chosen[id];
        chosen[id] = true;
    }
}

static int64_t list_chosen(const wf_shortlist *l, const bool *chosen, int32_t *ids,
                           int64_t capacity) {
    int64_t n = 0;
    for (int64_t id = 0; id < l->tgt_vocab; id++) {
        if (!chosen[id]) continue;
        if (n < capacity) ids[n] = (int32_t)id;
        n++;
    }
    return n;
}

int64_t wf_shortlist_candidates(const wf_shortlist *l, const int32_t *src, int64_t n, int32_t *ids,
                                int64_t capacity) {
    if (!l || n < 0 || (n > 0 && !src) || (capacity > 0 && !ids)) return -1;
    for (int64_t i = 0; i < n; i++)
        if (src[i] < 0 || src[i] >= l->src_vocab) return -1;
    bool *chosen = calloc((size_t)l->tgt_vocab, sizeof *chosen);
    if (!chosen) return -1;
    for (int64_t id = 0; id < l->first; id++) chosen[id] = true;
    for (int64_t i = 0; i < n; i++) mark_token(l, src[i], chosen);
    fill_up(l, chosen);
    int64_t count = list_chosen(l, chosen, ids, capacity);
    free(chosen);
    return count;
}
