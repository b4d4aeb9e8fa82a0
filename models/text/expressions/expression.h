/* models/text/expressions/expression.h - inside models: regular expressions as tokenizer.json has
 * them, in the syntax of Oniguruma (Ruby).
 *
 * Supported are literals, ".", classes with ranges, negation and "&&", \s \S \d \D \w \W \h \H and
 * \p{..} of general categories and some scripts; groups, the options i and m, as (?i:..) or (?i),
 * alternatives in their order, greedy, lazy and possessive repeats, atomic groups, look-ahead,
 * look-behind of one character, and ^ $ \A \z \Z \b \B. Anything else is an error when the
 * expression is compiled, such as back-references, recursion, absent operators, unbounded repeats
 * of a part that may be empty, and, where case is ignored, letters beyond ASCII.
 *
 * Matching backtracks, with a stack of its own: it never recurses. Its steps are limited by the
 * length of the text, so a hostile expression ends in an error. */
#ifndef WEFT_MODELS_TEXT_EXPRESSION_H
#define WEFT_MODELS_TEXT_EXPRESSION_H

#include "models/text/tokenizer.h"

/* A set of code points: a bit for each of the first 65,536, and ranges above. */
typedef struct wf_code_set {
    uint32_t *bits;   /* [2048] */
    uint32_t *ranges; /* [n_ranges] first and last, in ascending order, from 0x10000 on */
    size_t n_ranges, capacity;
} wf_code_set;

typedef enum {
    OP_MATCH,  /* the end */
    OP_TEXT,   /* the bytes [a, a + b) of `literals` */
    OP_SET,    /* a character of set a */
    OP_REPEAT, /* from `least` to `most` characters of set a; b is a wf_greed */
    OP_SPLIT,  /* goes on at a, or if that fails at b; `first`: bytes with which a may begin;
                * `least` 1: a may also match at the end of the text */
    OP_JUMP,   /* to a */
    OP_AHEAD,  /* the operations up to OP_END must match, or must not if b; a: after OP_END */
    OP_BEHIND, /* the character before is in set a; if b: is not, or there is none */
    OP_ATOMIC, /* as OP_AHEAD, but the position moves past the match */
    OP_END,    /* the end of OP_AHEAD or OP_ATOMIC */
    OP_LINE_START,
    OP_LINE_END,
    OP_START,
    OP_STOP,     /* \z: the end of the text. If b, \Z: only the place before the line break that
                  * ends the text, or the end if no line break is there */
    OP_WORD_EDGE /* a word begins or ends here; if b: none does; a: the set of word characters */
} wf_op_kind;

typedef enum { GREEDY, LAZY, POSSESSIVE } wf_greed;
#define WF_ENDLESS UINT32_MAX

typedef struct wf_instruction {
    wf_op_kind op;
    uint32_t a, b, least, most;
    uint32_t first[8]; /* OP_SPLIT */
} wf_instruction;

typedef struct wf_choice wf_choice;
typedef struct wf_expression {
    wf_instruction *code;
    size_t n, capacity;
    wf_code_set *sets;
    size_t n_sets, sets_capacity;
    char *literals;
    size_t n_literals, literals_capacity;
    uint32_t first[8]; /* set of 256 bits: the bytes with which a match may begin */
    bool plain;        /* the expression is one literal */
    bool nullable;     /* a match may be empty */
    wf_choice *stack;
    size_t stack_capacity;
} wf_expression;

/* Compiles a pattern. False with message. The caller frees the expression in either case. */
bool wf_expression_compile(wf_expression *e, wf_span pattern, char *message);
/* Makes the expression that matches this text and nothing else. */
bool wf_expression_literal(wf_expression *e, wf_span text, char *message);
void wf_expression_free(wf_expression *e);

typedef enum { NO_MATCH, A_MATCH, NO_STEPS, NO_MEMORY } wf_match_result;

/* A search through one text, from match to match. */
typedef struct wf_search {
    wf_expression *e;
    wf_span text;
    size_t at, last_end;
    bool matched;
    int64_t steps; /* that are left */
} wf_search;

wf_search wf_search_begin(wf_expression *e, wf_span text);
/* The next match. An empty match directly after the last match is skipped. */
wf_match_result wf_search_next(wf_search *s, size_t *begin, size_t *end);

/* ---- sets: expression_sets.c ----------------------------------------------------------------- */

static inline bool set_has(const wf_code_set *s, uint32_t code) {
    if (code < 0x10000) return s->bits[code >> 5] >> (code & 31) & 1;
    for (size_t low = 0, high = s->n_ranges / 2; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (code < s->ranges[2 * middle])
            high = middle;
        else if (code > s->ranges[2 * middle + 1])
            low = middle + 1;
        else
            return true;
    }
    return false;
}

bool wf_set_new(wf_code_set *s); /* an empty set; false: out of memory */
void wf_set_free(wf_code_set *s);
bool wf_set_add(wf_code_set *s, uint32_t first, uint32_t last);
bool wf_set_invert(wf_code_set *s);
bool wf_set_join(wf_code_set *s, const wf_code_set *with);
bool wf_set_meet(wf_code_set *s, const wf_code_set *with);
/* Adds the other cases of the set's ASCII letters. */
bool wf_set_fold(wf_code_set *s);
/* Adds a property such as "L", "Lu" or "Han". False: the name is unknown (*known false), or out of
 * memory. */
bool wf_set_property(wf_code_set *s, wf_span name, bool *known);
/* Adds \w. As in Oniguruma, six numbers of Latin-1 such as U+00BD belong to it only outside of a
 * class. */
bool wf_set_word(wf_code_set *s, bool in_class);
bool wf_set_space(wf_code_set *s);

#endif
