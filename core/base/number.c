/* core/base/number.c - real numbers as text and back, in the C locale; declared in
 * core/file_internal.h.
 *
 * printf and strtod use the decimal point of the calling thread's locale, which the program may
 * have set. These functions switch the thread to the C locale for one call. Numbers in files, and
 * texts that are compared byte by byte, must be written with them; messages for people need not. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "core/file_internal.h"

/* newlocale does not allocate memory for the C locale, so it does not fail. */
static locale_t enter(void) {
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

char *wf_format_real(double value, int digits, char text[WF_REAL_TEXT]) {
    if (!text) return NULL;
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
