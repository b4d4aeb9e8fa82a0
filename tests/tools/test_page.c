/* tests/tools/test_page.c - stand-alone pages: they contain the files of tools/page, their data are
 * one JSON object that no string can end early, and they request nothing from elsewhere. */
#include "tools/page/page.h"

#include "core/file/json.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(page)

static char *file_text(FILE *f) {
    ck_assert(f && fseek(f, 0, SEEK_END) == 0);
    long n = ftell(f);
    char *text = calloc((size_t)n + 1, 1);
    rewind(f);
    ck_assert(text && fread(text, 1, (size_t)n, f) == (size_t)n);
    fclose(f);
    return text;
}

static int times(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
    return n;
}

/* The text of a page. `fields` writes further fields of its data; NULL: there are none. */
static char *page_text(const char *title, void (*fields)(jsonl *data)) {
    page p;
    FILE *f = tmpfile();
    jsonl *data = page_begin(&p, f, title, NULL, NULL);
    if (fields) fields(data);
    ck_assert(page_end(&p));
    return file_text(f);
}

/* The data of a page, cut out of its text. */
static char *data_of(char *text) {
    static const char before[] = "<script type=\"application/json\" id=\"data\">";
    char *begin = strstr(text, before), *end = begin ? strstr(begin, "</script>") : NULL;
    ck_assert(end != NULL);
    *end = '\0';
    return begin + sizeof before - 1;
}

TEST(assets_are_the_files_to_the_byte) {
    const struct {
        const char *file;
        const char *const *lines;
    } assets[] = { { "tools/page/page.css", page_page_css },
                   { "tools/page/page.js", page_page_js },
                   { "tools/page/explain.css", page_explain_css },
                   { "tools/page/explain.js", page_explain_js },
                   { "tools/page/graph.css", page_graph_css },
                   { "tools/page/graph.js", page_graph_js },
                   { "tools/page/model.css", page_model_css },
                   { "tools/page/model.js", page_model_js },
                   { "tools/page/report.css", page_report_css },
                   { "tools/page/report.js", page_report_js } };
    for (int i = 0; i < COUNT_OF(assets); i++) {
        char path[512];
        FILE *f = fopen(source_path(assets[i].file, path, sizeof path), "r");
        if (!f) continue; /* the tests run without their sources */
        char *whole = file_text(f), *at = whole;
        for (const char *const *line = assets[i].lines; *line; line++) {
            ck_assert_msg(strncmp(at, *line, strlen(*line)) == 0, "%s: %s", assets[i].file, *line);
            at += strlen(*line);
        }
        ck_assert_msg(*at == '\0', "%s has more: %.40s", assets[i].file, at);
        /* In a page, "</s" could end its <script> or <style>, and "<!--" would begin a comment. */
        ck_assert(!strstr(whole, "</s") && !strstr(whole, "<!--"));
        free(whole);
    }
}

TEST(a_page_asks_for_nothing_elsewhere) {
    char *text = page_text("A page", NULL);
    ck_assert_int_eq(strncmp(text, "<!DOCTYPE html>\n", 16), 0);
    assert_contains(text, "default-src 'none'");
    assert_contains(text, "prefers-color-scheme: dark");
    assert_contains(text, "width=device-width");
    ck_assert_int_eq(times(text, "src=") + times(text, "@import") + times(text, "url("), 0);
    ck_assert_int_eq(times(text, "href="), 1);
    assert_contains(text, "href=\"data:,\"");
    ck_assert_int_eq(times(text, "<script"), times(text, "</script>"));
    ck_assert_int_eq(times(text, "</html>\n"), 1);
    ck_assert_uint_lt(strlen(text), 16 << 10);
    free(text);
}

static const char *const nasty[] = { "</script><script>alert(1)</script>",
                                     "<!--<script>",
                                     "\"quoted\" \\ back",
                                     "\t\n\x01",
                                     "\xE2\x80\xA8 a line",
                                     "\xC3\xBC & <b>" };

static void nasty_fields(jsonl *data) {
    json_open(data, "strings", '[');
    for (int i = 0; i < COUNT_OF(nasty); i++) json_text(data, NULL, nasty[i]);
    json_key(data, NULL);
    json_bytes(data, "a\xFF", 2);
    json_close(data, ']');
}

TEST(strings_come_back_and_end_no_script) {
    char *text = page_text("a & b </title><script>", nasty_fields);
    ck_assert_int_eq(times(text, "alert(1)"), 1);
    ck_assert_int_eq(times(text, "<script"), 2);
    ck_assert_int_eq(times(text, "</title>"), 1);
    assert_contains(text, "<title>a &#38; b &#60;/title>&#60;script></title>");
    char *json = data_of(text), *s;
    ck_assert(!strchr(json, '<'));
    struct wf_json j;
    bool first = true, item = true;
    ck_assert(wf_json_begin(&j, json, strlen(json)));
    ck_assert(wf_json_key(&j, &first, &s));
    ck_assert_str_eq(s, "title");
    ck_assert(wf_json_string(&j, &s));
    ck_assert_str_eq(s, "a & b </title><script>");
    ck_assert(wf_json_key(&j, &first, &s));
    for (int i = 0; i < COUNT_OF(nasty); i++) {
        ck_assert(wf_json_item(&j, &item) && wf_json_string(&j, &s));
        ck_assert_str_eq(s, nasty[i]);
    }
    ck_assert(wf_json_item(&j, &item) && wf_json_string(&j, &s));
    ck_assert_str_eq(s, "a\xEF\xBF\xBD");
    ck_assert(!wf_json_item(&j, &item) && !wf_json_key(&j, &first, &s) && wf_json_finish(&j));
    free(text);
}

static void nested_fields(jsonl *data) {
    json_open(data, "empty", '{');
    json_close(data, '}');
    json_open(data, "list", '[');
    json_open(data, NULL, '{');
    json_int(data, "a", 1);
    json_real(data, "b", NAN);
    json_close(data, '}');
    json_open(data, NULL, '[');
    json_close(data, ']');
    json_real(data, NULL, 0.5);
    json_text(data, NULL, NULL);
    json_digits(data, NULL, 1.0 / 3, 3);
    json_digits(data, NULL, INFINITY, 3);
    json_sizes(data, NULL, (int64_t[]){ 4, INT64_C(5000000000) }, 2);
    json_ints(data, NULL, NULL, 0);
    json_close(data, ']');
    json_int(data, "last", 2);
}

TEST(objects_and_arrays_nest) {
    char *text = page_text("t", nested_fields);
    ck_assert_str_eq(data_of(text),
                     "{\"title\":\"t\",\"empty\":{},\"list\":[{\"a\":1,\"b\":null},[],0.5,"
                     "null,0.333,null,[4,5000000000],[]],\"last\":2}\n");
    free(text);
}

static void long_field(jsonl *data) {
    json_open(data, "values", '[');
    for (int i = 0; i < 30000; i++) json_int(data, NULL, i);
    json_close(data, ']');
}

TEST(long_data_is_whole) {
    char *text = page_text("t", long_field);
    assert_contains(text, ",29998,29999]}\n</script>");
    free(text);
}

TEST(a_full_disk_is_told) {
    FILE *full = fopen("/dev/full", "w");
    if (!full) return; /* a system without it */
    page p;
    setvbuf(full, NULL, _IONBF, 0);
    page_begin(&p, full, "t", NULL, NULL);
    ck_assert(!page_end(&p));
    fclose(full);
}
