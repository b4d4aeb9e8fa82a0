/* tools/cli/options/completion.c - command-line completions for bash, zsh and fish, made from the
 * table of options. See help.h. */
#include <stdbool.h>
#include <string.h>

#include "help.h"

/* ---- what follows an option ------------------------------------------------------------------ */

static bool takes_file(const option *o) {
    return o->use != USE_NONE;
}

static bool takes_words(const option *o) {
    return o->kind == OPTION_CHOICE;
}

/* Writes the words of a choice with another separator: "pre post". */
static void put_words(FILE *out, const char *words, char separator) {
    for (; *words; words++) fputc(*words == '|' ? separator : *words, out);
}

/* True if the program's operand is one of several words, as in "bash|zsh". */
static bool operand_is_words(const program *p) {
    return p->operand_name && strchr(p->operand_name, '|') && !strchr(p->operand_name, '[');
}

/* Calls `put` for each option of the program, and for those that every program has. */
static void each_option(const program *p, FILE *out,
                        void (*put)(const program *p, const option *o, FILE *out)) {
    int n;
    const option *always = help_always(&n);
    for (int i = 0; i < p->n; i++)
        if (p->options[i].help) put(p, &p->options[i], out);
    for (int i = 0; i < n; i++) put(p, &always[i], out);
}

/* The length of the first clause of a help text, which is short enough for a list. */
static int clause_length(const char *help) {
    enum { MOST = 70 };
    int n = (int)strcspn(help, ";:.");
    if (n <= MOST) return n;
    for (n = MOST; n > 0 && help[n] != ' ';) n--;
    return n;
}

/* Writes text for a place between single quotes in a shell script. escape: characters that get a
 * backslash. */
static void put_quoted(FILE *out, const char *text, int n, const char *escape) {
    for (int i = 0; i < n; i++) {
        if (text[i] == '\'')
            fputs("'\\''", out);
        else if (strchr(escape, text[i]))
            fprintf(out, "\\%c", text[i]);
        else
            fputc(text[i], out);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* Writes the branch of `case` for an option with a value that is no file: the words of a choice, or
 * no words. Options of files share a branch (bash_file_case), and flags have none. */
static void bash_case(const program *p, const option *o, FILE *out) {
    (void)p;
    if (o->kind == OPTION_FLAG || takes_file(o)) return;
    fputs("    ", out);
    if (o->letter) fprintf(out, "-%c|", o->letter);
    fprintf(out, "--%s) words='", o->name);
    if (takes_words(o)) put_words(out, o->argument, ' ');
    fputs("' ;;\n", out);
}

static void bash_file_case(const program *p, const option *o, FILE *out) {
    (void)p;
    if (!takes_file(o)) return;
    if (o->letter) fprintf(out, "-%c|", o->letter);
    fprintf(out, "--%s|", o->name);
}

static void bash_name(const program *p, const option *o, FILE *out) {
    (void)p;
    fprintf(out, " --%s", o->name);
}

/* bash cuts `--name=value` into three words, so the option of a value may come before the '='. */
static void bash_print(const program *p, FILE *out) {
    fprintf(out,
            "# bash completion of weft-%s\n_weft_%s() {\n"
            "  local current=$2 before=$3 words=\n"
            "  if [ \"$current\" = = ]; then current=\n"
            "  elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
            "  case $before in\n    ",
            p->name, p->name);
    each_option(p, out, bash_file_case);
    fputs("'<') COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames; return ;;\n", out);
    each_option(p, out, bash_case);
    fputs("    *) words='", out);
    if (operand_is_words(p)) put_words(out, p->operand_name, ' ');
    fputs("'\n      case $current in -*) words='", out);
    each_option(p, out, bash_name);
    fputs("' ;;\n", out);
    if (p->operand_name && !operand_is_words(p))
        fputs(
            "      *) COMPREPLY=($(compgen -f -- \"$current\")); compopt -o filenames; return ;;\n",
            out);
    fprintf(out,
            "      esac ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n"
            "complete -F _weft_%s weft-%s\n",
            p->name, p->name);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Writes ":message:action" of zsh's _arguments for an option that takes a value. */
static void zsh_value(const option *o, FILE *out) {
    if (o->kind == OPTION_FLAG) return;
    fputc(':', out);
    put_quoted(out, takes_words(o) ? "word" : o->argument,
               takes_words(o) ? 4 : (int)strlen(o->argument), ":[]\\");
    fputc(':', out);
    if (takes_file(o)) fputs("_files", out);
    if (!takes_words(o)) return;
    fputc('(', out);
    put_words(out, o->argument, ' ');
    fputc(')', out);
}

static void zsh_option(const program *p, const option *o, FILE *out) {
    (void)p;
    const char *after = o->kind == OPTION_FLAG ? "" : "=";
    fputs(" \\\n    ", out);
    if (o->letter)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
                *after ? "+" : "", o->name, after);
    else
        fprintf(out, "'--%s%s[", o->name, after);
    put_quoted(out, o->help, clause_length(o->help), ":[]\\");
    fputc(']', out);
    zsh_value(o, out);
    fputc('\'', out);
}

static void zsh_print(const program *p, FILE *out) {
    fprintf(out, "#compdef weft-%s\n_arguments -s -S", p->name);
    each_option(p, out, zsh_option);
    if (operand_is_words(p)) {
        fputs(" \\\n    '1:word:(", out);
        put_words(out, p->operand_name, ' ');
        fputs(")'", out);
    } else if (p->operand_name) {
        fputs(" \\\n    '*:FILE:_files'", out);
    }
    fputc('\n', out);
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(const program *p, const option *o, FILE *out) {
    fprintf(out, "complete -c weft-%s -l %s", p->name, o->name);
    if (o->letter) fprintf(out, " -s %c", o->letter);
    if (takes_file(o))
        fputs(" -r -F", out);
    else if (o->kind != OPTION_FLAG)
        fputs(" -x", out);
    if (takes_words(o)) {
        fputs(" -a '", out);
        put_words(out, o->argument, ' ');
        fputc('\'', out);
    }
    fputs(" -d '", out);
    for (int i = 0; i < clause_length(o->help); i++)
        fprintf(out, strchr("'\\", o->help[i]) ? "\\%c" : "%c", o->help[i]);
    fputs("'\n", out);
}

static void fish_print(const program *p, FILE *out) {
    fprintf(out, "# fish completion of weft-%s\n", p->name);
    if (operand_is_words(p)) {
        fprintf(out, "complete -c weft-%s -f -a '", p->name);
        put_words(out, p->operand_name, ' ');
        fputs("'\n", out);
    } else if (!p->operand_name) {
        fprintf(out, "complete -c weft-%s -f\n", p->name);
    }
    each_option(p, out, fish_option);
}

void completion_print(const program *p, shell s, FILE *out) {
    static void (*const print[])(const program *p, FILE *out) = {
        [SHELL_BASH] = bash_print, [SHELL_ZSH] = zsh_print, [SHELL_FISH] = fish_print
    };
    print[s](p, out);
}
