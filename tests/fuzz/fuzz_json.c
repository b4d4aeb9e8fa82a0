/* tests/fuzz/fuzz_json.c - any bytes as JSON: wf_json_skip and a reader that asks for each part of
 * a value accept the same texts; decoded strings are UTF-8 without U+0000. */
#include "core/base/utf8.h"
#include "core/file/json.h"
#include "fuzz.h"

enum { DEEP = 128 }; /* where skipping stops */

static bool walk(struct wf_json *j, int depth);

static bool string(struct wf_json *j, char **out) {
    if (!wf_json_string(j, out)) return false;
    fuzz_must(*out > j->start && *out + strlen(*out) < j->end && j->at <= j->end);
    fuzz_must(wf_utf8_prefix(*out, strlen(*out)) == strlen(*out));
    return true;
}

static bool object(struct wf_json *j, int depth) {
    char *key;
    for (bool first = true; wf_json_key(j, &first, &key);) {
        fuzz_must(key > j->start && key + strlen(key) < j->end);
        if (!walk(j, depth + 1)) return false;
    }
    return !*j->error;
}

static bool array(struct wf_json *j, int depth) {
    for (bool first = true; wf_json_item(j, &first);)
        if (!walk(j, depth + 1)) return false;
    return !*j->error;
}

/* Reads a number with wf_json_size if that accepts all of it; else skips the value. */
static bool scalar(struct wf_json *j) {
    struct wf_json number = *j;
    int64_t size;
    if (wf_json_size(&number, &size)) {
        fuzz_must(size >= 0 && number.at > j->at && number.at <= j->end);
        if (number.at == j->end || !strchr(".eE", *number.at)) return *j = number, true;
    }
    return wf_json_skip(j);
}

static bool walk(struct wf_json *j, int depth) {
    char *ignored;
    while (j->at < j->end && *j->at && strchr(" \t\n\r", *j->at)) j->at++;
    char c = j->at < j->end ? *j->at : '\0';
    if (depth == DEEP && (c == '{' || c == '[')) return false;
    return c == '{'   ? object(j, depth)
           : c == '[' ? array(j, depth)
           : c == '"' ? string(j, &ignored)
                      : scalar(j);
}

FUZZ_TARGET(json) {
    struct wf_json skipped, walked;
    char *text = malloc(2 * size + 1), *copy = text + size; /* decoded in place: one for each */
    fuzz_must(text);
    if (size) memcpy(text, data, size), memcpy(copy, data, size);
    bool utf8 = wf_json_begin(&skipped, text, size);
    fuzz_must(utf8 == wf_json_begin(&walked, copy, size));
    fuzz_must(utf8 == (wf_utf8_prefix((const char *)data, size) == size));
    bool accepted = utf8 && wf_json_skip(&skipped) && wf_json_finish(&skipped);
    if (!accepted) fuzz_must_say(skipped.error);
    if (utf8) fuzz_must(accepted == (walk(&walked, 0) && wf_json_finish(&walked)));
    fuzz_must(!accepted || !*walked.error);
    free(text);
    return 0;
}
