/* tools/cli/jsonl.h - JSON lines: one object per line, null for what is not finite. Writing only.
 *
 *     jsonl line = { .stream = stdout };
 *     json_begin(&line, "step"), json_int(&line, "step", 5), json_end(&line);
 *     {"event":"step","step":5}
 *
 * A line is composed in memory, and goes to its stream when it ends (or, if it is long, in parts).
 * What fails sticks in `failed`: look at it once. A line that is NULL takes anything and is
 * nothing. */
#ifndef WEFT_TOOLS_CLI_JSONL_H
#define WEFT_TOOLS_CLI_JSONL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct jsonl {
    FILE *stream; /* NULL: the line stays in memory, for whoever composed it */
    char *text;
    size_t length, capacity;
    bool failed; /* no memory for all of it, or the stream has failed: errno at the first time */
    bool html;   /* strings escape '<': the text may stand in an HTML script element */
    bool fresh;  /* an object or array was opened last: no comma is due */
} jsonl;

void json_begin(jsonl *out, const char *event);
void json_key(jsonl *out, const char *key); /* a value of your own follows */
/* A nested object, bracket '{', or array, '['; key NULL: in an array. */
void json_open(jsonl *out, const char *key, char bracket);
void json_close(jsonl *out, char bracket); /* the closing one */
void json_item(jsonl *out);                /* in an array: a value of your own follows */
void json_int(jsonl *out, const char *key, int64_t value);
void json_real(jsonl *out, const char *key, double value);
void json_bool(jsonl *out, const char *key, bool value);
void json_text(jsonl *out, const char *key, const char *value);
void json_ints(jsonl *out, const char *key, const int32_t *values, int64_t n);
void json_reals(jsonl *out, const char *key, const double *values, int64_t n); /* to 9 digits */
void json_end(jsonl *out);
void json_free(jsonl *out);

void json_number(jsonl *out, double value);
/* Quoted; what is not UTF-8 becomes U+FFFD, and what a terminal would obey is escaped. */
void json_string(jsonl *out, const char *value);
void json_bytes(jsonl *out, const char *value, size_t bytes); /* the same, zeros among them */
/* Bytes as a string in base64 (RFC 4648). */
void json_base64(jsonl *out, const void *bytes, size_t n);
/* Anything, at most 60 bytes of it. */
void json_raw(jsonl *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
