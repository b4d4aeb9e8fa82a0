/* core/emit/emit_plain.c - the functions of plain C (ops/emit/) that an emitted file needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/basis.h"
#include "writer.h"

/* The name that a line or a block of plain C defines: the last word before a parenthesis, a bracket
 * or a semicolon after "static" or "typedef", or the one after "#define". "": none */
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

/* The emitter calls this for every name of a file, and each call searches all lines. Lines that
 * cannot define the name are therefore skipped by cheap tests: their first letter, and strstr. */
bool wf_plain_defines(const char *name) {
    size_t n = strlen(name);
    for (const char *const *line = wf_basis.plain; line && *line; line++) {
        char defined[MOST_NAME], first = **line;
        if ((first != '}' && first != 's' && first != '#') || !strstr(*line, name)) continue;
        bool ends_type = strncmp(*line, "} ", 2) == 0 && strncmp(*line + 2, name, n) == 0 &&
                         (*line)[n + 2] == ';';
        bool begins = strncmp(*line, "static ", 7) == 0 || strncmp(*line, "#define ", 8) == 0;
        if (begins) name_of_block(*line, defined);
        if (ends_type || (begins && strcmp(defined, name) == 0)) return true;
    }
    return false;
}

static void add_without_comments(wf_text *t, const char *code) {
    for (const char *begin; (begin = strstr(code, "/*"));) {
        wf_text_add(t, code, (size_t)(begin - code));
        const char *end = strstr(begin, "*/");
        code = end ? end + 2 : begin + strlen(begin);
    }
    wf_text_puts(t, code);
}

/* Blocks of plain C, each a text with its terminating 0. */
typedef struct plain_blocks {
    wf_text text;   /* all blocks, one behind the other */
    size_t *begins; /* [n] their offsets in the text */
    size_t capacity;
    int n;
} plain_blocks;

static void free_blocks(plain_blocks *b) {
    wf_text_free(&b->text);
    free(b->begins);
}

static const char *block_at(const plain_blocks *b, int i) {
    return b->text.at + b->begins[i];
}

static bool begin_block(plain_blocks *b) {
    if (!wf_grow(&b->begins, &b->capacity, (size_t)b->n + 1, sizeof *b->begins)) return false;
    if (b->n > 0) wf_text_add(&b->text, "", 1);
    b->begins[b->n++] = b->text.length;
    return true;
}

/* Joins the lines of each block; an empty line ends one. False: out of memory. */
static bool join_lines(plain_blocks *b, const char *const *lines) {
    bool begins = true;
    for (; lines && *lines; lines++) {
        if (**lines && begins && !begin_block(b)) return false;
        begins = !**lines;
        wf_text_puts(&b->text, *lines);
    }
    return !b->text.lacks;
}

/* Does the text use the name that the block defines? A variable may have the name of a function, so
 * the name of a function counts only before "(". */
static bool is_used(const char *text, const char *name, const char *block) {
    const char *begin = strstr(block, "static "), *own = begin ? wf_find_word(begin, name) : NULL;
    size_t n = strlen(name);
    bool is_function = own && own[n] == '(';
    for (const char *at = text; (at = wf_find_word(at, name)); at += n)
        if (!is_function || at[n] == '(') return true;
    return false;
}

bool wf_add_blocks(wf_text *code, const char *const *lines, const char *there) {
    plain_blocks b = { .n = 0 };
    wf_text words = { 0 }, all = { 0 };
    bool ok = join_lines(&b, lines);
    bool *used = calloc((size_t)b.n + 1, sizeof *used);
    char name[MOST_NAME];
    ok = ok && used;
    add_without_comments(&words, wf_text_of(code));
    /* Each block needs only earlier ones. */
    for (int i = b.n - 1; ok && i >= 0; i--) {
        name_of_block(block_at(&b, i), name);
        used[i] = name[0] && is_used(wf_text_of(&words), name, block_at(&b, i));
        if (used[i]) add_without_comments(&words, block_at(&b, i));
        ok = !words.lacks;
    }
    for (int i = 0; ok && i < b.n; i++)
        if (used[i] && !(there && strstr(there, block_at(&b, i))))
            wf_text_print(&all, "%s\n", block_at(&b, i));
    wf_text_puts(&all, wf_text_of(code));
    ok = ok && !code->lacks && !words.lacks && !all.lacks;
    free_blocks(&b);
    free(used);
    wf_text_free(&words);
    wf_text_free(code);
    *code = all;
    return ok;
}

bool wf_add_plain(wf_text *code, const char *there) {
    return wf_add_blocks(code, wf_basis.plain, there);
}
