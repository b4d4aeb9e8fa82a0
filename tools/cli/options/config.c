/* tools/cli/options/config.c - options in a file. See config.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "nearest.h"

enum { LARGEST = 1 << 20 };

/* The file's text. Values of options point into it, so it lives as long as the program. */
static char text_of_file[LARGEST + 1];

static void read_all(const program *p, const char *path) {
    FILE *file = is_dash(path) ? stdin : fopen(path, "rb");
    if (!file) fail(p, "%.100s can't be read: %s", path, strerror(errno));
    char *text = text_of_file;
    size_t n = fread(text, 1, LARGEST + 1, file);
    bool failed = ferror(file) != 0;
    if (file != stdin) fclose(file);
    if (failed) fail(p, "%.100s can't be read: %s", path, strerror(errno));
    if (n > LARGEST) usage_error(p, "%.100s has more than a megabyte: no options", path);
    if (memchr(text, '\0', n)) usage_error(p, "%.100s is not a text: it has a zero byte", path);
    text[n] = '\0';
}

static char *skip_blanks(char *at) {
    return at + strspn(at, " \t\r");
}

/* Reads a quoted value in place. Returns what follows the closing quote. NULL: there is no closing
 * quote, or an escape is invalid. */
static char *unquote(char *text) {
    static const char escapes[] = "\"\\nt", meant[] = "\"\\\n\t";
    char *to = text;
    for (char *from = text + 1; *from; from++) {
        char c = *from;
        if (c == '"') {
            *to = '\0';
            return from + 1;
        }
        if (c == '\\') {
            const char *known = from[1] ? strchr(escapes, from[1]) : NULL;
            if (!known) return NULL;
            c = meant[known - escapes];
            from++;
        }
        *to++ = c;
    }
    return NULL;
}

/* Terminates the value with '\0' and returns it. Only a comment may follow it. */
static char *take_value(const program *p, const char *path, int line, char *value) {
    if (*value == '"') {
        char *rest = unquote(value);
        if (rest) rest = skip_blanks(rest);
        if (rest && (*rest == '\0' || *rest == '#')) return value;
        usage_error(p, "%.100s, line %d: a quoted value ends with \" and knows \\\" \\\\ \\n \\t",
                    path, line);
    }
    value[strcspn(value, "#")] = '\0';
    size_t n = strlen(value);
    while (n > 0 && strchr(" \t\r", value[n - 1])) n--;
    value[n] = '\0';
    if (n == 0) usage_error(p, "%.100s, line %d: there is no value behind '='", path, line);
    return value;
}

static void set_option(const program *p, const char *path, int line, option *o, const char *value) {
    char message[256];
    bool off = o->kind == OPTION_FLAG && strcmp(value, "false") == 0;
    if (o->kind == OPTION_FLAG && !off && strcmp(value, "true") != 0)
        usage_error(p, "%.100s, line %d: %s is true or false, not '%.60s'", path, line, o->name,
                    value);
    if (off) return;
    if (!option_set(o, value, message)) usage_error(p, "%.100s, line %d: %s", path, line, message);
    o->seen = true;
}

/* Reads one line: "name = value", a comment, or an empty line. `given`: options that were on the
 * command line, which keep their values. `there`: options that earlier lines have, which a line
 * must not repeat. */
static void take_line(program *p, const char *path, int line, char *text, bool *given,
                      bool *there) {
    char hint[160];
    char *name = skip_blanks(text);
    if (*name == '\0' || *name == '#') return;
    char *equals = strchr(name, '=');
    if (!equals) usage_error(p, "%.100s, line %d: not 'name = value'", path, line);
    size_t length = (size_t)(equals - name);
    while (length > 0 && strchr(" \t", name[length - 1])) length--;
    option *o = option_named(p, name, length);
    if (*name == '-')
        usage_error(p, "%.100s, line %d: a name has no dashes before it: name = value", path, line);
    if (!o) {
        option_hint(p, name, length, hint, sizeof hint);
        usage_error(p, "%.100s, line %d: there is no option '%.*s'%s", path, line,
                    (int)(length < 60 ? length : 60), name, hint);
    }
    ptrdiff_t at = o - p->options;
    if (there[at]) usage_error(p, "%.100s, line %d: %s is given twice", path, line, o->name);
    there[at] = true;
    const char *value = take_value(p, path, line, skip_blanks(equals + 1));
    if (!given[at]) set_option(p, path, line, o, value);
}

void config_read(program *p, const char *path) {
    int line = 1;
    read_all(p, path);
    if (is_dash(path)) path = "stdin";
    bool *given = calloc((size_t)p->n * 2, sizeof *given);
    if (!given) fail(p, "%.100s can't be read: out of memory", path);
    for (int i = 0; i < p->n; i++) given[i] = p->options[i].seen;
    for (char *at = text_of_file; at; line++) {
        char *end = strchr(at, '\n');
        if (end) *end = '\0';
        take_line(p, path, line, at, given, given + p->n);
        at = end ? end + 1 : NULL;
    }
    free(given);
}

static void write_quoted(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '\t')
            fputs("\\t", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void write_value(FILE *out, const option *o) {
    char text[OPTION_TEXT_SIZE];
    if (o->kind == OPTION_FLAG)
        fputs("true", out);
    else if (o->kind == OPTION_STRING)
        write_quoted(out, *(const char **)o->value);
    else if (o->kind == OPTION_CHOICE)
        write_quoted(out, option_text(o, text));
    else
        fputs(option_text(o, text), out);
}

void config_write(const program *p, FILE *out) {
    char standard[DEFAULT_TEXT];
    fprintf(out, "# options of %s, for --config; those behind # were not given\n", p->name);
    for (const option *o = p->options; o < p->options + p->n; o++) {
        if (!o->help) {
            fprintf(out, "\n# %s\n", o->name);
        } else if (o->seen) {
            fprintf(out, "%s = ", o->name);
            write_value(out, o);
            fputc('\n', out);
        } else {
            describe_default(p, o, standard, sizeof standard);
            if (o->kind == OPTION_FLAG) strcpy(standard, "false");
            fprintf(out, "# %s%s%s\n", o->name, *standard ? " = " : "", standard);
        }
    }
}
