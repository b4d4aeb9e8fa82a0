/* models/text/byte_level/unicode.c - classes of code points, from the table that unicode.py
 * prints. */
#include "unicode.h"

/* In ascending order: code point * 4 + the class of all code points from there on. */
static const uint32_t changes[] = {
#include "unicode.inc"
};

wf_unicode_class wf_unicode_class_of(uint32_t code_point) {
    size_t low = 0, high = sizeof changes / sizeof *changes;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (changes[middle] >> 2 <= code_point)
            low = middle;
        else
            high = middle;
    }
    return (wf_unicode_class)(changes[low] & 3);
}

const uint32_t *wf_unicode_changes(size_t *n) {
    *n = sizeof changes / sizeof *changes;
    return changes;
}
