/* core/file/json.h - inside core: a strict JSON reader for text of known structure (RFC 8259).
 *
 * It builds no tree and does not recurse: the caller reads the values that its schema expects, in
 * order; the first error is kept. Strings are decoded in place, without further memory.
 *
 *     for (bool first = true; wf_json_key(j, &first, &key);)
 *         if (!wf_json_size(j, &size)) return false;
 *     return !*j->error;
 */
#ifndef WEFT_CORE_FILE_JSON_H
#define WEFT_CORE_FILE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_json {
    char *start, *at, *end;
    char error[96]; /* "header byte 17: ':' expected", or "" */
};

bool wf_json_begin(struct wf_json *j, char *text, size_t size); /* false: not UTF-8 */

/* Skip white space. Return the character after it, or 0 at the end. */
char wf_json_after_space(struct wf_json *j);
static inline char wf_json_next(struct wf_json *j) {
    return j->at != j->end && *j->at > ' ' ? *j->at : wf_json_after_space(j);
}

bool wf_json_finish(struct wf_json *j);          /* true if only white space follows */
bool wf_json_missing(struct wf_json *j, char c); /* fails: c is missing; returns false */
/* take c, or fail */
static inline bool wf_json_expect(struct wf_json *j, char c) {
    if (wf_json_next(j) != c) return wf_json_missing(j, c);
    j->at++;
    return true;
}
/* a string, decoded in place; U+0000 in it is an error, because it would end the C string */
bool wf_json_string(struct wf_json *j, char **out);
/* a string with its length in bytes; U+0000 is allowed */
bool wf_json_text(struct wf_json *j, char **out, size_t *bytes);
bool wf_json_size(struct wf_json *j, int64_t *out); /* an integer from 0 to 2^63 - 1 */
bool wf_json_skip(struct wf_json *j);               /* any value, checked */
/* true if the array has one more value, which the caller then reads; false: end of the array, or an
 * error */
bool wf_json_item(struct wf_json *j, bool *first);
/* true if the object has one more member, whose value the caller then reads; false: end of the
 * object, or an error */
bool wf_json_key(struct wf_json *j, bool *first, char **key);

/* ---- writing ------------------------------------------------------------------------------- */

enum { WF_JSON_ESCAPE = 13 }; /* the longest escape with its terminating '\0' */

/* Write the escape of a code point; above U+FFFF those of its two surrogates. Returns its
 * length. */
int wf_json_escape(int32_t code, char out[WF_JSON_ESCAPE]);

/* wf_json_quote writes text between quotes, and escapes only what JSON requires. It passes the
 * result to `put` in parts of n bytes. */
typedef void wf_json_put(void *to, const char *bytes, size_t n);
void wf_json_quote(wf_json_put *put, void *to, const char *text);

#endif
