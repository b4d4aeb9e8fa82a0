/* tools/cli/options/help.c - prints the pages of --help and --version: examples first, then the
 * options by group. */
#include "help.h"

#include <string.h>

#include "core/graph.h"

enum { INDENT = 28, WIDTH = 96 };

/* The variables of the rows --completion and --config below. They keep these values, which the help
 * shows as no default, because options.c parses both options without their rows. */
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

/* Describes a range: "1..256", or "1 or more" if the upper bound is 1e9 or above. */
static void describe_range(const option *o, char *text, size_t size) {
    char low[OPTION_TEXT_SIZE], high[OPTION_TEXT_SIZE];
    range_text(o, o->min, low);
    if (o->max >= 1e9)
        snprintf(text, size, "%s or more", low);
    else
        snprintf(text, size, "%s..%s", low, range_text(o, o->max, high));
}

/* Appends `more` to a text in `size` bytes. The part that does not fit is left out. */
static void add(char *text, size_t size, const char *more) {
    size_t n = strlen(text);
    snprintf(text + n, size - n, "%s", more);
}

/* The option to which the word of a case (case_default) belongs: the choice that has this word, or
 * the option of this name. NULL: neither exists, as for "token ids". */
static const option *row_of_case(const program *p, const char *word) {
    for (const option *o = p->options; o < p->options + p->n; o++)
        if (o->help && o->kind == OPTION_CHOICE && option_among(o->argument, word)) return o;
    return option_named(p, word, strlen(word));
}

/* Appends the cases "tiny|small" as "--preset tiny or small". `*last` is the row that was named
 * last: its name is not repeated. */
static void add_cases(const program *p, const char *cases, const option **last, char *text,
                      size_t size) {
    char word[64];
    for (size_t n, i = 0; *cases; cases += n + (cases[n] == '|'), i++) {
        n = strcspn(cases, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, cases);
        const option *o = row_of_case(p, word);
        if (i) add(text, size, cases[n] ? ", " : " or ");
        bool is_word = !o || o->kind == OPTION_CHOICE;
        if (o && o != *last) {
            add(text, size, "--");
            add(text, size, o->name);
            if (is_word) add(text, size, " ");
        }
        if (is_word) add(text, size, word);
        *last = o;
    }
}

void describe_default(const program *p, const option *o, char *text, size_t size) {
    char value[OPTION_TEXT_SIZE];
    const option *last = NULL;
    snprintf(text, size, "%s", o->fallback ? o->fallback : option_text(o, value));
    for (int i = 0; i < MOST_CASES && o->otherwise[i].cases; i++) {
        const case_default *d = &o->otherwise[i];
        if (*text) add(text, size, "; ");
        add(text, size, d->said ? d->said : d->value);
        add(text, size, " with ");
        add_cases(p, d->cases, &last, text, size);
    }
}

void help_describe(const program *p, const option *o, char *text, size_t size) {
    char standard[DEFAULT_TEXT], range[80] = "";
    describe_default(p, o, standard, sizeof standard);
    if (o->kind == OPTION_COUNT || o->kind == OPTION_REAL) describe_range(o, range, sizeof range);
    if (!*standard && !*range)
        snprintf(text, size, "%s", o->help);
    else
        snprintf(text, size, "%s (%s%s%s%s)", o->help, *standard ? "default " : "", standard,
                 *standard && *range ? "; " : "", range);
}

static void print_option(const program *p, const option *o, FILE *out) {
    char head[160], text[HELP_TEXT];
    char letter[5] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    int column = snprintf(head, sizeof head, "  %s--%s%s%s", letter, o->name,
                          o->argument ? " " : "", o->argument ? o->argument : "");
    fputs(head, out);
    help_describe(p, o, text, sizeof text);
    wrap(out, column, text);
}

static const option always[] = {
    { .name = "help", .letter = 'h', .help = "print this help, and end" },
    { .name = "version", .letter = 'V', .help = "print the version, and end" },
    { .name = "man", .help = "print the manual page in the format that man -l - shows, and end" },
    { .name = "completion",
      .kind = OPTION_CHOICE,
      .value = &none,
      .argument = SHELL_WORDS,
      .help = "print a script by which this shell completes command lines of the installed program "
              "(weft- before its name), and end" },
    { .name = "config",
      .kind = OPTION_STRING,
      .value = &nothing,
      .argument = "FILE",
      .use = USE_INPUT,
      .help = "file with options, one on each line, as \"name = value\", or \"name = true\" for an "
              "option without a value. Options on the command line override it" },
    { .name = "dump-config",
      .help = "print all options as a file for --config, and end. Those that were not given are "
              "comments" },
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
            print_option(p, &p->options[i], out);
    }
    fputs("\nAlways there\n", out);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) print_option(p, &always[i], out);
}
