/* tools/cli/jsonl.h - writes JSON lines: one object per line, with null for numbers that are not
 * finite.
 *
 *     jsonl line = { .stream = stdout };
 *     json_begin(&line, "step"), json_int(&line, "step", 5), json_end(&line);
 *     {"event":"step","step":5}
 *
 * A line is composed in memory, and goes to its stream when it ends (or, if it is long, in parts).
 * Failures are remembered in `failed`, so one check at the end is enough. All functions accept NULL
 * as the line, and then do nothing. */
#ifndef WEFT_TOOLS_CLI_JSONL_H
#define WEFT_TOOLS_CLI_JSONL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct jsonl {
    FILE *stream; /* NULL: the line stays in memory for the caller */
    char *text;
    size_t length, capacity;
    bool failed; /* out of memory, or the stream failed; errno is that of the first failure */
    bool html;   /* strings escape '<', so that the text can be put into an HTML script element */
    bool fresh;  /* an object or array was just opened, so no comma is needed */
} jsonl;

void json_begin(jsonl *out, const char *event);
/* In all functions with a key, NULL stands for none: the value is an element of an array. */
void json_key(jsonl *out, const char *key); /* the caller writes the value next */
/* Open a nested object (bracket '{') or array ('['). */
void json_open(jsonl *out, const char *key, char bracket);
void json_close(jsonl *out, char bracket); /* bracket: '}' or ']' */
void json_int(jsonl *out, const char *key, int64_t value);
void json_real(jsonl *out, const char *key, double value);
void json_digits(jsonl *out, const char *key, double value, int digits); /* to so many digits */
void json_bool(jsonl *out, const char *key, bool value);
void json_text(jsonl *out, const char *key, const char *value); /* NULL: null */
void json_ints(jsonl *out, const char *key, const int32_t *values, int64_t n);
void json_sizes(jsonl *out, const char *key, const int64_t *values, int n);
void json_reals(jsonl *out, const char *key, const double *values, int64_t n); /* to 9 digits */
void json_end(jsonl *out);
void json_free(jsonl *out);

/* A string in quotes. Invalid UTF-8 becomes U+FFFD, and control characters are escaped. */
void json_string(jsonl *out, const char *value);
/* a string of `bytes` bytes, which may contain zeros */
void json_bytes(jsonl *out, const char *value, size_t bytes);
/* Bytes as a base64 string (RFC 4648). */
void json_base64(jsonl *out, const void *bytes, size_t n);
/* Formatted text of at most 60 bytes, written as it is. */
void json_raw(jsonl *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
