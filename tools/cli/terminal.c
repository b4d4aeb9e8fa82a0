/* tools/cli/terminal.c - the standard streams, and clean text for terminals. See terminal.h. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/utf8.h"
#include "tools/cli/options/options.h"

/* ---- the standard streams -------------------------------------------------------------------- */

/* Occupies a closed descriptor by the wrong end of a pipe, so that reading stdin or writing stdout
 * still fails with EBADF, and no device file is needed. pipe() takes the lowest free number, which
 * is `file`. */
static bool occupy(int file) {
    int ends[2];
    if (fcntl(file, F_GETFD) != -1 || errno != EBADF) return true;
    if (pipe(ends) != 0) return false;
    if (file == STDIN_FILENO) dup2(ends[1], ends[0]);
    close(ends[1]);
    return true;
}

void terminal_open(void) {
    static char line[BUFSIZ];
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (occupy(file)) continue;
        fprintf(stderr, "no file descriptor is left: %s\n", strerror(errno));
        exit(EXIT_FAILED);
    }
    /* a line is written by one call, and stays in one piece */
    setvbuf(stderr, line, _IOLBF, sizeof line);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* ---- what may stand there -------------------------------------------------------------------- */

bool is_control(int32_t c) {
    static const int32_t invisible[][2] = { { 0x061C, 0x061C },  { 0x200B, 0x200B },
                                            { 0x200E, 0x200F },  { 0x2028, 0x202E },
                                            { 0x2060, 0x206F },  { 0xFEFF, 0xFEFF },
                                            { 0xE0000, 0xE007F } };
    if (c < ' ') return c != '\t';
    if (c >= 0x7F && c < 0xA0) return true;
    for (size_t i = 0; i < sizeof invisible / sizeof *invisible; i++)
        if (c >= invisible[i][0] && c <= invisible[i][1]) return true;
    return false;
}

void put_code(FILE *out, int32_t c) {
    char text[WF_UTF8_MOST];
    fwrite(text, 1, wf_utf8_put(text, c), out);
}

static int put_part(FILE *out, const char *text, size_t n, bool lines) {
    int columns = 0;
    for (size_t at = 0; at < n; columns++) {
        int32_t c = wf_utf8_next(text, n, &at);
        put_code(out, is_control(c) && !(lines && c == '\n') ? REPLACED : c);
    }
    return columns;
}

int64_t put_line(FILE *out, const char *text, size_t n, bool columns) {
    static const char codes[] = "\n\r\t", letters[] = "nrt";
    size_t from = 0;
    int64_t escaped = 0;
    for (size_t at = 0; at < n; at++) {
        const char *code = memchr(codes, text[at], columns ? 3 : 2);
        if (!code) continue;
        fwrite(text + from, 1, at - from, out);
        fprintf(out, "\\%c", letters[code - codes]);
        from = at + 1;
        escaped++;
    }
    fwrite(text + from, 1, n - from, out);
    return escaped;
}

int put_clean(FILE *out, const char *text, int most) {
    return put_part(out, text, most < 0 ? strlen(text) : strnlen(text, (size_t)most), false);
}

/* ---- the bar --------------------------------------------------------------------------------- */

static bool bar_is_there;

static int terminal_width(void) {
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

void bar_draw(const char *text) {
    fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, text);
    fflush(stderr);
    bar_is_there = true;
}

void bar_clear(void) {
    if (bar_is_there) fputs("\r\033[K", stderr);
    bar_is_there = false;
}

/* ---- sentences ------------------------------------------------------------------------------- */

void say_clean(FILE *out, bool lines, const char *format, va_list arguments) {
    char few[512] = "", *all = NULL;
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(few, sizeof few, format, arguments);
    if (n >= (int)sizeof few) all = malloc((size_t)n + 1);
    if (all) vsnprintf(all, (size_t)n + 1, format, again);
    va_end(again);
    const char *text = all ? all : few; /* without memory, its beginning */
    put_part(out, text, strlen(text), lines);
    free(all);
}
