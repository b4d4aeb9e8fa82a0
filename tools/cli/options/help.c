/* tools/cli/options/help.c - prints the pages of --help and --version: examples first, then the
 * options by group. */
#include "help.h"

#include <string.h>

#include "core/graph.h"
#include "manual.h"

enum { INDENT = 28, WIDTH = 96 };

/* The value of rows that only print a text and have no value of their own. */
static int none = -1;
static const char *nothing;

void version_print(const program *p, FILE *out) {
    fprintf(out, "weft-%s (weft) %s\n", p->name, wf_version());
}

const char *range_text(const option *o, double bound, char buffer[OPTION_TEXT_SIZE]) {
    if (o->kind != OPTION_COUNT) return shortest(bound, buffer);
    snprintf(buffer, OPTION_TEXT_SIZE, "%.0f", bound);
    return buffer;
}

/* Writes words, wrapped at WIDTH and indented to INDENT. `column` is the current column. */
static void wrap(FILE *out, int column, const char *text) {
    if (column + 2 > INDENT) {
        fputc('\n', out);
        column = 0;
    } /* the option's name takes a line of its own */
    fprintf(out, "%*s", INDENT - column, "");
    for (int at = INDENT; *text;) {
        int word = (int)strcspn(text, " ");
        if (at > INDENT && at + 1 + word > WIDTH) {
            at = INDENT;
            fprintf(out, "\n%*s", INDENT, "");
        }
        at += fprintf(out, "%s%.*s", at > INDENT ? " " : "", word, text);
        text += word + (text[word] == ' ');
    }
    fputc('\n', out);
}

/* Describes a range: "1..256", or "1 or more" if the upper bound is meaningless in practice. */
static void describe_range(const option *o, char *text, size_t size) {
    char low[OPTION_TEXT_SIZE], high[OPTION_TEXT_SIZE];
    range_text(o, o->min, low);
    if (o->max >= 1e9)
        snprintf(text, size, "%s or more", low);
    else
        snprintf(text, size, "%s..%s", low, range_text(o, o->max, high));
}

void describe_default(const option *o, char *text, size_t size) {
    char value[OPTION_TEXT_SIZE];
    int n = snprintf(text, size, "%s", o->fallback ? o->fallback : option_text(o, value));
    for (int i = 0; i < MOST_CASES && o->otherwise[i].cases; i++) {
        const case_default *d = &o->otherwise[i];
        bool again = i > 0 && d->said && d[-1].said && !strcmp(d->said, d[-1].said);
        if (again)
            n += snprintf(text + n, size - (size_t)n, ", ");
        else
            n += snprintf(text + n, size - (size_t)n, "%s%s for ", n ? "; " : "",
                          d->said ? d->said : d->value);
        for (const char *c = d->cases; *c; c++)
            n += snprintf(text + n, size - (size_t)n, *c == '|' ? ", " : "%c", *c);
    }
}

void help_describe(const option *o, char *text, size_t size) {
    char standard[160], range[80] = "";
    describe_default(o, standard, sizeof standard);
    if (o->kind == OPTION_COUNT || o->kind == OPTION_REAL) describe_range(o, range, sizeof range);
    if (!*standard && !*range)
        snprintf(text, size, "%s", o->help);
    else
        snprintf(text, size, "%s (%s%s%s%s)", o->help, *standard ? "default " : "", standard,
                 *standard && *range ? "; " : "", range);
}

static void print_option(const option *o, FILE *out) {
    char head[160], text[HELP_TEXT];
    char letter[5] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    int column = snprintf(head, sizeof head, "  %s--%s%s%s", letter, o->name,
                          o->argument ? " " : "", o->argument ? o->argument : "");
    fputs(head, out);
    help_describe(o, text, sizeof text);
    wrap(out, column, text);
}

static const option always[] = {
    { .name = "help", .letter = 'h', .help = "print this help" },
    { .name = "version", .letter = 'V', .help = "print the version" },
    { .name = "man", .help = "print the manual page, which man -l - shows" },
    { .name = "completion",
      .kind = OPTION_CHOICE,
      .value = &none,
      .argument = SHELL_WORDS,
      .help = "print the completion of command lines for this shell" },
    { .name = "config",
      .kind = OPTION_STRING,
      .value = &nothing,
      .argument = "FILE",
      .use = USE_INPUT,
      .help = "read options from a file of lines 'name = value'; options on the command line "
              "override it" },
    { .name = "dump-config",
      .help = "print all options as a file for --config; those that were not given are comments" },
};

const option *help_always(int *n) {
    *n = sizeof always / sizeof *always;
    return always;
}

void help_print(const program *p, FILE *out) {
    fprintf(out, "%s: %s\n\nExamples\n%s", p->name, p->purpose, p->examples);
    if (p->operand_name) fprintf(out, "\nUsage\n  %s [options] %s\n", p->name, p->operand_name);
    for (int i = 0; i < p->n; i++) {
        if (!p->options[i].help)
            fprintf(out, "\n%s\n", p->options[i].name);
        else
            print_option(&p->options[i], out);
    }
    fputs("\nAlways there\n", out);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) print_option(&always[i], out);
}
