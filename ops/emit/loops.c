/* ops/emit/loops.c - loops in C over strided views. See loops.h. */
#include "loops.h"

#include <stdio.h>
#include <string.h>

#include "ops/base/walk.h"

void wf_emit_rows(wf_emitter *e, const wf_walk *w, char letter) {
    const char name[] = { letter, 0 };
    for (int k = 0; k < w->ndim; k++)
        wf_emit_text(e, "for (int %s%d = 0; %s%d < %n; %s%d++)\n", name, k, name, k, w->shape[k],
                     name, k);
}

/* Write the term "+ i0 * 12" of an offset, without the + if it is the first term. */
static void add_term(wf_emitter *e, bool *any, const char *index, int64_t stride) {
    if (stride == 0) return;
    wf_emit_text(e, *any ? " + " : "");
    *any = true;
    if (stride == 1)
        wf_emit_text(e, "%s", index);
    else
        wf_emit_text(e, "%s * %n", index, stride);
}

static bool add_row(wf_emitter *e, const wf_walk *w, char letter, int v) {
    bool any = false;
    for (int k = 0; k < w->ndim; k++) {
        char index[16];
        snprintf(index, sizeof index, "%c%d", letter, k);
        add_term(e, &any, index, w->stride[v][k]);
    }
    return any;
}

void wf_emit_row_at(wf_emitter *e, const wf_walk *w, char letter, int v) {
    if (!add_row(e, w, letter, v)) wf_emit_text(e, "0");
}

void wf_emit_element_at(wf_emitter *e, const wf_walk *w, int v, const char *j) {
    bool any = add_row(e, w, 'i', v);
    add_term(e, &any, j, w->columns > 1 ? w->step[v] : 0);
    if (!any) wf_emit_text(e, "0");
}

static bool is_type(const char *word) {
    static const char *const types[] = { "float", "int32_t", "uint32_t", "int64_t" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(word, types[i]) == 0) return true;
    return false;
}

/* Writes a word of the expression: the name of an operand becomes its element, and another word its
 * name in plain C. */
static bool add_word(wf_emitter *e, const wf_call *c, const wf_walk *w, const char *word) {
    char name[64];
    for (int i = 0; i < c->n_in; i++) {
        if (strcmp(word, wf_emit_operand(e, i)) != 0) continue;
        wf_emit_text(e, "%s[", word);
        wf_emit_element_at(e, w, i + 1, "j");
        wf_emit_text(e, "]");
        return true;
    }
    if (strcmp(word, "ALL") == 0) return true;
    if (strcmp(word, "real") == 0) word = "float";
    snprintf(name, sizeof name, strncmp(word, "v_", 2) == 0 ? "%s_of" : "%s",
             strncmp(word, "v_", 2) == 0 ? word + 2 : word);
    wf_emit_text(e, "%s", name);
    bool is_macro = word[0] >= 'A' && word[0] <= 'Z';
    return is_macro || is_type(name) || wf_plain_defines(name) ||
           wf_fail(c, "%s has no form in C", name);
}

/* The length of the number at the start of the text, with its exponent and suffix, such as
 * 0x1.8p-3f. */
static size_t number_length(const char *text) {
    size_t n = 0;
    while (wf_is_word(text[n]) || text[n] == '.' ||
           ((text[n] == '-' || text[n] == '+') && (text[n - 1] == 'p' || text[n - 1] == 'e')))
        n++;
    return n;
}

static bool add_value(wf_emitter *e, const wf_call *c, const wf_walk *w, const char *value) {
    while (*value) {
        char word[64];
        size_t n = 0;
        bool number = *value >= '0' && *value <= '9';
        while (wf_is_word(value[n])) n++;
        if (number) n = number_length(value);
        if (n == 0) n = 1;
        snprintf(word, sizeof word, "%.*s", (int)n, value);
        value += n;
        if (!wf_begins_word(word[0]))
            wf_emit_text(e, "%s", word);
        else if (!add_word(e, c, w, word))
            return false;
    }
    return true;
}

/* Loops over the elements of out[0] with "out[...] = value;", or "if (value) return 1;". */
static bool emit_loops(wf_emitter *e, const wf_call *c, bool assigns, const char *value) {
    const wf_view *views[WF_WALKERS] = { &c->out[0] };
    wf_walk w;
    for (int i = 0; i < c->n_in; i++) views[i + 1] = &c->in[i];
    wf_walk_start(&w, c->n_in + 1, views);
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++)\n", w.columns);
    if (assigns) {
        wf_emit_text(e, "out[");
        wf_emit_element_at(e, &w, 0, "j");
    }
    wf_emit_text(e, assigns ? "] = " : "if (");
    bool ok = add_value(e, c, &w, value);
    wf_emit_text(e, assigns ? ";\n" : ") return 1;\n");
    return ok;
}

bool wf_emit_choice(wf_emitter *e, const wf_call *c, const char *value) {
    return emit_loops(e, c, true, value);
}

bool wf_emit_fails_if(wf_emitter *e, const wf_call *c, const char *condition) {
    wf_emit_may_fail(e);
    return emit_loops(e, c, false, condition);
}

bool wf_emit_elements(wf_emitter *e, const wf_call *c, const char *value) {
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].dtype == WF_I32) return wf_fail(c, "on i32 it has no form in C");
    return wf_emit_choice(e, c, value);
}

void wf_emit_copy(wf_emitter *e, const wf_view *to, const wf_view *from, const char *value) {
    wf_walk w;
    wf_walk_start(&w, 2, (const wf_view *[]){ to, from });
    wf_emit_rows(e, &w, 'i');
    wf_emit_text(e, "for (int j = 0; j < %n; j++)\nout[", w.columns);
    wf_emit_element_at(e, &w, 0, "j");
    wf_emit_text(e, "] = %s[", value);
    wf_emit_element_at(e, &w, 1, "j");
    wf_emit_text(e, "];\n");
}

/* ---- sums over rows -------------------------------------------------------------------------- */

int64_t wf_emit_ranges(wf_emitter *e, const char *name, int64_t n, int64_t grain) {
    int64_t count = wf_task_count(n, grain), from, to;
    wf_emit_text(e, "static const int %s[] = { 0", name);
    for (int64_t i = 0; i < count; i++) {
        wf_task_range(n, grain, i, &from, &to);
        wf_emit_text(e, i % 12 < 11 ? ", %n" : ",\n%n", to);
    }
    wf_emit_text(e, " };\n");
    return count;
}

void wf_emit_block_begin(wf_emitter *e, int64_t rows, int64_t grain, int64_t n, int sums) {
    /* a single sum is result 1, such as dweight; result 0, such as dx, has all rows */
    int first = sums == 1;
    int64_t count = wf_emit_ranges(e, "block", rows, grain);
    wf_emit_scratch(e, sums * n);
    for (int k = 0; k < sums; k++)
        wf_emit_text(e, "for (int j = 0; j < %n; j++) %s[j] = 0;\n", n,
                     wf_emit_result(e, first + k, NULL));
    wf_emit_text(e, "for (int b = 0; b < %n; b++) {\n", count);
    wf_emit_text(e, "for (int j = 0; j < %n; j++) scratch[j] = 0;\n", sums * n);
    wf_emit_text(e, "for (int r = block[b]; r < block[b + 1]; r++)\n");
}

void wf_emit_block_end(wf_emitter *e, int64_t n, int sums) {
    int first = sums == 1;
    for (int k = 0; k < sums; k++)
        wf_emit_text(e, "for (int j = 0; j < %n; j++) %s[j] += scratch[%n + j];\n", n,
                     wf_emit_result(e, first + k, NULL), k * n);
    wf_emit_text(e, "}\n");
}
