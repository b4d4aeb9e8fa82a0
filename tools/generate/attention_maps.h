/* tools/generate/attention_maps.h - the attention weights of one source and its output: as JSON, as
 * an SVG heat map (svg.h), and in block characters.
 *
 * A row of weights belongs to the query at one target position, where the model read the start or
 * an earlier token of the output. In pictures, the row's label is the token that the model wrote
 * there. So a row shows where the model looked when it wrote that token. */
#ifndef WEFT_TOOLS_GENERATE_ATTENTION_MAPS_H
#define WEFT_TOOLS_GENERATE_ATTENTION_MAPS_H

#include <stdio.h>

#include "tools/cli/jsonl.h"
#include "tools/data/language.h"

typedef struct attention {
    wf_model *model;
    const language *language;
    wf_plan *plan;
    const int32_t *src;
    int32_t *tgt; /* [t + 1]: start, output, end; the first t are fed to the model */
    int64_t n, t;
} attention;

/* False: message[256]. */
bool attention_new(attention *a, wf_model *m, const language *l, wf_pool *pool, char *message);
void attention_free(attention *a);

/* Run the model on src [n] and its output [length], both without start and end. src must stay valid
 * as long as weights are read. False: message[256]. */
bool attention_run(attention *a, int64_t n, const int32_t *src, int64_t length,
                   const int32_t *output, char *message);

/* True if the name ends in .svg. */
bool attention_is_svg(const char *path);

/* Call these after attention_run. False: out of memory, or the stream has failed. */
bool attention_json(attention *a, jsonl *out); /* writes all weights as one object on one line */
bool attention_svg(attention *a, FILE *out);   /* draws every head of the last layer */
bool attention_text(attention *a, FILE *out);  /* draws the mean of the heads of the last layer */

/* Write the labels of ids (language.h) as elements of an array. False: out of memory. */
bool labels_json(const language *l, int side, const int32_t *ids, int64_t n, jsonl *out);

/* The weights [1, H, rows, columns] of one layer; the caller frees them. NULL: out of memory, or
 * the plan does not have them. */
float *attention_weights(attention *a, const wf_tensor *weights, int64_t shape[WF_MAX_DIMS]);

/* ---- for the pictures ------------------------------------------------------------------------ */

/* The last layer's weights [heads, t, columns]; the caller frees them. They are those of
 * cross-attention, or of self-attention if the model is decoder-only. NULL: out of memory, or the
 * plan does not have them. */
float *attention_picture(attention *a, int64_t *heads);
int64_t attention_columns(const attention *a);
const char *attention_title(const attention *a, char text[80]); /* "cross-attention of ..." */
/* Labels of the rows, the written tokens [t], and of the columns, the tokens that they attend to.
 * The caller frees each array, with its texts, by one call of free. NULL: out of memory. */
const char **attention_row_labels(const attention *a);
const char **attention_column_labels(const attention *a);

#endif
