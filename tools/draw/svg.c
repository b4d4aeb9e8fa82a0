/* tools/draw/svg.c - writes heat maps and curves as SVG text; see svg.h.
 *
 * Colours are classes of a style sheet, so that one file works in light and dark mode. A cell has
 * an accent colour whose opacity is the weight; curves differ in colour and in dashes. Lengths are
 * in pixels. */
#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

/* ---- text ------------------------------------------------------------------------------------ */

/* The length of the UTF-8 character at s, if XML allows it; else 0. */
static int character(const char *s) {
    size_t at = 0;
    int32_t code = wf_utf8_next(s, strnlen(s, 4), &at);
    bool control = code < ' ' || code == 127, never = (code & 0xFFFE) == 0xFFFE;
    return control || never ? 0 : (int)at;
}

/* Writes at most `limit` characters. If there are more, the last one is an ellipsis. */
static void put_text(FILE *out, const char *text, int limit) {
    const char *s = text;
    for (int shown = 1; *s; shown++) {
        int n = character(s), step = n ? n : 1;
        if (shown == limit && s[step]) {
            fputs("\xE2\x80\xA6", out);
            return;
        }
        if (n == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (strchr("&<>\"'", *s))
            fprintf(out, "&#%d;", *s);
        else
            fwrite(s, 1, (size_t)n, out);
        s += step;
    }
}

static int characters(const char *text) {
    int n = 0;
    for (const char *s = text; *s; n++) {
        int length = character(s);
        s += length ? length : 1;
    }
    return n;
}

enum { WHOLE = 1 << 20 }; /* larger than any text: no limit */

static void put_label(FILE *out, const char *class, double x, double y, const char *text) {
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    put_text(out, text, WHOLE);
    fputs("</text>\n", out);
}

static void begin(FILE *out, double width, double height, const char *title, const char *light,
                  const char *dark) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>",
            width, height, width, height);
    put_text(out, title ? title : "weft", WHOLE);
    fprintf(out,
            "</title>\n<style>\n"
            "text { font: 11px Helvetica, Arial, sans-serif; fill: #24292f }\n"
            ".title { font-size: 15px; font-weight: bold }\n"
            ".middle { text-anchor: middle } .end { text-anchor: end }\n"
            ".paper { fill: #ffffff }\n%s"
            "@media (prefers-color-scheme: dark) {\n"
            "text { fill: #d7dde3 }\n.paper { fill: #14181d }\n%s}\n</style>\n"
            "<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n",
            light, dark);
    if (title) put_label(out, "title", 16, 26, title);
}

static bool finish(FILE *out) {
    fputs("</svg>\n", out);
    return fflush(out) == 0 && !ferror(out);
}

/* ---- heat map -------------------------------------------------------------------------------- */

enum { LABEL_LIMIT = 16, LETTER = 6, BROAD = 11, SMALL = 12, TOP = 44, GAP = 26, BAR = 50 };

/* The positions of the picture's parts. A panel has the cells of one head. */
typedef struct layout {
    int64_t across, down; /* panels in a row; rows of panels */
    double cell;          /* side of a cell */
    double left;          /* width of the row labels */
    double head;          /* height of a panel's name and column labels */
    double panel_width, panel_height;
    bool upright; /* column labels fit above their columns */
} layout;

static const char heat_light[] =
    ".cell { fill: #0b5fa5 }\n.panel { fill: #eef1f4 }\n.bad { fill: #d1242f }\n"
    ".value { font-size: 9px; text-anchor: middle }\n.small text { font-size: 8.5px }\n"
    ".over { fill: #ffffff }\n";
static const char heat_dark[] =
    ".cell { fill: #74c3ff }\n.panel { fill: #1e242b }\n.over { fill: #14181d }\n";

/* Label number i; without labels, the number itself. */
static const char *label_at(const char *const *labels, int64_t i, char buffer[24]) {
    if (labels && labels[i]) return labels[i];
    snprintf(buffer, 24, "%lld", (long long)i);
    return buffer;
}

/* The width of at most LABEL_LIMIT characters. It is an estimate, because the reader's font is
 * unknown. */
static double text_width(const char *text) {
    double width = 0;
    const char *s = text;
    for (int shown = 0; *s && shown < LABEL_LIMIT; shown++) {
        int n = character(s);
        /* three bytes are mostly East Asian characters */
        bool broad = n >= 3 || strchr("@%MWmw", *s);
        width += broad ? BROAD : LETTER;
        s += n ? n : 1;
    }
    return width;
}

static double label_width(const char *const *labels, int64_t n) {
    char buffer[24];
    double widest = LETTER;
    for (int64_t i = 0; i < n; i++) widest = fmax(widest, text_width(label_at(labels, i, buffer)));
    return widest + 4;
}

static layout arrange(const struct svg_heat_map *map) {
    int64_t longest = map->rows > map->columns ? map->rows : map->columns;
    layout l = { .cell = fmin(28, fmax(9, floor(360.0 / (double)longest))) };
    double width = label_width(map->column_labels, map->columns);
    l.upright = width <= l.cell;
    l.left = 36 + label_width(map->row_labels, map->rows);
    l.head = 22 + (l.upright ? 12 : width);
    l.panel_width = l.cell * (double)map->columns;
    l.panel_height = l.cell * (double)map->rows;
    l.across = (int64_t)fmax(1, floor(1250 / (l.panel_width + GAP)));
    if (l.across > 4) l.across = 4;
    if (l.across > map->heads) l.across = map->heads;
    l.down = (map->heads + l.across - 1) / l.across;
    l.across = (map->heads + l.down - 1) / l.down; /* rows of equal length */
    return l;
}

/* The middle of a letter is about a third of its size above its baseline. */
static void put_column_labels(FILE *out, const struct svg_heat_map *map, const layout *l, double x,
                              double y) {
    char buffer[24];
    for (int64_t i = 0; i < map->columns; i++) {
        double at = x + l->cell * ((double)i + 0.5);
        if (l->upright)
            fprintf(out, "<text class=\"middle\" x=\"%.1f\" y=\"%.1f\">", at, y - 4);
        else
            fprintf(out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\">", at + 3.5, y - 4);
        put_text(out, label_at(map->column_labels, i, buffer), LABEL_LIMIT);
        fputs("</text>\n", out);
    }
}

static void put_row_labels(FILE *out, const struct svg_heat_map *map, const layout *l, double x,
                           double y) {
    char buffer[24];
    for (int64_t i = 0; i < map->rows; i++) {
        fprintf(out, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">", x - 5,
                y + l->cell * ((double)i + 0.5) + 3.5);
        put_text(out, label_at(map->row_labels, i, buffer), LABEL_LIMIT);
        fputs("</text>\n", out);
    }
}

/* Writes one weight. A weight too small to see is left out, and a NaN is red. */
static void put_cell(FILE *out, const struct svg_heat_map *map, const layout *l, int64_t head,
                     int64_t row, int64_t column, double x, double y) {
    char buffer[2][24];
    double w = (double)map->weights[(head * map->rows + row) * map->columns + column];
    if (w < 0.0005) return;
    fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
            isnan(w) ? "bad" : "cell", x, y, l->cell - 1, l->cell - 1);
    if (w < 1) fprintf(out, " fill-opacity=\"%.3f\"", w);
    fputs("><title>", out);
    put_text(out, label_at(map->row_labels, row, buffer[0]), WHOLE);
    fputs(" \xE2\x86\x92 ", out);
    put_text(out, label_at(map->column_labels, column, buffer[1]), WHOLE);
    fprintf(out, ": %.3f</title></rect>\n", isnan(w) ? NAN : w);
    if (l->cell < 24 || w < 0.005 || isnan(w)) return;
    snprintf(buffer[0], sizeof buffer[0], "%.2f", w);
    put_label(out, w > 0.55 ? "value over" : "value", x + l->cell / 2, y + l->cell / 2 + 3,
              buffer[0] + (buffer[0][0] == '0'));
}

static void put_panel(FILE *out, const struct svg_heat_map *map, const layout *l, int64_t head,
                      double x, double y) {
    char name[64];
    snprintf(name, sizeof name, "head %lld of %lld", (long long)head + 1, (long long)map->heads);
    if (map->heads > 1) put_label(out, "middle", x + l->panel_width / 2, y - l->head + 14, name);
    fprintf(out, "<rect class=\"panel\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            x, y, l->panel_width - 1, l->panel_height - 1);
    if (l->cell < SMALL) fputs("<g class=\"small\">\n", out); /* so labels don't overlap */
    put_column_labels(out, map, l, x, y);
    if (head % l->across == 0) put_row_labels(out, map, l, x, y);
    if (l->cell < SMALL) fputs("</g>\n", out);
    for (int64_t i = 0; i < map->rows; i++)
        for (int64_t j = 0; j < map->columns; j++)
            put_cell(out, map, l, head, i, j, x + l->cell * (double)j, y + l->cell * (double)i);
}

/* Writes the names of the axes and the scale, below all panels. */
static void put_scale(FILE *out, const struct svg_heat_map *map, const layout *l, double y) {
    double x = l->left;
    put_label(out, "end", x - 5, y + 11, "0");
    fprintf(out, "<rect class=\"panel\" x=\"%.1f\" y=\"%.1f\" width=\"131\" height=\"14\"/>\n", x,
            y);
    for (int i = 0; i <= 10; i++)
        fprintf(out,
                "<rect class=\"cell\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"14\" "
                "fill-opacity=\"%.1f\"/>\n",
                x + 12 * i, y, i / 10.0);
    put_label(out, "scale", x + 136, y + 11, "1");
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">rows: ", x, y + 32);
    put_text(out, map->row_axis ? map->row_axis : "query", WHOLE);
    fputs(", columns: ", out);
    put_text(out, map->column_axis ? map->column_axis : "key", WHOLE);
    fputs("</text>\n", out);
}

bool svg_heat_map(FILE *out, const struct svg_heat_map *map) {
    if (!out || !map || !map->weights || map->heads < 1 || map->rows < 1 || map->columns < 1)
        return false;
    layout l = arrange(map);
    double step = l.head + l.panel_height + GAP / 2;
    double width = l.left + (double)l.across * (l.panel_width + GAP);
    double named = 32 + 8.5 * (map->title ? characters(map->title) : 0);
    double least = fmax(named, l.left + 200), bottom = TOP + (double)l.down * step + 4;
    begin(out, fmax(width, least), bottom + BAR, map->title, heat_light, heat_dark);
    for (int64_t head = 0; head < map->heads; head++)
        put_panel(out, map, &l, head, l.left + (double)(head % l.across) * (l.panel_width + GAP),
                  TOP + l.head + (double)(head / l.across) * step);
    put_scale(out, map, &l, bottom);
    return finish(out);
}

/* ---- curves ---------------------------------------------------------------------------------- */

enum { WIDTH = 760, HEIGHT = 440, X0 = 70, X1 = WIDTH - 24, Y0 = 66, Y1 = HEIGHT - 54 };
enum { MAX_CURVES = 6 };
enum { MANY_POINTS = 2000, FEW_POINTS = 60 };

/* Okabe and Ito's colours, which colour-blind readers can distinguish; dashes distinguish curves in
 * grey print. */
static const char plot_light[] =
    ".axis { stroke: #57606a; fill: none }\n.grid { stroke: #57606a; stroke-opacity: 0.18 }\n"
    ".curve { fill: none; stroke-width: 1.8; stroke-linejoin: round }\n"
    ".c0 { stroke: #0072b2 } .c1 { stroke: #d55e00; stroke-dasharray: 7 3 } "
    ".c2 { stroke: #009e73; stroke-dasharray: 2 2 }\n"
    ".c3 { stroke: #cc79a7; stroke-dasharray: 9 3 2 3 } "
    ".c4 { stroke: #b07d00; stroke-dasharray: 5 5 } .c5 { stroke: #444444 }\n"
    ".d0 { fill: #0072b2 } .d1 { fill: #d55e00 } .d2 { fill: #009e73 }\n"
    ".d3 { fill: #cc79a7 } .d4 { fill: #b07d00 } .d5 { fill: #444444 }\n";
static const char plot_dark[] =
    ".axis, .grid { stroke: #9aa4ae }\n.c0 { stroke: #56b4e9 } .c4 { stroke: #e69f00 }\n"
    ".c5 { stroke: #dddddd }\n"
    ".d0 { fill: #56b4e9 } .d4 { fill: #e69f00 } .d5 { fill: #dddddd }\n";

/* One axis: values low..high are mapped to pixels from..to. On a log scale low and high are
 * logarithms. */
typedef struct axis {
    double low, high, from, to;
    bool log;
} axis;

static bool usable(const axis *a, double v) {
    return isfinite(v) && (!a->log || v > 0);
}

static double pixel(const axis *a, double v) {
    double at = a->log ? log10(v) : v;
    return a->from + (at - a->low) / (a->high - a->low) * (a->to - a->from);
}

static bool drawable(const axis *x, const axis *y, const struct svg_curve *c, int64_t i) {
    return usable(x, c->x[i]) && usable(y, c->y[i]);
}

/* A log scale shows a fall by a large factor. Values within a factor of three are clearer without
 * one. */
static bool spans_little(const axis *y) {
    return y->log && y->high - y->low < log10(3);
}

/* Finds the range of all points that can be drawn. False: there are none. */
static bool measure(const struct svg_plot *plot, axis *x, axis *y) {
    x->low = y->low = INFINITY;
    x->high = y->high = -INFINITY;
    for (int k = 0; k < plot->n_curves; k++)
        for (int64_t i = 0; i < plot->curves[k].n; i++) {
            const struct svg_curve *c = &plot->curves[k];
            if (!drawable(x, y, c, i)) continue;
            double v = y->log ? log10(c->y[i]) : c->y[i];
            x->low = fmin(x->low, c->x[i]);
            x->high = fmax(x->high, c->x[i]);
            y->low = fmin(y->low, v);
            y->high = fmax(y->high, v);
        }
    return x->low <= x->high;
}

/* A step of 1, 2 or 5 times a power of ten that divides the span into about `wanted` parts. */
static double nice_step(double span, int wanted) {
    double raw = span / wanted, power = pow(10, floor(log10(raw))), lead = raw / power;
    if (lead < 1.5) return power;
    if (lead < 3.5) return 2 * power;
    return (lead < 7.5 ? 5 : 10) * power;
}

/* Makes the range wider if it is too narrow. With from_zero, a linear range of positive values
 * begins at 0 if the lowest is below 0.6 of the highest. */
static void widen(axis *a, bool from_zero) {
    if (a->high - a->low < 1e-9 * fmax(fabs(a->low), fabs(a->high)) || a->high == a->low) {
        double half = a->log ? 0.5 : fmax(fabs(a->low) / 2, 0.5);
        a->low -= half;
        a->high += half;
    }
    double pad = 0.04 * (a->high - a->low);
    if (a->log) {
        a->low -= pad;
        a->high += pad;
    } else if (from_zero) {
        if (a->low > 0 && a->low < 0.6 * a->high) a->low = 0;
        if (a->low != 0) a->low -= pad;
        a->high += pad;
    }
}

static void put_tick(FILE *out, const axis *a, double v, bool vertical, bool named) {
    char text[32];
    double at = pixel(a, v);
    if (at < fmin(a->from, a->to) - 0.5 || at > fmax(a->from, a->to) + 0.5) return;
    if (vertical)
        fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", X0, at, X1);
    else
        fprintf(out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", at, Y0, Y1);
    snprintf(text, sizeof text, "%.6g", v);
    if (named && vertical)
        put_label(out, "end", X0 - 7, at + 4, text);
    else if (named)
        put_label(out, "middle", at, Y1 + 17, text);
}

static void put_ticks(FILE *out, const axis *a, bool vertical) {
    double step = nice_step(a->high - a->low, vertical ? 6 : 8);
    /* equal steps of the value, for a linear scale and for a log scale that spans little */
    if (!a->log || a->high - a->low < 0.5) {
        double low = a->log ? pow(10, a->low) : a->low, high = a->log ? pow(10, a->high) : a->high;
        if (a->log) step = nice_step(high - low, 6);
        for (double i = ceil(low / step); i * step <= high * (1 + 1e-12); i++)
            put_tick(out, a, i * step, vertical, true);
        return;
    }
    bool wide = a->high - a->low > 3;
    for (double e = floor(a->low); e <= a->high; e += fmax(1, floor(step)))
        for (int m = 1; m < 10; m++)
            if (m == 1 || !wide)
                put_tick(out, a, m * pow(10, e), vertical, m == 1 || m == 2 || m == 5);
}

static void put_axes(FILE *out, const struct svg_plot *plot, const axis *x, const axis *y) {
    put_ticks(out, x, false);
    put_ticks(out, y, true);
    fprintf(out, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n", X0, Y0, Y1, X1);
    if (plot->x_axis) put_label(out, "middle", (X0 + X1) / 2, HEIGHT - 14, plot->x_axis);
    if (!plot->y_axis) return;
    fprintf(out, "<text class=\"middle\" transform=\"translate(18 %d) rotate(-90)\">",
            (Y0 + Y1) / 2);
    put_text(out, plot->y_axis, WHOLE);
    fputs(y->log ? ", log scale</text>\n" : "</text>\n", out);
}

/* Draws a curve with many points as the lowest and highest of each group, so that no spike is
 * lost. */
static void put_path(FILE *out, const struct svg_curve *c, const axis *x, const axis *y) {
    int64_t group = c->n > MANY_POINTS ? c->n / (MANY_POINTS / 2) : 1;
    bool open = false;
    for (int64_t at = 0; at < c->n; at += group) {
        int64_t end = c->n - at < group ? c->n : at + group, low = -1, high = -1;
        for (int64_t i = at; i < end; i++) {
            if (!drawable(x, y, c, i)) continue;
            if (low < 0 || c->y[i] < c->y[low]) low = i;
            if (high < 0 || c->y[i] > c->y[high]) high = i;
        }
        int64_t first = low < high ? low : high, second = low < high ? high : low;
        if (first >= 0)
            fprintf(out, "%s%.1f %.1f", open ? "L" : "M", pixel(x, c->x[first]),
                    pixel(y, c->y[first]));
        if (second != first)
            fprintf(out, "L%.1f %.1f", pixel(x, c->x[second]), pixel(y, c->y[second]));
        open = first >= 0;
    }
}

static void put_curve(FILE *out, const struct svg_curve *c, int k, const axis *x, const axis *y) {
    fprintf(out, "<path class=\"curve c%d\" d=\"", k);
    put_path(out, c, x, y);
    fputs("\"/>\n", out);
    for (int64_t i = 0; c->n <= FEW_POINTS && i < c->n; i++)
        if (drawable(x, y, c, i))
            fprintf(out, "<circle class=\"d%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", k,
                    pixel(x, c->x[i]), pixel(y, c->y[i]));
}

static void put_legend(FILE *out, const struct svg_plot *plot) {
    double at = X0;
    for (int k = 0; k < plot->n_curves; k++) {
        const char *label = plot->curves[k].label ? plot->curves[k].label : "";
        fprintf(out, "<path class=\"curve c%d\" d=\"M%.1f 48h26\"/>\n", k, at);
        put_label(out, "name", at + 32, 52, label);
        at += 32 + 24 + LETTER * characters(label);
    }
}

bool svg_plot(FILE *out, const struct svg_plot *plot) {
    axis x = { .from = X0, .to = X1 }, y = { .from = Y1, .to = Y0, .log = plot && plot->log_y };
    if (!out || !plot || !plot->curves || plot->n_curves < 1 || plot->n_curves > MAX_CURVES)
        return false;
    if (!measure(plot, &x, &y)) return false;
    if (spans_little(&y)) {
        y.log = false;
        measure(plot, &x, &y);
    }
    widen(&x, false);
    widen(&y, true);
    begin(out, WIDTH, HEIGHT, plot->title, plot_light, plot_dark);
    put_axes(out, plot, &x, &y);
    for (int k = 0; k < plot->n_curves; k++) put_curve(out, &plot->curves[k], k, &x, &y);
    put_legend(out, plot);
    return finish(out);
}
