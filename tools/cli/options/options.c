/* tools/cli/options/options.c - parses command lines by a table, and reports mistakes. The help is
 * in help.c. See options.h. */
#include "options.h"
#include "core/base/caches.h"
#include "core/file_internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "core/file.h"
#include "help.h"
#include "nearest.h"
#include "ops/ops.h"
#include "tools/cli/refused.h"
#include "tools/cli/terminal.h"

static void (*failure_told)(void *user, int code, const char *sentence);
static void *failure_user;

void tell_failures(void (*told)(void *user, int code, const char *sentence), void *user) {
    failure_told = told;
    failure_user = user;
}

static void complain(const program *p, const char *format, va_list arguments) {
    fflush(stdout);
    bar_clear();
    fprintf(stderr, "%s: ", p->name);
    say_clean(stderr, false, format, arguments);
    fputc('\n', stderr);
}

/* Tells the callback of tell_failures the sentence, or prints it if there is none. */
static void tell(const program *p, int code, const char *format, va_list arguments) {
    char sentence[256];
    if (!failure_told) {
        complain(p, format, arguments);
        if (code == EXIT_USAGE) fprintf(stderr, "Try '%s --help'.\n", p->name);
        return;
    }
    vsnprintf(sentence, sizeof sentence, format, arguments);
    failure_told(failure_user, code, sentence);
}

void usage_error(const program *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tell(p, EXIT_USAGE, format, arguments);
    va_end(arguments);
    exit(EXIT_USAGE);
}

void fail(const program *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tell(p, EXIT_FAILED, format, arguments);
    va_end(arguments);
    exit(EXIT_FAILED);
}

void *memory_or_fail(const program *p, void *block) {
    if (!block) fail(p, "out of memory");
    return block;
}

void warn(const program *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(p, format, arguments);
    va_end(arguments);
}

int64_t default_threads(int64_t processes) {
    int64_t n = sysconf(_SC_NPROCESSORS_ONLN) / processes;
    if (n < 1) return 1;
    return n > 8 ? 8 : n;
}

bool nobody_reads(int descriptor) {
    struct pollfd p = { .fd = descriptor, .events = POLLOUT };
    return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

void check_reader(FILE *out) {
    if (ferror(out) && fileno(out) == STDOUT_FILENO && nobody_reads(STDOUT_FILENO))
        exit(EXIT_SIGNAL + SIGPIPE);
}

/* Says that a stream was not written. errno is the reason only if the last call failed: an earlier
 * write that failed left its mark on the stream, but its errno is lost. */
static void say_unwritten(const program *p, const char *name, bool reason_known) {
    warn(p, "%s could not be written%s%s", name, reason_known ? ": " : "",
         reason_known ? strerror(errno) : "");
}

void flush_or_fail(const program *p, FILE *out, const char *name) {
    bool flushed = fflush(out) == 0;
    if (flushed && !ferror(out)) return;
    int reason = errno;
    check_reader(out);
    errno = reason;
    say_unwritten(p, name ? name : "stdout", !flushed);
    exit(EXIT_FAILED);
}

int close_stdout(const program *p, int status) {
    bool alone = nobody_reads(STDOUT_FILENO);
    bool failed = ferror(stdout), closed = fclose(stdout) == 0;
    if (closed && !failed) return status;
    if (alone) return status <= EXIT_FAILED ? EXIT_SIGNAL + SIGPIPE : status;
    say_unwritten(p, "stdout", !closed);
    return status == EXIT_DONE ? EXIT_FAILED : status;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Shortens "1e-09" to "1e-9". */
static void shorten_exponent(char *text) {
    char *at = strchr(text, 'e');
    if (!at) return;
    char *digits = at + 2 + strspn(at + 2, "0");
    at += at[1] == '-' ? 2 : 1;
    memmove(at, digits, strlen(digits) + 1);
}

const char *shortest(double value, char buffer[OPTION_TEXT_SIZE]) {
    if (!isfinite(value)) return strcpy(buffer, "null");
    double back = NAN; /* 17 digits distinguish every double */
    for (int digits = 6; digits <= 17 && back != value; digits++)
        wf_parse_real(wf_format_real(value, digits, buffer), &back);
    shorten_exponent(buffer);
    return buffer;
}

/* The length of the word at `text`, which ends at '|' or at the end. */
static size_t word_length(const char *text) {
    return strcspn(text, "|");
}

static const char *word_at(const char *words, int place) {
    while (place-- > 0) words += word_length(words) + 1;
    return words;
}

int option_place(const char *words, const char *word, size_t n) {
    for (int place = 0;; place++) {
        size_t length = word_length(words);
        if (length == n && option_same_name(words, word, n)) return place;
        if (words[length] == '\0') return -1;
        words += length + 1;
    }
}

static bool set_choice(option *o, const char *text, char *message) {
    int place = option_place(o->argument, text, strlen(text));
    if (place < 0)
        return refused(message, "--%s: '%.60s' is not one of %s", o->name, text, o->argument);
    *(int *)o->value = place;
    return true;
}

static bool set_number(option *o, const char *text, char *message) {
    bool whole = o->kind == OPTION_COUNT;
    char *end = NULL;
    errno = 0;
    int64_t count = whole ? strtoll(text, &end, 10) : 0;
    double number = (double)count;
    bool all = whole ? end != text && *end == '\0' : wf_parse_real(text, &number);
    if (!all || isnan(number)) {
        bool unit = strlen(o->argument) > 1; /* more than N or X: SECONDS */
        return refused(message, "--%s: '%.60s' is not a %snumber%s%s", o->name, text,
                       whole ? "whole " : "", unit ? ": " : "", unit ? o->argument : "");
    }
    if (errno == ERANGE || number < o->min || number > o->max) {
        char low[OPTION_TEXT_SIZE], high[OPTION_TEXT_SIZE];
        return refused(message, "--%s: %.60s is outside the range %s..%s", o->name, text,
                       range_text(o, o->min, low), range_text(o, o->max, high));
    }
    if (whole)
        *(int64_t *)o->value = count;
    else
        *(double *)o->value = number;
    return true;
}

bool option_set(option *o, const char *text, char *message) {
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->value = true;
        return true;
    case OPTION_CHOICE:
        return set_choice(o, text, message);
    case OPTION_STRING:
        *(const char **)o->value = text;
        return true;
    default:
        return set_number(o, text, message);
    }
}

const char *option_text(const option *o, char buffer[OPTION_TEXT_SIZE]) {
    if (o->kind == OPTION_REAL) return shortest(*(double *)o->value, buffer);
    if (o->kind == OPTION_COUNT)
        snprintf(buffer, OPTION_TEXT_SIZE, "%lld", (long long)*(int64_t *)o->value);
    else if (o->kind == OPTION_CHOICE && *(int *)o->value >= 0) {
        const char *word = word_at(o->argument, *(int *)o->value);
        snprintf(buffer, OPTION_TEXT_SIZE, "%.*s", (int)word_length(word), word);
    } else
        buffer[0] = '\0';
    return buffer;
}

/* ---- defaults by case ------------------------------------------------------------------------ */

bool option_among(const char *words, const char *word) {
    return option_place(words, word, strlen(word)) >= 0;
}

const char *option_default(const option *o, const char *word) {
    for (int i = 0; i < MOST_CASES && o->otherwise[i].cases; i++)
        if (option_among(o->otherwise[i].cases, word)) return o->otherwise[i].value;
    return NULL;
}

void options_take_defaults(program *p, const char *word) {
    char message[256];
    for (option *o = p->options; o < p->options + p->n; o++) {
        const char *value = o->seen ? NULL : option_default(o, word);
        if (value && !option_set(o, value, message)) fail(p, "%s", message);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

option *option_named(const program *p, const char *name, size_t length) {
    for (option *o = p->options; o < p->options + p->n; o++)
        if (o->help && strlen(o->name) == length && option_same_name(o->name, name, length))
            return o;
    return NULL;
}

option *option_find(const program *p, const char *name) {
    return option_named(p, name, strlen(name));
}

bool option_seen(const program *p, const char *name) {
    const option *o = option_find(p, name);
    assert(o);
    return o->seen;
}

void option_no_effect(const program *p, const char *names, bool ineffective, const char *because) {
    for (const char *name = names; name; name = strchr(name, '|')) {
        name += *name == '|';
        const option *o = option_named(p, name, word_length(name));
        assert(o);
        if (ineffective && o->seen)
            usage_error(p, "--%s would have no effect: %s", o->name, because);
    }
}

static _Noreturn void unknown(const program *p, const char *name, size_t length) {
    char hint[160];
    option_hint(p, name, length, hint, sizeof hint);
    usage_error(p, "there is no option --%.*s%s", (int)(length < 60 ? length : 60), name, hint);
}

static _Noreturn void unknown_letter(const program *p, const char *word) {
    char hint[160];
    option_hint(p, word + 1, 1, hint, sizeof hint);
    usage_error(p, "there is no option %.20s%s", word, hint);
}

static void take(const program *p, option *o, const char *text) {
    char message[256];
    if (o->seen) usage_error(p, "--%s is given twice", o->name);
    o->seen = true;
    if (!option_set(o, text, message)) usage_error(p, "%s", message);
}

static option *find_letter(const program *p, char letter) {
    for (option *o = p->options; o < p->options + p->n; o++)
        if (o->letter && o->letter == letter) return o;
    return NULL;
}

/* The value that follows the option at argv[*i]. A word that looks like an option is not taken as a
 * value. */
static const char *next_value(const program *p, const option *o, int argc, char **argv, int *i) {
    bool missing = *i + 1 >= argc;
    if (!missing && o->kind == OPTION_STRING) {
        const char *word = argv[*i + 1];
        bool short_name = word[0] == '-' && word[1] && !word[2] && find_letter(p, word[1]);
        missing = strncmp(word, "--", 2) == 0 || short_name;
    }
    if (missing) usage_error(p, "--%s needs a value: %s", o->name, o->argument);
    return argv[++*i];
}

/* --config FILE, which every program has. */
static void take_config(program *p, const char *value, int argc, char **argv, int *i) {
    const option row = { .name = "config", .kind = OPTION_STRING, .argument = "FILE" };
    if (p->config) usage_error(p, "--config is given twice");
    p->config = value ? value : next_value(p, &row, argc, argv, i);
}

static void parse_long(program *p, int argc, char **argv, int *i) {
    const char *name = argv[*i] + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] ? name + length + 1 : NULL;
    option *o = option_named(p, name, length);
    if (!o && length == strlen("config") && strncmp(name, "config", length) == 0) {
        take_config(p, value, argc, argv, i);
        return;
    }
    if (!o) unknown(p, name, length);
    if (o->kind == OPTION_FLAG && value) usage_error(p, "--%s takes no value", o->name);
    if (o->kind != OPTION_FLAG && !value) value = next_value(p, o, argc, argv, i);
    take(p, o, value);
}

static void parse_short(const program *p, int argc, char **argv, int *i) {
    const char *text = argv[*i] + 1;
    option *o = find_letter(p, *text);
    if (!o) unknown_letter(p, argv[*i]);
    take(p, o, text[1] ? text + 1 : next_value(p, o, argc, argv, i));
}

/* Gives the value to the first option that may be given without its name and is not set yet. */
static bool take_by_place(const program *p, const char *text) {
    for (size_t i = 0; i < sizeof p->by_place / sizeof *p->by_place && p->by_place[i]; i++) {
        option *o = option_find(p, p->by_place[i]);
        if (o->seen) continue;
        take(p, o, text);
        return true;
    }
    return false;
}

/* Refuses a word without a dash, and names the first options that take files. */
static _Noreturn void refuse_word(const program *p, const char *text) {
    enum { MOST = 6 };
    char names[320] = "";
    int n = 0;
    for (const option *o = p->options; o < p->options + p->n && n < MOST; o++) {
        size_t at = strlen(names);
        if ((o->use != USE_INPUT && o->use != USE_MODEL) || o->seen) continue;
        snprintf(names + at, sizeof names - at, "%s--%.40s %s", n ? ", " : "", o->name,
                 o->argument);
        n++;
    }
    usage_error(p, "'%.100s' is not an option%s%s", text,
                n ? "; words with spaces need quotes, and a file follows the name of its option: "
                  : ", and no file is expected",
                names);
}

static void parse_operand(const program *p, const char *text) {
    if (take_by_place(p, text)) return;
    if (!p->operand) refuse_word(p, text);
    if (*p->operand) usage_error(p, "one %s at a time, not '%.100s' too", p->operand_name, text);
    *p->operand = text;
}

/* Checks environment variables that the library ignores if they are invalid. */
static void check_environment(const program *p) {
    const char *caches = getenv("WEFT_CACHES");
    if (caches && *caches && strcmp(caches, wf_caches_text()) != 0)
        usage_error(p, "WEFT_CACHES=%.40s is not like 32K/8,512K/8,16M/16; unset, they are found",
                    caches);
    const char *asked = getenv("WEFT_ISA");
    if (asked && *asked && strcmp(asked, wf_isa()) != 0)
        usage_error(p, "WEFT_ISA=%.20s: no such kernels run here; unset, it takes %s", asked,
                    wf_isa());
}

bool is_dash(const char *path) {
    return path && strcmp(path, "-") == 0;
}

/* Refuses streams as models: a model is mapped when it is read, and renamed when it is written. */
static void refuse_streams(const program *p) {
    static const char because[] = "a model must be a file, not a stream; give the file's name";
    for (const option *o = p->options; o < p->options + p->n; o++)
        if ((o->use == USE_MODEL || o->use == USE_NEW_MODEL) && is_dash(*(const char **)o->value))
            usage_error(p, "--%s -: %s", o->name, because);
    if (p->operand && p->operand_use == USE_MODEL && is_dash(*p->operand))
        usage_error(p, "-: %s", because);
}

static bool is_dump(const char *text) {
    return strcmp(text, "--dump-config") == 0 || strcmp(text, "--dump_config") == 0;
}

/* Parses options first, and moves words that belong to none to the front of argv. Then each word
 * becomes the value of the first option in by_place that is not set yet, or the operand. */
static void parse_all(program *p, int argc, char **argv) {
    bool only_operands = false;
    int words = 0;
    for (int i = 1; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || !argv[i][1])
            argv[++words] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (is_dump(argv[i]))
            continue;
        else if (argv[i][1] == '-')
            parse_long(p, argc, argv, &i);
        else
            parse_short(p, argc, argv, &i);
    }
    for (int i = 1; i <= words; i++) parse_operand(p, argv[i]);
}

/* Handles --completion SHELL and --completion=SHELL. `next`: the following word, or NULL. */
static bool take_completion(const program *p, const char *text, const char *next) {
    static const char name[] = "--completion";
    size_t n = sizeof name - 1;
    char message[256];
    int chosen = SHELL_BASH;
    option row = CHOICE("completion", chosen, SHELL_WORDS, "");
    if (strncmp(text, name, n) != 0 || (text[n] && text[n] != '=')) return false;
    const char *value = text[n] ? text + n + 1 : next;
    if (!value) usage_error(p, "--completion needs a value: %s", SHELL_WORDS);
    if (!option_set(&row, value, message)) usage_error(p, "%s", message);
    completion_print(p, (shell)chosen, stdout);
    return true;
}

/* Prints texts that depend on the table alone, whatever else is on the command line. */
static bool print_text(const program *p, const char *text, const char *next) {
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)
        help_print(p, stdout);
    else if (strcmp(text, "--version") == 0 || strcmp(text, "-V") == 0)
        version_print(p, stdout);
    else if (strcmp(text, "--man") == 0)
        manual_print(p, stdout);
    else
        return take_completion(p, text, next);
    return true;
}

void options_parse(program *p, int argc, char **argv) {
    bool dump = false;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (print_text(p, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            exit(close_stdout(p, EXIT_DONE));
        dump = dump || is_dump(argv[i]);
    }
    parse_all(p, argc, argv);
    if (p->config) config_read(p, p->config);
    check_environment(p);
    refuse_streams(p);
    if (!dump) return;
    config_write(p, stdout);
    exit(close_stdout(p, EXIT_DONE));
}
