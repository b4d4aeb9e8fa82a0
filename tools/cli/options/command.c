/* tools/cli/options/command.c - the command line that continues a stopped run. See command.h. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

/* Counts bytes while `text` is NULL; otherwise writes them to it. */
typedef struct writer {
    char *text;
    size_t n;
} writer;

static void put(writer *w, const char *part, size_t bytes) {
    if (w->text) memcpy(w->text + w->n, part, bytes);
    w->n += bytes;
}

static void put_text(writer *w, const char *part) {
    put(w, part, strlen(part));
}

/* Writes one word for a shell, without quotes if no character in it is special. */
static void put_word(writer *w, const char *word) {
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-+=:,./%@";
    if (*word && word[strspn(word, bare)] == '\0') {
        put_text(w, word);
        return;
    }
    put_text(w, "'");
    for (; *word; word++) {
        if (*word == '\'')
            put_text(w, "'\\''");
        else
            put(w, word, 1);
    }
    put_text(w, "'");
}

static void put_option(writer *w, const option *o) {
    char text[OPTION_TEXT_SIZE];
    put_text(w, o->letter ? " -" : " --");
    put(w, o->letter ? &o->letter : o->name, o->letter ? 1 : strlen(o->name));
    if (o->kind == OPTION_FLAG) return;
    put_text(w, " ");
    put_word(w, o->kind == OPTION_STRING ? *(const char **)o->value : option_text(o, text));
}

/* True if the option belongs on the new command line. An option whose text the program has set to
 * NULL does not. */
static bool is_wanted(const option *o, const char *more) {
    if (!o->seen || o->stored || o->of_new) return false;
    if (o->kind == OPTION_STRING && !*(const char **)o->value) return false;
    return strcmp(o->name, more + strspn(more, "-")) != 0;
}

static void put_command(writer *w, const program *p, const char *name, const char *more) {
    w->n = 0;
    put_word(w, name);
    put_text(w, " ");
    put_text(w, more);
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (is_wanted(o, more)) put_option(w, o);
    put(w, "", 1);
}

char *command_word(const char *word) {
    writer w = { 0 };
    put_word(&w, word);
    w = (writer){ malloc(w.n + 1), 0 };
    if (!w.text) return NULL;
    put_word(&w, word);
    w.text[w.n] = '\0';
    return w.text;
}

char *command_again(const program *p, const char *name, const char *more) {
    writer w = { 0 };
    put_command(&w, p, name, more);
    w.text = malloc(w.n);
    if (w.text) put_command(&w, p, name, more);
    return w.text;
}
