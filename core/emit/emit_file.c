/* core/emit/emit_file.c - an emitted file around its functions: the struct, weights, what the
 * program calls. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "writer.h"

/* ---- weights --------------------------------------------------------------------------------- */

static bool is_all_zeros(int64_t n, const float *values) {
    for (int64_t i = 0; i < n; i++)
        if (values[i] != 0 || signbit(values[i])) return false;
    return true;
}

/* Zeros at the end, such as those of an optimizer's moments, are not written. */
static void end_at(wf_emitter *e, size_t length) {
    e->weights.length = length;
    if (e->weights.at) e->weights.at[length] = 0;
}

bool wf_write_weights(wf_emitter *e) {
    const wf_graph *g = e->parts[0].plan->graph;
    int64_t at = 0;
    size_t length = 0;
    for (int k = 0; k < e->n_leaves; k++) {
        wf_tensor *t = g->nodes[e->leaves[k]];
        int64_t n = wf_count(t), room = (n + LEAF_UNIT - 1) / LEAF_UNIT * LEAF_UNIT;
        float *values = malloc(((size_t)n + 1) * sizeof *values);
        if (!values) return wf_emitter_lacks(e);
        if (!wf_read(t, values, (size_t)n * sizeof *values)) {
            free(values);
            return wf_emitter_fail(e, "'%s' cannot be read", called(t));
        }
        bool packed = e->panel_uses[t->id] == IN_PANELS;
        if (packed && !wf_pack_panels(t, values)) {
            free(values);
            return wf_emitter_lacks(e);
        }
        wf_text_puts(&e->weights, "    /* ");
        wf_text_comment(&e->weights, called(t));
        wf_text_puts(&e->weights, packed ? ", in panels */" : " */");
        for (int64_t i = 0; i < room; i++)
            wf_text_print(&e->weights, i % 8 ? " %f," : "\n    %f,", i < n ? (double)values[i] : 0);
        wf_text_puts(&e->weights, "\n");
        at += room;
        if (!is_all_zeros(n, values)) {
            length = e->weights.length;
            e->n_first = at;
        }
        free(values);
    }
    end_at(e, length);
    return true;
}

/* ---- the struct, and what the program calls -------------------------------------------------- */

/* The floats of the table. What a run updates is copied from it, and the rest of that is 0. */
static int64_t first_weights(const wf_emitter *e) {
    int64_t n = e->updates ? e->n_first : e->n_weights;
    return n ? n : 1;
}

static void write_struct(const wf_emitter *e, wf_text *t) {
    wf_text_print(t, "typedef struct %s {\n    unsigned char *arena;\n", e->prefix);
    wf_text_print(t, "    %sfloat *weights;\n", e->updates ? "" : "const ");
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++)
        if (q->draws)
            wf_text_print(t,
                          "    /* random bits of %s: every run increments the step */\n"
                          "    uint64_t %s_step;\n    uint32_t %s_micro_batch;\n",
                          q->name, q->name, q->name);
    wf_text_puts(t, wf_text_of(&e->members));
    wf_text_print(t, "} %s;\n\n", e->prefix);
}

/* The file in a few lines for its reader. */
static void write_contents(const wf_emitter *e, wf_text *t) {
    const char *of = e->prefix;
    wf_text_print(t,
                  "/* %s.c - a computation graph as C, which weft %s wrote. It needs no library.\n"
                  " *\n"
                  " * %s_start gives the struct its memory, %s_%s computes, %s_get_... copies\n"
                  " * results. Inputs are members of the struct: set them before a run.\n"
                  " *\n",
                  of, wf_version(), of, of, e->parts[0].name, of);
    wf_text_print(t,
                  " * The file has these parts, each of which needs those before it:\n"
                  " *   sizes of memory, places of weights, the struct %s\n"
                  " *   arithmetic: functions of numbers and rows\n"
                  " *   steps: a function for each op and shape\n"
                  " *   modules: functions that call the steps in their order, named after the\n"
                  " *   model's modules; behind a call stands what it computes\n"
                  " *   what the program calls\n"
                  " *   the values of the weights, at the end of the file */\n",
                  of);
}

int64_t wf_arena_bytes(const wf_emitter *e) {
    int64_t bytes = e->memory * 4 + (e->scratch * 4 + 63) / 64 * 64;
    return bytes ? bytes : 64;
}

static void write_sizes(const wf_emitter *e, wf_text *t) {
    const char *of = e->prefix;
    wf_text_print(
        t, "enum {\n    SCRATCH = %n, /* where the memory of a single step begins, in floats */\n",
        e->memory);
    wf_text_print(t, "    %s_ARENA = %n, /* bytes of memory, aligned to 64 */\n", of,
                  wf_arena_bytes(e));
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++)
        if (q->plan->with_state)
            wf_text_print(t, "    %s_%s_LAST = %n, /* the last position */\n", of, q->name,
                          q->last);
        else if (q->sized)
            wf_text_print(t, "    %s_%s_MOST = %n, /* the largest size */\n", of, q->name, q->last);
    wf_text_print(t, "    %s_WEIGHTS = %n, /* floats */\n};\n\n", of, e->n_weights);
    if (e->names.length)
        wf_text_print(t, "/* Where a leaf begins in the weights. */\nenum {\n%s};\n\n",
                      e->names.at);
}

static void write_head(const wf_emitter *e, wf_text *t) {
    write_contents(e, t);
    wf_text_puts(t,
                 "#include <stdint.h>\n\n"
                 "#if defined __FAST_MATH__ || (defined __FLT_EVAL_METHOD__ && \\\n"
                 "    __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16)\n"
                 "#error \"other bits: no -ffast-math, and on i386 -msse2 -mfpmath=sse\"\n"
                 "#endif\n\n"
                 "/* A product and a sum are fused only where multiply_add says so; and no loop\n"
                 " * becomes a call of memset. */\n"
                 "#if defined __clang__\n#pragma STDC FP_CONTRACT OFF\n"
                 "#elif defined __GNUC__\n"
                 "#pragma GCC optimize(\"fp-contract=off\", "
                 "\"no-tree-loop-distribute-patterns\")\n#endif\n\n"
                 "#ifdef __TINYC__\n"
                 "/* This compiler calls them for structs. */\n"
                 "__attribute__((weak)) void *memset(void *to, int byte, __SIZE_TYPE__ n) {\n"
                 "    for (unsigned char *at = to; n; n--) *at++ = (unsigned char)byte;\n"
                 "    return to;\n}\n\n"
                 "__attribute__((weak)) void *memmove(void *to, const void *from, "
                 "__SIZE_TYPE__ n) {\n"
                 "    unsigned char *at = to;\n"
                 "    const unsigned char *source = from;\n"
                 "    if (at <= source)\n"
                 "        for (; n; n--) *at++ = *source++;\n"
                 "    else\n"
                 "        for (; n; n--) at[n - 1] = source[n - 1];\n"
                 "    return to;\n}\n#endif\n\n");
    write_sizes(e, t);
    write_struct(e, t);
    wf_text_print(t,
                  "/* The leaves' values, at the end of the file. */\n"
                  "static const float first_weights[%n];\n\n",
                  first_weights(e));
    wf_text_puts(t, wf_text_of(&e->tables));
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
    if (strstr(code, "stream_of("))
        wf_text_puts(t, "static uint64_t stream_of(uint64_t step, uint32_t micro_batch) {\n"
                        "    return mix(step << 32 | micro_batch);\n}\n\n");
}

void wf_add_limits(const wf_emitter *e, const part *q, const char *leave, wf_text *t) {
    const char *by = wf_variable(q);
    wf_text_print(t, "if (%s < %d || %s > %s_%s_%s) %s\n", by, q->sized ? LEAST_SIZE : 0, by,
                  e->prefix, q->name, q->sized ? "MOST" : "LAST", leave);
}

static void write_runs(const wf_emitter *e, wf_text *t) {
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        const char *by = wf_variable(q);
        wf_text_print(t, "\nint %s_%s(%s *m%s%s) {\n", e->prefix, q->name, e->prefix,
                      by[0] ? ", int " : "", by);
        if (by[0]) wf_text_puts(t, "    ");
        if (by[0]) wf_add_limits(e, q, "return 1;", t);
        if (!q->run.length) wf_text_puts(t, "    (void)m;\n");
        wf_text_puts(t, wf_text_of(&q->run));
        if (q->draws) wf_text_print(t, "    m->%s_step++;\n", q->name);
        wf_text_puts(t, "    return 0;\n}\n");
    }
}

/* A function that copies a row of the caches of a plan with a state. */
static void write_copies(const wf_emitter *e, wf_text *t) {
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        const binding *b = q->plan->now;
        if (!q->plan->with_state || b->batch < 2) continue;
        wf_text_print(t, "\nvoid %s_%s_copy(const %s *m, int from, int to) {\n", e->prefix, q->name,
                      e->prefix);
        wf_text_print(t, "    if (from < 0 || from >= %n || to < 0 || to >= %n) return;\n",
                      b->batch, b->batch);
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
                      "    for (int i = 0; i < %n; i++) weights[i] = first_weights[i];\n"
                      "    for (int i = %n; i < %s_WEIGHTS; i++) weights[i] = 0;\n",
                      e->n_first, e->n_first, of);
    else
        wf_text_puts(t, "    m->weights = first_weights;\n");
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++)
        if (q->draws)
            wf_text_print(t, "    m->%s_step = %u;\n    m->%s_micro_batch = %u;\n", q->name,
                          q->plan->step, q->name, (uint64_t)q->plan->micro_batch);
    wf_text_puts(t, "}\n");
    write_runs(e, t);
    write_copies(e, t);
    wf_text_puts(t, wf_text_of(&e->getters));
}

/* The functions: those that the calls need come first. */
static bool write_code(const wf_emitter *e, wf_text *code) {
    wf_text calls = { 0 };
    wf_text_print(&calls, "/* ---- steps ---- */\n\n%s", wf_text_of(&e->functions));
    wf_text_print(&calls, "/* ---- modules ---- */\n\n%s", wf_text_of(&e->modules));
    wf_text_puts(&calls, "/* ---- what the program calls ---- */\n\n");
    write_end(e, &calls);
    write_helpers(e, wf_text_of(&calls), code);
    wf_text_puts(code, wf_text_of(&calls));
    bool ok = !calls.lacks && !code->lacks && !e->functions.lacks && !e->modules.lacks;
    wf_text_free(&calls);
    return ok && wf_add_plain(code, NULL);
}

static bool write_file(const wf_emitter *e, wf_text *file) {
    wf_text code = { 0 };
    bool ok = write_code(e, &code);
    write_head(e, file);
    wf_text_print(file, "/* ---- arithmetic ---- */\n\n%s", wf_text_of(&code));
    wf_text_print(file, "\n" WF_VALUES_TITLE "static const float first_weights[%n] = {\n%s};\n",
                  first_weights(e), e->n_first ? wf_text_of(&e->weights) : "    0\n");
    wf_text_free(&code);
    return ok && !file->lacks && !e->weights.lacks && !e->tables.lacks && !e->names.lacks &&
           !e->getters.lacks && !e->members.lacks;
}

char *wf_join_file(wf_emitter *e) {
    wf_text file = { 0 };
    if ((double)(e->memory + e->scratch) * 4 > INT32_MAX - 64 || e->n_weights > INT32_MAX) {
        wf_emitter_fail(e, "its memory is 2^31 bytes or more, which has no form in C");
        return NULL;
    }
    if (write_file(e, &file)) return file.at;
    wf_text_free(&file);
    wf_emitter_lacks(e);
    return NULL;
}
