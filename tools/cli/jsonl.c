/* tools/cli/jsonl.c - JSON lines. See jsonl.h. */
#include "jsonl.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/file/json.h"
#include "terminal.h"
#include "tools/cli/options/options.h"

enum { SMALLEST = 1 << 10, LONG = 1 << 16 }; /* bytes */

/* ---- bytes ----------------------------------------------------------------------------------- */

static void send(jsonl *out) {
    if (!out->stream || out->failed) return;
    out->failed = fwrite(out->text, 1, out->length, out->stream) != out->length;
    out->length = 0;
}

static bool make_room(jsonl *out, size_t n) {
    if (out->length >= LONG) send(out);
    size_t need = out->length + n < SMALLEST ? SMALLEST : out->length + n;
    if (out->failed || wf_grow(&out->text, &out->capacity, need, 1)) return !out->failed;
    out->failed = true;
    errno = ENOMEM;
    return false;
}

static void put(jsonl *out, const char *bytes, size_t n) {
    if (!out || !make_room(out, n)) return;
    memcpy(out->text + out->length, bytes, n);
    out->length += n;
}

void json_raw(jsonl *out, const char *format, ...) {
    char text[61];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert(n >= 0 && n < (int)sizeof text);
    put(out, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void json_free(jsonl *out) {
    free(out->text);
    *out = (jsonl){ 0 };
}

/* ---- values ---------------------------------------------------------------------------------- */

static void escape(jsonl *out, int32_t c) {
    char text[WF_JSON_ESCAPE];
    if (c < 0)
        put(out, "\xEF\xBF\xBD", 3);
    else
        put(out, text, (size_t)wf_json_escape(c, text));
}

void json_bytes(jsonl *out, const char *value, size_t bytes) {
    size_t at = 0;
    put(out, "\"", 1);
    while (at < bytes) {
        size_t begin = at;
        int32_t c = wf_utf8_next(value, bytes, &at);
        if (c == '"' || c == '\\' || c == '\t' || is_control(c) || (c == '<' && out && out->html))
            escape(out, c);
        else
            put(out, value + begin, at - begin);
    }
    put(out, "\"", 1);
}

void json_base64(jsonl *out, const void *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;
    put(out, "\"", 1);
    for (size_t i = 0; i < n; i += 3) {
        unsigned word = (unsigned)from[i] << 16;
        if (i + 1 < n) word |= (unsigned)from[i + 1] << 8;
        if (i + 2 < n) word |= from[i + 2];
        char text[4] = { digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63],
                         digits[word & 63] };
        for (size_t k = n - i + 1; k < 4; k++) text[k] = '=';
        put(out, text, 4);
    }
    put(out, "\"", 1);
}

void json_string(jsonl *out, const char *value) {
    json_bytes(out, value, strlen(value));
}

void json_key(jsonl *out, const char *key) {
    if (!out) return;
    if (!out->fresh) put(out, ",", 1);
    out->fresh = false;
    if (!key) return;
    json_string(out, key);
    put(out, ":", 1);
}

void json_open(jsonl *out, const char *key, char bracket) {
    json_key(out, key);
    put(out, &bracket, 1);
    if (out) out->fresh = true;
}

void json_close(jsonl *out, char bracket) {
    put(out, &bracket, 1);
    if (out) out->fresh = false;
}

void json_begin(jsonl *out, const char *event) {
    json_raw(out, "{\"event\":");
    json_string(out, event);
}

void json_end(jsonl *out) {
    assert(!out || out->failed || out->length || out->stream);
    json_raw(out, "}\n");
    if (out) send(out);
}

void json_int(jsonl *out, const char *key, int64_t value) {
    json_key(out, key);
    json_raw(out, "%lld", (long long)value);
}

void json_real(jsonl *out, const char *key, double value) {
    char text[OPTION_TEXT_SIZE];
    json_key(out, key);
    json_raw(out, "%s", shortest(value, text));
}

void json_digits(jsonl *out, const char *key, double value, int digits) {
    json_key(out, key);
    if (isfinite(value))
        json_raw(out, "%.*g", digits, value);
    else
        json_raw(out, "null");
}

void json_bool(jsonl *out, const char *key, bool value) {
    json_key(out, key);
    json_raw(out, value ? "true" : "false");
}

void json_text(jsonl *out, const char *key, const char *value) {
    json_key(out, key);
    if (value)
        json_string(out, value);
    else
        json_raw(out, "null");
}

void json_ints(jsonl *out, const char *key, const int32_t *values, int64_t n) {
    json_open(out, key, '[');
    for (int64_t i = 0; i < n; i++) json_int(out, NULL, values[i]);
    json_close(out, ']');
}

void json_sizes(jsonl *out, const char *key, const int64_t *values, int n) {
    json_open(out, key, '[');
    for (int i = 0; i < n; i++) json_int(out, NULL, values[i]);
    json_close(out, ']');
}

/* 9 digits distinguish every f32. */
void json_reals(jsonl *out, const char *key, const double *values, int64_t n) {
    json_open(out, key, '[');
    for (int64_t i = 0; i < n; i++) json_digits(out, NULL, values[i], 9);
    json_close(out, ']');
}
