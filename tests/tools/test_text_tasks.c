/* tests/tools/test_text_tasks.c - the tasks of sums and dates, whose lines are generated: they are
 * right, differ between the streams of training and evaluation, and are the same everywhere. */
#include "tools/sources/text_tasks.c" /* to test its static functions, which write a date */

#include <time.h>

#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(text_tasks)

TEST(pairs_are_the_same_everywhere) {
    static const struct {
        text_task_kind kind;
        uint64_t seed;
        task_stream stream;
        uint64_t index;
        const char *src, *tgt;
    } rows[] = {
        { TEXT_TASK_ADD, 1u, STREAM_TRAIN, 0u, "9+856", "865" },
        { TEXT_TASK_ADD, 1u, STREAM_TRAIN, 1u, "77+57", "134" },
        { TEXT_TASK_ADD, 9007199254740991u, STREAM_TRAIN, 2u, "51+11", "62" },
        { TEXT_TASK_ADD, 1u, STREAM_VALID, 0u, "497+832", "1329" },
        { TEXT_TASK_ADD, 1u, STREAM_VALID, 1u, "7+65", "72" },
        { TEXT_TASK_ADD, 1u, STREAM_VALID, 1000000007u, "6+98", "104" },
        { TEXT_TASK_ADD, 1u, STREAM_TEST, 0u, "63+137", "200" },
        { TEXT_TASK_ADD, 1u, STREAM_TEST, 1u, "9+1", "10" },
        { TEXT_TASK_ADD, 1u, STREAM_TEST, 1000000007u, "48+24", "72" },
        { TEXT_TASK_DATE, 1u, STREAM_TRAIN, 0u, "the 13th of february 2002", "2002-02-13" },
        { TEXT_TASK_DATE, 1u, STREAM_TRAIN, 1u, "DEC 6 1979", "1979-12-06" },
        { TEXT_TASK_DATE, 9007199254740991u, STREAM_TRAIN, 2u, "THURSDAY, 29 JULY 2083",
          "2083-07-29" },
        { TEXT_TASK_DATE, 1u, STREAM_VALID, 0u, "31/12/41", "2041-12-31" },
        { TEXT_TASK_DATE, 1u, STREAM_VALID, 1u, "3RD OF JANUARY, 2033", "2033-01-03" },
        { TEXT_TASK_DATE, 1u, STREAM_VALID, 1000000007u, "Mar. 25, 1913", "1913-03-25" },
        { TEXT_TASK_DATE, 1u, STREAM_TEST, 0u, "MAR. 1, 2087", "2087-03-01" },
        { TEXT_TASK_DATE, 1u, STREAM_TEST, 1u, "Feb 14 2099", "2099-02-14" },
        { TEXT_TASK_DATE, 1u, STREAM_TEST, 1000000007u, "18th of January, 1929", "1929-01-18" },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char src[TEXT_TASK_BYTES], tgt[TEXT_TASK_BYTES];
        task_pair(rows[i].kind, rows[i].seed, rows[i].stream, rows[i].index, src, tgt);
        ck_assert_str_eq(src, rows[i].src);
        ck_assert_str_eq(tgt, rows[i].tgt);
    }
}

TEST(sums_are_right) {
    int seen[3][3] = { 0 };
    for (uint64_t i = 0; i < 6000; i++) {
        char src[TEXT_TASK_BYTES], tgt[TEXT_TASK_BYTES], again[TEXT_TASK_BYTES];
        int a, b, used;
        task_pair(TEXT_TASK_ADD, i % 5, (task_stream)(i % 3), i, src, tgt);
        ck_assert_int_eq(sscanf(src, "%3d+%3d%n", &a, &b, &used), 2);
        ck_assert_int_eq(used, (int)strlen(src));
        snprintf(again, sizeof again, "%d+%d", a, b); /* no zeros in front */
        ck_assert_str_eq(again, src);
        ck_assert_int_eq(atoi(tgt), a + b);
        seen[a > 9 ? 1 + (a > 99) : 0][b > 9 ? 1 + (b > 99) : 0]++;
    }
    for (int i = 0; i < 9; i++) ck_assert_int_gt(seen[i / 3][i % 3], 500);
}

TEST(a_day_in_every_way) {
    static const char *const written[] = {
        "3rd of March, 1998",
        "3rd March 1998",
        "3 March 1998",
        "03 Mar 1998",
        "the 3rd of March 1998",
        "March 3, 1998",
        "March 3rd, 1998",
        "Mar 3 1998",
        "Mar. 3, 1998",
        "3-Mar-98",
        "1998-3-3",
        "1998/03/03",
        "1998 March 3",
        "19980303",
        "3.3.1998",
        "Tuesday, 3 March 1998",
        "Tue, Mar 3, 1998",
        "Tuesday the 3rd of March, 1998",
        "Tue 03 Mar 1998",
        "3/3/1998",
        "3/3/1998",
        "03/03/98",
        "03/03/98",
    };
    ck_assert_int_eq(COUNT_OF(written), WAYS);
    for (int i = 0; i < WAYS; i++) {
        char out[TEXT_TASK_BYTES];
        ck_assert(can_write(ways[i].asks, (date){ 1998, 3, 3 }));
        write_date(ways[i].pattern, (date){ 1998, 3, 3 }, out);
        ck_assert_str_eq(out, written[i]);
    }
}

/* The calendar of the dates agrees with the C library's (gmtime_r) for every day from 1900 to
 * 2099. */
TEST(calendar_is_the_c_librarys) {
    date d = { FIRST_YEAR, 1, 1 };
    for (int64_t day = -25567; d.year < FIRST_YEAR + YEARS; day++) {
        time_t seconds = (time_t)(day * 86400);
        struct tm tm;
        if (seconds == day * 86400) { /* a time_t of 32 bits is from 1901 to 2038 */
            ck_assert_ptr_nonnull(gmtime_r(&seconds, &tm));
            ck_assert(tm.tm_year + 1900 == d.year && tm.tm_mon + 1 == d.month);
            ck_assert(tm.tm_mday == d.day && weekday(d) == tm.tm_wday);
        }
        if (++d.day > days_in(d.year, d.month)) d.day = 1, d.month++;
        if (d.month > 12) d.month = 1, d.year++;
    }
}

TEST(ordinals) {
    static const char *const suffix[] = { [1] = "st", [2] = "nd", [3] = "rd", [4] = "th" };
    for (int day = 1; day <= 31; day++) {
        int last = day > 3 && day < 21 ? 4 : day % 10 < 4 && day % 10 ? day % 10 : 4;
        ck_assert_str_eq(ordinal_suffix(day), suffix[last]);
    }
}

/* A date with slashes and the year last can be read as one day only. A year of two digits is in the
 * range that POSIX defines. */
TEST(no_date_is_ambiguous) {
    int slashes = 0, short_years = 0, lower = 0, upper = 0, n = 20000;
    for (int i = 0; i < n; i++) {
        char src[TEXT_TASK_BYTES], tgt[TEXT_TASK_BYTES], month[4], end;
        int a, b, y, year, m, d;
        task_pair(TEXT_TASK_DATE, 3, STREAM_TRAIN, (uint64_t)i, src, tgt);
        ck_assert_int_eq(sscanf(tgt, "%4d-%2d-%2d%c", &year, &m, &d, &end), 3);
        ck_assert(strlen(tgt) == 10 && year >= 1900 && year < 2100 && m >= 1 && m <= 12);
        ck_assert(d >= 1 && d <= days_in(year, m));
        if (sscanf(src, "%2d/%2d/%d%c", &a, &b, &y, &end) == 3 && src[4] != '/') {
            slashes++;
            ck_assert_msg((a == d && b == m) || (a == m && b == d), "%s %s", src, tgt);
            ck_assert_msg(a > 12 || b > 12 || a == b, "%s %s", src, tgt);
            ck_assert(y == year || y == year % 100);
        }
        bool names = sscanf(src, "%d-%3[A-Za-z]-%2d%c", &a, month, &y, &end) == 3;
        if (names || (src[2] == '/' && strlen(src) == 8)) {
            short_years++;
            ck_assert_msg(year >= 1969 && year <= 2068, "%s %s", src, tgt);
        }
        bool has_lower = false, has_upper = false;
        for (char *c = src; *c; c++)
            has_lower |= *c >= 'a' && *c <= 'z', has_upper |= *c >= 'A' && *c <= 'Z';
        lower += has_lower && !has_upper, upper += has_upper && !has_lower;
    }
    ck_assert_int_gt(slashes, n / 50);
    ck_assert_int_gt(short_years, n / 50);
    ck_assert_int_gt(lower, n / 8);
    ck_assert_int_gt(upper, n / 8);
}

/* A key that must not be in two streams: the day, or the two numbers of a sum in ascending
 * order. */
static int64_t key_of_pair(text_task_kind kind, const char *src, const char *tgt) {
    int a, b, c;
    if (kind == TEXT_TASK_DATE)
        return sscanf(tgt, "%d-%d-%d", &a, &b, &c) == 3 ? (a - 1900) * 400 + b * 32 + c : -1;
    if (sscanf(src, "%d+%d", &a, &b) != 2) return -1;
    return a < b ? a * 1000 + b : b * 1000 + a;
}

TEST_ROWS(streams_do_not_meet, 2) {
    enum { KEYS = 1000000, PAIRS = 30000 };
    unsigned char *seen = calloc(KEYS, 1);
    ck_assert_ptr_nonnull(seen);
    for (int i = 0; i < 3 * PAIRS; i++) {
        char src[TEXT_TASK_BYTES], tgt[TEXT_TASK_BYTES];
        task_stream stream = (task_stream)(i % 3);
        task_pair((text_task_kind)_i, (uint64_t)i % 2, stream, (uint64_t)i, src, tgt);
        int64_t key = key_of_pair((text_task_kind)_i, src, tgt);
        if (key < 0 || key >= KEYS) ck_abort_msg("%s %s", src, tgt);
        if (seen[key] && seen[key] != stream + 1) ck_abort_msg("%s is in two streams", src);
        seen[key] = (unsigned char)(stream + 1);
    }
    free(seen);
}

/* The seed changes training lines, but not those of evaluation. */
TEST_ROWS(seeds, 2) {
    int differ[3] = { 0 };
    for (uint64_t i = 0; i < 300; i++) {
        char a[TEXT_TASK_BYTES], b[TEXT_TASK_BYTES], tgt[TEXT_TASK_BYTES];
        task_pair((text_task_kind)_i, 1, (task_stream)(i % 3), i, a, tgt);
        task_pair((text_task_kind)_i, 2, (task_stream)(i % 3), i, b, tgt);
        differ[i % 3] += strcmp(a, b) != 0;
    }
    ck_assert_int_gt(differ[STREAM_TRAIN], 80);
    ck_assert_int_eq(differ[STREAM_VALID] + differ[STREAM_TEST], 0);
}
