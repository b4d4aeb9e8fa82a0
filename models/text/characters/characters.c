/* models/text/characters/characters.c - Unicode data; see characters.h. */
#include "characters.h"

#include "core/base/utf8.h"

static const uint32_t category_rows[] = {
#include "characters_category.inc"
};
static const uint32_t flag_rows[] = {
#include "characters_flags.inc"
};
static const uint32_t script_rows[] = {
#include "characters_scripts.inc"
};
static const uint32_t cut_rows[] = {
#include "characters_cuts.inc"
};
static const uint32_t class_rows[] = {
#include "characters_classes.inc"
};
static const uint32_t break_rows[] = {
#include "characters_breaks.inc"
};
static const struct {
    uint32_t first, last, step;
    int32_t distance;
} lower_rows[] = {
#include "characters_lower.inc"
};
static const uint32_t decompose_rows[][2] = {
#include "characters_decompose.inc"
};
static const uint32_t pool[] = {
#include "characters_pool.inc"
};
static const uint32_t compose_rows[][3] = {
#include "characters_compose.inc"
};

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
const wf_character_table wf_categories = { category_rows, COUNT(category_rows) };
const wf_character_table wf_flags = { flag_rows, COUNT(flag_rows) };
const wf_character_table wf_scripts = { script_rows, COUNT(script_rows) };
const wf_character_table wf_cuts = { cut_rows, COUNT(cut_rows) };
static const wf_character_table classes = { class_rows, COUNT(class_rows) };
const wf_character_table wf_breaks = { break_rows, COUNT(break_rows) };

uint32_t wf_table_value(const wf_character_table *t, uint32_t code) {
    size_t low = 0, high = t->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if ((t->at[middle] & CODE_MASK) <= code)
            low = middle;
        else
            high = middle;
    }
    return t->at[low] >> CODE_BITS;
}

bool wf_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* ---- case ------------------------------------------------------------------------------------ */

uint32_t wf_lower_case(uint32_t c, uint32_t *second) {
    size_t low = 0, high = COUNT(lower_rows);
    *second = c == 0x130 ? 0x307 : 0;
    if (c == 0x130) return 'i';
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (lower_rows[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    if (c < lower_rows[low].first || c > lower_rows[low].last) return c;
    if ((c - lower_rows[low].first) % lower_rows[low].step) return c;
    return c + (uint32_t)lower_rows[low].distance;
}

uint32_t wf_upper_case(uint32_t code, uint32_t after) {
    uint32_t best = 0;
    for (size_t i = 0; i < COUNT(lower_rows); i++) {
        uint32_t c = code - (uint32_t)lower_rows[i].distance;
        if (c <= after || c < lower_rows[i].first || c > lower_rows[i].last) continue;
        if ((c - lower_rows[i].first) % lower_rows[i].step == 0 && (!best || c < best)) best = c;
    }
    return best;
}

/* ---- normal forms ---------------------------------------------------------------------------- */

/* Hangul syllables are computed (Unicode, section 3.12). */
enum {
    HANGUL = 0xAC00,
    LEADING = 0x1100,
    VOWEL = 0x1161,
    TRAILING = 0x11A7,
    LEADINGS = 19,
    VOWELS = 21,
    TRAILINGS = 28,
    SYLLABLES = LEADINGS * VOWELS * TRAILINGS
};

unsigned wf_combining_class(uint32_t c) {
    return c < 0x300 ? 0 : wf_table_value(&classes, c);
}

static size_t hangul(uint32_t c, uint32_t *out) {
    c -= HANGUL;
    out[0] = LEADING + c / (VOWELS * TRAILINGS);
    out[1] = VOWEL + c / TRAILINGS % VOWELS;
    out[2] = TRAILING + c % TRAILINGS;
    return c % TRAILINGS ? 3 : 2;
}

/* The row with this key: a code point, and bit 31 for its compatible decomposition. NULL: none. */
static const uint32_t *decompose_row(uint32_t key) {
    size_t low = 0, high = COUNT(decompose_rows);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t c = decompose_rows[middle][0];
        if (c == key) return decompose_rows[middle];
        /* of two rows of one code point, the canonical decomposition is first */
        uint64_t order = (uint64_t)(c & CODE_MASK) << 1 | c >> 31;
        if (order < ((uint64_t)(key & CODE_MASK) << 1 | key >> 31))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

size_t wf_decomposition(uint32_t c, bool compatible, uint32_t *out) {
    *out = c;
    if (c < 0xA0) return 1;
    if (c >= HANGUL && c < HANGUL + SYLLABLES) return hangul(c, out);
    const uint32_t *row = compatible ? decompose_row(c | 1u << 31) : NULL;
    if (!row) row = decompose_row(c);
    if (!row) return 1;
    size_t at = row[1] & 0xFFFF, n = row[1] >> 16;
    for (size_t i = 0; i < n; i++) out[i] = pool[at + i];
    return n;
}

uint32_t wf_composition(uint32_t a, uint32_t b) {
    if (a >= LEADING && a < LEADING + LEADINGS && b >= VOWEL && b < VOWEL + VOWELS)
        return HANGUL + ((a - LEADING) * VOWELS + (b - VOWEL)) * TRAILINGS;
    if (a >= HANGUL && a < HANGUL + SYLLABLES && (a - HANGUL) % TRAILINGS == 0 && b > TRAILING &&
        b < TRAILING + TRAILINGS)
        return a + (b - TRAILING);
    size_t low = 0, high = COUNT(compose_rows);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const uint32_t *row = compose_rows[middle];
        if (row[0] == a && row[1] == b) return row[2];
        if (row[0] < a || (row[0] == a && row[1] < b))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

const uint32_t (*wf_compositions(size_t *n))[3] {
    *n = COUNT(compose_rows);
    return compose_rows;
}

/* ---- grapheme clusters ----------------------------------------------------------------------- */

/* In the order of characters.py. */
enum {
    BREAK_OTHER,
    BREAK_CR,
    BREAK_LF,
    BREAK_CONTROL,
    BREAK_EXTEND,
    BREAK_ZWJ,
    BREAK_REGIONAL,
    BREAK_PREPEND,
    BREAK_SPACING,
    BREAK_L,
    BREAK_V,
    BREAK_T,
    BREAK_LV,
    BREAK_LVT,
    BREAK_PICTURE,
    CONJUNCT_LINKER = 1,
    CONJUNCT_CONSONANT,
    CONJUNCT_EXTEND
};

/* The state of a cluster after its last character. */
typedef struct cluster {
    uint32_t last;    /* class of its last character */
    uint32_t regions; /* how many regional indicators it ends with */
    bool picture;     /* it ends in a pictograph, perhaps with extending characters and joiners */
    bool linked;      /* `consonant` is true, and a linker follows the consonant */
    bool consonant;   /* it ends in a consonant, perhaps with linkers and extending characters */
} cluster;

static bool joins_hangul(uint32_t a, uint32_t b) {
    if (a == BREAK_L) return b == BREAK_L || b == BREAK_V || b == BREAK_LV || b == BREAK_LVT;
    if (a == BREAK_LV || a == BREAK_V) return b == BREAK_V || b == BREAK_T;
    return (a == BREAK_LVT || a == BREAK_T) && b == BREAK_T;
}

/* Rules GB3 to GB13. */
static bool joins(const cluster *c, uint32_t class, uint32_t conjunct) {
    if (c->last == BREAK_CR && class == BREAK_LF) return true;
    if (c->last >= BREAK_CR && c->last <= BREAK_CONTROL) return false;
    if (class >= BREAK_CR && class <= BREAK_CONTROL) return false;
    if (class == BREAK_EXTEND || class == BREAK_ZWJ || class == BREAK_SPACING) return true;
    if (c->last == BREAK_PREPEND || joins_hangul(c->last, class)) return true;
    if (c->linked && conjunct == CONJUNCT_CONSONANT) return true;
    if (c->last == BREAK_ZWJ && c->picture && class == BREAK_PICTURE) return true;
    return c->last == BREAK_REGIONAL && class == BREAK_REGIONAL && c->regions % 2;
}

static void extend(cluster *c, uint32_t class, uint32_t conjunct) {
    c->regions = class == BREAK_REGIONAL ? c->regions + 1 : 0;
    c->picture =
        class == BREAK_PICTURE || (c->picture && (class == BREAK_EXTEND || class == BREAK_ZWJ));
    c->linked =
        c->consonant && ((c->linked && conjunct == CONJUNCT_EXTEND) || conjunct == CONJUNCT_LINKER);
    c->consonant = conjunct == CONJUNCT_CONSONANT || (c->consonant && conjunct);
    c->last = class;
}

static uint32_t class_of(uint32_t code) {
    if (code == '\r') return BREAK_CR;
    if (code == '\n') return BREAK_LF;
    return code < 0x20 ? BREAK_CONTROL : wf_table_value(&wf_breaks, code);
}

size_t wf_cluster(const char *text, size_t n) {
    cluster c = { 0 };
    size_t at = 0;
    while (at < n) {
        size_t next = at;
        uint32_t code = (uint32_t)wf_utf8_next(text, n, &next);
        uint32_t value = class_of(code);
        if (at && !joins(&c, value & 15, value >> 4)) break;
        extend(&c, value & 15, value >> 4);
        at = next;
        /* a printable ASCII character is a cluster of its own if the next one is ASCII, too */
        if (at < n && code >= 0x20 && code < 0x7F && (unsigned char)text[at] < 0x80) break;
    }
    return at;
}
