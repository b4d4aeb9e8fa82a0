/* models/emit/plain/plain_expressions.c - a matcher for the regular expressions of a
 * tokenizer.json, in the C file of a model. models/text/expressions/ compiles each expression to a
 * program, a list of operations, which the file has as a table. This source consists of blocks, as
 * plain_text.c does.
 *
 * Matching backtracks: it takes the first of several possible ways, and puts the others on a stack.
 * No program repeats a group without a limit, so a stack of CHOICES entries is enough. */

/* A set of code points: a bit for each one of ASCII, and ranges of the others in ascending order,
 * each with its first and its last one. */
typedef struct code_set {
    uint32_t ascii[4];
    const uint32_t (*ranges)[2];
    int32_t n;
} code_set;

static int has_code(const code_set *s, uint32_t code) {
    int32_t low = 0, high = s->n;
    if (code < 0x80) return (int)(s->ascii[code >> 5] >> (code & 31) & 1);
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (code < s->ranges[middle][0])
            high = middle;
        else if (code > s->ranges[middle][1])
            low = middle + 1;
        else
            return 1;
    }
    return 0;
}

/* The start of the character before byte `at`, which is above 0. */
static size_t character_before(const char *text, size_t at) {
    do at--;
    while (at && wf_utf8_continues(text[at]));
    return at;
}

static int is_before(const code_set *s, const char *text, size_t at) {
    if (!at) return 0;
    size_t from = character_before(text, at);
    return has_code(s, (uint32_t)wf_utf8_code(text + from, at - from));
}

/* The bytes of the next character if it belongs to the set, else 0. */
static size_t character_of(const code_set *s, const char *text, size_t at, size_t end) {
    if (at == end) return 0;
    size_t n = wf_utf8_announced(text + at, end - at);
    return has_code(s, (uint32_t)wf_utf8_code(text + at, n)) ? n : 0;
}

/* ---- programs ------------------------------------------------------------------------------ */

typedef enum operation {
    OP_MATCH,  /* the end */
    OP_TEXT,   /* b bytes from literals[a] on */
    OP_SET,    /* a character of set a */
    OP_REPEAT, /* from `least` to `most` characters of set a; b: 0 greedy, 1 lazy, 2 possessive */
    OP_SPLIT,  /* goes on at a, or if that fails at b; first[most]: bytes with which a may begin */
    OP_JUMP,   /* to a */
    OP_AHEAD,  /* the operations up to OP_END must match, or must not if b; a: after OP_END */
    OP_BEHIND, /* the character before is in set a; if b: is not, or there is none */
    OP_ATOMIC, /* as OP_AHEAD, but the position moves past the match */
    OP_END,    /* the end of OP_AHEAD or OP_ATOMIC */
    OP_LINE_START,
    OP_LINE_END,
    OP_START,
    OP_STOP,     /* the end of the text. If b: only the place before the line break that ends the
                  * text, or the end if no line break is there */
    OP_WORD_EDGE /* a word begins or ends here; if b: none does; a: the set of word characters */
} operation;

typedef struct instruction {
    operation op;
    uint32_t a, b, least, most;
} instruction;

/* first[0] is a bit for each byte with which a match may begin. */
typedef struct expression {
    const instruction *code;
    const code_set *const *sets;
    const uint32_t (*first)[8];
    const unsigned char *literals;
} expression;

typedef enum choice_kind {
    CHOICE,  /* another way: go on with operation `pc` at byte `at` */
    SHORTER, /* a repeat that can give characters back, down to `low` */
    LONGER,  /* a repeat that can take `low` more characters */
    BARRIER  /* the operation `pc` of OP_AHEAD or OP_ATOMIC began at `at` */
} choice_kind;

typedef struct choice {
    choice_kind kind;
    uint32_t pc;
    size_t at, low;
} choice;

/* A search through a text, from match to match. It may take 256 steps for a byte and 4096 more, as
 * in models/text/expressions/. */
typedef struct search_for {
    const expression *e;
    const char *text;
    size_t end, at; /* the text's end; the position of the match that is tried */
    size_t from;    /* the position where the next match may begin */
    size_t last_end;
    int has_matched;
    int64_t steps; /* that are left */
    uint32_t pc;
    int n;
    choice stack[CHOICES];
} search_for;

static void begin_search_for(search_for *s, const expression *e, const char *text, size_t n) {
    s->e = e;
    s->text = text;
    s->end = n;
    s->at = s->from = s->last_end = 0;
    s->has_matched = 0;
    s->steps = 4096 + 256 * (int64_t)n;
    s->pc = 0;
    s->n = 0;
}

static void push_choice(search_for *s, uint32_t pc, choice_kind kind, size_t at, size_t low) {
    choice *c = &s->stack[s->n++];
    c->kind = kind;
    c->pc = pc;
    c->at = at;
    c->low = low;
}

static int has_bit(const uint32_t bits[8], char byte) {
    unsigned char c = (unsigned char)byte;
    return (int)(bits[c >> 5] >> (c & 31) & 1);
}

static int match_text(search_for *s, const instruction *i) {
    if (s->end - s->at < i->b) return 0;
    for (uint32_t k = 0; k < i->b; k++)
        if ((unsigned char)s->text[s->at + k] != s->e->literals[i->a + k]) return 0;
    s->at += i->b;
    s->pc++;
    return 1;
}

/* Move past the next character, if it belongs to the set. */
static int match_set(search_for *s, const code_set *set) {
    size_t n = character_of(set, s->text, s->at, s->end);
    s->at += n;
    return n > 0;
}

static int match_repeat(search_for *s, const instruction *i) {
    const code_set *set = s->e->sets[i->a];
    uint32_t n = 0;
    size_t from = s->at;
    while (n < i->least && match_set(s, set)) n++;
    if (n < i->least) return 0;
    size_t low = s->at;
    s->pc++;
    if (i->b == 1) {
        if (n < i->most) push_choice(s, s->pc - 1, LONGER, s->at, i->most - n);
        return 1;
    }
    while (n < i->most && match_set(s, set)) n++;
    s->steps -= (int64_t)(s->at - from);
    if (i->b == 0 && s->at > low) push_choice(s, s->pc, SHORTER, s->at, low);
    return 1;
}

/* Is the position at a line break (with is_last: only at one that ends the text), or at the end of
 * a text that does not end in one? */
static int is_line_end(const search_for *s, int is_last) {
    if (s->at == s->end) return !s->end || s->text[s->at - 1] != '\n';
    return s->text[s->at] == '\n' && (!is_last || s->at + 1 == s->end);
}

static int match_place(search_for *s, const instruction *i) {
    const char *text = s->text;
    s->pc++;
    switch (i->op) {
    case OP_BEHIND:
        return is_before(s->e->sets[i->a], text, s->at) != (int)i->b;
    case OP_LINE_START:
        return !s->at || (text[s->at - 1] == '\n' && s->at < s->end);
    case OP_LINE_END:
        return is_line_end(s, 0);
    case OP_START:
        return !s->at;
    case OP_STOP:
        return i->b ? is_line_end(s, 1) : s->at == s->end;
    default: { /* OP_WORD_EDGE */
        const code_set *word = s->e->sets[i->a];
        int is_edge = is_before(word, text, s->at) != (character_of(word, text, s->at, s->end) > 0);
        return is_edge != (int)i->b;
    }
    }
}

/* Drop the stack down to the barrier of the group that ends. Returns 0 if the group must not
 * match. */
static int end_group(search_for *s) {
    const choice *c;
    do c = &s->stack[--s->n];
    while (c->kind != BARRIER);
    const instruction *group = &s->e->code[c->pc];
    s->pc++;
    if (group->op == OP_AHEAD) s->at = c->at;
    return group->op == OP_ATOMIC || !group->b;
}

static int match_split(search_for *s, const instruction *i) {
    int may = s->at == s->end ? (int)i->least : has_bit(s->e->first[i->most], s->text[s->at]);
    if (may) push_choice(s, i->b, CHOICE, s->at, 0);
    s->pc = may ? i->a : i->b;
    return 1;
}

/* Run one operation. Returns 0 if it does not match here. */
static int match_step(search_for *s) {
    const instruction *i = &s->e->code[s->pc];
    switch (i->op) {
    case OP_TEXT:
        return match_text(s, i);
    case OP_SET:
        s->pc++;
        return match_set(s, s->e->sets[i->a]);
    case OP_REPEAT:
        return match_repeat(s, i);
    case OP_SPLIT:
        return match_split(s, i);
    case OP_JUMP:
        s->pc = i->a;
        return 1;
    case OP_AHEAD:
    case OP_ATOMIC:
        push_choice(s, s->pc, BARRIER, s->at, 0);
        s->pc++;
        return 1;
    case OP_END:
        return end_group(s);
    default:
        return match_place(s, i);
    }
}

/* Go back to the newest choice that remains. Returns 0 if there is none. */
static int match_otherwise(search_for *s) {
    while (s->n) {
        choice *c = &s->stack[--s->n];
        const instruction *i = &s->e->code[c->pc];
        s->pc = c->pc;
        s->at = c->at;
        if (c->kind == CHOICE) return 1;
        if (c->kind == SHORTER) {
            s->at = c->at = character_before(s->text, c->at);
            s->n += c->at > c->low;
            return 1;
        }
        if (c->kind == LONGER && match_set(s, s->e->sets[i->a])) {
            if (c->low > 1) push_choice(s, s->pc, LONGER, s->at, c->low - 1);
            s->pc++;
            return 1;
        }
        if (c->kind == BARRIER && i->op == OP_AHEAD && i->b) {
            s->pc = i->a;
            return 1;
        }
    }
    return 0;
}

/* Try to match at s->from. Returns 1 for a match, 0 for none, -1 if it takes too many steps. */
static int match_here(search_for *s) {
    s->at = s->from;
    s->pc = 0;
    s->n = 0;
    while (s->e->code[s->pc].op != OP_MATCH) {
        if (--s->steps < 0) return -1;
        if (!match_step(s) && !match_otherwise(s)) return 0;
    }
    return 1;
}

/* The next match; an empty one directly after the last match is passed over. Returns as
 * match_here. */
static int next_match(search_for *s, size_t *begin, size_t *end) {
    while (s->from <= s->end) {
        int may = s->from == s->end || has_bit(s->e->first[0], s->text[s->from]);
        int found = may ? match_here(s) : 0;
        if (found < 0) return -1;
        int again = found && s->at == s->from && s->has_matched && s->last_end == s->at;
        if (found && !again) {
            *begin = s->from;
            *end = s->from = s->last_end = s->at;
            s->has_matched = 1;
            return 1;
        }
        s->from += s->from < s->end ? wf_utf8_announced(s->text + s->from, s->end - s->from) : 1;
    }
    return 0;
}
