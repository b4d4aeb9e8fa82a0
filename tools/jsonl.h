/* tools/jsonl.h - JSON lines: one object per line, null for what is not finite. Writing only.
 *
 *     json_begin(out, "step"), json_int(out, "step", 5), json_end(out);
 *     {"event":"step","step":5} */
#ifndef WEFT_TOOLS_JSONL_H
#define WEFT_TOOLS_JSONL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void json_begin(FILE *out, const char *event);
void json_key(FILE *out, const char *key); /* a value of your own follows */
void json_int(FILE *out, const char *key, int64_t value);
void json_real(FILE *out, const char *key, double value);
void json_bool(FILE *out, const char *key, bool value);
void json_text(FILE *out, const char *key, const char *value);
void json_ints(FILE *out, const char *key, const int32_t *values, int64_t n);
void json_reals(FILE *out, const char *key, const double *values, int64_t n); /* to 9 digits */
void json_end(FILE *out);

void json_number(FILE *out, double value);
void json_string(FILE *out, const char *value); /* quoted; value is UTF-8 */

#endif
