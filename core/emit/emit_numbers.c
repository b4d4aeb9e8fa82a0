/* core/emit/emit_numbers.c - merges the texts for several positions into one. Where a number
 * differs, it must be a linear function of the position, or of the size that runs choose. */
#include <stdlib.h>
#include <string.h>

#include "emit_steps.h"

/* Reads the number between two marks. *at is at the first mark, and moves behind the second. */
static int64_t read_number(const char **at) {
    char *end;
    int64_t n = strtoll(*at + 1, &end, 10);
    *at = end + 1;
    return n;
}

static bool add_even(const char *variable, int n, const int64_t *number, const int64_t *positions,
                     const char *instead, wf_text *to, bool *moves) {
    int64_t slope = 0;
    if (n > 1) slope = (number[0] - number[1]) / (positions[0] - positions[1]);
    int64_t start = number[0] - slope * positions[0];
    for (int i = 0; i < n; i++)
        if (number[i] != start + slope * positions[i]) return false;
    *moves |= slope != 0;
    if (!slope)
        wf_text_print(to, "%n", start);
    else if (instead)
        wf_text_puts(to, instead);
    else if (slope == 1)
        wf_text_print(to, start ? "(%s + %n)" : "%s", variable, start);
    else
        wf_text_print(to, start ? "(%s * %n + %n)" : "%s * %n", variable, slope, start);
    return true;
}

bool wf_merge_numbers(const part *q, int n, const wf_text *const *texts, const int64_t *positions,
                      const char *instead, wf_text *to, bool *moves) {
    static const char mark[] = { WF_NUMBER_BEGINS, 0 };
    const char *at[MOST_POSITIONS] = { NULL };
    for (int i = 0; i < n; i++) at[i] = wf_text_of(texts[i]);
    while (*at[0]) {
        int64_t number[MOST_POSITIONS] = { 0 };
        size_t letters = strcspn(at[0], mark);
        for (int i = 1; i < n; i++)
            if (strncmp(at[i], at[0], letters) != 0) return false;
        wf_text_add(to, at[0], letters);
        for (int i = 0; i < n; i++) at[i] += letters;
        if (!*at[0]) break;
        for (int i = 1; i < n; i++)
            if (*at[i] != WF_NUMBER_BEGINS) return false;
        for (int i = 0; i < n; i++) number[i] = read_number(&at[i]);
        if (!add_even(wf_variable(q), n, number, positions, instead, to, moves)) return false;
    }
    for (int i = 1; i < n; i++)
        if (*at[i]) return false;
    return true;
}
