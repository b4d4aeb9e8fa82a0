/* tools/data/lines.c - reads lines from a stream, and the token ids in them. See lines.h. */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "tools/cli/refused.h"

enum { SMALLEST = 4096 };              /* bytes of a buffer */
#define BYTE_ORDER_MARK "\xEF\xBB\xBF" /* marks a file as UTF-8; not part of the text */

bool lines_open(lines *l, const char *path) {
    *l = (lines){ 0 };
    return text_input_open(&l->file, path);
}

void lines_start(lines *l, spool *from) {
    *l = (lines){ .file.file = -1, .from = from };
}

const char *lines_failure(const lines *l) {
    return l->from ? spool_failure(l->from) : text_input_failure(&l->file);
}

void lines_close(lines *l) {
    text_input_close(&l->file);
    free(l->buffer);
    *l = (lines){ .file.file = -1 };
}

/* Returns the line that ends at `stop`, which is a newline or the end of the input. A "\r" before
 * the newline belongs to the line break. */
static char *take_line(lines *l, char *stop) {
    char *line = l->buffer + l->begin;
    if (l->number == 0 && stop - line >= 3 && memcmp(line, BYTE_ORDER_MARK, 3) == 0) line += 3;
    l->begin = (size_t)(stop - l->buffer) + 1;
    if (l->begin > l->end) l->begin = l->end;
    if (stop > line && stop[-1] == '\r') stop--;
    *stop = '\0';
    l->length = (size_t)(stop - line);
    l->number++;
    return line;
}

/* Makes room for more by moving the rest to the front. One byte stays free for a final '\0'. */
static bool make_room(lines *l) {
    if (l->begin > 0) memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
    size_t need = l->end + 2;
    return wf_grow(&l->buffer, &l->capacity, need < SMALLEST ? SMALLEST : need, 1);
}

static ssize_t read_more(lines *l) {
    char *bytes = l->buffer + l->end;
    size_t n = l->capacity - l->end - 1;
    if (!l->from) return text_input_read(&l->file, bytes, n);
    ssize_t got = spool_read(l->from, l->at, bytes, n);
    if (got > 0) l->at += (size_t)got;
    return got;
}

line_status lines_next(lines *l, bool wait, char **line) {
    for (;;) {
        size_t left = l->end - l->begin;
        char *stop = left ? memchr(l->buffer + l->begin, '\n', left) : NULL;
        if (!stop && l->at_end && left) stop = l->buffer + l->end;
        size_t length = stop ? (size_t)(stop - l->buffer) - l->begin : left;
        if (length > LONGEST_LINE) return LINE_TOO_LONG;
        if (stop) {
            *line = take_line(l, stop);
            return LINE_READ;
        }
        if (l->at_end) return LINE_END;
        if (!wait && !text_input_ready(&l->file)) return LINE_WAIT;
        if (!make_room(l)) return LINE_FAILED;
        ssize_t n = read_more(l);
        if (n < 0) return LINE_FAILED;
        l->end += (size_t)n;
        l->at_end = n == 0;
    }
}

const char *lines_remedy(const lines *l, const char *message) {
    return text_input_remedy(l->from ? &l->from->in : &l->file, message);
}

int64_t parse_ids(const char *line, int64_t vocab, int64_t most, int32_t *ids, char *message) {
    int64_t n = 0;
    for (const char *at = line + strspn(line, " \t"); *at; at += strspn(at, " \t"), n++) {
        char *end;
        int length = (int)strcspn(at, " \t");
        long long id = strtoll(at, &end, 10);
        if (end != at + length) {
            refused(message, "'%.*s' is not a token id", length < 40 ? length : 40, at);
            return -1;
        }
        if (id < 0 || id >= vocab) {
            refused(message, "token id %.*s is outside 0..%lld", length < 40 ? length : 40, at,
                    (long long)vocab - 1);
            return -1;
        }
        if (n < most) ids[n] = (int32_t)id;
        at = end;
    }
    return n;
}
