/* core/emit/emit_names.c - names in an emitted file. Names by which programs use the file follow
 * from the graph's names. Any other name gets a number if it is already taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit_places.h"
#include "emit_sections.h"

/* Names that the emitter must not choose: keywords of C11, names of headers and compilers, names
 * that emitted files declare, and parameters of their functions. */
static const char *const words[] = {
    "auto",     "break",     "case",        "char",          "const",    "continue",  "default",
    "do",       "double",    "else",        "enum",          "extern",   "float",     "for",
    "goto",     "if",        "inline",      "int",           "long",     "register",  "restrict",
    "return",   "short",     "signed",      "sizeof",        "static",   "struct",    "switch",
    "typedef",  "union",     "unsigned",    "void",          "volatile", "while",     "asm",
    "typeof",   "int32_t",   "uint32_t",    "int64_t",       "uint64_t", "INT32_MAX", "INT32_MIN",
    "UINT32_C", "UINT64_C",  "INT64_C",     "main",          "linux",    "unix",      "floats",
    "ints",     "stream_of", "SCRATCH",     "first_weights", "m",        "position",  "size",
    "size_t",   "uintptr_t", "checksum_of", "first_int8"
};

bool wf_is_word_of_c(const char *name) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0) return true;
    return false;
}

static bool is_free_name(const char *name) {
    return !wf_is_word_of_c(name) && !wf_plain_defines(name);
}

/* ---- file scope ------------------------------------------------------------------------------ */

static bool is_taken(const wf_emitter *e, const char *name) {
    return wf_find_word(wf_text_of(&e->taken), name) || !is_free_name(name);
}

static bool take(wf_emitter *e, const char *name) {
    wf_text_print(&e->taken, "%s\n", name);
    return !e->taken.lacks || wf_emitter_lacks(e);
}

void wf_leaf_name(const wf_tensor *t, char name[MOST_NAME]) {
    wf_identifier(t->name && t->name[0] ? t->name : "constant", name, MOST_NAME);
}

/* Claim a name at file scope. Only leaves have names that begin with at_ or ids_, and their ids
 * make these unique; another name that begins so gets "in_" in front. */
bool wf_claim_name(wf_emitter *e, const char *wanted, char name[MOST_NAME]) {
    bool as_leaf = strncmp(wanted, "at_", 3) == 0 || strncmp(wanted, "ids_", 4) == 0;
    snprintf(name, MOST_NAME, "%s%.100s", as_leaf ? "in_" : "", wanted);
    size_t n = strlen(name);
    for (int number = 2; is_taken(e, name); number++)
        snprintf(name + n, MOST_NAME - n, "_%d", number);
    return take(e, name);
}

/* Claim a name by which programs use the emitted file, such as model_start. The emitter cannot add
 * a number to such a name, so it is an error if the name is taken. */
static bool claim(wf_emitter *e, const char *name) {
    if (wf_find_word(wf_text_of(&e->taken), name))
        return wf_emitter_fail(e, "two things of the file would be called '%s'", name);
    return take(e, name);
}

static bool claim_end(wf_emitter *e, const char *middle, const char *end) {
    char name[2 * MOST_PREFIX + 16];
    snprintf(name, sizeof name, "%s_%s%s", e->prefix, middle, end);
    return claim(e, name);
}

void wf_getter_name(const wf_emitter *e, const part *of, const char *verb, const wf_tensor *t,
                    char *to, size_t size) {
    int parts = 0;
    char name[MOST_NAME];
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        int at = t->id < q->plan->n_index ? q->plan->index[t->id] : -1;
        parts += at >= 0 && wf_has_getter(e, q, at);
    }
    wf_identifier(called(t), name, sizeof name);
    snprintf(to, size, "%s_%s%s%s_%s", e->prefix, parts > 1 ? of->name : "", parts > 1 ? "_" : "",
             verb, name);
}

static bool claim_getters(wf_emitter *e, const part *q) {
    char name[2 * MOST_PREFIX + MOST_NAME + 8];
    for (int i = 0; i < q->plan->n_nodes; i++) {
        if (!wf_has_getter(e, q, i)) continue;
        const wf_tensor *t = q->plan->nodes[i].node;
        wf_getter_name(e, q, "see", t, name, sizeof name);
        if (e->in_order && !claim(e, name)) return false;
        wf_getter_name(e, q, "get", t, name, sizeof name);
        if (wf_find_word(wf_text_of(&e->taken), name))
            return wf_emitter_fail(e, "two fetches have one name in C, '%s': wf_named gives one",
                                   name);
        if (!take(e, name)) return false;
    }
    return true;
}

bool wf_claim_public(wf_emitter *e) {
    if (!is_free_name(e->prefix))
        return wf_emitter_fail(e, "'%s' cannot be the prefix: it is a word of C or of the file",
                               e->prefix);
    bool ok = claim(e, e->prefix) && claim_end(e, "start", "") && claim_end(e, "ARENA", "") &&
              claim_end(e, "WEIGHTS", "") && claim_end(e, "FILE", "") && claim_end(e, "INT8", "");
    for (const part *q = e->parts; ok && q < e->parts + e->n_parts; q++)
        ok = claim_end(e, q->name, "") && claim_end(e, q->name, "_copy") &&
             (e->kept_runs == 1 || claim_end(e, q->name, "_keep")) &&
             claim_end(e, q->name, "_LAST") && claim_end(e, q->name, "_MOST") &&
             claim_getters(e, q);
    return ok;
}

/* ---- members --------------------------------------------------------------------------------- */

/* True if the emitted struct has a member of this name that is no input: "arena", "weights",
 * "int8_weights", "run_step", "run_micro_batch". */
static bool is_own_member(const wf_emitter *e, const char *name) {
    if (strcmp(name, "arena") == 0 || strcmp(name, "weights") == 0) return true;
    if (strcmp(name, "int8_weights") == 0) return true;
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        size_t n = strlen(q->name);
        if (strncmp(name, q->name, n) != 0) continue;
        if (strcmp(name + n, "_step") == 0 || strcmp(name + n, "_micro_batch") == 0) return true;
    }
    return false;
}

/* True if no member for an input may have this name. The names of parameters (m, position, size)
 * are allowed. */
static bool is_reserved(const wf_emitter *e, const char *name) {
    static const char *const parameters[] = { "m", "position", "size" };
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        if (strcmp(name, parameters[i]) == 0) return false;
    return is_own_member(e, name) || !is_free_name(name);
}

const char *wf_member_of(const wf_emitter *e, const wf_tensor *input) {
    for (int i = 0; i < e->n_inputs; i++)
        if (e->inputs[i].input == input) return e->inputs[i].name;
    return NULL;
}

static bool name_member(wf_emitter *e, const wf_tensor *input) {
    member *made = &e->inputs[e->n_inputs];
    size_t n = wf_identifier(called(input), made->name, sizeof made->name);
    if (n + 1 < sizeof made->name && is_reserved(e, made->name)) strcat(made->name, "_");
    made->input = input;
    for (int i = 0; i < e->n_inputs; i++)
        if (strcmp(e->inputs[i].name, made->name) == 0)
            return wf_emitter_fail(e, "'%s' and '%s' have one name in C: wf_named gives one",
                                   called(input), called(e->inputs[i].input));
    e->n_inputs++;
    return true;
}

bool wf_name_members(wf_emitter *e) {
    size_t most = 1;
    for (int i = 0; i < e->n_parts; i++) most += (size_t)e->parts[i].plan->n_feeds;
    e->inputs = calloc(most, sizeof *e->inputs);
    if (!e->inputs) return wf_emitter_lacks(e);
    for (int i = 0; i < e->n_parts; i++) {
        const wf_plan *p = e->parts[i].plan;
        e->now = &e->parts[i];
        for (int k = 0; k < p->n_feeds; k++) {
            const wf_tensor *t = p->feeds[k].tensor;
            const part *of;
            if (!p->feeds[k].needed || wf_linked(e, t, &of) || wf_member_of(e, t)) continue;
            if (!name_member(e, t)) return false;
        }
    }
    return true;
}
