/* tools/draw/text_map.c - draws a heat map in block characters. See svg.h.
 *
 * A cell is two columns wide, or one if there are many cells. Larger weights are darker. Labels of
 * columns are written vertically above them. */
#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tools/cli/terminal.h"

/* LABEL: most characters of a label; MANY: with more columns, cells are narrow */
enum { LABEL = 12, MANY = 36 };
enum { ELLIPSIS = 0x2026 };

/* ---- labels ---------------------------------------------------------------------------------- */

typedef struct label {
    int32_t code[LABEL];
    int n, width; /* number of characters; columns of the terminal that they take */
} label;

/* East Asian characters take two columns of a terminal (UAX 11), and combining marks take none. */
static int code_width(int32_t c) {
    static const int32_t wide[][2] = { { 0x1100, 0x115F },   { 0x2E80, 0xA4CF },
                                       { 0xAC00, 0xD7A3 },   { 0xF900, 0xFAFF },
                                       { 0xFE30, 0xFE6F },   { 0xFF00, 0xFF60 },
                                       { 0xFFE0, 0xFFE6 },   { 0x1F300, 0x1F64F },
                                       { 0x1F900, 0x1F9FF }, { 0x20000, 0x3FFFD } };
    if ((c >= 0x300 && c <= 0x36F) || c == 0x200C || c == 0x200D) return 0;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (c >= wide[i][0] && c <= wide[i][1]) return 2;
    return 1;
}

/* Makes a label. Control characters, which would move the cursor, are replaced, and a long label
 * ends in an ellipsis. */
static label label_of(const char *text) {
    label l = { .n = 0 };
    size_t bytes = strlen(text), at = 0;
    while (at < bytes && l.n < LABEL) {
        int32_t c = wf_utf8_next(text, bytes, &at);
        l.code[l.n++] = is_control(c) || c == '\t' ? REPLACED : c;
    }
    if (at < bytes) l.code[LABEL - 1] = ELLIPSIS;
    for (int i = 0; i < l.n; i++) l.width += code_width(l.code[i]);
    return l;
}

/* ---- the map --------------------------------------------------------------------------------- */

typedef struct map {
    label *rows, *columns;
    int64_t n_rows, n_columns;
    int left, above, cell; /* width of row labels; height of column labels; width of a cell */
} map;

/* Label number i; without labels, its number. */
static label label_at(const char *const *labels, int64_t i) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)i);
    return label_of(labels ? labels[i] : number);
}

static bool map_labels(map *m, const struct svg_heat_map *from) {
    *m = (map){ .n_rows = from->rows, .n_columns = from->columns };
    m->cell = m->n_columns > MANY ? 1 : 2;
    m->rows = calloc((size_t)m->n_rows, sizeof *m->rows);
    m->columns = calloc((size_t)m->n_columns, sizeof *m->columns);
    if (!m->rows || !m->columns) return false;
    for (int64_t i = 0; i < m->n_rows; i++) {
        m->rows[i] = label_at(from->row_labels, i);
        if (m->rows[i].width > m->left) m->left = m->rows[i].width;
    }
    for (int64_t i = 0; i < m->n_columns; i++) {
        m->columns[i] = label_at(from->column_labels, i);
        if (m->columns[i].n > m->above) m->above = m->columns[i].n;
    }
    return true;
}

/* Writes the labels of the columns, above the map. */
static void put_columns(FILE *out, const map *m) {
    for (int line = 0; line < m->above; line++) {
        fprintf(out, "%*s", m->left + 1, "");
        for (int64_t i = 0; i < m->n_columns; i++) {
            const label *l = &m->columns[i];
            int at = line - (m->above - l->n);
            int32_t c = at < 0 ? ' ' : l->code[at];
            if (code_width(c) > m->cell) c = REPLACED;
            put_code(out, c);
            for (int k = code_width(c); k < m->cell; k++) fputc(' ', out);
        }
        fputc('\n', out);
    }
}

/* The shades, and the smallest weight of each. */
enum { SHADES = 5 };
static const struct {
    double least;
    const char *block;
} shades[SHADES] = {
    { 0, " " },
    { 0.05, "\xE2\x96\x91" },
    { 0.2, "\xE2\x96\x92" },
    { 0.4, "\xE2\x96\x93" },
    { 0.7, "\xE2\x96\x88" },
};

/* The shade for the mean of the heads' weights. */
static const char *shade(const float *w, int64_t heads, int64_t stride) {
    double mean = 0;
    int i = SHADES - 1;
    for (int64_t h = 0; h < heads; h++) mean += (double)w[h * stride] / (double)heads;
    if (!isfinite(mean)) return "?";
    while (i > 0 && mean < shades[i].least) i--;
    return shades[i].block;
}

static void put_row(FILE *out, const map *m, int64_t i, const float *w, int64_t heads) {
    const label *l = &m->rows[i];
    fprintf(out, "%*s", m->left - l->width, "");
    for (int k = 0; k < l->n; k++) put_code(out, l->code[k]);
    fputc(' ', out);
    for (int64_t j = 0; j < m->n_columns; j++) {
        const char *block = shade(w + i * m->n_columns + j, heads, m->n_rows * m->n_columns);
        for (int k = 0; k < m->cell; k++) fputs(block, out);
    }
    fputc('\n', out);
}

bool text_heat_map(FILE *out, const struct svg_heat_map *from) {
    map m;
    bool ok = map_labels(&m, from);
    if (ok) {
        fprintf(out, "%s%s:", from->title ? from->title : "",
                from->heads > 1 ? ", mean of heads" : "");
        for (int i = 1; i < SHADES; i++)
            fprintf(out, " %s from %.0f %%", shades[i].block, 100 * shades[i].least);
        fputc('\n', out);
        put_columns(out, &m);
        for (int64_t i = 0; i < m.n_rows; i++) put_row(out, &m, i, from->weights, from->heads);
    }
    free(m.rows), free(m.columns);
    return ok && !ferror(out);
}
