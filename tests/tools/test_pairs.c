/* tests/tools/test_pairs.c - reading aligned lines from files: accepted and refused texts. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "core/base/utf8.h"
#include "tests/models/text_files.h"
#include "tests/suites.h"
#include "tools/data/pairs.h"

#include <sys/stat.h>

TESTS(pairs)

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

TEST(utf8_is_strict) {
    static const struct {
        const char *text;
        int bad; /* -1: valid */
    } rows[] = {
        { "", -1 },
        { "plain", -1 },
        { "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF", -1 },
        { "\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF", -1 },
        { "a\x80", 1 },
        { "ab\xC0\xAF", 2 },
        { "\xC1\xBF", 0 },
        { "\xE0\x9F\xBF", 0 },
        { "x\xED\xA0\x80", 1 },
        { "\xF0\x8F\xBF\xBF", 0 },
        { "\xF4\x90\x80\x80", 0 },
        { "\xF8\x88\x80\x80\x80", 0 },
        { "\xFF\xFE", 0 },
        { "\xC3", 0 },
        { "\xE4\xB8", 0 },
        { "ok \xE4\xB8 ok", 3 },
        { "\xF0\x9F\x98", 0 },
        { "\xC3\xC3\xA9", 0 },
    };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        size_t n = strlen(rows[i].text), at = 0, begin = 0;
        int32_t code = 0;
        while (at < n && code >= 0) begin = at, code = wf_utf8_next(rows[i].text, n, &at);
        ck_assert_msg(code < 0 ? (int)begin == rows[i].bad : rows[i].bad < 0, "row %d", i);
        if (code < 0) ck_assert_uint_eq(at, begin + 1);
    }
}

/* Every code point in its shortest UTF-8 form is decoded and encoded again; all but surrogates are
 * valid. */
TEST(utf8_of_every_code_point) {
    for (int32_t code = 0; code < 0x110000; code++) {
        char s[4];
        size_t n = 0, at = 0;
        if (code < 0x80)
            s[n++] = (char)code;
        else if (code < 0x800)
            s[n++] = (char)(0xC0 | code >> 6);
        else if (code < 0x10000)
            s[n++] = (char)(0xE0 | code >> 12);
        else
            s[n++] = (char)(0xF0 | code >> 18);
        if (code >= 0x10000) s[n++] = (char)(0x80 | (code >> 12 & 0x3F));
        if (code >= 0x800) s[n++] = (char)(0x80 | (code >> 6 & 0x3F));
        if (code >= 0x80) s[n++] = (char)(0x80 | (code & 0x3F));
        bool surrogate = code >= 0xD800 && code < 0xE000;
        int32_t got = wf_utf8_next(s, n, &at);
        char put[WF_UTF8_MOST];
        if (wf_utf8_put(put, code) != n || memcmp(put, s, n) != 0 || wf_utf8_announced(s, 4) != n)
            ck_abort_msg("U+%04X is written otherwise", (unsigned)code);
        if (got != (surrogate ? -1 : code) || at != (surrogate ? 1 : n))
            ck_abort_msg("U+%04X", (unsigned)code);
    }
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Returns "source=target;" for every pair, or "" with the reason in `message`. */
static const char *read_some(bool two, bool targets, char *out, size_t size) {
    pair_lines p;
    size_t n = 0;
    message[0] = '\0';
    ck_assert_msg(pairs_open(&p, path[0], two ? path[1] : NULL, message), "%s", message);
    p.targets = targets;
    while (pairs_next(&p, message))
        n += (size_t)snprintf(out + n, size - n, "%.*s=%.*s;", (int)p.bytes[0], p.text[0],
                              (int)p.bytes[1], p.text[1]);
    ck_assert_int_eq(p.failed, message[0] != '\0');
    ck_assert(!pairs_next(&p, message)); /* and so it stays */
    pairs_close(&p);
    return message[0] ? "" : out;
}

static const char *read_pairs(bool two, char *out, size_t size) {
    return read_some(two, false, out, size);
}

/* Files may contain targets alone, for a model that needs no sources. */
TEST(targets_may_stand_alone) {
    static const struct {
        const char *src, *tgt, *pairs, *says;
    } rows[] = {
        { "a\tb\nno tab\n\tc\n", NULL, "a=b;=no tab;=c;", "" },
        { "a\n\n", "b\nc\n", "a=b;=c;", "" },
        { "a\n\nb\n", NULL, "", "line 2 of" },
        { "a\n\t\n", NULL, "", "has an empty target" },
        { "a\n", "\n", "", "line 1 of" },
    };
    make_folder();
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char out[200] = "";
        write_file(0, rows[i].src, strlen(rows[i].src));
        if (rows[i].tgt) write_file(1, rows[i].tgt, strlen(rows[i].tgt));
        ck_assert_str_eq(read_some(rows[i].tgt != NULL, true, out, sizeof out), rows[i].pairs);
        assert_contains(message, rows[i].says);
    }
    remove_folder();
}

TEST(pairs_are_read) {
    static const struct {
        const char *src, *tgt, *pairs;
    } rows[] = {
        { "a\tb\nc d\te f\n", NULL, "a=b;c d=e f;" },
        { "a\tb\r\nc\td\r\n", NULL, "a=b;c=d;" },
        { "a\tb", NULL, "a=b;" },
        { "\xEF\xBB\xBF"
          "a\tb\n",
          NULL, "a=b;" },
        { " a \t b \n", NULL, " a = b ;" },
        { "a\nb\n", "c\nd\n", "a=c;b=d;" },
        { "a\nb", "c\r\nd\r\n", "a=c;b=d;" },
        { "a\tb\n", "c\td\n", "a\tb=c\td;" },
        { "\xEF\xBB\xBFü\n", "\xEF\xBB\xBF語\n", "ü=語;" },
    };
    make_folder();
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char out[200] = "";
        write_file(0, rows[i].src, strlen(rows[i].src));
        if (rows[i].tgt) write_file(1, rows[i].tgt, strlen(rows[i].tgt));
        ck_assert_str_eq(read_pairs(rows[i].tgt != NULL, out, sizeof out), rows[i].pairs);
        ck_assert_str_eq(message, "");
    }
    remove_folder();
}

TEST(pairs_are_refused) {
    static const struct {
        const char *src;
        size_t src_bytes;
        const char *tgt;
        size_t tgt_bytes;
        const char *says;
    } rows[] = {
        { TEXT(""), NULL, 0, "a.txt is empty" },
        { TEXT(""), TEXT(""), "a.txt is empty" },
        { TEXT("a\tb\nno tab\n"), NULL, 0, "line 2 of %s has no TAB between source and target" },
        { TEXT("a\tb\tc\n"), NULL, 0, "line 1 of %s has more than two columns" },
        { TEXT("a\t\n"), NULL, 0, "line 1 of %s has an empty target" },
        { TEXT("\tb\n"), NULL, 0, "line 1 of %s has an empty source" },
        { TEXT("a\tb\n\nc\td\n"), NULL, 0, "line 2 of %s is empty" },
        { TEXT("a\tb\n\r\n"), NULL, 0, "line 2 of %s is empty" },
        { TEXT("a\tb\nc\t\xFF\n"), NULL, 0, "line 2 of %s: not UTF-8 at byte 2" },
        { TEXT("a\tb\rc\n"), NULL, 0, "line 1 of %s: a line break inside the line, at byte 3" },
        { TEXT("a\tb\0c\n"), NULL, 0, "line 1 of %s: a zero byte (U+0000) at byte 3" },
        { TEXT("\xFF\xFE"
               "a\0\t\0b\0\n\0"),
          NULL, 0, "%s can't be read: it is UTF-16, not UTF-8: iconv -f UTF-16 -t" },
        { TEXT("a\nb\nc\n"), TEXT("x\n"), "has 3 lines and" },
        { TEXT("a\n"), TEXT("x\ny\nz"), "b.txt has 3: line by line" },
        { TEXT("a\n"), TEXT(""), "b.txt has 0: line by line" },
        { TEXT("a\n\n"), TEXT("x\ny\n"), "line 2 of %s is empty" },
        { TEXT("a\nb\n"), TEXT("x\n\xC3\n"), "b.txt: not UTF-8 at byte 0" },
    };
    make_folder();
    for (int i = 0; i < COUNT_OF(rows); i++) {
        char out[200], says[200];
        write_file(0, rows[i].src, rows[i].src_bytes);
        if (rows[i].tgt) write_file(1, rows[i].tgt, rows[i].tgt_bytes);
        ck_assert_str_eq(read_pairs(rows[i].tgt != NULL, out, sizeof out), "");
        snprintf(says, sizeof says, rows[i].says, path[0]);
        assert_contains(message, says);
        ck_assert_ptr_null(strchr(message, '\n'));
    }
    remove_folder();
}

TEST(files_that_are_not_there) {
    pair_lines p;
    make_folder();
    write_file(0, TEXT("a\tb\n"));
    ck_assert(!pairs_open(&p, "/nowhere/file.txt", NULL, message));
    ck_assert_str_eq(message, "/nowhere/file.txt can't be read: No such file or directory");
    ck_assert(!pairs_open(&p, path[0], path[1], message));
    assert_contains(message, "b.txt can't be read: No such file");
    ck_assert(pairs_open(&p, folder, NULL, message));
    ck_assert(!pairs_next(&p, message) && p.failed);
    assert_contains(message, "can't be read: Is a directory");
    pairs_close(&p);
    ck_assert_int_eq(chmod(path[0], 0), 0);
    if (access(path[0], R_OK) != 0) { /* root may read it all the same */
        ck_assert(!pairs_open(&p, path[0], NULL, message));
        assert_contains(message, "a.txt can't be read: Permission denied");
    }
    remove_folder();
}

TEST(huge_lines) {
    char out[200];
    size_t n = LONGEST_LINE;
    char *text = malloc(2 * n + 10);
    ck_assert_ptr_nonnull(text);
    make_folder();
    memset(text, 'x', 2 * n + 10);
    memcpy(text, "a\tb\n", 4), text[6] = '\t', text[4 + n - 1] = '\n';
    write_file(0, text, 4 + n); /* a line of a megabyte is read */
    pair_lines p;
    ck_assert(pairs_open(&p, path[0], NULL, message) && pairs_next(&p, message));
    ck_assert_msg(pairs_next(&p, message), "%s", message);
    ck_assert_int_eq(p.bytes[0] + p.bytes[1], n - 2);
    pairs_close(&p);
    text[4 + n - 1] = 'x';
    write_file(0, text, 2 * n + 10);
    read_pairs(false, out, sizeof out);
    assert_contains(message, "line 2 of");
    assert_contains(message, "is longer than a megabyte");
    free(text);
    remove_folder();
}

TEST(lines_for_a_vocabulary) {
    static const char *const wanted[] = { "a c ", "b d ", "a b c d " };
    make_folder();
    write_file(0, TEXT("a\tb\nc\td\n"));
    for (int i = 0; i < 3; i++) {
        char out[40] = "";
        const char *line;
        size_t bytes;
        pair_lines p;
        ck_assert(pairs_open(&p, path[0], NULL, message));
        pairs_reader r = { .pairs = &p, .side = { i != 1, i != 0 }, .message = message };
        while (pairs_line(&r, &line, &bytes) == 1) {
            size_t n = strlen(out);
            snprintf(out + n, sizeof out - n, "%.*s ", (int)bytes, line);
        }
        ck_assert_str_eq(out, wanted[i]);
        ck_assert_int_eq(pairs_line(&r, &line, &bytes), 0);
        pairs_close(&p);
    }
    write_file(0, TEXT("a\tb\nc\n"));
    const char *line;
    size_t bytes;
    pair_lines p;
    ck_assert(pairs_open(&p, path[0], NULL, message));
    pairs_reader r = { .pairs = &p, .side = { true, false }, .message = message };
    ck_assert_int_eq(pairs_line(&r, &line, &bytes), 1);
    ck_assert_int_eq(pairs_line(&r, &line, &bytes), -1);
    assert_contains(message, "has no TAB");
    pairs_close(&p);
    remove_folder();
}
