/* tests/walls/careless.c - copies the file "in" to "out" with one of several mistakes, each of
 * which faults.py must notice.
 *
 * usage: careless crash|silent|torn|wordless|litter|endless|hasty */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 64 };

static int fail(void) {
    fprintf(stderr, "careless: out could not be written: %s\n", strerror(errno));
    return 1;
}

/* Ignores errors of the write. */
static int silent(const char *text, size_t n) {
    FILE *out = fopen("out", "w");
    if (!out) return fail();
    fwrite(text, 1, n, out);
    fclose(out);
    return 0;
}

/* Takes memory for granted. */
static int crash(const char *text, size_t n) {
    char *copy = malloc(n);
    memcpy(copy, text, n);
    int status = silent(copy, n);
    free(copy);
    return status;
}

/* Truncates the old file before the new contents are written; wordless: prints no error either. */
static int torn(const char *text, size_t n, int wordless) {
    FILE *out = fopen("out", "w");
    if (out && fwrite(text, 1, n, out) == n && fclose(out) == 0) return 0;
    return wordless ? 1 : fail();
}

static int litter(const char *text, size_t n) {
    int out = open("out.new", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out < 0 || write(out, text, n) != (ssize_t)n || close(out) != 0) return fail();
    return rename("out.new", "out") == 0 ? 0 : fail();
}

static int endless(char *text) {
    int in = open("in", O_RDONLY);
    while (read(in, text, SIZE) < 0) sched_yield();
    return 0;
}

/* Calls write once, and does not continue after a short or interrupted write. */
static int hasty(const char *text, size_t n) {
    int out = open("out.new", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out < 0) return fail();
    bool written = write(out, text, n) >= 0;
    close(out);
    if (!written) fail(), unlink("out.new");
    return !written || rename("out.new", "out") != 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    char text[SIZE] = "";
    FILE *in = fopen("in", "r");
    size_t n = in ? fread(text, 1, SIZE, in) : 0;
    if (!in || ferror(in) || n == 0) return fail();
    fclose(in);
    if (strcmp(how, "crash") == 0) return crash(text, n);
    if (strcmp(how, "silent") == 0) return silent(text, n);
    if (strcmp(how, "torn") == 0) return torn(text, n, 0);
    if (strcmp(how, "wordless") == 0) return torn(text, n, 1);
    if (strcmp(how, "litter") == 0) return litter(text, n);
    if (strcmp(how, "endless") == 0) return endless(text);
    return hasty(text, n);
}
