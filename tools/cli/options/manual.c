/* tools/cli/options/manual.c - writes a program's manual page in mdoc(7), from its table of
 * options. See help.h. */
#include "help.h"

#include <stdbool.h>
#include <string.h>

#include "core/graph.h"

/* The date at the foot of the page: that of the last change that readers notice. */
#define PAGE_DATE "November 28, 2026"

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes a character so that roff does not interpret it. Dashes stay plain, so that they can be
 * copied. */
static void put_character(FILE *out, char c) {
    if (c == '\\')
        fputs("\\e", out);
    else if (c == '-')
        fputs("\\-", out);
    else
        fputc(c, out);
}

static void put_characters(FILE *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) put_character(out, text[i]);
}

/* Writes a line of text. A dot or a quote at its beginning would make it a roff request. */
static void put_line(FILE *out, const char *text, size_t n) {
    if (n && (*text == '.' || *text == '\'')) fputs("\\&", out);
    put_characters(out, text, n);
    fputc('\n', out);
}

/* The number of columns that a character takes in the source. */
static size_t width(char c) {
    return c == '\\' || c == '-' ? 2 : 1;
}

/* The length of the next line of text. It ends with a sentence, after which roff sets a wider
 * space, or where no more words fit. */
static size_t line_length(const char *text) {
    enum { MOST = 76 };
    size_t n = 0, columns = 0, fitting = 0;
    for (; text[n] && (columns <= MOST || !fitting); columns += width(text[n++])) {
        if (text[n] != ' ') continue;
        if (n && strchr(".!?", text[n - 1])) return n;
        fitting = n;
    }
    return text[n] ? fitting : n;
}

static void put_text(FILE *out, const char *text) {
    while (*text) {
        size_t n = line_length(text);
        put_line(out, text, n);
        text += n;
        while (*text == ' ') text++;
    }
}

/* Writes an argument of a macro, in quotes: it may contain spaces, and must not be taken for a
 * macro. */
static void put_argument(FILE *out, const char *text) {
    fputs("\"\\&", out);
    for (; *text; text++) {
        if (*text == '"')
            fputs("\\(dq", out);
        else
            put_character(out, *text);
    }
    fputc('"', out);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void put_option(FILE *out, const program *p, const option *o) {
    char text[HELP_TEXT];
    fputs(".It ", out);
    if (o->letter) fprintf(out, "Fl %c , ", o->letter);
    fputs("Fl ", out);
    put_character(out, '-');
    put_characters(out, o->name, strlen(o->name));
    if (o->argument) {
        fputs(" Ar ", out);
        put_argument(out, o->argument);
    }
    fputc('\n', out);
    help_describe(p, o, text, sizeof text);
    put_text(out, text);
}

static void put_group(FILE *out, const char *title, bool first) {
    if (!first) fputs(".El\n", out);
    fputs(".Ss ", out);
    put_argument(out, title);
    fputs("\n.Bl -tag -width Ds\n", out);
}

/* Writes groups of options. `title` is for options before the first group. */
static void put_options(FILE *out, const program *p, const char *title, const option *rows, int n) {
    bool open = false;
    if (n && rows->help) {
        put_group(out, title, true);
        open = true;
    }
    for (const option *o = rows; o < rows + n; o++) {
        if (o->help) {
            put_option(out, p, o);
            continue;
        }
        put_group(out, o->name, !open);
        open = true;
    }
    if (open) fputs(".El\n", out);
}

/* Writes the synopsis: operands, and options whose values may be given without their names. */
static void put_synopsis(FILE *out, const program *p) {
    fprintf(out, ".Sh SYNOPSIS\n.Nm\n.Op Ar option ...\n");
    if (!p->operand_name) return;
    fputs(".Ar ", out);
    put_argument(out, p->operand_name);
    fputc('\n', out);
}

static void put_item(FILE *out, const char *macro, const char *name, const char *text) {
    fprintf(out, ".It %s %s\n", macro, name);
    put_text(out, text);
}

static void put_environment(FILE *out) {
    fputs(".Sh ENVIRONMENT\n.Bl -tag -width WEFT_CACHES\n", out);
    put_item(out, "Ev", "WEFT_ISA",
             "the instruction set of the kernels, one of base, avx2, avx512 and neon, in place of "
             "the best of this processor.");
    put_item(out, "Ev", "WEFT_CACHES",
             "the caches that products are cut for, as 32K/8,512K/8,16M/16, in place of those "
             "found. No result depends on it.");
    put_item(out, "Ev", "TMPDIR", "the folder of temporary files.");
    fputs(".El\n", out);
}

static void put_exit_codes(FILE *out) {
    static const struct {
        int code;
        const char *meaning;
    } rows[] = {
        { EXIT_DONE, "all is done." },
        { EXIT_FAILED, "something failed; a sentence on standard error says what." },
        { EXIT_USAGE, "the command line has an unknown option or value, or contradicts itself." },
        { EXIT_NON_FINITE, "a loss or a gradient was not finite." },
    };
    fputs(".Sh EXIT STATUS\n.Bl -tag -width 128+N\n", out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fprintf(out, ".It %d\n", rows[i].code);
        put_text(out, rows[i].meaning);
    }
    fputs(".It 128+N\nsignal N stopped the program, or nobody read its output any more.\n.El\n",
          out);
}

/* Writes the examples of the help, with the name of the installed program. */
static void put_examples(FILE *out, const program *p) {
    size_t length = strlen(p->name);
    fputs(".Sh EXAMPLES\n.Bd -literal -offset indent\n", out);
    for (const char *at = p->examples; *at; at += *at == '\n') {
        size_t n = strcspn(at, "\n");
        const char *end = at + n;
        while (at < end && *at == ' ') at++;
        for (bool begins = true; at < end; at++) {
            bool named = begins && strncmp(at, p->name, length) == 0 && at[length] == ' ';
            begins = *at == ' ';
            if (named) fputs("weft\\-", out);
            put_character(out, *at);
        }
        fputc('\n', out);
    }
    fputs(".Ed\n", out);
}

static void put_title(FILE *out, const char *name) {
    fputs(".Dd " PAGE_DATE "\n.Dt WEFT-", out);
    for (; *name; name++) fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
    fprintf(out, " 1 \"weft %s\"\n.Os\n", wf_version());
}

void manual_print(const program *p, FILE *out) {
    char sentence[256];
    int n;
    const option *always = help_always(&n);
    put_title(out, p->name);
    fprintf(out, ".Sh NAME\n.Nm weft-%s\n.Nd ", p->name);
    put_line(out, p->purpose, strlen(p->purpose));
    put_synopsis(out, p);
    fputs(".Sh DESCRIPTION\n.Nm\n", out);
    snprintf(sentence, sizeof sentence, "%s.", p->purpose);
    put_text(out, sentence);
    fputs(".Pp\nIn names of options, dashes and underscores are alike.\n", out);
    put_options(out, p, "Options", p->options, p->n);
    put_options(out, p, "Always there", always, n);
    put_environment(out);
    put_exit_codes(out);
    put_examples(out, p);
    fputs(".Sh SEE ALSO\n.Xr weft 7\n", out);
}
