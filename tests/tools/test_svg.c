/* tests/tools/test_svg.c - heat maps and curves as SVG: well-formed, always the same, with all
 * values and no others.
 *
 * The pictures are part of the tools and not of the library, so this file includes their source. */
#include "tools/draw/svg.c"

#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(svg)

/* ---- what every picture must be -------------------------------------------------------------- */

/* Asserts that elements open and close in order, attributes are quoted, and text has no bare & or
 * <. It reads what svg.c writes, not all of XML. */
static void assert_well_formed(const char *s) {
    const char *open[32];
    size_t length[32];
    int depth = 0;
    while (*s) {
        if (*s == '&') ck_assert_msg(s[1] == '#' && strchr(s, ';'), "bare &: %.40s", s);
        ck_assert_msg(*s == '\n' || (unsigned char)*s >= ' ', "a control character");
        if (*s++ != '<') continue;
        bool closing = *s == '/';
        s += closing;
        size_t n = strcspn(s, " />\n");
        ck_assert_msg(n > 0, "bare <: %.40s", s);
        const char *name = s, *end = s;
        for (bool quoted = false; *end && (quoted || *end != '>'); end++) {
            if (*end == '"') quoted = !quoted;
            ck_assert_msg(*end != '<', "< in a tag: %.40s", name);
        }
        ck_assert_msg(*end == '>', "unfinished: %.40s", name);
        if (closing) {
            ck_assert_msg(depth > 0 && length[depth - 1] == n && !strncmp(open[depth - 1], name, n),
                          "</%.*s>", (int)n, name);
            depth--;
        } else if (end[-1] != '/') {
            ck_assert_int_lt(depth, 32);
            open[depth] = name, length[depth++] = n;
        }
        s = end + 1;
    }
    ck_assert_int_eq(depth, 0);
}

static char *text_of(FILE *f) {
    long n = ftell(f);
    char *text = calloc((size_t)n + 1, 1);
    rewind(f);
    ck_assert(text && fread(text, 1, (size_t)n, f) == (size_t)n);
    fclose(f);
    return text;
}

static char *map_text(const struct svg_heat_map *map) {
    FILE *f = tmpfile();
    ck_assert(f && svg_heat_map(f, map));
    char *text = text_of(f);
    assert_well_formed(text);
    assert_contains(text, "prefers-color-scheme: dark");
    return text;
}

static char *plot_text(const struct svg_plot *plot) {
    FILE *f = tmpfile();
    ck_assert(f && svg_plot(f, plot));
    char *text = text_of(f);
    assert_well_formed(text);
    assert_contains(text, "prefers-color-scheme: dark");
    ck_assert_msg(!strstr(text, "nan") && !strstr(text, "inf"), "not a number");
    return text;
}

static int occurrences(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
    return n;
}

/* ---- heat maps ------------------------------------------------------------------------------- */

TEST(a_heat_map_shows_weights_tokens_and_heads) {
    const float w[] = { 1, 0, 0, 0.25f, 0.5f, 0.25f, 0, 0.9996f, 0, 0.0001f, 0, 0 };
    const char *rows[] = { "le", "chat" }, *columns[] = { "the", "cat", "." };
    struct svg_heat_map map = { .title = "cross-attention",
                                .weights = w,
                                .heads = 2,
                                .rows = 2,
                                .columns = 3,
                                .row_labels = rows,
                                .column_labels = columns,
                                .row_axis = "target" };
    char *text = map_text(&map), *again = map_text(&map);
    ck_assert_str_eq(text, again);
    ck_assert_int_eq(occurrences(text, "class=\"cell\"") - 11,
                     5); /* the color scale has 11 cells; weights near 0 have none */
    ck_assert_int_eq(occurrences(text, "class=\"panel\""), 3);
    ck_assert_int_eq(occurrences(text, ">cat</text>"), 2);  /* above each head */
    ck_assert_int_eq(occurrences(text, ">chat</text>"), 1); /* beside the first */
    assert_contains(text, "chat \xE2\x86\x92 cat: 0.500");
    assert_contains(text, ">.25</text>");
    assert_contains(text, "head 1 of 2");
    assert_contains(text, "rows: target, columns: key");
    free(text), free(again);
}

TEST(any_label_and_any_weight_makes_a_picture) {
    const float w[] = { NAN, -1, 2, INFINITY };
    const char *labels[] = { "<&>\"'", "\xff\x01\n\xed\xa0\x80\xef\xbf\xbf long enough to be cut" };
    char *text = map_text(&(struct svg_heat_map){ .title = "a & <b>",
                                                  .weights = w,
                                                  .heads = 1,
                                                  .rows = 2,
                                                  .columns = 2,
                                                  .row_labels = labels,
                                                  .column_labels = labels });
    assert_contains(text, "class=\"bad\"");
    assert_contains(text, "&#60;&#38;&#62;&#34;&#39;");
    assert_contains(text, "\xE2\x80\xA6");
    free(text);
    text = map_text(
        &(struct svg_heat_map){ .weights = w, .heads = 1, .rows = 1, .columns = 4 }); /* numbers */
    assert_contains(text, ">3</text>");
    free(text);
}

TEST(large_maps_have_small_cells) {
    float *w = calloc(12 * 90 * 70, sizeof *w);
    for (int i = 0; i < 12 * 90; i++) w[70 * i + i % 70] = 1;
    char *text =
        map_text(&(struct svg_heat_map){ .weights = w, .heads = 12, .rows = 90, .columns = 70 });
    ck_assert_int_eq(occurrences(text, "class=\"cell\"") - 11, 12 * 90);
    assert_contains(text, "head 12 of 12");
    free(text), free(w);
}

/* ---- curves ---------------------------------------------------------------------------------- */

TEST(curves_have_axes_ticks_and_a_legend) {
    const double x[] = { 100, 200, 300, 400 }, y[] = { 3, 1, 0.1, 0.02 },
                 z[] = { 2.5, 0.8, 0.2, 0.1 };
    const struct svg_curve curves[] = { { "training", x, y, 4 }, { "validation", x, z, 4 } };
    for (int scale = 0; scale < 2; scale++) {
        struct svg_plot plot = { .title = "loss",
                                 .x_axis = "step",
                                 .y_axis = "loss per token",
                                 .curves = curves,
                                 .n_curves = 2,
                                 .log_y = scale == 1 };
        char *text = plot_text(&plot), *again = plot_text(&plot);
        ck_assert_str_eq(text, again);
        assert_contains(text, ">validation</text>");
        assert_contains(text, ">step</text>");
        assert_contains(text, ">200</text>");
        assert_contains(text, scale ? ">0.05</text>" : ">0.5</text>");
        ck_assert_int_eq(strstr(text, ", log scale") != NULL, scale);
        ck_assert_int_eq(occurrences(text, "<circle"), 8);
        free(text), free(again);
    }
    /* Values that differ little are drawn on a linear scale, even if a log scale is asked for. */
    const double near[] = { 6.5, 6.1, 5.8, 5.3 };
    const struct svg_curve flat = { "training", x, near, 4 };
    char *text = plot_text(
        &(struct svg_plot){ .y_axis = "loss", .curves = &flat, .n_curves = 1, .log_y = true });
    ck_assert_ptr_null(strstr(text, "log scale"));
    free(text);
}

TEST(gaps_are_gaps) {
    const double x[] = { 1, 2, 3, 4, 5 }, y[] = { 1, NAN, 2, 0, 3 };
    const struct svg_curve curve = { "c", x, y, 5 };
    char *text = plot_text(&(struct svg_plot){ .curves = &curve, .n_curves = 1 });
    ck_assert_int_eq(occurrences(text, "<circle"), 4);
    free(text);
    text = plot_text(&(struct svg_plot){ .curves = &curve, .n_curves = 1, .log_y = true });
    ck_assert_int_eq(occurrences(text, "<circle"), 3);
    const char *path = strstr(text, "curve c0");
    int moves = 0;
    for (const char *at = strstr(path, "d=\"") + 3; *at != '"'; at++) moves += *at == 'M';
    ck_assert_int_eq(moves, 3);
    free(text);
}

TEST(many_points_keep_their_spikes) {
    enum { MANY = 100000 };
    double *x = calloc(MANY, sizeof *x), *y = calloc(MANY, sizeof *y);
    for (int i = 0; i < MANY; i++) x[i] = i, y[i] = 1;
    y[54321] = 100;
    const struct svg_curve curve = { "loss", x, y, MANY };
    char *text = plot_text(&(struct svg_plot){ .curves = &curve, .n_curves = 1 });
    ck_assert_uint_lt(strlen(text), 100000);
    char top[32]; /* the spike: 100 on an axis from 0 to 104 */
    snprintf(top, sizeof top, " %.1fL", Y1 + (Y0 - Y1) * 100 / 103.96);
    assert_contains(text, top);
    free(text), free(x), free(y);
}

TEST(degenerate_ranges_make_a_picture) {
    const double x[] = { 5 }, rows[][1] = { { 0 }, { 7 }, { -3 }, { 1e300 }, { 1e-300 } };
    for (int i = 0; i < COUNT_OF(rows); i++)
        for (int scale = 0; scale < 2; scale++) {
            const struct svg_curve curve = { NULL, x, rows[i], 1 };
            struct svg_plot plot = { .curves = &curve, .n_curves = 1, .log_y = scale == 1 };
            if (scale == 0 || rows[i][0] > 0)
                free(plot_text(&plot));
            else
                ck_assert(!svg_plot(stdout, &plot));
        }
}

TEST(what_makes_no_picture_is_refused) {
    const float w[] = { 1 };
    const double x[] = { 1 }, y[] = { NAN };
    const struct svg_curve curve = { "c", x, y, 1 };
    const struct svg_heat_map map = { .weights = w, .heads = 1, .rows = 1, .columns = 1 };
    const struct svg_heat_map bad[] = { { .heads = 1, .rows = 1, .columns = 1 },
                                        { .weights = w, .rows = 1, .columns = 1 },
                                        { .weights = w, .heads = 1, .columns = 1 },
                                        { .weights = w, .heads = 1, .rows = 1 } };
    for (int i = 0; i < COUNT_OF(bad); i++) ck_assert(!svg_heat_map(stdout, &bad[i]));
    ck_assert(!svg_heat_map(stdout, NULL) && !svg_heat_map(NULL, &map));
    ck_assert(!svg_plot(stdout, NULL) && !svg_plot(stdout, &(struct svg_plot){ .n_curves = 1 }));
    ck_assert(!svg_plot(NULL, &(struct svg_plot){ .curves = &curve, .n_curves = 1 }));
    ck_assert(!svg_plot(stdout, &(struct svg_plot){ .curves = &curve, .n_curves = 0 }));
    ck_assert(!svg_plot(stdout, &(struct svg_plot){ .curves = &curve, .n_curves = 7 }));
    ck_assert(!svg_plot(stdout, &(struct svg_plot){ .curves = &curve, .n_curves = 1 }));
    FILE *full = fopen("/dev/full", "w");
    if (!full) return; /* a system without it */
    ck_assert(!svg_heat_map(full, &map));
    fclose(full);
}
