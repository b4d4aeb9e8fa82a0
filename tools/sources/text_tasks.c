/* tools/sources/text_tasks.c - generates sums and dates. See text_tasks.h. */
#include "text_tasks.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/random.h"

/* The stream (training, validation or test) of a sum or a day, determined by these two numbers. */
static task_stream stream_of(int32_t a, int32_t b) {
    int32_t both[2] = { a, b };
    uint64_t part = wf_hash_bytes(0, both, sizeof both) % 16;
    if (part == 0) return STREAM_VALID;
    return part == 1 ? STREAM_TEST : STREAM_TRAIN;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Draws a number of 1 to 3 decimal digits from two random words: `digits` decides how many digits,
 * `word` decides which. */
static int32_t draw_number(uint32_t digits, uint32_t word) {
    static const uint32_t first[] = { 0, 10, 100, 1000 };
    uint32_t k = below(digits, 3);
    return (int32_t)(first[k] + below(word, first[k + 1] - first[k]));
}

static task_stream draw_sum(wf_philox words, char *src, char *tgt) {
    int32_t a = draw_number(words.v[0], words.v[1]), b = draw_number(words.v[2], words.v[3]);
    snprintf(src, TEXT_TASK_BYTES, "%d+%d", (int)a, (int)b);
    snprintf(tgt, TEXT_TASK_BYTES, "%d", (int)(a + b));
    return a < b ? stream_of(a, b) : stream_of(b, a);
}

/* ---- dates ----------------------------------------------------------------------------------- */

typedef struct date {
    int year, month, day; /* month and day from 1 */
} date;

enum { FIRST_YEAR = 1900, YEARS = 200 };
enum { ANY, SHORT_YEAR = 1, SLASHES = 2 }; /* conditions for a pattern: which dates it can write */

/* Patterns of dates. D and M have one or two digits, DD and MM two; Do is "3rd", Mon "Mar", Month
 * "March", Dow "Tue", Day "Tuesday", Y the year and YY its last two digits. */
static const struct {
    const char *pattern;
    int asks;
} ways[] = {
    { "{Do} of {Month}, {Y}", ANY },
    { "{Do} {Month} {Y}", ANY },
    { "{D} {Month} {Y}", ANY },
    { "{DD} {Mon} {Y}", ANY },
    { "the {Do} of {Month} {Y}", ANY },
    { "{Month} {D}, {Y}", ANY },
    { "{Month} {Do}, {Y}", ANY },
    { "{Mon} {D} {Y}", ANY },
    { "{Mon}. {D}, {Y}", ANY },
    { "{D}-{Mon}-{YY}", SHORT_YEAR },
    { "{Y}-{M}-{D}", ANY },
    { "{Y}/{MM}/{DD}", ANY },
    { "{Y} {Month} {D}", ANY },
    { "{Y}{MM}{DD}", ANY },
    { "{D}.{M}.{Y}", ANY },
    { "{Day}, {D} {Month} {Y}", ANY },
    { "{Dow}, {Mon} {D}, {Y}", ANY },
    { "{Day} the {Do} of {Month}, {Y}", ANY },
    { "{Dow} {DD} {Mon} {Y}", ANY },
    { "{D}/{M}/{Y}", SLASHES },
    { "{M}/{D}/{Y}", SLASHES },
    { "{DD}/{MM}/{YY}", SLASHES | SHORT_YEAR },
    { "{MM}/{DD}/{YY}", SLASHES | SHORT_YEAR },
};
enum { WAYS = sizeof ways / sizeof *ways };

static bool leap(int year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int year, int month) {
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    return days[month - 1] + (month == 2 && leap(year));
}

/* The weekday, where 0 is Sunday, by Sakamoto's method, which begins years in March. */
static int weekday(date d) {
    static const int shift[] = { 0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4 };
    int y = d.year - (d.month < 3);
    return (y + y / 4 - y / 100 + y / 400 + shift[d.month - 1] + d.day) % 7;
}

static const char *ordinal_suffix(int day) {
    static const char *const suffixes[] = { "th", "st", "nd", "rd" };
    return day / 10 == 1 || day % 10 > 3 ? "th" : suffixes[day % 10];
}

/* Writes one part of a date, by its name in a pattern. Returns its length. */
static int write_part(const char *name, size_t n, date d, char *out, size_t size) {
    static const char *const months[] = { "January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December" };
    static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday" };
    const char *month = months[d.month - 1], *day = days[weekday(d)];
#define IS(word) (n == sizeof word - 1 && memcmp(name, word, n) == 0)
    if (IS("D")) return snprintf(out, size, "%d", d.day);
    if (IS("DD")) return snprintf(out, size, "%02d", d.day);
    if (IS("Do")) return snprintf(out, size, "%d%s", d.day, ordinal_suffix(d.day));
    if (IS("M")) return snprintf(out, size, "%d", d.month);
    if (IS("MM")) return snprintf(out, size, "%02d", d.month);
    if (IS("Mon")) return snprintf(out, size, "%.3s", month);
    if (IS("Month")) return snprintf(out, size, "%s", month);
    if (IS("Dow")) return snprintf(out, size, "%.3s", day);
    if (IS("Day")) return snprintf(out, size, "%s", day);
    if (IS("YY")) return snprintf(out, size, "%02d", d.year % 100);
    return snprintf(out, size, "%d", d.year);
#undef IS
}

static void write_date(const char *pattern, date d, char *out) {
    char *end = out + TEXT_TASK_BYTES;
    for (const char *at = pattern; *at; at++) {
        if (*at != '{') {
            *out++ = *at;
            continue;
        }
        size_t n = strcspn(at + 1, "}");
        out += write_part(at + 1, n, d, out, (size_t)(end - out));
        at += n + 1;
    }
    *out = '\0';
}

static bool can_write(int asks, date d) {
    if ((asks & SHORT_YEAR) && (d.year < 1969 || d.year > 2068)) return false;
    return !(asks & SLASHES) || d.day > 12 || d.day == d.month;
}

/* Draws one of the patterns that can write the date, with equal probability. */
static const char *pattern_for(date d, uint32_t word) {
    const char *allowed[WAYS];
    uint32_t n = 0;
    for (int i = 0; i < WAYS; i++)
        if (can_write(ways[i].asks, d)) allowed[n++] = ways[i].pattern;
    return allowed[below(word, n)];
}

static void change_case(char *text, uint32_t word) {
    uint32_t choice = below(word, 4);
    for (; *text && choice < 2; text++)
        *text = (char)(choice ? toupper((unsigned char)*text) : tolower((unsigned char)*text));
}

static task_stream draw_date(wf_philox words, char *src, char *tgt) {
    date d = { .year = FIRST_YEAR + (int)below(words.v[0], YEARS),
               .month = 1 + (int)below(words.v[1], 12) };
    d.day = 1 + (int)below(words.v[2], (uint32_t)days_in(d.year, d.month));
    write_date(pattern_for(d, words.v[3]), d, src);
    change_case(src, words.v[0] << 8);
    write_date("{Y}-{MM}-{DD}", d, tgt);
    return stream_of(d.year, d.month * 32 + d.day);
}

/* ---- both ------------------------------------------------------------------------------------ */

void task_pair(text_task_kind kind, uint64_t seed, task_stream stream, uint64_t index, char *src,
               char *tgt) {
    uint64_t key = task_key(seed, stream);
    uint64_t attempt = 0;
    task_stream drawn;
    do {
        wf_philox words = wf_philox4x32(key, index, (uint64_t)(kind + 1) << 32 | attempt++);
        drawn = kind == TEXT_TASK_ADD ? draw_sum(words, src, tgt) : draw_date(words, src, tgt);
    } while (drawn != stream);
}
