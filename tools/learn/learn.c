/* tools/learn/learn.c - `learn`, the course: checks an exercise, and says what kind of mistake it
 * has.
 *
 * The learner's file for lesson 2 is learn/2_attention.c. It is a copy of the exercise with its
 * gaps, made when it is first needed. README.md beside this file is the course's first page. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "learn.h"
#include "tools/cli/options/uses.h"
#include "tools/cli/terminal.h"
#include "tools/draw/svg.h"

const exercise exercises[] = {
    { "gradient", "a gradient by hand", false },
    { "embedding", "embeddings and positions", false },
    { "attention", "attention", false },
    { "heads", "multi-head attention", false },
    { "block", "feed-forward, residual and norm", false },
    { "encoder", "the encoder", false },
    { "decoder", "the decoder", false },
    { "model", "the whole model", false },
    { "copy", "the copy task", false },
    { "product", "make it fast", true },
};

int exercise_count(void) {
    return sizeof exercises / sizeof *exercises;
}

static struct {
    const char *number, *file, *folder, *output;
    bool picture, solution, mistakes;
    double seconds;
} told = { .seconds = 10 };

static option rows[] = {
    GROUP("What is checked"),
    INPUT("file", told.file,
          "file with the code to check, in place of the one in --folder. It needs the NUMBER of "
          "the exercise"),
    FLAG("solution", told.solution,
         "check the solution that comes with the course, in place of your file. Refused with "
         "--file"),
    STRING("folder", told.folder, "DIR",
           "folder with your files, NUMBER_NAME.c for each exercise. A missing folder is made, and "
           "so is a missing file, with the exercise's gaps. Not used with --file and --solution",
           .fallback = "learn/ in the source tree"),
    REAL(
        "seconds", told.seconds, 1, 3600,
        "time limit of a check, in seconds: a check that takes longer fails. The limit is 12 times "
        "as long for --picture, for the training after the check of exercise 8, and for the "
        "measurement after that of exercise 9"),
    GROUP("What is shown instead"),
    FLAG(
        "picture", told.picture,
        "draw what your code computes, in the terminal: in exercise 1 the positions, in 2, 3, 6 "
        "and 8 attention weights. The others have no picture. It needs the NUMBER of the exercise"),
    DRAWN("output", told.output,
          "file for the picture, as SVG. Without --picture it asks for the picture, too. It needs "
          "NUMBER",
          .letter = 'o', .fallback = "the terminal"),
    FLAG("mistakes", told.mistakes,
         "list the mistakes that the checker knows, of exercise NUMBER or of all, each with the "
         "largest difference of its results from the right ones, relative to the largest right "
         "number. Your files must compile; missing ones are made, see --folder. Refused with "
         "--picture and -o"),
};

program learn_program = {
    .name = "learn",
    .purpose = "checks an exercise of the course, and says what kind of mistake it is",
    .examples =
        "  learn                 all exercises, up to the first that is not right yet\n"
        "  learn 2               exercise 2 (its name, too: attention), your learn/2_attention.c\n"
        "  learn 2 --picture     the attention that your code computes\n"
        "  learn 2 --solution    the solution instead: does this machine pass?\n",
    .options = rows,
    .n = sizeof rows / sizeof *rows,
    .operand_name = "[NUMBER]",
    .operand = &told.number,
};

/* ---- files ----------------------------------------------------------------------------------- */

static int find_exercise(const char *word) {
    for (int i = 0; i < exercise_count(); i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (strcmp(word, number) == 0 || strcmp(word, exercises[i].name) == 0) return i;
    }
    usage_error(&learn_program, "there is no exercise \"%s\": they are 0 to %d", word,
                exercise_count() - 1);
}

static void copy_file(const char *from, const char *to) {
    char message[256], bytes[4096];
    output o;
    size_t n;
    FILE *f = fopen(from, "rb");
    if (!f) fail(&learn_program, "%s can't be read: %s", from, strerror(errno));
    if (!output_open(&o, to, message)) fail(&learn_program, "%s", message);
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0) fwrite(bytes, 1, n, o.stream);
    fclose(f);
    if (!output_close(&o, message)) fail(&learn_program, "%s", message);
    printf("Your file is %s: fill its gaps.\n", to);
}

/* The file to check. The learner's own is copied from the exercise if it does not exist yet. */
static void find_file(int number, char path[PATH_SIZE]) {
    char name[64], from[PATH_SIZE];
    snprintf(name, sizeof name, "%s_solution.c", exercises[number].name);
    if (told.solution) {
        exercise_path(number, name, path);
        return;
    }
    if (told.file) {
        snprintf(path, PATH_SIZE, "%s", told.file);
        if (access(path, R_OK) != 0)
            fail(&learn_program, "%s can't be read: %s", path, strerror(errno));
        return;
    }
    const char *folder = told.folder ? told.folder : LEARN_SOURCE "/learn";
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        fail(&learn_program, "the folder %s can't be made: %s", folder, strerror(errno));
    snprintf(path, PATH_SIZE, "%s/%d_%s.c", folder, number, exercises[number].name);
    if (access(path, F_OK) == 0) return;
    snprintf(name, sizeof name, "%s_exercise.c", exercises[number].name);
    exercise_path(number, name, from);
    copy_file(from, path);
}

/* A folder for compiled programs, removed at the end. */
static char place[PATH_SIZE], program_path[PATH_SIZE + 16];

static void leave_place(void) {
    if (*program_path) unlink(program_path);
    if (*place) rmdir(place);
}

static void make_place(void) {
    const char *folder = getenv("TMPDIR");
    snprintf(place, sizeof place, "%s/learn-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(place)) {
        *place = '\0';
        fail(&learn_program, "no folder for programs can be made: %s", strerror(errno));
    }
    snprintf(program_path, sizeof program_path, "%s/lesson", place);
    atexit(leave_place);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* True if all numbers are equal, as the zeros that an unfilled gap leaves. */
static bool all_same(const float *x, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (x[i] != x[0]) return false;
    return true;
}

/* Draws the heat map in the report of a lesson's program: the line "=heads rows columns row column
 * title", where row and column name the axes, and then the numbers. False: all numbers are the
 * same. */
static bool draw(const run_outcome *r) {
    const char *head = memchr(r->report, '=', r->bytes);
    const char *end = head ? memchr(head, '\n', r->bytes - (size_t)(head - r->report)) : NULL;
    long long heads;
    long long rows_;
    long long columns;
    int title = 0;
    char message[256], words[160] = "", row[32], column[32];
    if (end) snprintf(words, sizeof words, "%.*s", (int)(end - head - 1), head + 1);
    if (sscanf(words, "%lld %lld %lld %31s %31s %n", &heads, &rows_, &columns, row, column,
               &title) < 5)
        fail(&learn_program, "there is no picture");
    size_t bytes = (size_t)(heads * rows_ * columns) * sizeof(float);
    if (r->bytes - (size_t)(end + 1 - r->report) < bytes)
        fail(&learn_program, "the picture is not whole");
    float *weights = memory_or_fail(&learn_program, malloc(bytes));
    memcpy(weights, end + 1, bytes);
    if (all_same(weights, bytes / sizeof *weights)) {
        free(weights);
        return false;
    }
    struct svg_heat_map map = { .title = words + title,
                                .weights = weights,
                                .heads = heads,
                                .rows = rows_,
                                .columns = columns,
                                .row_axis = row,
                                .column_axis = column };
    output o = { .stream = stdout };
    if (told.output && !output_open(&o, told.output, message)) fail(&learn_program, "%s", message);
    bool ok = told.output ? svg_heat_map(o.stream, &map) : text_heat_map(o.stream, &map);
    if (told.output && !output_close(&o, message)) fail(&learn_program, "%s", message);
    free(weights);
    if (!ok) fail(&learn_program, "these numbers make no picture");
    return true;
}

static void say_no_picture(int number, bool crashed) {
    printf("  There is no picture: %s. learn %d, without --picture, says which.\n",
           crashed ? "perhaps a gap is not filled yet"
                   : "all its numbers are the same, as if a gap is not filled yet",
           number);
}

/* ---- a check --------------------------------------------------------------------------------- */

/* Prints the checker's report, up to a picture, without the lines that name a call (">") or the end
 * ("<"). A line with "?" is a guess from before the call: it is printed only if the call
 * crashed. */
static void print_report(const run_outcome *r) {
    bool crashed = *r->fault != '\0';
    const char *end = r->report + r->bytes;
    for (const char *at = r->report; at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t n = line ? (size_t)(line - at) + 1 : (size_t)(end - at);
        if (*at == '=') return;
        if (*at == '?' && crashed) fwrite(at + 1, 1, n - 1, stdout);
        if (*at == ' ' || (*at != '\n' && !strchr("<>?", *at))) fwrite(at, 1, n, stdout);
        at += n;
    }
}

static void print_fault(const run_outcome *r) {
    if (!*r->fault) return;
    if (*r->place)
        printf("  %s: %s\n", r->place, r->fault);
    else
        printf("  %s\n", r->fault);
}

/* Compiles the file and runs it as `what`: "check", "trial", "mistakes" or "picture". fast:
 * compiled for speed. True: all is right. */
static bool run_as(int number, const char *file, const char *what, bool fast, run_outcome *r) {
    /* a trial or a picture may train a model, which takes time */
    bool long_run = *what == 't' || *what == 'p';
    double seconds = long_run ? 12 * told.seconds : told.seconds;
    static build_result built;
    if (fast || strcmp(what, "trial") != 0)
        built = exercise_build(number, file, fast, program_path);
    if (built == BUILD_FAILED) {
        printf("  It does not compile: the compiler's words are above.\n");
        return false;
    }
    if (!exercise_run(program_path, what, file, built == BUILD_PLAIN, seconds, r))
        fail(&learn_program, "the check can't be started: %s", strerror(errno));
    print_report(r);
    print_fault(r);
    return r->right;
}

static bool check(int number) {
    char file[PATH_SIZE];
    run_outcome r = { .right = false };
    printf("%d %s: tools/learn/%d_%s/README.md\n", number, exercises[number].title, number,
           exercises[number].name);
    find_file(number, file);
    const char *what = told.mistakes ? "mistakes" : "check";
    if (told.picture || told.output) what = "picture";
    bool ok = run_as(number, file, what, false, &r);
    bool empty = ok && *what == 'p' && !draw(&r);
    if (*what == 'p' && (empty || *r.fault)) say_no_picture(number, *r.fault != '\0');
    if (empty) ok = false;
    free(r.report);
    if (!ok || *what != 'c') return ok;
    ok = run_as(number, file, "trial", exercises[number].timed, &r);
    free(r.report);
    if (ok && number + 1 < exercise_count() && told.number && !told.solution)
        printf("All right. Next: exercise %d, %s.\n", number + 1, exercises[number + 1].title);
    return ok;
}

/* True if the user asks for a picture or a list instead of a check. */
static bool asks_for_more(void) {
    return told.picture || told.output || told.mistakes;
}

int main(int argc, char **argv) {
    bool ok = true;
    terminal_open();
    options_parse(&learn_program, argc, argv);
    option_no_effect(&learn_program, "file|picture|output", told.number == NULL,
                     "the number of an exercise is missing");
    option_no_effect(&learn_program, "solution", told.file != NULL, "--file says what is checked");
    option_no_effect(&learn_program, "mistakes", told.picture || told.output,
                     "a picture is shown instead");
    check_uses(&learn_program, NULL, 0);
    make_place();
    int first = told.number ? find_exercise(told.number) : 0;
    int last = told.number ? first : exercise_count() - 1;
    for (int i = first; i <= last && ok; i++) ok = check(i);
    if (ok && last + 1 == exercise_count() && !told.solution && !asks_for_more())
        printf("All right. That was the last exercise.\n");
    return close_stdout(&learn_program, ok ? EXIT_DONE : EXIT_FAILED);
}
