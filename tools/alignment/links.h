/* tools/alignment/links.h - given alignments: which words of a target came from which words of its
 * source, and the same for their tokens.
 *
 * A line in Pharaoh's format has links "s-t", separated by spaces: the target's word t came from
 * the source's word s. Both count from 0. A line may be empty. Every `message` has room for 256
 * bytes. */
#ifndef WEFT_TOOLS_ALIGNMENT_LINKS_H
#define WEFT_TOOLS_ALIGNMENT_LINKS_H

#include <stdint.h>

#include "tools/data/store.h"

/* key in a model's metadata: its value is the number of the cross-attention head trained to
 * align */
#define ALIGNMENT_HEAD "generate.alignment-head"

/* Positions in a source and in its target, from 0. */
typedef struct pair_link {
    int32_t src, tgt;
} pair_link;

typedef struct pair_links {
    pair_link *list; /* [n] */
    int64_t n;
    size_t room;
} pair_links;

/* Read a line, whose positions must be below words[0] and words[1]. False with message. */
bool links_read(pair_links *l, const char *line, size_t bytes, const int64_t words[2],
                char *message);
void links_free(pair_links *l);

/* Links of the tokens of many pairs, which may be more than fit in memory: four bytes a link, and
 * eight a pair. Positions of tokens are below 65536. */
typedef struct link_store {
    store links, ends;
    int64_t pairs, n; /* pairs so far; links of all of them */
} link_store;

void link_store_new(link_store *s, size_t in_memory);
void link_store_free(link_store *s); /* does nothing for a store of zeros */
/* Append a pair. A link of two words becomes links from each token of the one to each token of the
 * other. word[i] [length[i]] are the words of the tokens of side i; NO_WORD: the token has none. */
bool link_store_add(link_store *s, const pair_links *l, const int32_t *const word[2],
                    const int32_t length[2], char *message);
bool link_store_seal(link_store *s, char *message);
/* Write 1 to cells [T,S], which are zeros, for each link of a pair. */
void link_store_cells(const link_store *s, int64_t pair, int64_t S, int32_t *cells);

#endif
