/* tools/generate/attention_maps.h - where a model looks: the attention weights of one source and its
 * output, as JSON, as an SVG heat map (svg.h), and in block characters.
 *
 * A row of weights belongs to the query of one target position: the token fed there, which is the
 * start or one that is written already. In pictures of the cross-attention its label is the token
 * that the model writes there, so that a row shows where the model looked to write it. */
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
    int32_t *tgt; /* [t + 1]: start, output, end; the first t are fed */
    int64_t n, t;
} attention;

/* False: message[256]. */
bool attention_new(attention *a, wf_model *m, const language *l, wf_pool *pool, char *message);
void attention_free(attention *a);

/* Run the model on src [n] and its output [length], without start and end. src must live as long
 * as the weights are asked for. False: message[256]. */
bool attention_run(attention *a, int64_t n, const int32_t *src, int64_t length,
                   const int32_t *output, char *message);

/* Does the name end in .svg? */
bool attention_is_svg(const char *path);

/* After a run. False: out of memory, or the stream has failed. */
bool attention_json(attention *a, jsonl *out); /* all weights as one object on one line */
bool attention_svg(attention *a, FILE *out);   /* the last layer's, every head */
bool attention_text(attention *a, FILE *out);  /* the same, the mean of its heads */

/* The weights [1, H, rows, columns] of one layer, to be freed; NULL: none to be had. */
float *attention_weights(attention *a, const wf_tensor *weights, int64_t shape[WF_MAX_DIMS]);

/* ---- for the pictures ------------------------------------------------------------------------ */

/* The last layer's weights [heads, t, columns], to be freed: those of the cross-attention, or of
 * the self-attention where the source is in one row with the target. NULL: none to be had. */
float *attention_picture(attention *a, int64_t *heads);
int64_t attention_columns(const attention *a);
const char *attention_title(const attention *a, char text[80]); /* "cross-attention of ..." */
/* Pieces as labels, to be freed in one go: of what is written [t], of what is looked at
 * [columns]. */
const char **attention_row_labels(const attention *a);
const char **attention_column_labels(const attention *a);

#endif
