/* tests/commands.c - programs, run as people run them. See commands.h. */
#include "commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

outcome result;
static char folder[64];

void read_text(const char *path, char *text, size_t size) {
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
}

const outcome *run(const char *format, ...) {
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    char line[4400];
    snprintf(line, sizeof line, "{ %s\n} > .out 2> .err", command);
    int status = system(line);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_text(".out", result.out, sizeof result.out);
    read_text(".err", result.err, sizeof result.err);
    return &result;
}

void expect(int status) {
    ck_assert_msg(result.status == status, "exit code %d, not %d:\n%s%s", result.status, status,
                  result.out, result.err);
}

void ok(const char *command) {
    run("%s", command);
    expect(0);
}

void enter_folder(void) {
    const char *tools = getenv("WEFT_TOOLS");
    char path[4096];
    ck_assert_msg(tools, "set WEFT_TOOLS to the folder of the programs: build/tools");
    snprintf(path, sizeof path, "%s:%s", tools, getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("TERM", "dumb", 1);
    snprintf(folder, sizeof folder, "/tmp/weft-tools-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

void leave_folder(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(chdir("/tmp"), 0);
    ck_assert_int_eq(system(command), 0);
}

bool same_files(const char *a, const char *b) {
    return run("cmp %s %s", a, b)->status == 0;
}
