/* tools/alignment/links.c - reads and keeps given alignments. See links.h. */
#include "links.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "tools/cli/refused.h"

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads a position at *at. -1: there is none. */
static int64_t read_position(const char *line, size_t bytes, size_t *at) {
    enum { DIGITS = 7 };
    size_t from = *at;
    int64_t value = 0;
    while (*at < bytes && *at < from + DIGITS && line[*at] >= '0' && line[*at] <= '9') {
        value = 10 * value + (line[*at] - '0');
        ++*at;
    }
    return *at > from ? value : -1;
}

static bool is_space(const char *line, size_t bytes, size_t at) {
    return at < bytes && (line[at] == ' ' || line[at] == '\t');
}

/* Reads one link at *at, up to the space behind it. */
static bool read_link(const char *line, size_t bytes, size_t *at, int64_t place[2]) {
    place[0] = read_position(line, bytes, at);
    if (place[0] < 0 || *at == bytes || line[*at] != '-') return false;
    ++*at;
    place[1] = read_position(line, bytes, at);
    return place[1] >= 0 && (*at == bytes || is_space(line, bytes, *at));
}

/* Writes the message about a text that is no link, with its beginning. Returns false. */
static bool is_no_link(const char *text, size_t bytes, char *message) {
    char shown[21];
    size_t n = bytes < sizeof shown - 1 ? bytes : sizeof shown - 1;
    for (size_t i = 0; i < n; i++)
        shown[i] = (char)(text[i] < 0x20 || text[i] > 0x7E ? '?' : text[i]);
    shown[n] = '\0';
    return refused(message, "'%s' does not begin with a link such as 0-1", shown);
}

static bool is_outside(const int64_t place[2], const int64_t words[2], char *message) {
    static const char *const sides[] = { "source", "target" };
    for (int i = 0; i < 2; i++) {
        if (place[i] < words[i]) continue;
        return !refused(message, "%lld-%lld: the %s has %lld words, which count from 0",
                        (long long)place[0], (long long)place[1], sides[i], (long long)words[i]);
    }
    return false;
}

bool links_read(pair_links *l, const char *line, size_t bytes, const int64_t words[2],
                char *message) {
    l->n = 0;
    for (size_t at = 0; at < bytes;) {
        int64_t place[2];
        size_t from = at;
        if (is_space(line, bytes, at)) {
            at++;
            continue;
        }
        if (!read_link(line, bytes, &at, place))
            return is_no_link(line + from, bytes - from, message);
        if (is_outside(place, words, message)) return false;
        if (!wf_grow(&l->list, &l->room, (size_t)l->n + 1, sizeof *l->list))
            return refused(message, "out of memory");
        l->list[l->n++] = (pair_link){ (int32_t)place[0], (int32_t)place[1] };
    }
    return true;
}

void links_free(pair_links *l) {
    free(l->list);
    *l = (pair_links){ 0 };
}

/* ---- many pairs ------------------------------------------------------------------------------ */

typedef struct token_link {
    uint16_t src, tgt;
} token_link;

void link_store_new(link_store *s, size_t in_memory) {
    *s = (link_store){ .pairs = 0 };
    store_new(&s->links, in_memory);
    store_new(&s->ends, in_memory);
}

void link_store_free(link_store *s) {
    store_free(&s->links);
    store_free(&s->ends);
    *s = (link_store){ 0 };
}

/* Appends the links of a source's token to the tokens of a target's word. */
static bool add_token(link_store *s, int32_t src, int32_t tgt_word, const int32_t *word,
                      int32_t length, char *message) {
    for (int32_t t = 0; t < length; t++) {
        if (word[t] != tgt_word) continue;
        const token_link link = { (uint16_t)src, (uint16_t)t };
        if (!store_append(&s->links, &link, sizeof link, message)) return false;
        s->n++;
    }
    return true;
}

bool link_store_add(link_store *s, const pair_links *l, const int32_t *const word[2],
                    const int32_t length[2], char *message) {
    assert(length[0] <= UINT16_MAX && length[1] <= UINT16_MAX);
    for (int64_t i = 0; i < l->n; i++)
        for (int32_t k = 0; k < length[0]; k++)
            if (word[0][k] == l->list[i].src &&
                !add_token(s, k, l->list[i].tgt, word[1], length[1], message))
                return false;
    s->pairs++;
    return store_append(&s->ends, &s->n, sizeof s->n, message);
}

bool link_store_seal(link_store *s, char *message) {
    return store_seal(&s->links, message) && store_seal(&s->ends, message);
}

void link_store_cells(const link_store *s, int64_t pair, int64_t S, int32_t *cells) {
    assert(pair >= 0 && pair < s->pairs);
    const int64_t *ends = (const int64_t *)(const void *)s->ends.data;
    const token_link *links = (const token_link *)(const void *)s->links.data;
    for (int64_t i = pair ? ends[pair - 1] : 0; i < ends[pair]; i++)
        cells[links[i].tgt * S + links[i].src] = 1;
}
