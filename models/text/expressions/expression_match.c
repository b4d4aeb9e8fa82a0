/* models/text/expressions/expression_match.c - finds matches of a regular expression; see
 * expression.h.
 *
 * Matching backtracks: where several ways are possible, it takes the first, and keeps the others on
 * a stack. A repeat of one set keeps all of its lengths in one entry. Look-ahead and atomic groups
 * put a barrier on the stack; what lies above it is dropped when they have matched. */
#include "expression.h"

#include <assert.h>

#include "core/base/utf8.h"

typedef enum {
    CHOICE,  /* another way: go on with operation `pc` at byte `at` */
    SHORTER, /* a greedy repeat that can give characters back, down to `low` */
    LONGER,  /* a lazy repeat that can take `low` more characters */
    BARRIER  /* the operation `pc` of a look-ahead or an atomic group began at `at` */
} choice_kind;

struct wf_choice {
    uint32_t pc;
    choice_kind kind;
    size_t at, low;
};

/* A search may take STEPS_A_BYTE steps for each byte of the text, and FREE_STEPS more. */
enum { STEPS_A_BYTE = 256, FREE_STEPS = 4096 };

typedef struct matcher {
    wf_expression *e;
    const char *text;
    size_t end, at, n;
    uint32_t pc;
    int64_t *steps;
    wf_match_result error;
} matcher;

static bool push(matcher *m, wf_choice c) {
    wf_expression *e = m->e;
    if (m->n == e->stack_capacity &&
        !wf_grow(&e->stack, &e->stack_capacity, m->n + 1, sizeof *e->stack)) {
        m->error = NO_MEMORY;
        return false;
    }
    e->stack[m->n++] = c;
    return true;
}

/* Moves past the next character, if it belongs to the set. */
static inline bool take(matcher *m, const wf_code_set *set) {
    if (m->at == m->end) return false;
    unsigned char byte = (unsigned char)m->text[m->at];
    if (byte < 0x80) {
        if (!(set->bits[byte >> 5] >> (byte & 31) & 1)) return false;
        m->at++;
        return true;
    }
    size_t bytes = wf_utf8_announced(m->text + m->at, m->end - m->at);
    if (!set_has(set, (uint32_t)wf_utf8_code(m->text + m->at, bytes))) return false;
    m->at += bytes;
    return true;
}

static size_t before(const matcher *m, size_t at) {
    assert(at > 0);
    do at--;
    while (at && wf_utf8_continues(m->text[at]));
    return at;
}

static bool in_set_before(const matcher *m, const wf_code_set *set) {
    if (!m->at) return false;
    size_t from = before(m, m->at);
    return set_has(set, (uint32_t)wf_utf8_code(m->text + from, m->at - from));
}

static bool in_set_here(const matcher *m, const wf_code_set *set) {
    matcher copy = *m;
    return take(&copy, set);
}

static bool repeat(matcher *m, const wf_instruction *i) {
    const wf_code_set *set = &m->e->sets[i->a];
    uint32_t n = 0;
    size_t low = m->at, from = m->at;
    while (n < i->least && take(m, set)) n++;
    if (n < i->least) return false;
    low = m->at;
    if (i->b == LAZY) {
        m->pc++;
        return n == i->most || push(m, (wf_choice){ m->pc - 1, LONGER, m->at, i->most - n });
    }
    while (n < i->most && take(m, set)) n++;
    *m->steps -= (int64_t)(m->at - from);
    m->pc++;
    return i->b == POSSESSIVE || m->at == low || push(m, (wf_choice){ m->pc, SHORTER, m->at, low });
}

/* True at a line break, or at the end of the text unless a line break is just before it. last: only
 * the line break that ends the text counts. */
static bool line_end(const matcher *m, bool last) {
    if (m->at == m->end) return !m->end || m->text[m->at - 1] != '\n';
    return m->text[m->at] == '\n' && (!last || m->at + 1 == m->end);
}

static bool look(const matcher *m, const wf_instruction *i) {
    const wf_code_set *sets = m->e->sets;
    switch (i->op) {
    case OP_BEHIND:
        return in_set_before(m, &sets[i->a]) != i->b;
    case OP_LINE_START:
        return !m->at || (m->text[m->at - 1] == '\n' && m->at < m->end);
    case OP_LINE_END:
        return line_end(m, false);
    case OP_START:
        return !m->at;
    case OP_STOP:
        return i->b ? line_end(m, true) : m->at == m->end;
    default:
        assert(i->op == OP_WORD_EDGE);
        return (in_set_before(m, &sets[i->a]) != in_set_here(m, &sets[i->a])) != i->b;
    }
}

/* Drops the stack down to the barrier of the group that ends. False: it is a negative look-ahead,
 * which must not match. */
static bool end_group(matcher *m) {
    wf_choice c;
    do c = m->e->stack[--m->n];
    while (c.kind != BARRIER);
    const wf_instruction *group = &m->e->code[c.pc];
    m->pc++;
    if (group->op == OP_AHEAD) m->at = c.at;
    return group->op == OP_ATOMIC || !group->b;
}

static inline bool may_begin(const matcher *m, const wf_instruction *i) {
    if (m->at == m->end) return i->least;
    unsigned char byte = (unsigned char)m->text[m->at];
    return i->first[byte >> 5] >> (byte & 31) & 1;
}

static bool split(matcher *m, const wf_instruction *i) {
    if (!may_begin(m, i)) {
        m->pc = i->b;
        return true;
    }
    m->pc = i->a;
    return push(m, (wf_choice){ i->b, CHOICE, m->at, 0 });
}

/* Runs one operation. False: it does not match here. */
static bool step(matcher *m) {
    const wf_instruction *i = &m->e->code[m->pc];
    switch (i->op) {
    case OP_TEXT:
        if (m->end - m->at < i->b || memcmp(m->text + m->at, m->e->literals + i->a, i->b) != 0)
            return false;
        m->at += i->b;
        m->pc++;
        return true;
    case OP_SET:
        m->pc++;
        return take(m, &m->e->sets[i->a]);
    case OP_REPEAT:
        return repeat(m, i);
    case OP_SPLIT:
        return split(m, i);
    case OP_JUMP:
        m->pc = i->a;
        return true;
    case OP_AHEAD:
    case OP_ATOMIC:
        m->pc++;
        return push(m, (wf_choice){ m->pc - 1, BARRIER, m->at, 0 });
    case OP_END:
        return end_group(m);
    default:
        m->pc++;
        return look(m, i);
    }
}

/* Goes back to the newest choice that remains. False: there is none. */
static bool back(matcher *m) {
    while (m->n) {
        wf_choice *c = &m->e->stack[--m->n];
        m->pc = c->pc;
        m->at = c->at;
        if (c->kind == CHOICE) return true;
        if (c->kind == SHORTER) {
            m->at = before(m, c->at);
            c->at = m->at;
            m->n += m->at > c->low;
            return true;
        }
        const wf_instruction *i = &m->e->code[c->pc];
        if (c->kind == LONGER) {
            size_t more = c->low - 1;
            if (!take(m, &m->e->sets[i->a])) continue;
            m->pc++;
            return !more || push(m, (wf_choice){ m->pc - 1, LONGER, m->at, more });
        }
        if (i->op != OP_AHEAD || !i->b) continue;
        m->pc = i->a;
        return true;
    }
    return false;
}

static wf_match_result match_at(wf_search *s, size_t at, size_t *end) {
    matcher m = { .e = s->e, .text = s->text.text, .end = s->text.bytes, .at = at };
    m.steps = &s->steps;
    while (s->e->code[m.pc].op != OP_MATCH) {
        if (--s->steps < 0) return NO_STEPS;
        if (!step(&m) && (m.error || !back(&m))) return m.error ? m.error : NO_MATCH;
    }
    *end = m.at;
    return A_MATCH;
}

/* ---- searching ------------------------------------------------------------------------------- */

wf_search wf_search_begin(wf_expression *e, wf_span text) {
    int64_t bytes = (int64_t)text.bytes;
    return (wf_search){ .e = e, .text = text, .steps = FREE_STEPS + STEPS_A_BYTE * bytes };
}

static size_t after(wf_span text, size_t at) {
    return at < text.bytes ? at + wf_utf8_announced(text.text + at, text.bytes - at) : at + 1;
}

static const char *find_text(const char *in, size_t n, const char *what, size_t bytes) {
    while (n >= bytes) {
        const char *found = memchr(in, *what, n - bytes + 1);
        if (!found || memcmp(found, what, bytes) == 0) return found;
        n -= (size_t)(found + 1 - in);
        in = found + 1;
    }
    return NULL;
}

static wf_match_result next_literal(wf_search *s, size_t *begin, size_t *end) {
    const wf_instruction *i = s->e->code;
    if (s->at > s->text.bytes) return NO_MATCH;
    const char *found =
        find_text(s->text.text + s->at, s->text.bytes - s->at, s->e->literals + i->a, i->b);
    if (!found) return NO_MATCH;
    *begin = (size_t)(found - s->text.text);
    *end = s->at = *begin + i->b;
    return A_MATCH;
}

static bool can_begin(const wf_search *s, size_t at) {
    unsigned char byte = at < s->text.bytes ? (unsigned char)s->text.text[at] : 0;
    return at == s->text.bytes || s->e->first[byte >> 5] >> (byte & 31) & 1;
}

wf_match_result wf_search_next(wf_search *s, size_t *begin, size_t *end) {
    if (s->e->plain) return next_literal(s, begin, end);
    while (s->at <= s->text.bytes) {
        wf_match_result result = can_begin(s, s->at) ? match_at(s, s->at, end) : NO_MATCH;
        if (result > A_MATCH) return result;
        bool again = result && *end == s->at && s->matched && s->last_end == *end;
        if (!result || again) {
            s->at = after(s->text, s->at);
            continue;
        }
        *begin = s->at;
        s->at = s->last_end = *end;
        s->matched = true;
        return A_MATCH;
    }
    return NO_MATCH;
}
