/* models/text/expressions/expression_parse.c - reads a regular expression in Oniguruma's syntax;
 * see expression.h. Reading recurses for each nested group or class, and for each option such as
 * (?i), which holds to the end of its group: at most DEEPEST_GROUP deep. */
#include "expression_parse.h"

#include <stdlib.h>

static bool parse_or(wf_expression_parser *p, uint32_t *out);

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool add(wf_expression_parser *p, expression_node node, uint32_t *out) {
    expression_tree *t = p->tree;
    if (t->n == MOST_NODES) return refuse(p, "more than 4,096 parts");
    if (t->n == t->capacity && !wf_grow(&t->nodes, &t->capacity, t->n + 1, sizeof *t->nodes))
        return memory(p);
    *out = (uint32_t)t->n;
    t->nodes[t->n++] = node;
    return true;
}

static void first_of_set(const wf_code_set *s, uint32_t first[8]) {
    bool above = s->n_ranges > 0;
    for (size_t i = 4; i < 0x10000 / 32; i++) above = above || s->bits[i];
    for (int i = 0; i < 4; i++) first[i] = s->bits[i];
    for (int i = 4; i < 8; i++) first[i] = above ? UINT32_MAX : 0;
}

/* Moves a set into the expression, and adds a node for it. The caller must not free the set. */
static bool add_set(wf_expression_parser *p, wf_code_set set, uint32_t *out) {
    wf_expression *e = p->tree->e;
    expression_node node = { .kind = NODE_SET, .a = (uint32_t)e->n_sets };
    if (e->n_sets == e->sets_capacity &&
        !wf_grow(&e->sets, &e->sets_capacity, e->n_sets + 1, sizeof *e->sets)) {
        wf_set_free(&set);
        return memory(p);
    }
    first_of_set(&set, node.first);
    e->sets[e->n_sets++] = set;
    return add(p, node, out);
}

static bool add_text(wf_expression_parser *p, const char *text, size_t bytes, uint32_t *out) {
    wf_expression *e = p->tree->e;
    expression_node node = { .kind = NODE_TEXT, .b = (uint32_t)bytes };
    unsigned char byte = (unsigned char)*text;
    node.a = (uint32_t)e->n_literals;
    node.first[byte >> 5] = 1u << (byte & 31);
    if (!wf_grow(&e->literals, &e->literals_capacity, e->n_literals + bytes, 1)) return memory(p);
    memcpy(e->literals + e->n_literals, text, bytes);
    e->n_literals += bytes;
    return add(p, node, out);
}

/* Refuses letters that Oniguruma, ignoring case, also matches by one character: the German sharp s
 * for "ss", and ligatures. Refuses all characters beyond ASCII, too. */
static bool fold_pair(wf_expression_parser *p, int32_t code) {
    static const char *const pairs[] = { "ss", "st", "ff", "fi", "fl" };
    char pair[2] = { (char)(p->last_folded | 32), (char)(code | 32) };
    bool bad = code >= 0x80;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        bad = bad || (p->last_folded && is_letter(code) && memcmp(pairs[i], pair, 2) == 0);
    p->last_folded = is_letter(code) ? code : 0;
    return !bad || refuse(p, "letters in (?i:...) whose cases have several lengths");
}

static bool literal(wf_expression_parser *p, int32_t code, uint32_t *out) {
    char text[WF_UTF8_MOST];
    wf_code_set set;
    if (code < 0) return refuse(p, "bytes that are not UTF-8");
    if (!p->any_case) return add_text(p, text, wf_utf8_put(text, code), out);
    if (!fold_pair(p, code)) return false;
    if (!is_letter(code)) return add_text(p, text, wf_utf8_put(text, code), out);
    if (!wf_set_new(&set)) return memory(p);
    if (!wf_set_add(&set, (uint32_t)code, (uint32_t)code) || !wf_set_fold(&set)) {
        wf_set_free(&set);
        return memory(p);
    }
    return add_set(p, set, out);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Adds the set to the expression, or frees it if ok is false. */
static bool finish_set(wf_expression_parser *p, bool ok, wf_code_set set, uint32_t *out) {
    p->last_folded = 0;
    if (ok) return add_set(p, set, out);
    wf_set_free(&set);
    return false;
}

static bool word_edge(wf_expression_parser *p, bool inverted, uint32_t *out) {
    wf_code_set set;
    uint32_t node;
    if (!wf_set_new(&set)) return memory(p);
    if (!finish_set(p, wf_set_word(&set, false) || memory(p), set, &node)) return false;
    return add(p,
               (expression_node){ .kind = NODE_LOOK,
                                  .a = OP_WORD_EDGE,
                                  .b = inverted,
                                  .c = p->tree->nodes[node].a,
                                  .nullable = true },
               out);
}

static bool look(wf_expression_parser *p, wf_op_kind op, bool flag, uint32_t *out) {
    return add(p, (expression_node){ .kind = NODE_LOOK, .a = op, .b = flag, .nullable = true },
               out);
}

static bool parse_escape(wf_expression_parser *p, uint32_t *out) {
    wf_code_set set;
    bool known;
    int32_t code = 0;
    if (accept(p, "b")) return word_edge(p, false, out);
    if (accept(p, "B")) return word_edge(p, true, out);
    if (accept(p, "A")) return look(p, OP_START, false, out);
    if (accept(p, "z")) return look(p, OP_STOP, false, out);
    if (accept(p, "Z")) return look(p, OP_STOP, true, out);
    if (!wf_set_new(&set)) return memory(p);
    bool ok = wf_escaped_set(p, &set, false, &known);
    if (!ok || known) return finish_set(p, ok, set, out);
    wf_set_free(&set);
    if (!wf_escaped_code(p, &code, &known)) return false;
    return known ? literal(p, code, out) : refuse(p, "an escape that is not known here");
}

static bool parse_dot(wf_expression_parser *p, uint32_t *out) {
    wf_code_set set;
    if (!wf_set_new(&set)) return memory(p);
    bool ok = (p->dot_all || wf_set_add(&set, '\n', '\n')) && wf_set_invert(&set);
    return finish_set(p, ok || memory(p), set, out);
}

/* Replaces a text node of one character by a node of a set. Other nodes stay. */
static bool text_to_set(wf_expression_parser *p, uint32_t *node) {
    const expression_node *n = &p->tree->nodes[*node];
    wf_code_set set;
    if (n->kind != NODE_TEXT) return true;
    wf_span s = { p->tree->e->literals + n->a, n->b };
    if (wf_utf8_length(s.text, s.bytes) != s.bytes) return true;
    uint32_t code = (uint32_t)wf_utf8_code(s.text, s.bytes);
    if (!wf_set_new(&set)) return memory(p);
    return finish_set(p, wf_set_add(&set, code, code) || memory(p), set, node);
}

/* Makes a look-behind of its body, which must be one character or a set. */
static bool behind(wf_expression_parser *p, bool inverted, uint32_t body, uint32_t *out) {
    if (!text_to_set(p, &body)) return false;
    const expression_node *n = &p->tree->nodes[body];
    if (n->kind != NODE_SET) return refuse(p, "a look-behind of more than one character");
    return add(p,
               (expression_node){
                   .kind = NODE_LOOK, .a = OP_BEHIND, .b = inverted, .c = n->a, .nullable = true },
               out);
}

/* Reads the options of (?im-im). False: it is something else. */
static bool options(wf_expression_parser *p) {
    bool on = true;
    while (p->rest.bytes && strchr("im-", *p->rest.text)) {
        if (*p->rest.text == '-') on = false;
        if (*p->rest.text == 'i') p->any_case = on;
        if (*p->rest.text == 'm') p->dot_all = on;
        skip(p, 1);
    }
    return starts(p, ":") || starts(p, ")");
}

typedef enum { PLAIN, AHEAD, NOT_AHEAD, BEHIND, NOT_BEHIND, ATOMIC, OPTION } group_kind;

static bool group_head(wf_expression_parser *p, group_kind *kind) {
    static const struct {
        const char *text;
        group_kind kind;
    } heads[] = { { "?:", PLAIN },   { "?=", AHEAD },       { "?!", NOT_AHEAD },
                  { "?<=", BEHIND }, { "?<!", NOT_BEHIND }, { "?>", ATOMIC } };
    *kind = PLAIN;
    if (!starts(p, "?")) return true;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!accept(p, heads[i].text)) continue;
        *kind = heads[i].kind;
        return true;
    }
    skip(p, 1);
    if (!options(p)) return refuse(p, "a kind of group that is not known here");
    if (!accept(p, ":")) *kind = OPTION;
    return *kind == PLAIN || accept(p, ")");
}

/* Reads a group, whose "(" has been read. */
static bool parse_group(wf_expression_parser *p, uint32_t *out) {
    bool any_case = p->any_case, dot_all = p->dot_all;
    group_kind kind;
    uint32_t body;
    if (++p->depth > DEEPEST_GROUP) return refuse(p, "groups nested deeper than 32");
    if (!group_head(p, &kind)) return false;
    if (kind == OPTION) { /* an option holds up to the end of the group in which it stands */
        bool read = parse_or(p, out);
        p->depth--;
        return read;
    }
    if (!parse_or(p, &body)) return false;
    if (!accept(p, ")")) return refuse(p, "a group without its end");
    p->depth--;
    p->any_case = any_case;
    p->dot_all = dot_all;
    p->last_folded = 0;
    *out = body;
    if (kind == PLAIN) return true;
    if (kind == BEHIND || kind == NOT_BEHIND) return behind(p, kind == NOT_BEHIND, body, out);
    expression_node node = { .kind = kind == ATOMIC ? NODE_ATOMIC : NODE_AHEAD,
                             .a = body,
                             .b = kind == NOT_AHEAD,
                             .nullable = kind != ATOMIC || p->tree->nodes[body].nullable };
    memcpy(node.first, p->tree->nodes[body].first, sizeof node.first);
    return add(p, node, out);
}

static bool parse_part(wf_expression_parser *p, uint32_t *out) {
    wf_code_set set;
    if (accept(p, "(")) return parse_group(p, out);
    if (accept(p, "\\")) return parse_escape(p, out);
    if (accept(p, ".")) return parse_dot(p, out);
    if (accept(p, "^")) return look(p, OP_LINE_START, false, out);
    if (accept(p, "$")) return look(p, OP_LINE_END, false, out);
    if (starts(p, "*") || starts(p, "+") || starts(p, "?")) return refuse(p, "a repeat of nothing");
    if (!accept(p, "[")) return literal(p, next_code(p), out);
    if (!wf_set_new(&set)) return memory(p);
    return finish_set(p, wf_expression_class(p, &set), set, out);
}

/* ---- repeats, sequences, alternatives -------------------------------------------------------- */

static bool number(wf_expression_parser *p, uint32_t *n) {
    bool any = false;
    for (*n = 0; p->rest.bytes && *p->rest.text >= '0' && *p->rest.text <= '9'; skip(p, 1)) {
        *n = *n * 10 + (uint32_t)(*p->rest.text - '0');
        if (*n > 1000) *n = 1001;
        any = true;
    }
    return any;
}

/* Reads {n}, {n,}, {,m} or {n,m}. False: the brace is a literal, and is not taken. */
static bool interval(wf_expression_parser *p, uint32_t *least, uint32_t *most) {
    wf_span from = p->rest;
    skip(p, 1);
    bool low = number(p, least), comma = accept(p, ","), high = comma && number(p, most);
    if (!comma)
        *most = *least;
    else if (!high)
        *most = WF_ENDLESS;
    if ((low || high) && accept(p, "}")) return true;
    p->rest = from;
    return false;
}

/* A character that is repeated without an end becomes a set, whose repeats need one operation. */
static bool repeated(wf_expression_parser *p, uint32_t *node, uint32_t least, uint32_t most,
                     wf_greed greed) {
    if (most == WF_ENDLESS && !text_to_set(p, node)) return false;
    const expression_node *body = &p->tree->nodes[*node];
    if (least > 1000 || (most > 1000 && most != WF_ENDLESS) || most < least)
        return refuse(p, "a repeat of more than 1,000 times, or backwards");
    if (body->nullable && most == WF_ENDLESS) return refuse(p, "a repeat of what may be empty");
    expression_node n = { .kind = NODE_REPEAT,
                          .a = *node,
                          .b = greed,
                          .least = least,
                          .most = most,
                          .nullable = !least || body->nullable };
    memcpy(n.first, body->first, sizeof n.first);
    return add(p, n, node);
}

static bool parse_repeats(wf_expression_parser *p, uint32_t *node) {
    while (p->rest.bytes) {
        uint32_t least = 0, most = WF_ENDLESS;
        wf_greed greed = GREEDY;
        bool braces = false;
        if (accept(p, "?"))
            most = 1;
        else if (accept(p, "+"))
            least = 1;
        else if (!accept(p, "*")) {
            braces = starts(p, "{") && interval(p, &least, &most);
            if (!braces) return true;
        }
        p->last_folded = 0;
        if (braces && starts(p, "?") && least == most) return refuse(p, "a repeat {n}?");
        if (accept(p, "?"))
            greed = LAZY;
        else if (!braces && accept(p, "+"))
            greed = POSSESSIVE;
        if (!repeated(p, node, least, most, greed)) return false;
    }
    return true;
}

static bool join(wf_expression_parser *p, expression_kind kind, uint32_t a, uint32_t b,
                 uint32_t *out) {
    const expression_node *x = &p->tree->nodes[a], *y = &p->tree->nodes[b];
    expression_node n = { .kind = kind, .a = a, .b = b };
    bool both = kind == NODE_OR || x->nullable;
    n.nullable = kind == NODE_OR ? x->nullable || y->nullable : x->nullable && y->nullable;
    for (int i = 0; i < 8; i++) n.first[i] = x->first[i] | (both ? y->first[i] : 0);
    return add(p, n, out);
}

static bool parse_then(wf_expression_parser *p, uint32_t *out) {
    uint32_t part;
    if (!add(p, (expression_node){ .kind = NODE_EMPTY, .nullable = true }, out)) return false;
    p->last_folded = 0;
    while (p->rest.bytes && !starts(p, "|") && !starts(p, ")")) {
        if (!parse_part(p, &part) || !parse_repeats(p, &part)) return false;
        bool alone = p->tree->nodes[*out].kind == NODE_EMPTY;
        if (alone)
            *out = part;
        else if (!join(p, NODE_THEN, *out, part, out))
            return false;
    }
    return true;
}

static bool parse_or(wf_expression_parser *p, uint32_t *out) {
    uint32_t ways[256], n = 0;
    do {
        if (n == 256) return refuse(p, "more than 256 alternatives");
        if (!parse_then(p, &ways[n++])) return false;
    } while (accept(p, "|"));
    *out = ways[n - 1];
    for (uint32_t i = n - 1; i-- > 0;)
        if (!join(p, NODE_OR, ways[i], *out, out)) return false;
    return true;
}

bool wf_expression_parse(expression_tree *t, wf_span pattern, uint32_t *root, char *message) {
    wf_expression_parser p = { .tree = t, .all = pattern, .rest = pattern, .message = message };
    if (!parse_or(&p, root)) return false;
    return !p.rest.bytes || refuse(&p, "a ')' without its '('");
}
