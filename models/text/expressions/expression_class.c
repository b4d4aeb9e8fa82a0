/* models/text/expressions/expression_class.c - classes and escapes of a regular expression; see
 * expression_parse.h. */
#include <stdlib.h>

#include "expression_parse.h"

/* ---- escapes --------------------------------------------------------------------------------- */

static bool hex(wf_expression_parser *p, int least, int most, int32_t *code) {
    int n = 0;
    for (*code = 0; n < most && p->rest.bytes; n++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *found = *p->rest.text ? strchr(digits, *p->rest.text) : NULL;
        if (!found) break;
        *code = *code << 4 | (int32_t)((found - digits) & 15);
        skip(p, 1);
    }
    return (n >= least && *code <= 0x10FFFF) || refuse(p, "a \\x or \\u without its digits");
}

/* Reads an escape that stands for one character. *known is false if it stands for something
 * else. */
bool wf_escaped_code(wf_expression_parser *p, int32_t *code, bool *known) {
    static const char from[] = "ntrfvae", into[] = "\n\t\r\f\v\a\x1B";
    const char *found = p->rest.bytes && *p->rest.text ? strchr(from, *p->rest.text) : NULL;
    *known = true;
    if (found) {
        skip(p, 1);
        *code = into[found - from];
        return true;
    }
    if (accept(p, "x{"))
        return hex(p, 1, 6, code) && (accept(p, "}") || refuse(p, "a \\x{ without its end"));
    if (accept(p, "x")) return hex(p, 1, 2, code);
    if (accept(p, "u")) return hex(p, 4, 4, code);
    *known = p->rest.bytes && !is_letter(*p->rest.text) &&
             !(*p->rest.text >= '0' && *p->rest.text <= '9');
    if (*known) *code = next_code(p);
    return true;
}

static bool property(wf_expression_parser *p, wf_code_set *set, bool inverted) {
    if (!accept(p, "{")) return refuse(p, "a \\p without a name");
    if (accept(p, "^")) inverted = !inverted;
    const char *end = memchr(p->rest.text, '}', p->rest.bytes);
    if (!end) return refuse(p, "a \\p without its end");
    wf_span name = { p->rest.text, (size_t)(end - p->rest.text) };
    bool known;
    bool ok = wf_set_property(set, name, &known);
    if (!known)
        return fail(p->message, "the property \\p{%.*s} of an expression is not known here",
                    (int)(name.bytes < 40 ? name.bytes : 40), name.text);
    if (!ok) return memory(p);
    skip(p, name.bytes + 1);
    return !inverted || wf_set_invert(set) || memory(p);
}

/* Adds the set that an escape stands for to an empty set. *known is false if it stands for no
 * set. */
bool wf_escaped_set(wf_expression_parser *p, wf_code_set *set, bool in_class, bool *known) {
    char c = p->rest.bytes ? *p->rest.text : '\0';
    *known = c && strchr("dDwWsShHpP", c);
    if (!*known) return true;
    skip(p, 1);
    char kind = (char)(c | 32);
    bool ok, unknown;
    if (kind == 'p') return property(p, set, c == 'P');
    if (kind == 's')
        ok = wf_set_space(set);
    else if (kind == 'w')
        ok = wf_set_word(set, in_class);
    else if (kind == 'd')
        ok = wf_set_property(set, (wf_span){ "Nd", 2 }, &unknown);
    else
        ok = wf_set_add(set, '0', '9') && wf_set_add(set, 'a', 'f') && wf_set_add(set, 'A', 'F');
    return (ok && (kind == c || wf_set_invert(set))) || memory(p);
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Reads an item of a class: a character into *code, or a set into *inner. */
static bool class_item(wf_expression_parser *p, int32_t *code, wf_code_set *inner, bool *is_set) {
    bool known;
    *is_set = true;
    if (starts(p, "[:")) return refuse(p, "a POSIX bracket, which is not known here");
    if (accept(p, "[")) return wf_expression_class(p, inner);
    if (accept(p, "\\")) {
        if (!wf_escaped_set(p, inner, true, is_set)) return false;
        if (*is_set) return true;
        if (accept(p, "b")) {
            *code = '\b';
            return true;
        }
        if (!wf_escaped_code(p, code, &known)) return false;
        return known || refuse(p, "an escape in a class that is not known here");
    }
    *is_set = false;
    *code = next_code(p);
    return *code >= 0 || refuse(p, "bytes that are not UTF-8");
}

static bool class_range(wf_expression_parser *p, int32_t from, wf_code_set *inner, int32_t *to) {
    bool is_set;
    *to = from;
    if (!starts(p, "-") || starts(p, "-]") || starts(p, "-&&")) return true;
    skip(p, 1);
    if (!class_item(p, to, inner, &is_set)) return false;
    if (is_set) return refuse(p, "a range that ends in a set");
    return *to >= from || refuse(p, "a range that goes backwards");
}

static bool class_part(wf_expression_parser *p, wf_code_set *set) {
    wf_code_set inner;
    int32_t from = 0, to;
    bool is_set = false, ok = wf_set_new(&inner) || memory(p);
    ok = ok && class_item(p, &from, &inner, &is_set);
    if (ok && is_set)
        ok = wf_set_join(set, &inner) || memory(p);
    else if (ok)
        ok = class_range(p, from, &inner, &to) &&
             (wf_set_add(set, (uint32_t)from, (uint32_t)to) || memory(p));
    wf_set_free(&inner);
    return ok;
}

/* The parts up to "&&" or "]". */
static bool class_union(wf_expression_parser *p, wf_code_set *set, bool empty) {
    for (; p->rest.bytes && !starts(p, "&&") && !starts(p, "]"); empty = false)
        if (!class_part(p, set)) return false;
    return (p->rest.bytes && !empty) || refuse(p, "an empty class, or one without its end");
}

/* A closing bracket at the start of a class is a character, if another closing bracket follows. */
static bool first_bracket(wf_expression_parser *p) {
    if (!starts(p, "]") || !memchr(p->rest.text + 1, ']', p->rest.bytes - 1)) return false;
    skip(p, 1);
    return true;
}

/* Reads a class, whose "[" has been read. */
bool wf_expression_class(wf_expression_parser *p, wf_code_set *set) {
    bool inverted = accept(p, "^"), ok;
    if (++p->depth > DEEPEST_GROUP) return refuse(p, "groups nested deeper than 32");
    bool bracket = first_bracket(p);
    if (bracket && !wf_set_add(set, ']', ']')) return memory(p);
    if (!class_union(p, set, !bracket)) return false;
    while (accept(p, "&&")) {
        wf_code_set right;
        if (!wf_set_new(&right)) return memory(p);
        ok = class_union(p, &right, false) && (wf_set_meet(set, &right) || memory(p));
        wf_set_free(&right);
        if (!ok) return false;
    }
    p->depth--;
    skip(p, 1); /* the "]" at which the union ended */
    if (p->any_case && !wf_set_fold(set)) return memory(p);
    return !inverted || wf_set_invert(set) || memory(p);
}
