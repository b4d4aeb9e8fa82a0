/* tools/jsonl.c - JSON lines. See jsonl.h. */
#include "jsonl.h"

#include <math.h>

#include "options.h"

void json_number(FILE *out, double value) {
    char text[OPTION_TEXT_SIZE];
    fputs(shortest(value, text), out);
}

void json_string(FILE *out, const char *value) {
    fputc('"', out);
    for (const char *c = value; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

void json_key(FILE *out, const char *key) {
    fputc(',', out);
    json_string(out, key);
    fputc(':', out);
}

void json_begin(FILE *out, const char *event) {
    fputs("{\"event\":", out);
    json_string(out, event);
}

void json_end(FILE *out) {
    fputs("}\n", out);
}

void json_int(FILE *out, const char *key, int64_t value) {
    json_key(out, key);
    fprintf(out, "%lld", (long long)value);
}

void json_real(FILE *out, const char *key, double value) {
    json_key(out, key);
    json_number(out, value);
}

void json_bool(FILE *out, const char *key, bool value) {
    json_key(out, key);
    fputs(value ? "true" : "false", out);
}

void json_text(FILE *out, const char *key, const char *value) {
    json_key(out, key);
    json_string(out, value);
}

void json_ints(FILE *out, const char *key, const int32_t *values, int64_t n) {
    json_key(out, key);
    for (int64_t i = 0; i < n; i++) fprintf(out, "%c%d", i ? ',' : '[', (int)values[i]);
    fputs(n ? "]" : "[]", out);
}

/* 9 digits tell every f32 from every other. */
void json_reals(FILE *out, const char *key, const double *values, int64_t n) {
    json_key(out, key);
    for (int64_t i = 0; i < n; i++) {
        fputc(i ? ',' : '[', out);
        if (isfinite(values[i]))
            fprintf(out, "%.9g", values[i]);
        else
            fputs("null", out);
    }
    fputs(n ? "]" : "[]", out);
}
