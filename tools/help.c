/* tools/help.c - what --help and --version print: examples first, then the options by group. */
#include "help.h"

#include <string.h>

#include "../core/graph.h"

enum { INDENT = 30, WIDTH = 96 };

void version_print(const program *p, FILE *out) {
    fprintf(out, "weft-%s (weft) %s\n", p->name, wf_version());
}

const char *range_text(const option *o, double bound, char buffer[OPTION_TEXT_SIZE]) {
    if (o->kind != OPTION_COUNT) return shortest(bound, buffer);
    snprintf(buffer, OPTION_TEXT_SIZE, "%.0f", bound);
    return buffer;
}

/* Words wrapped at WIDTH; the first line starts at column `column`, the others at INDENT. */
static void wrap(FILE *out, int column, const char *text) {
    fprintf(out, "%*s", column < INDENT ? INDENT - column : 1, "");
    for (int at = column < INDENT ? INDENT : column + 1; *text;) {
        int word = (int)strcspn(text, " ");
        if (at + word > WIDTH) at = INDENT, fprintf(out, "\n%*s", INDENT, "");
        fprintf(out, "%.*s", word, text);
        text += word + (text[word] == ' ');
        at += word + 1;
        if (*text && at < WIDTH) fputc(' ', out);
    }
    fputc('\n', out);
}

/* "(default 64, 1..4096)" appended to the help; nothing if neither says anything. */
static void describe(const option *o, char *text, size_t size) {
    char value[OPTION_TEXT_SIZE], low[OPTION_TEXT_SIZE], high[OPTION_TEXT_SIZE], range[80] = "";
    const char *standard = o->fallback ? o->fallback : option_text(o, value);
    if (o->kind == OPTION_COUNT || o->kind == OPTION_REAL)
        snprintf(range, sizeof range, "%s..%s", range_text(o, o->min, low), range_text(o, o->max, high));
    bool both = *standard && *range;
    if (!*standard && !*range) snprintf(text, size, "%s", o->help);
    else
        snprintf(text, size, "%s (%s%s%s%s)", o->help, *standard ? "default " : "", standard,
                 both ? "; " : "", range);
}

static void print_option(const option *o, FILE *out) {
    char head[160], text[400];
    char letter[5] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    int column = snprintf(head, sizeof head, "  %s--%s%s%s", letter, o->name, o->argument ? " " : "",
                          o->argument ? o->argument : "");
    fputs(head, out);
    describe(o, text, sizeof text);
    wrap(out, column, text);
}

void help_print(const program *p, FILE *out) {
    fprintf(out, "%s: %s\n\nExamples\n%s", p->name, p->purpose, p->examples);
    if (p->operand_name) fprintf(out, "\nUsage\n  %s [options] %s\n", p->name, p->operand_name);
    for (int i = 0; i < p->n; i++) {
        if (!p->options[i].help) fprintf(out, "\n%s\n", p->options[i].name);
        else print_option(&p->options[i], out);
    }
    fputs("\nAlways there\n", out);
    print_option(&(option){ .name = "help", .letter = 'h', .help = "print this page" }, out);
    print_option(&(option){ .name = "version", .help = "print the version" }, out);
}
