/* core/emit/emit_file.c - an emitted file around its functions: the struct, weights, functions of
 * plain C, what the program calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/basis.h"
#include "core/graph_internal.h"
#include "writer.h"

/* ---- inputs and fetches ---------------------------------------------------------------------- */

/* The names of inputs and fetches must differ as identifiers. */
static bool names_differ(wf_emitter *e, const wf_tensor *const *named, int n) {
    char a[MOST_NAME], b[MOST_NAME];
    wf_identifier(called(named[n - 1]), a, sizeof a);
    for (int k = 0; k + 1 < n; k++) {
        if (named[k] == named[n - 1]) continue;
        wf_identifier(called(named[k]), b, sizeof b);
        if (strcmp(a, b) == 0)
            return wf_emitter_fail(e, "'%s' and '%s' have one name in C: wf_named gives one",
                                   called(named[n - 1]), called(named[k]));
    }
    return true;
}

/* Is it read by a later part alone, or fed to an earlier one, too? */
static bool is_internal(const wf_emitter *e, const wf_tensor *t) {
    for (const part *q = e->now + 1; q < e->parts + e->n_parts; q++)
        if (wf_feed_of(q->plan, t) >= 0) return true;
    return false;
}

/* A function that copies a fetched value, row-major, to `to`. */
static bool write_getter(wf_emitter *e, const wf_tensor *t) {
    const bound_view *v = wf_plan_value(e->now->plan, t);
    char name[MOST_NAME], shape[112];
    wf_text place = { 0 }, loops = { 0 };
    static const int64_t none[1];
    wf_identifier(called(t), name, sizeof name);
    if (!wf_add_place(e, v->at, v->view.dtype, false, &place)) return false;
    const wf_text *one[] = { &place };
    wf_text merged = { 0 };
    wf_merge_numbers(1, one, none, &merged);
    wf_text_print(&loops, "{\nconst %s *from = %s;\nint n = 0;\n", wf_c_type(v->view.dtype),
                  merged.at);
    if (!merged.lacks && !wf_find_word(merged.at, "m")) wf_text_puts(&loops, "(void)m;\n");
    for (int i = 0; i < v->view.ndim; i++)
        wf_text_print(&loops, "for (int i%d = 0; i%d < %n; i%d++)\n", i, i, v->view.shape[i], i);
    wf_text_puts(&loops, "to[n++] = from[0");
    for (int i = 0; i < v->view.ndim; i++)
        wf_text_print(&loops, " + i%d * %n", i, v->view.stride[i]);
    wf_text_puts(&loops, "];\n}\n");
    wf_text_print(&e->getters, "\n/* %s */\nvoid %s_get_%s(const %s *m, %s *to) ",
                  wf_shape_text(NULL, v->view.ndim, v->view.shape, shape, sizeof shape), e->prefix,
                  name, e->prefix, wf_c_type(v->view.dtype));
    bool ok = !loops.lacks && !merged.lacks;
    if (ok) wf_text_indent(&e->getters, loops.at);
    wf_text_free(&place), wf_text_free(&loops), wf_text_free(&merged);
    return ok || wf_emitter_fail(e, "out of memory");
}

/* A fetched value whose size grows with the position has none. */
static bool write_part_getters(wf_emitter *e, const wf_tensor **named, int *n) {
    wf_plan *p = e->now->plan;
    for (int i = 0; i < p->n_nodes; i++) {
        const wf_tensor *t = p->nodes[i].node;
        if (!p->nodes[i].fetched || (t->op && t->op->writes) || is_internal(e, t)) continue;
        named[(*n)++] = t;
        if (!names_differ(e, named, *n) || !write_getter(e, t)) return false;
    }
    return true;
}

bool wf_write_getters(wf_emitter *e) {
    size_t most = 1;
    for (int i = 0; i < e->n_parts; i++) most += (size_t)e->parts[i].plan->n_nodes;
    const wf_tensor **named = calloc(most, sizeof *named);
    int n = 0;
    bool ok = named || wf_emitter_fail(e, "out of memory");
    for (int i = 0; ok && i < e->n_parts; i++) {
        e->now = &e->parts[i];
        ok = write_part_getters(e, named, &n);
    }
    free(named);
    return ok;
}

/* ---- weights --------------------------------------------------------------------------------- */

bool wf_write_weights(wf_emitter *e) {
    const wf_graph *g = e->parts[0].plan->graph;
    for (int k = 0; k < e->n_leaves; k++) {
        wf_tensor *t = g->nodes[e->leaves[k]];
        int64_t n = wf_count(t), room = (n + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
        float *values = malloc(((size_t)n + 1) * sizeof *values);
        if (!values || !wf_read(t, values, (size_t)n * sizeof *values)) {
            free(values);
            return wf_emitter_fail(e, "'%s' cannot be read", called(t));
        }
        wf_text_print(&e->weights, "    /* %s */", called(t));
        for (int64_t i = 0; i < room; i++)
            wf_text_print(&e->weights, i % 8 ? " %f," : "\n    %f,", i < n ? (double)values[i] : 0);
        wf_text_puts(&e->weights, "\n");
        free(values);
    }
    return true;
}

/* ---- plain C -------------------------------------------------------------------------------- */

/* The name that a block of plain C defines: the last word before a parenthesis, a bracket or a
 * semicolon after "static" or "typedef", or the one after "#define". "": none */
static void name_of_block(const char *block, char name[MOST_NAME]) {
    const char *at = strstr(block, "static "), *end;
    name[0] = 0;
    if (at) {
        end = at + strcspn(at, "([;");
    } else if ((at = strstr(block, "#define "))) {
        end = at + 8 + strcspn(at + 8, " (");
    } else if ((at = strstr(block, "typedef "))) {
        end = block + strlen(block);
        while (end > at && *end != ';') end--;
    } else {
        return;
    }
    for (at = end; at > block && at[-1] != ' ' && at[-1] != '*';) at--;
    snprintf(name, MOST_NAME, "%.*s", (int)(end - at), at);
}

static void add_without_comments(wf_text *t, const char *code) {
    for (const char *begin; (begin = strstr(code, "/*"));) {
        wf_text_add(t, code, (size_t)(begin - code));
        const char *end = strstr(begin, "*/");
        code = end ? end + 2 : begin + strlen(begin);
    }
    wf_text_puts(t, code);
}

/* The blocks of the plain C: their lines joined. *n: their number. NULL: out of memory. */
static wf_text *plain_blocks(const char *const *lines, int *n) {
    wf_text *blocks = NULL;
    size_t capacity = 0;
    *n = 0;
    for (bool begins = true; lines && *lines; lines++) {
        if (!**lines) {
            begins = true;
            continue;
        }
        if (begins && !wf_grow(&blocks, &capacity, (size_t)*n + 1, sizeof *blocks)) return NULL;
        if (begins) blocks[(*n)++] = (wf_text){ 0 };
        begins = false;
        wf_text_puts(&blocks[*n - 1], *lines);
    }
    return blocks;
}

/* Does the text use the name that the block defines? A variable may have the name of a function. */
static bool is_used(const char *text, const char *name, const char *block) {
    const char *begin = strstr(block, "static "), *own = begin ? wf_find_word(begin, name) : NULL;
    size_t n = strlen(name);
    bool is_function = own && own[n] == '(';
    for (const char *at = text; (at = wf_find_word(at, name)); at += n)
        if (!is_function || at[n] == '(') return true;
    return false;
}

/* Put the plain functions that `code` names before it, and those that these name. Each needs only
 * earlier ones. */
static bool add_plain(wf_text *code) {
    int n;
    wf_text *blocks = plain_blocks(wf_basis.plain, &n), words = { 0 }, all = { 0 };
    bool *used = calloc((size_t)n + 1, sizeof *used), ok = used && (blocks || !n);
    char name[MOST_NAME];
    add_without_comments(&words, code->at);
    for (int i = n - 1; ok && i >= 0; i--) {
        name_of_block(blocks[i].at, name);
        ok = !blocks[i].lacks && !words.lacks;
        used[i] = ok && name[0] && is_used(words.at, name, blocks[i].at);
        if (used[i]) add_without_comments(&words, blocks[i].at);
    }
    for (int i = 0; ok && i < n; i++)
        if (used[i]) wf_text_print(&all, "%s\n", blocks[i].at);
    for (int i = 0; blocks && i < n; i++) wf_text_free(&blocks[i]);
    wf_text_add(&all, code->at, code->length);
    ok = ok && !words.lacks && !all.lacks;
    free(blocks);
    free(used);
    wf_text_free(&words);
    wf_text_free(code);
    *code = all;
    return ok;
}

/* ---- the struct, and what the program calls -------------------------------------------------- */

static void write_members(wf_emitter *e, wf_text *t) {
    const wf_plan *p = e->now->plan;
    char name[MOST_NAME], shape[112];
    for (int i = 0; i < p->n_feeds; i++) {
        const feed *f = &p->feeds[i];
        const part *of;
        const bound_view *v = wf_plan_value(e->now->plan, f->tensor);
        if (!f->needed || wf_linked(e, f->tensor, &of)) continue;
        wf_identifier(called(f->tensor), name, sizeof name);
        wf_text_print(t, "    const %s *%s; /* %s */\n", wf_c_type(v->view.dtype), name,
                      wf_shape_text(NULL, v->view.ndim, v->view.shape, shape, sizeof shape));
    }
}

static void write_struct(wf_emitter *e, wf_text *t) {
    wf_text_print(t, "typedef struct %s {\n    unsigned char *arena;\n", e->prefix);
    wf_text_print(t, "    %sfloat *weights;\n", e->updates ? "" : "const ");
    wf_text_puts(t, "    /* random bits depend on the step, which every run increments */\n"
                    "    uint64_t step;\n    uint32_t micro_batch;\n");
    for (int i = 0; i < e->n_parts; i++) {
        e->now = &e->parts[i];
        write_members(e, t);
    }
    wf_text_print(t, "} %s;\n\n", e->prefix);
}

static void write_head(wf_emitter *e, wf_text *t) {
    const char *of = e->prefix;
    wf_text_print(t,
                  "/* %s.c - a computation graph as C, which weft %s wrote. It needs no library.\n"
                  " *\n"
                  " * %s_start gives the struct its memory, %s_%s computes, %s_get_... copies\n"
                  " * results. Inputs are members of the struct: set them before a run. */\n",
                  of, wf_version(), of, of, e->parts[0].name, of);
    wf_text_puts(t, "#include <stdint.h>\n\n"
                    "/* A product and a sum are fused only where multiply_add says so. */\n"
                    "#if defined __clang__\n#pragma STDC FP_CONTRACT OFF\n"
                    "#elif defined __GNUC__\n"
                    "#pragma GCC optimize(\"fp-contract=off\")\n#endif\n\n");
    wf_text_print(t, "enum {\n    SCRATCH = %n, /* floats before it */\n", e->memory);
    wf_text_print(t, "    %s_ARENA = %n, /* bytes of memory, aligned to 64 */\n", of,
                  e->memory * 4 + (e->scratch * 4 + 63) / 64 * 64);
    wf_text_print(t, "    %s_WEIGHTS = %n, /* floats */\n};\n\n", of, e->n_weights);
    if (e->names.length)
        wf_text_print(t, "/* Where a leaf begins in the weights. */\nenum {\n%s};\n\n",
                      e->names.at);
    write_struct(e, t);
}

/* Functions that the code calls are written only if it does: compilers warn of others. */
static void write_helpers(const wf_emitter *e, const char *code, wf_text *t) {
    if (strstr(code, "floats(m, "))
        wf_text_print(t,
                      "static float *floats(const %s *m, int i) {\n"
                      "    return (float *)(void *)m->arena + i;\n}\n\n",
                      e->prefix);
    if (strstr(code, "ints(m, "))
        wf_text_print(t,
                      "static int32_t *ints(const %s *m, int i) {\n"
                      "    return (int32_t *)(void *)m->arena + i;\n}\n\n",
                      e->prefix);
    if (strstr(code, "stream_of(m)"))
        wf_text_print(t,
                      "static uint64_t stream_of(const %s *m) {\n"
                      "    return mix(m->step << 32 | m->micro_batch);\n}\n\n",
                      e->prefix);
}

static void write_runs(const wf_emitter *e, wf_text *t) {
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        wf_text_print(t, "\nint %s_%s(%s *m%s) {\n%s", e->prefix, q->name, e->prefix,
                      q->plan->with_state ? ", int position" : "", q->run.at ? q->run.at : "");
        wf_text_puts(t, "    m->step++;\n    return 0;\n}\n");
    }
}

/* A function that copies a row of the caches of a plan with a state. */
static void write_copies(const wf_emitter *e, wf_text *t) {
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        const binding *b = q->plan->now;
        if (!q->plan->with_state || b->batch < 2) continue;
        wf_text_print(t, "\nvoid %s_%s_copy(const %s *m, int from, int to) {\n", e->prefix, q->name,
                      e->prefix);
        for (int k = 0; k < b->n_slots; k++) {
            int64_t n = wf_slot_floats(&b->slots[k]), at = wf_slot_at(q, k);
            wf_text_print(t,
                          "    for (int i = 0; i < %n; i++)\n"
                          "        floats(m, %n)[to * %n + i] = floats(m, %n)[from * %n + i];\n",
                          n, at, n, at, n);
        }
        wf_text_puts(t, "}\n");
    }
}

static void write_end(const wf_emitter *e, wf_text *t) {
    const char *of = e->prefix;
    wf_text_print(t, "void %s_start(%s *m, void *arena%s) {\n    m->arena = arena;\n", of, of,
                  e->updates ? ", float *weights" : "");
    if (e->updates)
        wf_text_print(t,
                      "    m->weights = weights;\n"
                      "    for (int i = 0; i < %s_WEIGHTS; i++) weights[i] = first_weights[i];\n",
                      of);
    else
        wf_text_puts(t, "    m->weights = first_weights;\n");
    wf_text_puts(t, "    m->step = 0;\n    m->micro_batch = 0;\n}\n");
    write_runs(e, t);
    write_copies(e, t);
    if (e->getters.length) wf_text_puts(t, e->getters.at);
}

char *wf_join_file(wf_emitter *e) {
    if ((double)(e->memory + e->scratch) * 4 > INT32_MAX - 64 || e->n_weights > INT32_MAX) {
        wf_emitter_fail(e, "its memory is 2^31 bytes or more, which has no form in C");
        return NULL;
    }
    wf_text code = { 0 }, end = { 0 }, file = { 0 };
    wf_text_puts(&code, e->functions.at ? e->functions.at : "");
    wf_text_puts(&code, e->modules.at ? e->modules.at : "");
    write_end(e, &end);
    bool ok = !code.lacks && !end.lacks;
    if (ok) {
        wf_text whole = { 0 };
        wf_text_puts(&code, end.at);
        write_helpers(e, code.at, &whole);
        wf_text_puts(&whole, code.at);
        wf_text_free(&code);
        code = whole;
    }
    ok = ok && !code.lacks && add_plain(&code);
    write_head(e, &file);
    wf_text_print(&file,
                  "/* The leaves' values: parameters, buffers, constants. */\n"
                  "static const float first_weights[%n] = {\n%s};\n\n",
                  e->n_weights ? e->n_weights : 1, e->n_weights ? e->weights.at : "    0\n");
    if (e->tables.length) wf_text_puts(&file, e->tables.at);
    if (ok) wf_text_puts(&file, code.at);
    ok = ok && !file.lacks && !e->functions.lacks && !e->modules.lacks && !e->weights.lacks &&
         !e->tables.lacks && !e->names.lacks && !e->getters.lacks && !e->calls.lacks;
    wf_text_free(&code), wf_text_free(&end);
    if (ok) return file.at;
    wf_text_free(&file);
    wf_emitter_fail(e, "out of memory");
    return NULL;
}
