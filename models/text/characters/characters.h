/* models/text/characters/characters.h - inside models: Unicode data for tokenizer.json and for the
 * cuts of byte-level tokenizers, each table as Hugging Face's tokenizers library 0.23.3 has it.
 * characters.py prints them, and says which version each is. */
#ifndef WEFT_MODELS_TEXT_CHARACTERS_H
#define WEFT_MODELS_TEXT_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAST_CODE_POINT = 0x10FFFF };

/* General categories of Unicode 16.0, as regular expressions see them. */
typedef enum {
    CATEGORY_CN,
    CATEGORY_CC,
    CATEGORY_CF,
    CATEGORY_CO,
    CATEGORY_CS,
    CATEGORY_LU,
    CATEGORY_LL,
    CATEGORY_LT,
    CATEGORY_LM,
    CATEGORY_LO,
    CATEGORY_MN,
    CATEGORY_MC,
    CATEGORY_ME,
    CATEGORY_ND,
    CATEGORY_NL,
    CATEGORY_NO,
    CATEGORY_PC,
    CATEGORY_PD,
    CATEGORY_PS,
    CATEGORY_PE,
    CATEGORY_PI,
    CATEGORY_PF,
    CATEGORY_PO,
    CATEGORY_SM,
    CATEGORY_SC,
    CATEGORY_SK,
    CATEGORY_SO,
    CATEGORY_ZS,
    CATEGORY_ZL,
    CATEGORY_ZP
} wf_category;

/* Properties that Hugging Face's tokenizers library takes from other tables than general
 * categories. */
typedef enum {
    IS_PUNCTUATION = 1, /* punctuation of ASCII, or general category P */
    IS_NUMBER = 2,
    IS_WORD = 4,     /* \w for added tokens and for the pre-tokenizer Whitespace */
    IS_ACCENT = 8,   /* what BERT strips: category Mn */
    IS_MARK = 16,    /* what StripAccents strips: category M */
    IS_CONTROL = 32, /* what BERT cleans away: Cc, Cf, Co, without \t \n \r */
    IS_IN_WORD = 64  /* \w in expressions of a tokenizer.json */
} wf_character_flag;

/* A table of values by code point. Each element is the code point at which a new value begins, plus
 * that value * 2^21; code points ascend. */
typedef struct wf_character_table {
    const uint32_t *at;
    size_t n;
} wf_character_table;

/* wf_cuts: classes of scripts of the pre-tokenizer UnicodeScripts; 0: none. */
extern const wf_character_table wf_categories, wf_flags, wf_scripts, wf_cuts;
/* Grapheme cluster break classes in the order of characters.py, plus 16 times the Indic conjunct
 * break class, from U+0020 on. */
extern const wf_character_table wf_breaks;

enum { CODE_BITS = 21, CODE_MASK = (1 << CODE_BITS) - 1 };

/* The value of a code point. */
uint32_t wf_table_value(const wf_character_table *t, uint32_t code);

static inline bool wf_has_flag(uint32_t code, wf_character_flag flag) {
    return (wf_table_value(&wf_flags, code) & (uint32_t)flag) != 0;
}

/* The property White_Space. */
bool wf_is_space(uint32_t code);
/* Lower case of Unicode 17.0. *second is another code point after it, or 0. */
uint32_t wf_lower_case(uint32_t code, uint32_t *second);
/* The lowest code point above `after`, other than `code`, whose lower case is `code`; 0: none. */
uint32_t wf_upper_case(uint32_t code, uint32_t after);

/* ---- normal forms of Unicode 9.0 ------------------------------------------------------------- */

enum { MOST_DECOMPOSED = 32 };
unsigned wf_combining_class(uint32_t code);
/* Writes the whole decomposition, at most MOST_DECOMPOSED code points; returns how many. */
size_t wf_decomposition(uint32_t code, bool compatible, uint32_t *out);
/* The composition of two code points; 0: there is none. */
uint32_t wf_composition(uint32_t first, uint32_t second);
/* The table that wf_composition searches: rows of two code points and their composition, in
 * ascending order. Hangul is computed and has no rows. */
const uint32_t (*wf_compositions(size_t *n))[3];

/* ---- grapheme clusters ----------------------------------------------------------------------- */

/* The length of the extended grapheme cluster (UAX #29) with which a text of n > 0 bytes of UTF-8
 * begins. */
size_t wf_cluster(const char *text, size_t n);

#endif
