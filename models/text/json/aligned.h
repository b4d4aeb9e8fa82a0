/* models/text/json/aligned.h - inside models: text that remembers which bytes of the original text
 * it came from, as Hugging Face's tokenizers library keeps it.
 *
 * A piece is a part of one buffer. Each byte of the buffer has a place: the bytes of the original
 * that it stands for. Cutting a piece copies nothing. A change of a piece appends the new text to
 * the buffer; the old text stays until the next line. */
#ifndef WEFT_MODELS_TEXT_ALIGNED_H
#define WEFT_MODELS_TEXT_ALIGNED_H

#include "models/text/expressions/expression.h"

typedef struct wf_place {
    uint32_t from, to;
} wf_place;

typedef struct wf_piece {
    size_t begin, bytes; /* in the buffer */
    uint32_t from, to;   /* in the original text */
    int32_t id;          /* of an added token; -1: text */
} wf_piece;

typedef struct wf_pieces_list {
    wf_piece *at;
    size_t n, capacity;
} wf_pieces_list;

/* One character of the new text. change 0: it replaces the next character of the old text. 1: it is
 * inserted, and gets the place of the old character before it. -n: as 0, but n more old characters
 * are removed. */
typedef struct wf_change {
    uint32_t code;
    int32_t change;
} wf_change;

typedef struct wf_aligned {
    char *text;
    wf_place *places;
    size_t used, text_capacity, places_capacity;
    size_t most; /* bytes that the buffer may have for this line */
    wf_pieces_list pieces, next;
    wf_change *changes;
    size_t n_changes, changes_capacity;
    char *message;
} wf_aligned;

/* Begins with a line, which must be UTF-8, as one piece. False with message. */
bool wf_aligned_begin(wf_aligned *a, const char *line, size_t bytes, char *message);
void wf_aligned_free(wf_aligned *a);

static inline wf_span piece_text(const wf_aligned *a, const wf_piece *p) {
    return (wf_span){ a->text + p->begin, p->bytes };
}

/* The part [begin, end) of a piece, in bytes from its start. */
wf_piece wf_piece_cut(const wf_aligned *a, const wf_piece *p, size_t begin, size_t end);
/* Appends a piece to the next list, unless it is empty. False: out of memory. */
bool wf_piece_keep(wf_aligned *a, wf_piece p);
/* Makes the list `next` the list `pieces`, and empties `next`. */
void wf_pieces_swap(wf_aligned *a);

/* wf_change_add collects the changes of a piece, character by character. wf_change_all makes
 * them. */
void wf_change_begin(wf_aligned *a);
bool wf_change_add(wf_aligned *a, uint32_t code, int32_t change);
/* Makes the collected changes. The first `dropped` characters of the old text are removed. */
bool wf_change_all(wf_aligned *a, wf_piece *p, size_t dropped);
/* True if wf_change_all would replace all bytes of the piece. Then a piece of which no character
 * changes can be left as it is. If false, it must be changed even so: wf_change_all would keep
 * bytes at its ends that stand for no part of the original. */
bool wf_piece_whole(const wf_aligned *a, const wf_piece *p);
/* Puts text before a piece, which must not be empty. False with message. */
bool wf_piece_prepend(wf_aligned *a, wf_piece *p, wf_span text);
/* Replaces each match of e by the text `by`. False with message. */
bool wf_piece_replace(wf_aligned *a, wf_piece *p, wf_expression *e, wf_span by);

bool wf_match_refused(wf_match_result result, char *message); /* false, with message */

#endif
