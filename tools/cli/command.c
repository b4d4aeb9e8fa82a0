/* tools/cli/command.c - a command line that goes on with the work of this one. See command.h. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One word of a shell: bare if nothing in it means anything to one. */
static void put_word(FILE *out, const char *word) {
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-+=:,./%@";
    if (*word && word[strspn(word, bare)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) fputs(*word == '\'' ? "'\\''" : (char[]){ *word, '\0' }, out);
    fputc('\'', out);
}

static void put_option(FILE *out, const option *o) {
    char text[OPTION_TEXT_SIZE];
    if (o->letter)
        fprintf(out, " -%c", o->letter);
    else
        fprintf(out, " --%s", o->name);
    if (o->kind == OPTION_FLAG) return;
    fputc(' ', out);
    put_word(out, o->kind == OPTION_STRING ? *(const char **)o->value : option_text(o, text));
}

/* Is it to be typed again? A program may have taken a file away from an option. */
static bool is_wanted(const option *o, const char *more) {
    if (!o->seen || o->stored || o->of_new) return false;
    if (o->kind == OPTION_STRING && !*(const char **)o->value) return false;
    return strcmp(o->name, more + strspn(more, "-")) != 0;
}

char *command_again(const program *p, const char *name, const char *more) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    put_word(out, name);
    fprintf(out, " %s", more);
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (is_wanted(o, more)) put_option(out, o);
    bool ok = !ferror(out);
    if (fclose(out) == 0 && ok) return text;
    free(text);
    return NULL;
}
