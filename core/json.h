/* core/json.h - inside core: a strict JSON reader for text of known structure (RFC 8259).
 *
 * No tree and no recursion: the caller asks for what its schema expects, in order, and the reader says yes
 * or keeps the first error. Strings are decoded in place, so that they cost no memory. An object is read as
 *
 *     if (!wf_json_expect(j, '{')) return false;
 *     if (wf_json_accept(j, '}')) return true;
 *     do { ... wf_json_string, wf_json_expect(j, ':'), the value ... } while (wf_json_accept(j, ','));
 *     return wf_json_expect(j, '}');
 */
#ifndef WEFT_CORE_JSON_H
#define WEFT_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_json {
    char *start, *at, *end;
    char error[96]; /* "header byte 17: ':' expected", or "" */
};

/* text[size] must be a writable zero. False if the text is not UTF-8. */
bool wf_json_begin(struct wf_json *j, char *text, size_t size);
bool wf_json_finish(struct wf_json *j);           /* nothing but white space may follow */
bool wf_json_accept(struct wf_json *j, char c);   /* if c comes next, take it */
bool wf_json_expect(struct wf_json *j, char c);   /* take c, or fail */
bool wf_json_string(struct wf_json *j, char **out); /* without U+0000, which no C string can hold */
bool wf_json_size(struct wf_json *j, int64_t *out); /* an integer from 0 to 2^63 - 1 */
bool wf_json_skip(struct wf_json *j);             /* any value, checked */

/* The length of the longest prefix that is UTF-8 (no surrogates, no overlong forms). */
size_t wf_utf8_prefix(const char *text, size_t size);

#endif
