/* core/emit/emit_modules.c - the functions that steps call, and the functions of modules, which
 * call them. */
#include <stdio.h>
#include <string.h>

#include "emit_sections.h"
#include "emit_steps.h"

/* The most calls in one function that is named after a module. */
enum { MOST_CALLS = 40 };

/* The function whose parameters and body are `code`. If no earlier step had the same code, the
 * function is written to the file. NULL after a failure. */
static const form *form_of(wf_emitter *e, const step_text *s, const char *name, const char *code) {
    for (size_t i = 0; i < e->n_forms; i++)
        if (strcmp(e->codes.at + e->forms[i].code, code) == 0) return &e->forms[i];
    if (!wf_grow(&e->forms, &e->cap_forms, e->n_forms + 1, sizeof *e->forms)) {
        wf_emitter_lacks(e);
        return NULL;
    }
    form *f = &e->forms[e->n_forms];
    f->code = e->codes.length;
    if (!wf_claim_name(e, name, f->name)) return NULL;
    wf_text_add(&e->codes, code, strlen(code) + 1);
    if (s->formula) {
        wf_text_puts(&e->functions, "/* ");
        wf_text_comment(&e->functions, s->formula);
        wf_text_puts(&e->functions, " */\n");
    }
    wf_text_print(&e->functions, "static %s %s", s->may_fail ? "int" : "void", f->name);
    wf_text_indent(&e->functions, code);
    wf_text_puts(&e->functions, "\n");
    if (e->codes.lacks) {
        wf_emitter_lacks(e);
        return NULL;
    }
    e->n_forms++;
    return f;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void add_module(wf_emitter *e, const char *name) {
    const char *type = e->module_fails ? "int" : "void", *by = wf_variable(e->now);
    char argument[16] = "";
    if (e->module_moves) snprintf(argument, sizeof argument, ", %s", by);
    wf_text_print(&e->modules, "static %s %s(const %s *m%s%s) {\n", type, name, e->prefix,
                  e->module_moves ? ", int " : "", e->module_moves ? by : "");
    if (!wf_find_word(wf_text_of(&e->calls), "m")) wf_text_puts(&e->modules, "    (void)m;\n");
    wf_text_puts(&e->modules, wf_text_of(&e->calls));
    wf_text_puts(&e->modules, e->module_fails ? "    return 0;\n}\n\n" : "}\n\n");
    wf_text_print(&e->now->run, e->module_fails ? "    if (%s(m%s)) return 1;\n" : "    %s(m%s);\n",
                  name, argument);
}

bool wf_end_module(wf_emitter *e) {
    char wanted[MOST_NAME + 16], name[MOST_NAME];
    if (!e->n_calls) return true;
    e->n_modules++;
    snprintf(wanted, sizeof wanted, "%s_%d", e->module, e->n_modules);
    if (!wf_claim_name(e, wanted, name)) return false;
    add_module(e, name);
    bool ok = !e->calls.lacks && !e->modules.lacks && !e->now->run.lacks;
    e->calls.length = 0;
    if (e->calls.at) e->calls.at[0] = 0;
    e->n_calls = 0;
    e->module_fails = e->module_moves = false;
    return ok || wf_emitter_lacks(e);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The texts of a step, merged for all positions or sizes. */
typedef struct merged {
    wf_text name, code, arguments, results;
    bool moves; /* the code depends on the position or size */
    bool lies;  /* the arguments depend on the position or size */
} merged;

static void free_merged(merged *to) {
    wf_text_free(&to->name);
    wf_text_free(&to->code);
    wf_text_free(&to->arguments);
    wf_text_free(&to->results);
}

static bool merge(wf_emitter *e, int n, step_text *const *s, const int64_t *positions, merged *to) {
    const wf_text *texts[4][MOST_POSITIONS];
    bool any = false, ok;
    for (int i = 0; i < n; i++) {
        texts[0][i] = &s[i]->name;
        texts[1][i] = &s[i]->code;
        texts[2][i] = &s[i]->arguments;
        texts[3][i] = &s[i]->results;
    }
    ok = wf_merge_numbers(e->now, n, texts[0], positions, "n", &to->name, &any) &&
         wf_merge_numbers(e->now, n, texts[1], positions, NULL, &to->code, &to->moves) &&
         wf_merge_numbers(e->now, n, texts[2], positions, NULL, &to->arguments, &to->lies) &&
         wf_merge_numbers(e->now, n, texts[3], positions, NULL, &to->results, &any);
    if (!ok)
        return wf_emitter_fail(e, "%.80s: at another position it is computed otherwise",
                               s[0]->module);
    return (!to->name.lacks && !to->code.lacks && !to->arguments.lacks && !to->results.lacks) ||
           wf_emitter_lacks(e);
}

/* Insert a parameter or an argument before the first occurrence of the text `end`. */
static bool insert_last(wf_emitter *e, wf_text *t, const char *end, const char *what) {
    wf_text with = { 0 };
    const char *at = strstr(wf_text_of(t), end);
    size_t n = (size_t)(at - t->at);
    wf_text_add(&with, t->at, n);
    wf_text_print(&with, t->at[n - 1] == '(' ? "%s" : ", %s", what);
    wf_text_puts(&with, at);
    wf_text_free(t);
    *t = with;
    return !t->lacks || wf_emitter_lacks(e);
}

static bool add_call(wf_emitter *e, const step_text *s, const merged *to, const form *f) {
    const char *arguments = to->arguments.at;
    int n = (int)to->arguments.length - 1;
    char all[16] = "";
    if (to->moves) snprintf(all, sizeof all, "%s%s", n > 1 ? ", " : "", wf_variable(e->now));
    wf_text_print(&e->calls, s->may_fail ? "    if (%s" : "    %s", f->name);
    wf_text_add(&e->calls, arguments, (size_t)n);
    wf_text_print(&e->calls, s->may_fail ? "%s)) return 1;" : "%s);", all);
    if (to->results.length) {
        wf_text_puts(&e->calls, " /* ");
        wf_text_comment(&e->calls, to->results.at);
        wf_text_puts(&e->calls, " */");
    }
    wf_text_puts(&e->calls, "\n");
    e->module_fails |= s->may_fail;
    e->module_moves |= to->moves || to->lies;
    e->updates |= s->writes;
    e->n_calls++;
    return !e->calls.lacks || wf_emitter_lacks(e);
}

bool wf_write_step(wf_emitter *e, int n, step_text *const *s, const int64_t *positions) {
    merged to = { .moves = false };
    char parameter[16];
    if (!s[0]->code.length) return true;
    bool ok = merge(e, n, s, positions, &to);
    if (e->n_calls == MOST_CALLS || strcmp(s[0]->module, e->module) != 0)
        ok = ok && wf_end_module(e);
    strcpy(e->module, s[0]->module);
    snprintf(parameter, sizeof parameter, "int %s", wf_variable(e->now));
    if (ok && to.moves) ok = insert_last(e, &to.code, ") {", parameter);
    const form *f = ok ? form_of(e, s[0], to.name.at, to.code.at) : NULL;
    ok = f && add_call(e, s[0], &to, f);
    free_merged(&to);
    return ok;
}
