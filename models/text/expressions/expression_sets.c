/* models/text/expressions/expression_sets.c - sets of code points for regular expressions; see
 * expression.h. */
#include <stdlib.h>

#include "expression.h"
#include "models/text/characters/characters.h"

enum { WORDS = 0x10000 / 32 };

bool wf_set_new(wf_code_set *s) {
    *s = (wf_code_set){ .bits = calloc(WORDS, sizeof *s->bits) };
    return s->bits != NULL;
}

void wf_set_free(wf_code_set *s) {
    free(s->bits), free(s->ranges);
    *s = (wf_code_set){ 0 };
}

static int by_first(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the ranges and joins those that touch. */
static void tidy(wf_code_set *s) {
    size_t n = 0;
    if (s->n_ranges) qsort(s->ranges, s->n_ranges / 2, 2 * sizeof *s->ranges, by_first);
    for (size_t i = 0; i < s->n_ranges; i += 2) {
        if (n && s->ranges[i] <= s->ranges[n - 1] + 1) {
            if (s->ranges[i + 1] > s->ranges[n - 1]) s->ranges[n - 1] = s->ranges[i + 1];
            continue;
        }
        s->ranges[n] = s->ranges[i];
        s->ranges[n + 1] = s->ranges[i + 1];
        n += 2;
    }
    s->n_ranges = n;
}

static bool add_above(wf_code_set *s, uint32_t first, uint32_t last) {
    if (!wf_grow(&s->ranges, &s->capacity, s->n_ranges + 2, sizeof *s->ranges)) return false;
    s->ranges[s->n_ranges++] = first;
    s->ranges[s->n_ranges++] = last;
    return true;
}

bool wf_set_add(wf_code_set *s, uint32_t first, uint32_t last) {
    for (uint32_t c = first; c <= last && c < 0x10000; c++) s->bits[c >> 5] |= 1u << (c & 31);
    if (last < 0x10000) return true;
    bool ok = add_above(s, first < 0x10000 ? 0x10000 : first, last);
    size_t n = s->n_ranges;
    if (ok && n > 2 && s->ranges[n - 2] <= s->ranges[n - 3] + 1) tidy(s);
    return ok;
}

/* The inverse of a set may have surrogates, which makes no difference, because no text has them. */
bool wf_set_invert(wf_code_set *s) {
    wf_code_set old = *s;
    uint32_t from = 0x10000;
    bool ok = true;
    for (size_t i = 0; i < WORDS; i++) s->bits[i] = ~s->bits[i];
    *s = (wf_code_set){ .bits = old.bits };
    for (size_t i = 0; ok && i < old.n_ranges; i += 2) {
        if (old.ranges[i] > from) ok = add_above(s, from, old.ranges[i] - 1);
        from = old.ranges[i + 1] + 1;
    }
    if (ok && from <= LAST_CODE_POINT) ok = add_above(s, from, LAST_CODE_POINT);
    free(old.ranges);
    return ok;
}

bool wf_set_join(wf_code_set *s, const wf_code_set *with) {
    bool ok = true;
    for (size_t i = 0; i < WORDS; i++) s->bits[i] |= with->bits[i];
    for (size_t i = 0; ok && i < with->n_ranges; i += 2)
        ok = add_above(s, with->ranges[i], with->ranges[i + 1]);
    tidy(s);
    return ok;
}

/* The intersection of two sets is the complement of the union of their complements. */
bool wf_set_meet(wf_code_set *s, const wf_code_set *with) {
    wf_code_set other;
    if (!wf_set_new(&other)) return false;
    bool ok = wf_set_join(&other, with) && wf_set_invert(&other) && wf_set_invert(s) &&
              wf_set_join(s, &other) && wf_set_invert(s);
    wf_set_free(&other);
    return ok;
}

static bool fold_one(wf_code_set *s, uint32_t c) {
    uint32_t second, lower = wf_lower_case(c, &second);
    if (second) return true;
    bool ok = wf_set_add(s, lower, lower);
    if (lower == 's') ok = ok && wf_set_add(s, 0x17F, 0x17F);
    for (uint32_t upper = 0; ok && (upper = wf_upper_case(lower, upper));)
        ok = wf_set_add(s, upper, upper);
    return ok;
}

bool wf_set_fold(wf_code_set *s) {
    for (uint32_t c = 0; c < 0x80; c++)
        if (set_has(s, c) && !fold_one(s, c)) return false;
    return true;
}

/* ---- properties ------------------------------------------------------------------------------ */

/* Adds the code points whose value in a table is from low to high. */
static bool add_table(wf_code_set *s, const wf_character_table *t, uint32_t low, uint32_t high) {
    for (size_t i = 0; i < t->n; i++) {
        uint32_t value = t->at[i] >> CODE_BITS;
        uint32_t last = i + 1 < t->n ? (t->at[i + 1] & CODE_MASK) - 1 : LAST_CODE_POINT;
        if (value >= low && value <= high && !wf_set_add(s, t->at[i] & CODE_MASK, last))
            return false;
    }
    return true;
}

static const struct {
    const char *name;
    wf_category first, last;
} categories[] = {
    { "L", CATEGORY_LU, CATEGORY_LO },  { "Letter", CATEGORY_LU, CATEGORY_LO },
    { "M", CATEGORY_MN, CATEGORY_ME },  { "Mark", CATEGORY_MN, CATEGORY_ME },
    { "N", CATEGORY_ND, CATEGORY_NO },  { "Number", CATEGORY_ND, CATEGORY_NO },
    { "P", CATEGORY_PC, CATEGORY_PO },  { "Punctuation", CATEGORY_PC, CATEGORY_PO },
    { "S", CATEGORY_SM, CATEGORY_SO },  { "Symbol", CATEGORY_SM, CATEGORY_SO },
    { "Z", CATEGORY_ZS, CATEGORY_ZP },  { "Separator", CATEGORY_ZS, CATEGORY_ZP },
    { "C", CATEGORY_CN, CATEGORY_CS },  { "Other", CATEGORY_CN, CATEGORY_CS },
    { "Cc", CATEGORY_CC, CATEGORY_CC }, { "Cf", CATEGORY_CF, CATEGORY_CF },
    { "Cn", CATEGORY_CN, CATEGORY_CN }, { "Co", CATEGORY_CO, CATEGORY_CO },
    { "Lu", CATEGORY_LU, CATEGORY_LU }, { "Ll", CATEGORY_LL, CATEGORY_LL },
    { "Lt", CATEGORY_LT, CATEGORY_LT }, { "Lm", CATEGORY_LM, CATEGORY_LM },
    { "Lo", CATEGORY_LO, CATEGORY_LO }, { "Mn", CATEGORY_MN, CATEGORY_MN },
    { "Mc", CATEGORY_MC, CATEGORY_MC }, { "Me", CATEGORY_ME, CATEGORY_ME },
    { "Nd", CATEGORY_ND, CATEGORY_ND }, { "Nl", CATEGORY_NL, CATEGORY_NL },
    { "No", CATEGORY_NO, CATEGORY_NO }, { "Pc", CATEGORY_PC, CATEGORY_PC },
    { "Pd", CATEGORY_PD, CATEGORY_PD }, { "Ps", CATEGORY_PS, CATEGORY_PS },
    { "Pe", CATEGORY_PE, CATEGORY_PE }, { "Pi", CATEGORY_PI, CATEGORY_PI },
    { "Pf", CATEGORY_PF, CATEGORY_PF }, { "Po", CATEGORY_PO, CATEGORY_PO },
    { "Sm", CATEGORY_SM, CATEGORY_SM }, { "Sc", CATEGORY_SC, CATEGORY_SC },
    { "Sk", CATEGORY_SK, CATEGORY_SK }, { "So", CATEGORY_SO, CATEGORY_SO },
    { "Zs", CATEGORY_ZS, CATEGORY_ZS }, { "Zl", CATEGORY_ZL, CATEGORY_ZL },
    { "Zp", CATEGORY_ZP, CATEGORY_ZP },
};

/* In the order of characters.py. */
static const char *const scripts[] = { "Latin",    "Greek",      "Cyrillic", "Armenian", "Hebrew",
                                       "Arabic",   "Devanagari", "Thai",     "Hangul",   "Hiragana",
                                       "Katakana", "Han",        "Common",   "Inherited" };

static bool is_name(wf_span s, const char *name) {
    for (; s.bytes && *name; s.text++, s.bytes--, name++)
        if ((*s.text | 32) != (*name | 32)) return false;
    return !s.bytes && !*name;
}

bool wf_set_property(wf_code_set *s, wf_span name, bool *known) {
    *known = true;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (is_name(name, categories[i].name))
            return add_table(s, &wf_categories, categories[i].first, categories[i].last);
    for (uint32_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (is_name(name, scripts[i])) return add_table(s, &wf_scripts, i + 1, i + 1);
    *known = false;
    return false;
}

bool wf_set_word(wf_code_set *s, bool in_class) {
    static const uint32_t numbers[] = { 0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE };
    for (size_t i = 0; i < wf_flags.n; i++) {
        uint32_t last = i + 1 < wf_flags.n ? (wf_flags.at[i + 1] & CODE_MASK) - 1 : LAST_CODE_POINT;
        if ((wf_flags.at[i] >> CODE_BITS & IS_IN_WORD) &&
            !wf_set_add(s, wf_flags.at[i] & CODE_MASK, last))
            return false;
    }
    for (size_t i = 0; in_class && i < sizeof numbers / sizeof *numbers; i++)
        s->bits[numbers[i] >> 5] &= ~(1u << (numbers[i] & 31));
    return true;
}

bool wf_set_space(wf_code_set *s) {
    for (uint32_t c = 0; c <= 0x3000; c++)
        if (wf_is_space(c) && !wf_set_add(s, c, c)) return false;
    return true;
}
