/* models/emit/plain/plain_normal.c - normalizers of a tokenizer.json that need tables of Unicode,
 * in the C file of a model: lower case, normal forms, and precompiled maps as models/text/json/
 * applies them. It consists of blocks, as plain_text.c does. */

/* Rows of two numbers, sorted by the first: a code point, and a value of it alone, or of all code
 * points from it up to the next row. */
typedef struct code_rows {
    const uint32_t (*at)[2];
    int32_t n;
} code_rows;

/* The last row whose first number is not above the code; -1: there is none. */
static int32_t row_of(const code_rows *r, uint32_t code) {
    int32_t low = -1, high = r->n;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (r->at[middle][0] <= code)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Change to lower case. Rows of `lower`: a code point and its lower case. U+0130 is the only one
 * that becomes two code points. */
static void put_lower_case(word_texts *t, const code_rows *lower) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        int32_t begins = now->begins[at];
        while (at < end) {
            uint32_t code = (uint32_t)wf_utf8_next(now->at, end, &at);
            int32_t row = row_of(lower, code);
            int is_there = row >= 0 && lower->at[row][0] == code;
            put_code(t, is_there ? lower->at[row][1] : code, &begins);
            if (code == 0x130) put_code(t, 0x307, &begins);
        }
    }
    swap_words(t);
}

/* ---- normal forms ---------------------------------------------------------------------------- */

/* Rows of `classes`: a code point where the combining class changes, and the new class. Rows of
 * `parts`: a code point times 32 plus the number of its parts, and where in `pool` they begin.
 * `pairs`: two code points and the one that they compose, in ascending order. */
typedef struct normal_form {
    code_rows classes, parts;
    const uint32_t *pool;
    const uint32_t (*pairs)[3];
    int32_t n_pairs;
} normal_form;

/* The characters of a word, and room to sort them. */
typedef struct code_points {
    uint32_t at[ROOM], spare[ROOM];
    size_t n;
} code_points;

static uint32_t combining_class(const normal_form *f, uint32_t code) {
    int32_t row = code < 0x300 ? -1 : row_of(&f->classes, code);
    return row < 0 ? 0 : f->classes.at[row][1];
}

/* Sort marks by their classes; those of one class stay in order. */
static void sort_marks(const normal_form *f, code_points *c, size_t from) {
    size_t sorted = from;
    for (uint32_t class = 0; sorted < c->n;) {
        uint32_t next = 256;
        for (size_t i = from; i < c->n; i++) {
            uint32_t other = combining_class(f, c->at[i]);
            if (other > class && other < next) next = other;
        }
        class = next;
        for (size_t i = from; i < c->n; i++)
            if (combining_class(f, c->at[i]) == class) c->spare[sorted++] = c->at[i];
    }
    for (size_t i = from; i < c->n; i++) c->at[i] = c->spare[i];
}

/* Write the parts of a code point, at most 32, and return their number. Those of a Hangul syllable
 * are computed (Unicode, section 3.12). */
static size_t parts_of(const normal_form *f, uint32_t code, uint32_t parts[32]) {
    int32_t row = row_of(&f->parts, code << 5 | 31);
    uint32_t syllable = code - 0xAC00;
    if (code >= 0xAC00 && syllable < 11172) {
        parts[0] = 0x1100 + syllable / 588;
        parts[1] = 0x1161 + syllable / 28 % 21;
        parts[2] = 0x11A7 + syllable % 28;
        return syllable % 28 ? 3 : 2;
    }
    parts[0] = code;
    if (row < 0 || f->parts.at[row][0] >> 5 != code) return 1;
    size_t n = f->parts.at[row][0] & 31;
    for (size_t i = 0; i < n; i++) parts[i] = f->pool[f->parts.at[row][1] + i];
    return n;
}

/* Returns 0 if there is no room. */
static int decompose(const normal_form *f, code_points *c, const char *text, size_t n) {
    uint32_t parts[32];
    size_t marks = 0; /* index of the first mark after the last character of class 0 */
    c->n = 0;
    for (size_t at = 0; at < n;) {
        size_t more = parts_of(f, (uint32_t)wf_utf8_next(text, n, &at), parts);
        for (size_t i = 0; i < more; i++) {
            int is_mark = combining_class(f, parts[i]) > 0;
            if (!is_mark) sort_marks(f, c, marks);
            if (c->n == ROOM) return 0;
            c->at[c->n++] = parts[i];
            if (!is_mark) marks = c->n;
        }
    }
    sort_marks(f, c, marks);
    return 1;
}

/* The composition of two code points; 0: there is none. */
static uint32_t composition(const normal_form *f, uint32_t a, uint32_t b) {
    int32_t low = 0, high = f->n_pairs;
    if (a >= 0x1100 && a < 0x1113 && b >= 0x1161 && b < 0x1176)
        return 0xAC00 + ((a - 0x1100) * 21 + (b - 0x1161)) * 28;
    if (a >= 0xAC00 && a - 0xAC00 < 11172 && (a - 0xAC00) % 28 == 0 && b > 0x11A7 && b < 0x11C3)
        return a + (b - 0x11A7);
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        const uint32_t *pair = f->pairs[middle];
        if (pair[0] == a && pair[1] == b) return pair[2];
        if (pair[0] < a || (pair[0] == a && pair[1] < b))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* A mark joins the last character of class 0 unless one of its class or above stands between
 * them. */
static void compose(const normal_form *f, code_points *c) {
    size_t n = 0, starter = 0;
    int has_starter = 0;
    uint32_t last = 0; /* class of the mark before; 0: there is none */
    for (size_t i = 0; i < c->n; i++) {
        uint32_t code = c->at[i], class = combining_class(f, code);
        int is_blocked = !has_starter || (last && last >= class);
        uint32_t joined = is_blocked ? 0 : composition(f, c->at[starter], code);
        if (joined) {
            c->at[starter] = joined;
            continue;
        }
        if (!class) {
            starter = n;
            has_starter = 1;
        }
        last = has_starter ? class : 0;
        c->at[n++] = code;
    }
    c->n = n;
}

static void put_normal_form(word_texts *t, const normal_form *f, code_points *c, int composes) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        int32_t begins = now->begins[at];
        if (!decompose(f, c, now->at + at, end - at) && !t->fails) t->fails = LONG_TEXT;
        if (composes) compose(f, c);
        for (size_t i = 0; i < c->n; i++) put_code(t, c->at[i], &begins);
    }
    swap_words(t);
}

/* ---- grapheme clusters ----------------------------------------------------------------------- */

/* Grapheme break classes of UAX #29, in the low four bits; the next four bits are the Indic
 * conjunct break class. */
typedef enum break_class {
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
    CONJUNCT_LINKER = 16,
    CONJUNCT_CONSONANT = 32,
    CONJUNCT_EXTEND = 48
} break_class;

/* The state of a cluster after its last character: how many regional indicators it ends with;
 * whether it ends in a pictograph, or in a consonant, with characters that extend them; and whether
 * a linker follows the consonant. */
typedef struct cluster_state {
    break_class last;
    int regions, is_picture, is_consonant, is_linked;
} cluster_state;

static int joins_hangul(break_class a, break_class b) {
    if (a == BREAK_L) return b == BREAK_L || b == BREAK_V || b == BREAK_LV || b == BREAK_LVT;
    if (a == BREAK_LV || a == BREAK_V) return b == BREAK_V || b == BREAK_T;
    return (a == BREAK_LVT || a == BREAK_T) && b == BREAK_T;
}

/* Rules GB3 to GB13. */
static int joins_cluster(const cluster_state *c, break_class class, uint32_t conjunct) {
    if (c->last == BREAK_CR && class == BREAK_LF) return 1;
    if (c->last >= BREAK_CR && c->last <= BREAK_CONTROL) return 0;
    if (class >= BREAK_CR && class <= BREAK_CONTROL) return 0;
    if (class == BREAK_EXTEND || class == BREAK_ZWJ || class == BREAK_SPACING) return 1;
    if (c->last == BREAK_PREPEND || joins_hangul(c->last, class)) return 1;
    if (c->is_linked && conjunct == CONJUNCT_CONSONANT) return 1;
    if (c->last == BREAK_ZWJ && c->is_picture && class == BREAK_PICTURE) return 1;
    return c->last == BREAK_REGIONAL && class == BREAK_REGIONAL && c->regions % 2;
}

static void extend_cluster(cluster_state *c, break_class class, uint32_t conjunct) {
    int extends = class == BREAK_EXTEND || class == BREAK_ZWJ;
    c->regions = class == BREAK_REGIONAL ? c->regions + 1 : 0;
    c->is_picture = class == BREAK_PICTURE || (c->is_picture && extends);
    c->is_linked = c->is_consonant &&
                   ((c->is_linked && conjunct == CONJUNCT_EXTEND) || conjunct == CONJUNCT_LINKER);
    c->is_consonant = conjunct == CONJUNCT_CONSONANT || (c->is_consonant && conjunct);
    c->last = class;
}

static uint32_t break_value(const code_rows *breaks, uint32_t code) {
    if (code == '\r') return BREAK_CR;
    if (code == '\n') return BREAK_LF;
    int32_t row = row_of(breaks, code);
    if (code < 0x20) return BREAK_CONTROL;
    return row < 0 ? BREAK_OTHER : breaks->at[row][1];
}

/* The bytes of the grapheme cluster with which a text of n > 0 bytes begins. */
static size_t cluster_length(const code_rows *breaks, const char *text, size_t n) {
    cluster_state c = { BREAK_OTHER, 0, 0, 0, 0 };
    size_t at = 0;
    for (size_t next = 0; at < n; at = next) {
        uint32_t value = break_value(breaks, (uint32_t)wf_utf8_next(text, n, &next));
        break_class class = (break_class)(value & 15);
        if (at && !joins_cluster(&c, class, value & 48)) break;
        extend_cluster(&c, class, value & 48);
    }
    return at;
}

/* ---- precompiled maps ------------------------------------------------------------------------ */

#define LONGEST_CLUSTER 5

/* Replace a whole part by the text of the shortest rule that matches its beginning. Returns 0 if
 * there is no rule. */
static int put_by_rule(word_texts *t, const normalizer *r, const char *text, size_t n,
                       int32_t *begins) {
    replaced part;
    if (!find_rule(r, text, n, 1, &part)) return 0;
    if (!is_utf8(part.by, part.n) && !t->fails) t->fails = BAD_TEXT;
    put_more(t, part.by, part.n, begins);
    return 1;
}

/* Clusters of at most LONGEST_CLUSTER bytes are looked up whole. Longer ones, and those without a
 * rule, are looked up character by character, as in the library tokenizers. */
static void put_mapped(word_texts *t, const normalizer *r, const code_rows *breaks) {
    const word_text *now = words_now(t);
    for (size_t at = 0, end = 0; next_text(t, &at, &end);) {
        int32_t begins = now->begins[at];
        while (at < end) {
            size_t n = cluster_length(breaks, now->at + at, end - at), stop = at + n;
            if (n <= LONGEST_CLUSTER && put_by_rule(t, r, now->at + at, n, &begins)) at = stop;
            for (size_t bytes; at < stop; at += bytes) {
                bytes = wf_utf8_announced(now->at + at, stop - at);
                if (!put_by_rule(t, r, now->at + at, bytes, &begins))
                    put_more(t, now->at + at, bytes, &begins);
            }
        }
    }
    swap_words(t);
}
