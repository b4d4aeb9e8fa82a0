/* tools/cli/numbers.c - formats numbers for readers. See numbers.h. */
#include "numbers.h"

#include <stdio.h>
#include <string.h>

const char *duration(double seconds, char buffer[OPTION_TEXT_SIZE]) {
    if (!(seconds >= 0 && seconds < 1e9)) return strcpy(buffer, "?");
    long whole = (long)(seconds + 0.5);
    if (seconds < 59.95)
        snprintf(buffer, OPTION_TEXT_SIZE, "%.1f s", seconds);
    else if (whole < 3600)
        snprintf(buffer, OPTION_TEXT_SIZE, "%ld:%02ld", whole / 60, whole % 60);
    else
        snprintf(buffer, OPTION_TEXT_SIZE, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60,
                 whole % 60);
    return buffer;
}

const char *thousands(double value, char buffer[OPTION_TEXT_SIZE]) {
    char digits[OPTION_TEXT_SIZE];
    if (!(value >= 0 && value < 1e15)) return strcpy(buffer, "?");
    int n = snprintf(digits, sizeof digits, "%.0f", value), k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) buffer[k++] = ',';
        buffer[k++] = digits[i];
    }
    buffer[k] = '\0';
    return buffer;
}

const char *bytes_text(double bytes, char buffer[OPTION_TEXT_SIZE]) {
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    int unit = 0;
    while (bytes >= 999.5 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(buffer, OPTION_TEXT_SIZE, unit && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes,
             units[unit]);
    return buffer;
}
