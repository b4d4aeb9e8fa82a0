/* models/emit/emit_expressions.c - programs of regular expressions and sets of code points as
 * tables of C; see json_emitter.h. */
#include <stdlib.h>
#include <string.h>

#include "json_emitter.h"
#include "models/text/characters/characters.h"

/* ---- sets ------------------------------------------------------------------------------------ */

/* Ranges of code points while they are written. A range that touches the last one extends it. */
typedef struct ranges {
    wf_text text;
    uint32_t first, last;
    int64_t n;
} ranges;

static void end_range(ranges *r) {
    if (!r->n) return;
    wf_text_puts(&r->text, r->n % 6 == 1 ? "\n    " : " ");
    wf_text_print(&r->text, "{ %n, %n },", (int64_t)r->first, (int64_t)r->last);
}

static void add_range(ranges *r, uint32_t first, uint32_t last) {
    if (r->n && r->last + 1 == first) {
        r->last = last;
        return;
    }
    end_range(r);
    r->first = first;
    r->last = last;
    r->n++;
}

static void put_ranges(const wf_code_set *s, ranges *r) {
    for (uint32_t c = 0x80; c < 0x10000; c++)
        if (s->bits[c >> 5] >> (c & 31) & 1) add_range(r, c, c);
    for (size_t i = 0; i < s->n_ranges; i += 2) add_range(r, s->ranges[i], s->ranges[i + 1]);
    end_range(r);
}

int wf_write_set(json_emitter *e, const wf_code_set *s) {
    ranges r = { .n = 0 };
    wf_text head = { 0 };
    put_ranges(s, &r);
    wf_text_print(&head, "{ %n, %n, %n, %n }", (int64_t)s->bits[0], (int64_t)s->bits[1],
                  (int64_t)s->bits[2], (int64_t)s->bits[3]);
    wf_text_puts(&r.text, head.at ? head.at : "");
    bool ok = !head.lacks && !r.text.lacks;
    wf_text_free(&head);
    for (size_t i = 0; ok && i < e->n_sets; i++)
        if (strcmp(e->sets[i].at, r.text.at) == 0) {
            wf_text_free(&r.text);
            return (int)i;
        }
    ok = ok && wf_grow(&e->sets, &e->sets_capacity, e->n_sets + 1, sizeof *e->sets);
    if (!ok) {
        wf_text_free(&r.text);
        return fail(e->message, "out of memory"), -1;
    }
    const char *ascii = strrchr(r.text.at, '{');
    int number = (int)e->n_sets;
    e->sets[e->n_sets++] = r.text;
    if (r.n) {
        wf_text_print(e->tables, "static const uint32_t %s_ranges_%d[][2] = {", e->side, number);
        wf_text_add(e->tables, r.text.at, (size_t)(ascii - r.text.at));
        wf_text_puts(e->tables, "\n};\n");
    }
    wf_text_print(e->tables, "static const code_set %s_set_%d = { %s, ", e->side, number, ascii);
    if (r.n)
        wf_text_print(e->tables, "%s_ranges_%d, %n };\n\n", e->side, number, r.n);
    else
        wf_text_puts(e->tables, "0, 0 };\n\n");
    return number;
}

static bool fill_set(wf_code_set *s, bool (*has)(uint32_t code), char *message) {
    if (!wf_set_new(s)) return fail(message, "out of memory");
    for (uint32_t c = 0, from = 0; c <= LAST_CODE_POINT; c++) {
        if (has(c) && c < LAST_CODE_POINT) continue;
        uint32_t end = has(c) ? c + 1 : c;
        if (end > from && !wf_set_add(s, from, end - 1)) return fail(message, "out of memory");
        from = c + 1;
    }
    return true;
}

int wf_write_set_of(json_emitter *e, bool (*has)(uint32_t code)) {
    wf_code_set s = { 0 };
    int number = fill_set(&s, has, e->message) ? wf_write_set(e, &s) : -1;
    wf_set_free(&s);
    return number;
}

/* ---- programs -------------------------------------------------------------------------------- */

enum { MOST_CHOICES = 256 };

/* Count the most entries that the backtracking stack may have. Without backward jumps a path runs
 * each operation at most once, so the text's length does not matter. Refuse programs with backward
 * jumps, and those that need more than MOST_CHOICES entries. */
static bool count_choices(json_emitter *e, const wf_expression *x) {
    int64_t n = 1;
    for (size_t i = 0; i < x->n; i++) {
        const wf_instruction *c = &x->code[i];
        if (c->op == OP_JUMP && c->a <= i)
            return fail(e->message,
                        "an expression of a tokenizer.json that repeats a group without "
                        "an end has no form in C");
        n += c->op == OP_SPLIT || c->op == OP_AHEAD || c->op == OP_ATOMIC ||
             (c->op == OP_REPEAT && c->b != POSSESSIVE);
    }
    if (n > MOST_CHOICES)
        return fail(e->message,
                    "an expression of a tokenizer.json with more than %d choices has no "
                    "form in C",
                    MOST_CHOICES);
    if (n > e->x->choices) e->x->choices = n;
    return true;
}

static void put_first(wf_text *t, const uint32_t first[8]) {
    for (int i = 0; i < 8; i++) wf_text_print(t, i ? ", %n" : "    { %n", (int64_t)first[i]);
    wf_text_puts(t, " },\n");
}

static void put_instruction(wf_text *t, const wf_instruction *i, int64_t most) {
    static const char *const names[] = {
        [OP_MATCH] = "MATCH",
        [OP_TEXT] = "TEXT",
        [OP_SET] = "SET",
        [OP_REPEAT] = "REPEAT",
        [OP_SPLIT] = "SPLIT",
        [OP_JUMP] = "JUMP",
        [OP_AHEAD] = "AHEAD",
        [OP_BEHIND] = "BEHIND",
        [OP_ATOMIC] = "ATOMIC",
        [OP_END] = "END",
        [OP_START] = "START",
        [OP_STOP] = "STOP",
        [OP_LINE_START] = "LINE_START",
        [OP_LINE_END] = "LINE_END",
        [OP_WORD_EDGE] = "WORD_EDGE",
    };
    wf_text_print(t, "    { OP_%s, %n, %n, %n, %n },\n", names[i->op], (int64_t)i->a, (int64_t)i->b,
                  (int64_t)i->least, most);
}

/* Write the expression's sets. numbers[i] receives the number of set i. */
static bool write_sets(json_emitter *e, const wf_expression *x, int *numbers) {
    for (size_t i = 0; i < x->n_sets; i++)
        if ((numbers[i] = wf_write_set(e, &x->sets[i])) < 0) return false;
    return true;
}

static void write_code(json_emitter *e, const wf_expression *x) {
    wf_text *t = e->tables;
    int number = e->n_expressions;
    int64_t firsts = 0;
    wf_text_print(t, "static const uint32_t %s_first_%d[][8] = {\n", e->side, number);
    put_first(t, x->first);
    for (size_t i = 0; i < x->n; i++)
        if (x->code[i].op == OP_SPLIT) put_first(t, x->code[i].first);
    wf_text_print(t, "};\nstatic const instruction %s_code_%d[] = {\n", e->side, number);
    for (size_t i = 0; i < x->n; i++) {
        const wf_instruction *c = &x->code[i];
        put_instruction(t, c, c->op == OP_SPLIT ? ++firsts : (int64_t)c->most);
    }
    wf_text_puts(t, "};\n");
}

int wf_write_expression(json_emitter *e, const wf_expression *x) {
    wf_text *t = e->tables;
    int number = e->n_expressions, *sets = calloc(x->n_sets + 1, sizeof *sets);
    char literals[64];
    bool ok = sets || fail(e->message, "out of memory");
    ok = ok && count_choices(e, x) && write_sets(e, x, sets);
    if (ok) write_code(e, x);
    if (ok && x->n_sets) {
        wf_text_print(t, "static const code_set *const %s_sets_%d[] = {\n   ", e->side, number);
        for (size_t i = 0; i < x->n_sets; i++) wf_text_print(t, " &%s_set_%d,", e->side, sets[i]);
        wf_text_puts(t, "\n};\n");
    }
    free(sets);
    if (!ok) return -1;
    size_t bytes = x->literals_capacity ? x->n_literals : 0;
    for (size_t i = 0; i < x->n; i++) /* n_literals lacks the text of wf_expression_literal */
        if (x->code[i].op == OP_TEXT && x->code[i].a + x->code[i].b > bytes)
            bytes = x->code[i].a + x->code[i].b;
    snprintf(literals, sizeof literals, "%s_literals_%d", e->side, number);
    if (bytes)
        wf_write_bytes(t, literals, "Texts of the expression.", (const unsigned char *)x->literals,
                       (int64_t)bytes);
    wf_text_print(t, "static const expression %s_expression_%d = { %s_code_%d, ", e->side, number,
                  e->side, number);
    if (x->n_sets)
        wf_text_print(t, "%s_sets_%d, ", e->side, number);
    else
        wf_text_puts(t, "0, ");
    wf_text_print(t, "%s_first_%d, %s };\n\n", e->side, number, bytes ? literals : "0");
    return e->n_expressions++;
}

int wf_write_character(json_emitter *e, const wf_code_set *s) {
    wf_instruction code[] = { { .op = OP_SET }, { .op = OP_MATCH } };
    wf_expression x = { .code = code, .n = 2, .sets = (wf_code_set *)(uintptr_t)s, .n_sets = 1 };
    for (int i = 0; i < 4; i++) x.first[i] = s->bits[i];
    for (int i = 4; i < 8; i++) x.first[i] = UINT32_MAX;
    return wf_write_expression(e, &x);
}

int wf_write_character_of(json_emitter *e, bool (*has)(uint32_t code)) {
    wf_code_set s = { 0 };
    int number = fill_set(&s, has, e->message) ? wf_write_character(e, &s) : -1;
    wf_set_free(&s);
    return number;
}
