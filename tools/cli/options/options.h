/* tools/cli/options/options.h - command lines from a table.
 *
 * A program declares its options once, as rows. Parsing, --help, --version, error messages and the
 * settings in a checkpoint all come from these rows. The meaning of options is not here.
 *
 *     static int64_t steps = 100;                       the variable holds the default
 *     static option rows[] = { GROUP("Training"), COUNT("steps", steps, 1, 1e9, "how many") };
 *     static program demo = { "demo", "shows options", "  demo --steps 3\n", rows, 2, NULL,
 *                             NULL };
 *     options_parse(&demo, argc, argv);                 exits after --help (0) or a mistake (2)
 *
 * In names, `-` and `_` are equivalent; --name=value and --name value are, too. */
#ifndef WEFT_TOOLS_CLI_OPTIONS_H
#define WEFT_TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of every program. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NON_FINITE = 3, EXIT_SIGNAL = 128 };

enum { OPTION_TEXT_SIZE = 32 }; /* enough for any number or choice as text */

typedef enum {
    OPTION_FLAG,   /* bool: given or not */
    OPTION_COUNT,  /* int64_t in min..max */
    OPTION_REAL,   /* double in min..max */
    OPTION_CHOICE, /* int: the index of a word in `argument`, "pre|post"; -1: not set */
    OPTION_STRING  /* const char *, or NULL */
} option_kind;

/* How a program uses the file that an option names: see uses.h. */
typedef enum {
    USE_NONE,
    USE_INPUT,     /* "-": stdin */
    USE_MODEL,     /* a model file that is read; never a stream */
    USE_OUTPUT,    /* replaced, whole; "-": stdout */
    USE_DRAWN,     /* USE_OUTPUT that weft can write again: it replaces only what weft wrote */
    USE_TOKENIZER, /* like USE_DRAWN, for a tokenizer.json that weft learned */
    USE_NUMBERS,   /* USE_OUTPUT in binary: it replaces no text and no model */
    USE_NEW_MODEL, /* a model file that is replaced as a whole; never a stream */
    USE_LOG,       /* written in place, line by line; "-": stdout */
    USE_FOLDER     /* a folder in which files are created */
} file_use;

/* A default for certain cases, such as tasks or presets, which are named by words. */
typedef struct case_default {
    const char *cases; /* "add|date" */
    /* the value as on the command line; NULL: it is computed, and `said` describes it */
    const char *value;
    const char *said; /* description of the value, for the help */
} case_default;
enum { MOST_CASES = 6 };

typedef struct option {
    const char *name; /* the name without dashes; in a row without `help`, the title of a group */
    char letter;      /* 'o' allows -o FILE and -oFILE, not for flags; 0: none */
    option_kind kind;
    void *value;          /* the variable that holds the default, and later the value */
    const char *argument; /* "N", "FILE", or the words of a choice, as the help shows them */
    double min, max;
    const char *help;
    file_use use;         /* how the program uses the file that the option names */
    const char *fallback; /* the default as the help shows it, if it is not that of the variable */
    case_default otherwise[MOST_CASES];
    bool stored;        /* a setting that the checkpoint stores, and that a resume may not change */
    bool of_model;      /* a setting that comes from a model's file, if training starts from one */
    bool of_new;        /* for new work only: refused if a checkpoint is resumed */
    const char *before; /* the value in checkpoints that are older than the setting */
    bool seen;          /* the option was on the command line or in the file of --config */
} option;

/* Macros that make rows. Arguments after the help set further fields, as designated
 * initialisers. */
#define GROUP(title)                                                                               \
    { .name = title }
#define ROW(n, k, variable, word, ...)                                                             \
    { .name = n, .kind = k, .value = &(variable), .argument = word, .help = __VA_ARGS__ }
#define FLAG(n, variable, ...) ROW(n, OPTION_FLAG, variable, NULL, __VA_ARGS__)
#define COUNT(n, variable, low, high, ...)                                                         \
    ROW(n, OPTION_COUNT, variable, "N", __VA_ARGS__, .min = low, .max = high)
#define REAL(n, variable, low, high, ...)                                                          \
    ROW(n, OPTION_REAL, variable, "X", __VA_ARGS__, .min = low, .max = high)
#define CHOICE(n, variable, words, ...) ROW(n, OPTION_CHOICE, variable, words, __VA_ARGS__)
#define STRING(n, variable, word, ...) ROW(n, OPTION_STRING, variable, word, __VA_ARGS__)
#define NAMED_FILE(n, variable, for_what, ...)                                                     \
    STRING(n, variable, "FILE", __VA_ARGS__, .use = for_what)
#define INPUT(n, variable, ...) NAMED_FILE(n, variable, USE_INPUT, __VA_ARGS__)
#define MODEL(n, variable, ...) NAMED_FILE(n, variable, USE_MODEL, __VA_ARGS__)
#define OUTPUT(n, variable, ...) NAMED_FILE(n, variable, USE_OUTPUT, __VA_ARGS__)
#define DRAWN(n, variable, ...) NAMED_FILE(n, variable, USE_DRAWN, __VA_ARGS__)
#define TOKENIZER(n, variable, ...) NAMED_FILE(n, variable, USE_TOKENIZER, __VA_ARGS__)
#define RAW_OUTPUT(n, variable, ...) NAMED_FILE(n, variable, USE_NUMBERS, __VA_ARGS__)
#define NEW_MODEL(n, variable, ...) NAMED_FILE(n, variable, USE_NEW_MODEL, __VA_ARGS__)
#define LOG(n, variable, ...) NAMED_FILE(n, variable, USE_LOG, __VA_ARGS__)
#define FOLDER(n, variable, ...) STRING(n, variable, "DIR", __VA_ARGS__, .use = USE_FOLDER)
/* Defaults for some cases: OTHERWISE(FOR("add|date", "char"), FOR("text", "bpe")). */
#define OTHERWISE(...) .otherwise = { __VA_ARGS__ }
#define FOR(words, text)                                                                           \
    { .cases = words, .value = text }

typedef struct program {
    const char *name, *purpose, *examples;
    option *options;
    int n;
    const char *operand_name; /* NULL: the program takes no operand */
    const char **operand;
    file_use operand_use;
    /* in place of an operand: options whose values may be given without their names, in this
     * order */
    const char *by_place[2];
    /* The file that --config names, or NULL. options_parse sets it. */
    const char *config;
} program;

void options_parse(program *p, int argc, char **argv);

/* The row with that name, which must exist. */
option *option_find(const program *p, const char *name);
/* The row whose name is the first `length` bytes of `name`. NULL: there is none. */
option *option_named(const program *p, const char *name, size_t length);
bool option_seen(const program *p, const char *name);

/* The index, in "add|date", of the word of n bytes; -1: it is none of these. Here, too, `-` and `_`
 * are equivalent. */
int option_place(const char *words, const char *word, size_t n);
/* True if the word is one of those in "add|date". */
bool option_among(const char *words, const char *word);
/* The default in the case that this word names. NULL: the variable's default, or one that is
 * computed later. */
const char *option_default(const option *o, const char *word);
/* Set all rows that were not given to their default for this case. */
void options_take_defaults(program *p, const char *word);

/* Set the row's variable from text; false with message[256] if it is no value of the row. */
bool option_set(option *o, const char *text, char *message);

/* The value as the shortest text that option_set reads back; returns buffer. */
const char *option_text(const option *o, char buffer[OPTION_TEXT_SIZE]);

/* Exit with 2 if one of the options "a|b" was given although it would have no effect. */
void option_no_effect(const program *p, const char *names, bool ineffective, const char *because);

/* Print one sentence on stderr after the program's name. usage_error exits with 2, fail with 1. */
_Noreturn void usage_error(const program *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void fail(const program *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The block of memory. If it is NULL, exits with 1: "out of memory". */
void *memory_or_fail(const program *p, void *block);
void warn(const program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For a process that fails together with others: before usage_error and fail exit, they pass the
 * sentence to `told` instead of printing it. */
void tell_failures(void (*told)(void *user, int code, const char *sentence), void *user);

#define DEFAULT_THREADS "processors, at most 8"
/* The default of --threads if this machine runs `processes` processes of the program. */
int64_t default_threads(int64_t processes);

/* True for "-", the name of a standard stream. */
bool is_dash(const char *path);
/* True if the descriptor is a pipe that nobody reads any more. */
bool nobody_reads(int descriptor);
/* If `out` is stdout, and a pipe that nobody reads any more, end the program silently, with the
 * exit code of SIGPIPE. Call it after a write has failed. */
void check_reader(FILE *out);
/* Flush `out`, so that its reader has all lines so far. If they can't be written, end the program:
 * as check_reader does, or with exit code 1 and a message that names the file, "stdout" if NULL. */
void flush_or_fail(const program *p, FILE *out, const char *name);
/* Close stdout, where a full disk is noticed, and return the exit code. It is `status`, unless the
 * output was not written: then status 0 becomes 1, with a message. If stdout is a pipe that nobody
 * reads any more, status 0 or 1 becomes that of SIGPIPE, silently. It is the last call of every
 * main. */
int close_stdout(const program *p, int status);

/* The shortest decimal text that reads back as value; "null" if it is not finite. */
const char *shortest(double value, char buffer[OPTION_TEXT_SIZE]);

#endif
