/* models/emit/plain_parts.c - functions of plain C that a file still lacks; the prefix of names. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/basis.h"
#include "model_emitter.h"

/* ---- the prefix ------------------------------------------------------------------------------ */

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Append a line. In code, outside comments and strings, "model" and "model_..." get the prefix. */
static void add_line(wf_text *t, const char *line, const char *name, bool *in_comment) {
    bool in_string = false;
    for (const char *at = line; *at;) {
        size_t n = 1;
        if (*in_comment || strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at, "*/");
            *in_comment = !end;
            n = end ? (size_t)(end + 2 - at) : strlen(at);
        } else if (is_word(*at)) {
            while (is_word(at[n])) n++;
            if (!in_string && strncmp(at, "model", 5) == 0 && (n == 5 || at[5] == '_')) {
                wf_text_puts(t, name);
                at += 5;
                n -= 5;
            }
        } else if (*at == '"') {
            in_string = !in_string;
        }
        wf_text_add(t, at, n);
        at += n;
    }
}

void wf_add_plain_file(wf_text *t, const char *const *lines, const char *name) {
    bool in_comment = false;
    for (; *lines; lines++) {
        if (**lines)
            add_line(t, *lines, name, &in_comment);
        else
            wf_text_puts(t, "\n");
    }
}

/* ---- functions that are lacking -------------------------------------------------------------- */

/* A block of plain C: a function, a table, macros or a type. */
typedef struct block {
    wf_text text;
    char name[64];
    bool is_function, needed;
} block;

/* The name that a block defines: of a function or a table it stands before "(" or "[", of a type
 * before the last semicolon, of macros after the first "#define". */
static void name_block(block *b) {
    const char *at = strstr(b->text.at, "static "), *end = at;
    b->name[0] = 0;
    if (at) {
        end = at + strcspn(at, "([");
        b->is_function = *end == '(';
        for (at = end; is_word(at[-1]);) at--;
    } else if (strstr(b->text.at, "typedef ")) {
        end = strrchr(b->text.at, ';');
        for (at = end; is_word(at[-1]);) at--;
    } else if ((at = strstr(b->text.at, "#define "))) {
        at += 8;
        for (end = at; is_word(*end);) end++;
    } else {
        return;
    }
    size_t n = (size_t)(end - at);
    if (n >= sizeof b->name) return;
    memcpy(b->name, at, n);
    b->name[n] = 0;
}

static void free_blocks(block *blocks, int n) {
    for (int i = 0; blocks && i < n; i++) wf_text_free(&blocks[i].text);
    free(blocks);
}

/* NULL: out of memory. */
static block *read_blocks(int *n) {
    block *blocks = NULL;
    size_t capacity = 0;
    *n = 0;
    for (const char *const *line = wf_basis.plain; *line; line++) {
        if (!**line) continue;
        bool begins = line == wf_basis.plain || !*line[-1];
        if (begins && !wf_grow(&blocks, &capacity, (size_t)*n + 1, sizeof *blocks)) {
            free_blocks(blocks, *n);
            return NULL;
        }
        if (begins) blocks[(*n)++] = (block){ 0 };
        wf_text_puts(&blocks[*n - 1].text, *line);
    }
    return blocks;
}

/* Does the code use what the block defines? Comments and variables may have the name of a function,
 * but no parenthesis follows them. */
static bool is_used(const block *b, const char *code) {
    size_t n = strlen(b->name);
    for (const char *at = code; (at = wf_find_word(at, b->name)); at += n)
        if (!b->is_function || at[n] == '(') return true;
    return false;
}

/* Mark the blocks that the code uses, and those that these use, from the last one back: each needs
 * only earlier ones. */
static bool mark_needed(block *blocks, int n, const char *code) {
    for (int i = n - 1; i >= 0; i--) {
        block *b = &blocks[i];
        if (b->text.lacks) return false;
        name_block(b);
        if (!b->name[0]) continue;
        b->needed = is_used(b, code);
        for (int k = i + 1; k < n && !b->needed; k++)
            b->needed = blocks[k].needed && is_used(b, blocks[k].text.at);
    }
    return true;
}

bool wf_add_lacking(wf_text *t, const char *code) {
    int n;
    block *blocks = read_blocks(&n);
    bool ok = blocks && mark_needed(blocks, n, code);
    for (int i = 0; ok && i < n; i++) {
        if (!blocks[i].needed || strstr(t->at, blocks[i].text.at)) continue;
        wf_text_puts(t, blocks[i].text.at);
        wf_text_puts(t, "\n");
    }
    free_blocks(blocks, n);
    return ok && !t->lacks;
}
