/* tools/history/album.h - how outputs and attention change over a training: a frame for each
 * validation.
 *
 * The memory is bounded: if there are too many frames, those nearest to others are dropped. */
#ifndef WEFT_TOOLS_HISTORY_ALBUM_H
#define WEFT_TOOLS_HISTORY_ALBUM_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/draw/svg.h"

/* number of samples; most tokens of a sequence whose attention is shown */
enum { ALBUM_SAMPLES = 3, ALBUM_SIDE = 32 };

typedef struct frame {
    int64_t step;
    char *output[ALBUM_SAMPLES]; /* the model's output for each sample; NULL: none */
    char *weights;               /* [heads, rows, columns], one character per weight; NULL: none */
} frame;

/* The labels of an attention map, as in svg_heat_map. */
typedef struct album_labels {
    char *title; /* "cross-attention of decoder layer 4 of 4"; NULL: there is none */
    char *row_axis, *column_axis;
    char **row_labels, **column_labels;
    int64_t heads, rows, columns;
} album_labels;

/* An album owns all its strings. */
typedef struct album {
    char *source[ALBUM_SAMPLES], *reference[ALBUM_SAMPLES]; /* NULL: there are none */
    album_labels map;                                       /* of the weights of all frames */
    frame *frames;
    int n;
} album;

/* Add a frame with outputs and the attention weights of an example (NULL: none). All frames share
 * the labels of these weights, so earlier weights of another example are dropped. False: out of
 * memory, and no frame was added. */
bool album_add(album *a, int64_t step, const char *const output[ALBUM_SAMPLES],
               const struct svg_heat_map *w);
/* Set the sources and references of the samples. False: out of memory. */
bool album_name(album *a, const char *const source[ALBUM_SAMPLES],
                const char *const reference[ALBUM_SAMPLES]);
/* Drop frames of later steps, because a resumed training makes them again. */
void album_cut(album *a, int64_t step);
void album_free(album *a);
void frame_free(frame *f);

/* The 64 characters for weights: the first stands for 0, the last for 1. */
extern const char album_levels[65];
enum { ALBUM_MOST = 48, ALBUM_BYTES = 1 << 20 };
/* The largest number of frames in an album with maps of this size. */
int album_most(int64_t weights);

#endif
