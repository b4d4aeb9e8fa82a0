/* tools/emit/compile_wasm.c - compiles C to WebAssembly. See compile_wasm.h. The compiler reads
 * standard input and writes standard output, which are temporary files without a name. */
#include "compile_wasm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/refused.h"

enum { NO_PROGRAM = 127 };

static const char *const command[] = {
    /* --stack-first: a stack overflow traps, and does not overwrite data */
    "clang",
    "--target=wasm32",
    "-std=c11",
    "-O3",
    "-ffreestanding",
    "-nostdlib",
    "-Wl,--no-entry,--strip-all,--stack-first,-z,stack-size=262144",
    "-x",
    "c",
    "-",
    "-o",
    "-",
    NULL
};

/* The files of a run of the compiler. */
typedef struct streams {
    FILE *source, *module, *messages;
} streams;

static bool open_streams(streams *s) {
    s->source = tmpfile();
    s->module = tmpfile();
    s->messages = tmpfile();
    return s->source && s->module && s->messages;
}

static void close_streams(streams *s) {
    if (s->source) fclose(s->source);
    if (s->module) fclose(s->module);
    if (s->messages) fclose(s->messages);
}

static bool write_source(FILE *f, const char *text, const char *const *lines) {
    fputs(text, f);
    for (; *lines; lines++) fputs(**lines ? *lines : "\n", f);
    return fflush(f) == 0 && lseek(fileno(f), 0, SEEK_SET) == 0;
}

/* Returns the compiler's exit code, or NO_PROGRAM if there is no such compiler. */
static int run_compiler(const streams *s) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(s->source), STDIN_FILENO);
        dup2(fileno(s->module), STDOUT_FILENO);
        dup2(fileno(s->messages), STDERR_FILENO);
        execvp(command[0], (char *const *)command);
        _exit(NO_PROGRAM);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool read_module(wasm_module *w, FILE *f) {
    long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (n <= 0) return false;
    w->n = (size_t)n;
    w->bytes = malloc(w->n);
    rewind(f);
    return w->bytes && fread(w->bytes, 1, w->n, f) == w->n;
}

/* Writes a message with the first line that the compiler printed. Returns false. */
static bool refuse_source(FILE *f, char *message) {
    char line[160] = "";
    rewind(f);
    if (!fgets(line, sizeof line, f)) line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return refused(message,
                   "clang could not make WebAssembly, which also needs the package lld: %s", line);
}

bool compile_wasm(wasm_module *w, const char *text, const char *const *lines, char *message) {
    streams s = { 0 };
    *w = (wasm_module){ 0 };
    bool ok = open_streams(&s) && write_source(s.source, text, lines);
    if (!ok) refused(message, "a temporary file cannot be written");
    int status = ok ? run_compiler(&s) : 0;
    if (status == NO_PROGRAM)
        ok = refused(message, "a page needs clang and lld, and there is no clang: "
                              "install the packages clang and lld");
    else if (status)
        ok = refuse_source(s.messages, message);
    else if (ok && !read_module(w, s.module))
        ok = refused(message, "what clang wrote cannot be read");
    close_streams(&s);
    return ok;
}
