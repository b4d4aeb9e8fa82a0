/* core/emit/emit_file.c - the parts of an emitted file around its functions: the struct, the
 * weights, and the functions that a program calls. */
#include <string.h>

#include "emit_kept.h"
#include "emit_places.h"
#include "emit_sections.h"

/* ---- the struct, and what the program calls -------------------------------------------------- */

/* The length of the array of weights. It is at least 1, because C has no arrays without
 * elements. */
static int64_t array_length(const wf_emitter *e) {
    int64_t n = wf_first_weights(e);
    return n ? n : 1;
}

static void write_struct(const wf_emitter *e, wf_text *t) {
    wf_text_print(t, "typedef struct %s {\n    unsigned char *arena;\n", e->prefix);
    wf_text_print(t, "    %sfloat *weights;\n", e->updates ? "" : "const ");
    if (e->n_int8) wf_text_puts(t, "    const signed char *int8_weights;\n");
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++)
        if (q->draws)
            wf_text_print(t,
                          "    /* random bits of %s: every run increments the step */\n"
                          "    uint64_t %s_step;\n    uint32_t %s_micro_batch;\n",
                          q->name, q->name, q->name);
    wf_text_puts(t, wf_text_of(&e->members));
    wf_text_print(t, "} %s;\n\n", e->prefix);
}

/* Write the comment at the head of the file, which explains the file to its reader. */
static void write_contents(const wf_emitter *e, wf_text *t) {
    const char *of = e->prefix;
    wf_text_print(t,
                  "/* %s.c - a computation graph as C, which weft %s wrote. It needs no library.\n"
                  " *\n"
                  " * %s_start gives the struct its memory, %s_%s computes, %s_get_... copies\n"
                  " * results. Inputs are members of the struct: set them before a run.\n"
                  " *\n",
                  of, wf_version(), of, of, e->parts[0].name, of);
    wf_text_print(
        t,
        " * The file has these parts, each of which needs those before it:\n"
        " *   sizes of memory, places of weights, the struct %s\n"
        " *   arithmetic: functions of numbers and rows\n"
        " *   steps: a function for each op and shape. The shape of its result stands in\n"
        " *   its name, with n for a size that the run chooses, and _2 for other operands\n"
        " *   modules: functions that call the steps in their order. They are named after\n"
        " *   the model's modules, and numbered. Behind a call stands the name of what it\n"
        " *   computes in the model, and its shape\n"
        " *   what the program calls%s */\n",
        of, e->file ? "" : "\n *   the values of the weights, at the end of the file");
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
    wf_text_print(t, "    %s_WEIGHTS = %n, /* floats */\n", of, e->n_weights);
    if (e->n_int8)
        wf_text_print(t, "    %s_INT8 = %n, /* bytes of weights in int8 */\n", of, e->n_int8);
    if (e->file)
        wf_text_print(t, "    %s_FILE = %n, /* bytes of the file of weights */\n", of,
                      e->file_bytes);
    wf_text_puts(t, "};\n\n");
    if (e->names.length)
        wf_text_print(t, "/* Where a leaf begins in the weights. */\nenum {\n%s};\n\n",
                      e->names.at);
}

static void write_head(const wf_emitter *e, wf_text *t) {
    write_contents(e, t);
    wf_text_puts(t, "#include <stdint.h>\n");
    if (e->file) wf_text_puts(t, "#include <stddef.h>\n");
    wf_text_puts(t,
                 "\n#if defined __FAST_MATH__ || (defined __FLT_EVAL_METHOD__ && \\\n"
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
    if (!e->file)
        wf_text_print(t,
                      "/* The leaves' values, at the end of the file. */\n"
                      "static const float first_weights[%n];\n\n",
                      array_length(e));
    if (!e->file && e->n_int8)
        wf_text_print(t, "static const signed char first_int8[%s_INT8];\n\n", e->prefix);
    wf_text_puts(t, wf_text_of(&e->tables));
}

/* Write only those helper functions that the code calls, because compilers warn of unused ones. */
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
        if (e->file) wf_text_puts(t, "    if (!m->weights) return 1;\n");
        if (!q->run.length) wf_text_puts(t, "    (void)m;\n");
        wf_text_puts(t, wf_text_of(&q->run));
        if (q->draws) wf_text_print(t, "    m->%s_step++;\n", q->name);
        wf_text_puts(t, "    return 0;\n}\n");
    }
}

/* Write a function that copies one batch row of the KV caches, for each plan with a state. */
static void write_copies(const wf_emitter *e, wf_text *t) {
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++) {
        const binding *b = q->plan->now;
        if (!q->plan->with_state || b->batch < 2) continue;
        wf_text_print(t, "\nvoid %s_%s_copy(const %s *m, int from, int to) {\n", e->prefix, q->name,
                      e->prefix);
        wf_text_print(t, "    if (from < 0 || from >= %n || to < 0 || to >= %n) return;\n",
                      b->batch, b->batch);
        for (int k = 0; k < b->n_slots; k++) {
            int64_t n = wf_slot_floats(e, q, k), at = wf_slot_at(e, q, k);
            const char *as = wf_keeps_input(e, q, k) ? "ints" : "floats";
            if (n == 0) continue;
            wf_text_print(t,
                          "    for (int i = 0; i < %n; i++)\n"
                          "        %s(m, %n)[to * %n + i] = %s(m, %n)[from * %n + i];\n",
                          n, as, at, n, as, at, n);
        }
        wf_text_puts(t, "}\n");
    }
}

/* Write the statements that set m->weights. If runs update leaves, they also copy the first values
 * to the program's memory. */
static void write_first_values(const wf_emitter *e, const char *from, wf_text *t) {
    if (!e->updates) {
        wf_text_print(t, "    m->weights = %s;\n", from);
        return;
    }
    wf_text_print(t,
                  "    for (int i = 0; i < %n; i++) weights[i] = %s[i];\n"
                  "    for (int i = %n; i < %s_WEIGHTS; i++) weights[i] = 0;\n"
                  "    m->weights = weights;\n",
                  e->n_first, from, e->n_first, e->prefix);
}

/* Write the function that computes the checksum. It reads 4-byte words in the machine's byte order,
 * so a big-endian machine gets another result, and refuses the file. */
static void write_check(const wf_emitter *e, wf_text *t) {
    wf_text_print(t,
                  "/* The checksum of the file of weights. */\n"
                  "static uint64_t checksum_of(const uint32_t *word) {\n"
                  "    uint64_t sum = 0;\n"
                  "    for (int i = 0; i < %s_FILE / 4; i++)\n"
                  "        sum = mix_word(sum, word[i]);\n"
                  "    return sum;\n}\n\n",
                  e->prefix);
}

static void write_start(const wf_emitter *e, wf_text *t) {
    const char *of = e->prefix, *weights = e->updates ? ", float *weights" : "";
    if (e->file) write_check(e, t);
    if (e->file)
        wf_text_print(
            t,
            "/* Returns 0, or 1: these are not the bytes of the file of weights, or do not "
            "begin at a\n * multiple of 4. They are read %s. */\n"
            "int %s_start(%s *m, void *arena%s, const void *file, size_t size) {\n",
            e->updates && !e->n_int8 ? "by this function alone" : "in every run", of, of, weights);
    else
        wf_text_print(t, "void %s_start(%s *m, void *arena%s) {\n", of, of, weights);
    wf_text_puts(t, "    m->arena = arena;\n");
    for (const part *q = e->parts; q < e->parts + e->n_parts; q++)
        if (q->draws)
            wf_text_print(t, "    m->%s_step = %u;\n    m->%s_micro_batch = %u;\n", q->name,
                          q->plan->step, q->name, (uint64_t)q->plan->micro_batch);
    if (e->file)
        wf_text_print(t,
                      "    m->weights = 0;\n"
                      "    if (size != %s_FILE || (uintptr_t)file %% 4 != 0) return 1;\n"
                      "    if (checksum_of(file) != %u) return 1;\n"
                      "    const float *first_weights = (const float *)file + %d;\n",
                      of, e->checksum, FILE_HEAD / 4);
    write_first_values(e, "first_weights", t);
    if (e->n_int8 && e->file)
        wf_text_print(t, "    m->int8_weights = (const signed char *)(first_weights + %n);\n",
                      wf_first_weights(e));
    if (e->n_int8 && !e->file) wf_text_puts(t, "    m->int8_weights = first_int8;\n");
    wf_text_puts(t, e->file ? "    return 0;\n}\n" : "}\n");
}

static void write_end(const wf_emitter *e, wf_text *t) {
    write_start(e, t);
    write_runs(e, t);
    write_copies(e, t);
    wf_write_keeps(e, t);
    wf_text_puts(t, wf_text_of(&e->getters));
}

/* Join the functions. Helpers come first, before the functions that call them. */
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
    if (!e->file)
        wf_text_print(file, "\n" WF_VALUES_TITLE "static const float first_weights[%n] = {\n%s};\n",
                      array_length(e), e->n_first ? wf_text_of(&e->weights) : "    0\n");
    if (!e->file && e->n_int8)
        wf_text_print(
            file,
            "\n/* Leaves in int8, row by row: a value is an integer times the scale of its "
            "row. */\n"
            "static const signed char first_int8[%s_INT8] = {\n%s};\n",
            e->prefix, wf_text_of(&e->int8_text));
    wf_text_free(&code);
    return ok && !file->lacks && !e->weights.lacks && !e->int8_text.lacks && !e->tables.lacks &&
           !e->names.lacks && !e->getters.lacks && !e->members.lacks;
}

char *wf_join_file(wf_emitter *e) {
    wf_text file = { 0 };
    if ((double)(e->memory + e->scratch) * 4 > INT32_MAX - 64 ||
        (double)e->n_weights * 4 + (double)e->n_int8 > INT32_MAX - 128) {
        wf_emitter_fail(e,
                        "its memory or its weights are 2^31 bytes or more, which has no form in C");
        return NULL;
    }
    if (write_file(e, &file)) return file.at;
    wf_text_free(&file);
    wf_emitter_lacks(e);
    return NULL;
}
