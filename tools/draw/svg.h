/* tools/draw/svg.h - writes pictures of numbers as stand-alone SVG: attention heat maps and
 * training curves.
 *
 * Graphs are drawn by wf_dot instead. No library is used: the text is written to a FILE. The same
 * arguments give the same bytes. Pictures follow the reader's light or dark mode. Labels may have
 * any bytes, because those that XML does not allow are replaced.
 *
 *     struct svg_heat_map map = { .title = "cross-attention, layer 0", .weights = w, .heads = 4,
 *                                 .rows = 6, .columns = 5,
 *                                 .row_labels = tgt, .column_labels = src };
 *     bool written = svg_heat_map(file, &map);
 *
 * svg_heat_map and svg_plot return false if the arguments are no picture, or if the stream has
 * failed. The caller closes the stream. */
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
    const char *const *row_labels;    /* the query tokens; NULL: their indices */
    const char *const *column_labels; /* the key tokens; NULL: their indices */
    const char *row_axis;             /* "target", "query", ...; NULL: "query" */
    const char *column_axis;          /* NULL: "key" */
};
bool svg_heat_map(FILE *out, const struct svg_heat_map *map);

/* Draw a heat map in block characters on a terminal, with the labels of the SVG map (text_map.c).
 * It shows the mean of the heads, darker for larger weights. False: out of memory, or the stream
 * has failed. */
bool text_heat_map(FILE *out, const struct svg_heat_map *map);

/* One curve: n points with increasing x. Points that are not finite (or on a log scale not
 * positive) leave a gap. */
struct svg_curve {
    const char *label; /* in the legend */
    const double *x, *y;
    int64_t n;
};
struct svg_plot {
    const char *title, *x_axis, *y_axis; /* each may be NULL */
    const struct svg_curve *curves;
    int n_curves; /* 1..6 */
    /* use a log scale if the values differ by a factor of three or more */
    bool log_y;
};
bool svg_plot(FILE *out, const struct svg_plot *plot);

#endif
