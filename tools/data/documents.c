/* tools/data/documents.c - reads running text in parts. See documents.h. */
#include "documents.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

void documents_start(documents *d, spool *s, size_t from, size_t stop, const char *marker) {
    assert(from <= stop);
    *d = (documents){ .from = s, .at = from, .stop = stop, .marker = marker };
}

void documents_close(documents *d) {
    free(d->buffer);
    *d = (documents){ 0 };
}

size_t documents_at(const documents *d) {
    return d->at - (d->end - d->begin);
}

/* Fills the free space of the buffer. False: the text cannot be read, or out of memory: errno. */
static bool fill(documents *d) {
    if (!d->buffer && !(d->buffer = malloc(LONGEST_PART + 1))) {
        errno = ENOMEM;
        return false;
    }
    if (d->begin) memmove(d->buffer, d->buffer + d->begin, d->end - d->begin);
    d->end -= d->begin;
    d->begin = 0;
    while (d->end < LONGEST_PART) {
        ssize_t got = spool_read(d->from, d->at, d->buffer + d->end, LONGEST_PART - d->end);
        if (got < 0) return false;
        if (got == 0) break;
        d->at += (size_t)got;
        d->end += (size_t)got;
    }
    return true;
}

/* The length of a prefix that ends between UTF-8 characters. A last character of several bytes is
 * left out, even if it is complete; it has at most three continuation bytes. */
static size_t whole_characters(const char *text, size_t n) {
    size_t end = n;
    while (end + 3 > n && end > 1 && wf_utf8_continues(text[end - 1])) end--;
    bool leads = wf_utf8_announced(text + end - 1, WF_UTF8_MOST) > 1;
    return leads && end > 1 ? end - 1 : n;
}

static bool is_marker(const documents *d, const char *line, size_t bytes) {
    if (!d->marker || d->inside) return false;
    if (bytes && line[bytes - 1] == '\n') bytes--;
    if (bytes && line[bytes - 1] == '\r') bytes--;
    return bytes == strlen(d->marker) && memcmp(line, d->marker, bytes) == 0;
}

text_status documents_next(documents *d, const char **part, size_t *bytes) {
    size_t left = d->end - d->begin;
    if (!d->inside && documents_at(d) >= d->stop) return TEXT_END;
    char *stop = left ? memchr(d->buffer + d->begin, '\n', left) : NULL;
    if (!stop) {
        if (!fill(d)) return TEXT_FAILED;
        left = d->end;
        if (!left) return TEXT_END;
        stop = memchr(d->buffer, '\n', left);
    }
    const char *line = d->buffer + d->begin;
    bool full = !stop && left == LONGEST_PART;
    size_t n = full ? whole_characters(line, left) : left;
    if (stop) n = (size_t)(stop - line) + 1;
    d->begin += n;
    if (is_marker(d, line, n)) return TEXT_MARKER;
    d->inside = full;
    *part = line;
    *bytes = n;
    return TEXT_PART;
}
