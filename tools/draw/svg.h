/* tools/draw/svg.h - pictures of numbers as stand-alone SVG: attention heat maps and training
 * curves.
 *
 * What is not here: graphs (those are wf_dot's) and any dependency: the text is written by hand
 * to a FILE. The same arguments give the same bytes. Pictures follow the reader's light or dark
 * mode, and any bytes may stand in a label: what XML cannot hold is replaced.
 *
 *     struct svg_heat_map map = { .title = "cross-attention, layer 0", .weights = w, .heads = 4,
 *                                 .rows = 6, .columns = 5,
 *                                 .row_labels = tgt, .column_labels = src };
 *     bool written = svg_heat_map(file, &map);
 *
 * Both functions return false if the arguments make no picture or the stream has failed; the
 * caller closes it. */
#ifndef WEFT_TOOLS_DRAW_SVG_H
#define WEFT_TOOLS_DRAW_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Attention weights, one small panel per head: weights[(head * rows + row) * columns + column]. */
struct svg_heat_map {
    const char *title;                /* may be NULL */
    const float *weights;             /* [heads, rows, columns], each in 0..1 */
    int64_t heads, rows, columns;     /* rows: queries (target), columns: keys (source) */
    const char *const *row_labels;    /* the query tokens; NULL: their numbers */
    const char *const *column_labels; /* the key tokens; NULL: their numbers */
    const char *row_axis;             /* "target", "query", ...; NULL: "query" */
    const char *column_axis;          /* NULL: "key" */
};
bool svg_heat_map(FILE *out, const struct svg_heat_map *map);

/* One curve: n points with x rising. Points that are not finite (or, on a log scale, not
 * positive) are gaps. */
struct svg_curve {
    const char *label; /* in the legend */
    const double *x, *y;
    int64_t n;
};
struct svg_plot {
    const char *title, *x_axis, *y_axis; /* each may be NULL */
    const struct svg_curve *curves;
    int n_curves; /* 1..6 */
    /* Asked for: used if the values differ by a factor of three or more. */
    bool log_y;
};
bool svg_plot(FILE *out, const struct svg_plot *plot);

#endif
