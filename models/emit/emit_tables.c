/* models/emit/emit_tables.c - tables of a tokenizer as constant arrays of C; see text_emitter.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "text_emitter.h"

/* ---- numbers --------------------------------------------------------------------------------- */

static void begin_table(wf_text *t, const char *type, const char *name, const char *says) {
    wf_text_print(t, "/* %s */\nstatic const %s %s[] = {", says, type, name);
}

void wf_write_ids(wf_text *t, const char *name, const char *says, const int32_t *ids, int64_t n) {
    begin_table(t, "int32_t", name, says);
    for (int64_t i = 0; i < n; i++) wf_text_print(t, i % 12 ? " %d," : "\n    %d,", (int)ids[i]);
    wf_text_puts(t, n ? "\n};\n\n" : " -1 };\n\n");
}

void wf_write_bytes(wf_text *t, const char *name, const char *says, const unsigned char *bytes,
                    int64_t n) {
    begin_table(t, "unsigned char", name, says);
    for (int64_t i = 0; i < n; i++) wf_text_print(t, i % 16 ? " %d," : "\n    %d,", (int)bytes[i]);
    wf_text_puts(t, n ? "\n};\n\n" : " 0 };\n\n");
}

void wf_write_units(wf_text *t, const char *name, const char *says, const uint32_t *units,
                    int64_t n) {
    begin_table(t, "uint32_t", name, says);
    for (int64_t i = 0; i < n; i++)
        wf_text_print(t, i % 8 ? " %n," : "\n    %n,", (int64_t)units[i]);
    wf_text_puts(t, n ? "\n};\n\n" : " 0 };\n\n");
}

void wf_write_floats(wf_text *t, const char *name, const char *says, const float *x, int64_t n) {
    begin_table(t, "float", name, says);
    for (int64_t i = 0; i < n; i++) wf_text_print(t, i % 6 ? " %f," : "\n    %f,", (double)x[i]);
    wf_text_puts(t, n ? "\n};\n\n" : " 0 };\n\n");
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Can a string literal contain the character itself? Compilers warn about some characters, so octal
 * escapes replace control characters, U+00AD, U+2000 to U+206F (with direction marks), surrogates,
 * private characters, U+FEFF, all from U+FFF0 on, and the characters " \ and ?. */
static bool is_plain(int32_t code) {
    if (code < 0xA0) return code >= ' ' && code < 127 && code != '"' && code != '\\' && code != '?';
    if (code >= 0x2000 && code < 0x2070) return false;
    if (code >= 0xD800 && code < 0xF900) return false;
    return code != 0xAD && code != 0xFEFF && code < 0xFFF0;
}

void wf_write_literal(wf_text *t, wf_span text) {
    char octal[5] = "\\";
    wf_text_puts(t, "\"");
    for (size_t at = 0, next = 0; at < text.bytes; at = next) {
        int32_t code = wf_utf8_next(text.text, text.bytes, &next);
        bool plain = code >= 0 && is_plain(code);
        if (plain) wf_text_add(t, text.text + at, next - at);
        for (size_t i = at; !plain && i < next; i++) {
            int byte = (unsigned char)text.text[i];
            octal[1] = (char)('0' + byte / 64);
            octal[2] = (char)('0' + byte / 8 % 8);
            octal[3] = (char)('0' + byte % 8);
            wf_text_puts(t, octal);
        }
    }
    wf_text_puts(t, "\"");
}

void wf_write_string(wf_text *t, const char *text) {
    wf_write_literal(t, (wf_span){ text, strlen(text) });
}

bool wf_write_pieces(wf_text *t, const char *name, const char *says, const char *const *pieces,
                     int64_t n, char *message) {
    begin_table(t, "char *const", name, says);
    for (int64_t id = 0; id < n; id++) {
        const char *piece = pieces[id] ? pieces[id] : "";
        size_t bytes = strlen(piece);
        if (bytes > LONGEST_STRING)
            return fail(message, "a piece of %zu bytes has no form in C: %d are the most", bytes,
                        LONGEST_STRING);
        wf_text_puts(t, id % 8 ? " " : "\n    ");
        wf_write_string(t, piece);
        wf_text_puts(t, ",");
    }
    wf_text_puts(t, n ? "\n};\n\n" : "0};\n\n"); /* C11 has no empty list */
    return true;
}

/* ---- an order -------------------------------------------------------------------------------- */

typedef struct named {
    const char *piece;
    int32_t index;
} named;

static int by_bytes(const void *a, const void *b) {
    const named *x = a, *y = b;
    return strcmp(x->piece, y->piece);
}

int64_t wf_write_order(wf_text *t, const char *name, const char *const *pieces, int64_t n) {
    named *all = malloc(((size_t)n + 1) * sizeof *all);
    int32_t *order = malloc(((size_t)n + 1) * sizeof *order);
    int64_t found = 0;
    if (!all || !order) t->lacks = true;
    for (int64_t i = 0; !t->lacks && i < n; i++)
        if (pieces[i] && *pieces[i]) all[found++] = (named){ pieces[i], (int32_t)i };
    if (!t->lacks) {
        qsort(all, (size_t)found, sizeof *all, by_bytes);
        for (int64_t i = 0; i < found; i++) order[i] = all[i].index;
        wf_write_ids(t, name, "Their indices in the order of their bytes.", order, found);
    }
    free(all), free(order);
    return found;
}
