/* core/base/number.c - real numbers as text, and back, whatever the program's locale is; see file.h.
 *
 * printf and strtod take the decimal point of the calling thread's locale, which the program around
 * the library may have set. Here the thread has the C locale for the length of one call. Numbers in
 * files, and what is compared byte by byte, go through here; messages for people need not. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"

/* The C locale is never allocated, so it is always to be had. */
static locale_t enter(void) {
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

char *wf_format_real(double value, int digits, char text[WF_REAL_TEXT]) {
    locale_t outer = enter();
    snprintf(text, WF_REAL_TEXT, "%.*g", digits < 1 ? 1 : digits > 17 ? 17 : digits, value);
    uselocale(outer);
    return text;
}

bool wf_parse_real(const char *text, double *value) {
    char *end;
    if (!text || !value) return false;
    locale_t outer = enter();
    *value = strtod(text, &end);
    uselocale(outer);
    return end != text && *end == '\0';
}
