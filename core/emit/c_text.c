/* core/emit/c_text.c - text that grows, constants and identifiers of C. */
#include "c_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/file_internal.h"

/* the first capacity of a text in bytes: enough for most texts, which are a statement or a
 * function */
enum { FIRST_TEXT = 256 };

void wf_text_add(wf_text *t, const char *text, size_t length) {
    size_t need = t->length + length + 1;
    if (t->lacks) return;
    if (!wf_grow(&t->at, &t->capacity, need < FIRST_TEXT ? FIRST_TEXT : need, 1)) {
        t->lacks = true;
        return;
    }
    memcpy(t->at + t->length, text, length);
    t->length += length;
    t->at[t->length] = 0;
}

void wf_text_puts(wf_text *t, const char *text) {
    wf_text_add(t, text, strlen(text));
}

void wf_text_free(wf_text *t) {
    free(t->at);
    *t = (wf_text){ 0 };
}

/* ---- constants ------------------------------------------------------------------------------- */

const char *wf_c_constant(double x, bool is_float, char text[WF_CONSTANT_TEXT]) {
    const char *end = is_float ? "f" : "";
    if (is_float) x = (double)(float)x;
    if (isnan(x)) {
        snprintf(text, WF_CONSTANT_TEXT, "(0.0%s / 0.0%s)", end, end);
    } else if (isinf(x)) {
        snprintf(text, WF_CONSTANT_TEXT, "(%s1.0%s / 0.0%s)", x < 0 ? "-" : "", end, end);
    } else {
        char number[WF_REAL_TEXT];
        wf_format_real(x, is_float ? 9 : 17, number);
        snprintf(text, WF_CONSTANT_TEXT, "%s%s%s", number, strpbrk(number, ".e") ? "" : ".0", end);
    }
    return text;
}

static void add_real(wf_text *t, double x, bool is_float) {
    char text[WF_CONSTANT_TEXT];
    wf_text_puts(t, wf_c_constant(x, is_float, text));
}

static void add_number(wf_text *t, bool marks, int64_t n) {
    char text[32];
    snprintf(text, sizeof text, marks ? "\001%lld\002" : "%lld", (long long)n);
    wf_text_puts(t, text);
}

void wf_text_number(wf_text *t, int64_t n) {
    add_number(t, true, n);
}

void wf_text_format(wf_text *t, bool marks, const char *format, va_list arguments) {
    char text[32];
    for (const char *at = format; *at;) {
        size_t plain = strcspn(at, "%");
        wf_text_add(t, at, plain);
        at += plain;
        if (!*at) break;
        switch (at[1]) {
        case 's':
            wf_text_puts(t, va_arg(arguments, const char *));
            break;
        case 'd':
            add_number(t, false, va_arg(arguments, int));
            break;
        case 'n':
            add_number(t, marks, va_arg(arguments, int64_t));
            break;
        case 'f':
            add_real(t, va_arg(arguments, double), true);
            break;
        case 'g':
            add_real(t, va_arg(arguments, double), false);
            break;
        case 'u':
            snprintf(text, sizeof text, "UINT64_C(0x%llx)",
                     (unsigned long long)va_arg(arguments, uint64_t));
            wf_text_puts(t, text);
            break;
        default:
            wf_text_add(t, at + 1, 1);
            break; /* %% */
        }
        at += 2;
    }
}

void wf_text_print(wf_text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    wf_text_format(t, false, format, arguments);
    va_end(arguments);
}

void wf_text_marked(wf_text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    wf_text_format(t, true, format, arguments);
    va_end(arguments);
}

void wf_text_comment(wf_text *t, const char *text) {
    for (char last = 0; *text; last = *text++) {
        bool control = (unsigned char)*text < ' ' || *text == '\\';
        bool mark = (last == '*' && *text == '/') || (last == '/' && *text == '*');
        wf_text_add(t, " ", mark);
        wf_text_add(t, control ? " " : text, 1);
    }
}

const char *wf_text_of(const wf_text *t) {
    return t->at ? t->at : "";
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* True if the line is the head of a loop or a condition, whose statement is the next line. */
static bool is_head(const char *line, size_t n) {
    bool begins = strncmp(line, "for (", 5) == 0 || strncmp(line, "if (", 4) == 0 ||
                  strncmp(line, "while (", 7) == 0 || strncmp(line, "else", 4) == 0;
    return begins && line[n - 1] != '{' && line[n - 1] != ';' && line[n - 1] != '}';
}

enum { MOST_DEPTH = 16 };

/* A closing brace is indented like the line that opened its block. If that line follows `for` or
 * `if` lines without braces, the line after the closing brace is indented like the first of those
 * lines. */
void wf_text_indent(wf_text *t, const char *code) {
    int depth = 0, level = 0, base = 0, ends[MOST_DEPTH], after[MOST_DEPTH];
    while (*code) {
        code += strspn(code, " \n");
        size_t n = strcspn(code, "\n");
        if (!n) break;
        if (code[0] == '}' && depth > 0) {
            level = ends[--depth];
            base = after[depth];
        }
        for (int i = 0; i < level; i++) wf_text_puts(t, "    ");
        wf_text_add(t, code, n);
        wf_text_puts(t, "\n");
        if (code[n - 1] == '{' && depth < MOST_DEPTH) {
            ends[depth] = level;
            after[depth++] = base;
            base = ++level;
        } else {
            level = is_head(code, n) ? level + 1 : base;
        }
        code += n;
    }
}

/* ---- identifiers ----------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool wf_begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool wf_is_word(char c) {
    return is_digit(c) || wf_begins_word(c);
}

size_t wf_identifier(const char *name, char *to, size_t size) {
    size_t n = 0;
    if (is_digit(name[0]) && n++ + 1 < size) to[0] = '_';
    for (; *name; name++, n++)
        if (n + 1 < size) to[n] = wf_is_word(*name) ? *name : '_';
    if (size) to[n < size ? n : size - 1] = 0;
    return n;
}

const char *wf_find_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || !wf_is_word(at[-1])) && !wf_is_word(at[n])) return at;
    return NULL;
}
