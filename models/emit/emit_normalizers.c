/* models/emit/emit_normalizers.c - the normalizers of a tokenizer.json as C; see json_emitter.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "json_emitter.h"
#include "models/text/characters/characters.h"

/* ---- characters of a set --------------------------------------------------------------------- */

/* Write the replacement of a set's characters by a text; with `stays`, the characters stay, and the
 * text goes before and after each. */
static bool replace(json_emitter *e, bool (*has)(uint32_t code), const char *by, bool stays) {
    int expression = wf_write_character_of(e, has);
    if (expression < 0) return false;
    wf_text_print(e->body, "    replace_matches(&w->words, &%s_expression_%d, \"%s\", %n, %d);\n",
                  e->side, expression, by, (int64_t)strlen(by), (int)stays);
    e->loses_begin = e->loses_begin || e->expands;
    if (!stays) return true;
    e->expands = true;
    e->bytes += 2 * e->characters;
    e->characters *= 3;
    return true;
}

static bool write_strip(json_emitter *e, const wf_text_step *s) {
    int spaces = wf_write_set_of(e, wf_is_space);
    wf_text_print(e->body, "    strip_words(&w->words, &%s_set_%d, %d, %d);\n", e->side, spaces,
                  (int)s->flags[0], (int)s->flags[1]);
    e->loses_begin = e->loses_begin || e->expands;
    return spaces >= 0;
}

static bool write_marks(json_emitter *e, const wf_text_step *s) {
    (void)s;
    return replace(e, wf_is_mark, "", false);
}

static bool write_nmt(json_emitter *e, const wf_text_step *s) {
    (void)s;
    return replace(e, wf_nmt_drops, "", false) && replace(e, wf_nmt_space, " ", false);
}

/* ---- lower case ------------------------------------------------------------------------------ */

/* Begin a table of rows of two numbers. */
static void begin_rows(json_emitter *e, const char *name) {
    wf_text_print(e->tables, "static const uint32_t %s_%s[][2] = {", e->side, name);
}

static void put_row(json_emitter *e, int64_t n, uint32_t a, uint32_t b) {
    wf_text_puts(e->tables, n % 6 ? " " : "\n    ");
    wf_text_print(e->tables, "{ %n, %n },", (int64_t)a, (int64_t)b);
}

static bool write_lower(json_emitter *e, const wf_text_step *s) {
    int64_t n = 0;
    uint32_t second;
    (void)s;
    if (!e->has_lower) {
        begin_rows(e, "lower_rows");
        for (uint32_t c = 0; c <= LAST_CODE_POINT; c++)
            if (wf_lower_case(c, &second) != c) put_row(e, n++, c, wf_lower_case(c, &second));
        wf_text_print(e->tables,
                      "\n};\nstatic const code_rows %s_lower = { %s_lower_rows, %n };\n\n", e->side,
                      e->side, n);
    }
    e->has_lower = true;
    wf_text_print(e->body, "    put_lower_case(&w->words, &%s_lower);\n", e->side);
    e->expands = true;
    e->bytes *= 1.5; /* U+023A has two bytes, and U+2C65 three */
    return true;
}

/* ---- normal forms ---------------------------------------------------------------------------- */

/* Write the code points at which the combining class changes. Returns the number of rows. */
static int64_t write_classes(json_emitter *e) {
    int64_t n = 0;
    unsigned class = 0;
    begin_rows(e, "classes");
    for (uint32_t c = 0; c <= LAST_CODE_POINT; c++) {
        if (wf_combining_class(c) == class) continue;
        class = wf_combining_class(c);
        put_row(e, n++, c, class);
    }
    wf_text_puts(e->tables, "\n};\n");
    return n;
}

/* Write decompositions and their pool, without Hangul, which plain_normal.c computes. Returns the
 * number of rows. */
static int64_t write_parts(json_emitter *e, bool compatible) {
    uint32_t parts[MOST_DECOMPOSED], used = 0;
    int64_t n = 0;
    wf_text pool = { 0 };
    begin_rows(e, compatible ? "parts_1" : "parts_0");
    for (uint32_t c = 0; c <= LAST_CODE_POINT; c++) {
        size_t all = wf_decomposition(c, compatible, parts);
        bool hangul = c >= 0xAC00 && c < 0xAC00 + 11172;
        if (hangul || (all == 1 && parts[0] == c)) continue;
        put_row(e, n++, c << 5 | (uint32_t)all, used);
        for (size_t i = 0; i < all; i++, used++)
            wf_text_print(&pool, used % 12 ? " %n," : "\n    %n,", (int64_t)parts[i]);
    }
    wf_text_print(e->tables, "\n};\nstatic const uint32_t %s_pool_%d[] = {", e->side,
                  (int)compatible);
    wf_text_puts(e->tables, wf_text_of(&pool));
    wf_text_puts(e->tables, "\n};\n");
    e->tables->lacks = e->tables->lacks || pool.lacks;
    wf_text_free(&pool);
    return n;
}

static int64_t write_pairs(json_emitter *e) {
    size_t n;
    const uint32_t(*pairs)[3] = wf_compositions(&n);
    wf_text_print(e->tables, "static const uint32_t %s_pairs[][3] = {", e->side);
    for (size_t i = 0; i < n; i++)
        wf_text_print(e->tables, i % 4 ? " { %n, %n, %n }," : "\n    { %n, %n, %n },",
                      (int64_t)pairs[i][0], (int64_t)pairs[i][1], (int64_t)pairs[i][2]);
    wf_text_puts(e->tables, "\n};\n");
    return (int64_t)n;
}

/* Write the tables of canonical or compatibility forms. Both share the classes and compositions. */
static void write_tables(json_emitter *e, bool compatible) {
    bool shared = e->has_form[0] || e->has_form[1];
    if (e->has_form[compatible]) return;
    if (!shared) e->n_classes = write_classes(e);
    if (!shared) e->n_pairs = write_pairs(e);
    int64_t n = write_parts(e, compatible);
    wf_text_print(e->tables,
                  "static const normal_form %s_form_%d = {\n"
                  "    { %s_classes, %n }, { %s_parts_%d, %n },\n    %s_pool_%d, %s_pairs, %n,\n"
                  "};\n\n",
                  e->side, (int)compatible, e->side, e->n_classes, e->side, (int)compatible, n,
                  e->side, (int)compatible, e->side, e->n_pairs);
    e->has_form[compatible] = true;
}

/* A compatibility decomposition has up to 18 characters and 11 times the bytes; a canonical one up
 * to 4 characters and 3 times the bytes. */
static bool put_form(json_emitter *e, bool compatible, bool composes) {
    write_tables(e, compatible);
    wf_text_print(e->body, "    put_normal_form(&w->words, &%s_form_%d, &w->codes, %d);\n", e->side,
                  (int)compatible, (int)composes);
    e->x->has_codes = e->expands = true;
    e->bytes *= compatible ? 11 : 3;
    e->characters *= compatible ? 18 : 4;
    return true;
}

static bool write_form(json_emitter *e, const wf_text_step *s) {
    return put_form(e, s->flags[COMPATIBLE], s->flags[COMPOSES]);
}

/* ---- BERT ------------------------------------------------------------------------------------ */

static bool write_bert(json_emitter *e, const wf_text_step *s) {
    if (s->flags[CLEAN] &&
        !(replace(e, wf_bert_drops, "", false) && replace(e, wf_other_space, " ", false)))
        return false;
    if (s->flags[CHINESE] && !replace(e, wf_is_chinese, " ", true)) return false;
    if (s->flags[ACCENTS] && !(put_form(e, false, false) && replace(e, wf_is_accent, "", false)))
        return false;
    return !s->flags[LOWER] || write_lower(e, s);
}

/* ---- precompiled maps ------------------------------------------------------------------------ */

static bool write_map(json_emitter *e, const wf_text_step *s) {
    const wf_character_table *breaks = &wf_breaks;
    if (e->has_map)
        return fail(e->message,
                    "a tokenizer.json with two normalizers 'Precompiled' has no form in "
                    "C");
    e->has_map = true;
    begin_rows(e, "break_rows");
    for (size_t i = 0; i < breaks->n; i++)
        put_row(e, (int64_t)i, breaks->at[i] & CODE_MASK, breaks->at[i] >> CODE_BITS);
    wf_text_print(e->tables, "\n};\nstatic const code_rows %s_breaks = { %s_break_rows, %n };\n\n",
                  e->side, e->side, (int64_t)breaks->n);
    wf_write_rules(e->tables, e->side, &s->rules, NULL, 0);
    wf_text_print(e->body, "    put_mapped(&w->words, &%s_rules, &%s_breaks);\n", e->side, e->side);
    e->expands = true;
    e->bytes *= 11; /* as for NFKC, from which these maps are made */
    e->characters *= 18;
    return true;
}

/* ---- Replace, Prepend, ByteLevel ------------------------------------------------------------- */

/* An expression that may match an empty text is refused: in the library tokenizers, later steps do
 * not change text that is inserted there, and the C file cannot tell such text from other text. */
static bool write_replace(json_emitter *e, const wf_text_step *s) {
    int expression = s->expression.nullable ? -1 : wf_write_expression(e, &s->expression);
    if (s->expression.nullable)
        return fail(e->message,
                    "the normalizer 'Replace' of a tokenizer.json has no form in C with "
                    "an expression that may match nothing");
    if (expression < 0) return false;
    wf_text_print(e->body, "    replace_matches(&w->words, &%s_expression_%d, ", e->side,
                  expression);
    if (!wf_write_span(e, e->body, s->text)) return false;
    wf_text_print(e->body, ", %n, 0);\n", (int64_t)s->text.bytes);
    e->loses_begin = e->loses_begin || e->expands;
    if (s->text.bytes > 1) e->expands = true;
    if (s->text.bytes > 1) e->bytes *= (double)s->text.bytes;
    if (s->text.bytes > 1) e->characters *= (double)s->text.bytes;
    return true;
}

static bool write_prepend(json_emitter *e, const wf_text_step *s) {
    wf_text_puts(e->body, "    put_before_all(&w->words, ");
    if (!wf_write_span(e, e->body, s->text)) return false;
    wf_text_print(e->body, ", %n);\n", (int64_t)s->text.bytes);
    e->expands = true;
    e->bytes += (e->cuts ? e->characters : 1) * (double)s->text.bytes;
    e->characters += (e->cuts ? e->characters : 1) * (double)s->text.bytes;
    return true;
}

static bool write_bytes(json_emitter *e, const wf_text_step *s) {
    (void)s;
    wf_text_puts(e->body, "    spell_bytes(&w->words);\n");
    e->expands = true;
    e->characters = e->bytes;
    e->bytes *= 2;
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

const step_row wf_emitted_normalizers[] = {
    { "BertNormalizer", write_bert },
    { "Strip", write_strip },
    { "StripAccents", write_marks },
    { "NFC", write_form },
    { "NFD", write_form },
    { "NFKC", write_form },
    { "NFKD", write_form },
    { "Lowercase", write_lower },
    { "Nmt", write_nmt },
    { "Precompiled", write_map },
    { "Replace", write_replace },
    { "Prepend", write_prepend },
    { "ByteLevel", write_bytes },
    { NULL, NULL },
};
