/* tools/history/history.h - measured values over the steps of a training, for curves and files.
 *
 * A row of MEASURE_ROWS is a curve of the page (run_page.h) and a tag of TensorBoard
 * (tensorboard.h). */
#ifndef WEFT_TOOLS_HISTORY_HISTORY_H
#define WEFT_TOOLS_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct series {
    double *x, *y;
    int64_t n;
    size_t room_x, room_y;
    bool incomplete;
} series;

/* Add a point. If there is no memory it is left out, since a missing point should not end a
 * training, and s->incomplete is set. */
void series_add(series *s, double x, double y);
void series_free(series *s);

/* ROW(constant, group, name, unit) */
#define MEASURE_ROWS(ROW)                                                                          \
    ROW(TRAIN_LOSS, "train", "loss", "nats per token")                                             \
    ROW(TRAIN_ACCURACY, "train", "accuracy", "share of tokens")                                    \
    ROW(TRAIN_RATE, "train", "rate", "learning rate")                                              \
    ROW(TRAIN_NORM, "train", "gradient_norm", "norm of the gradient")                              \
    ROW(TRAIN_SPEED, "train", "tokens_per_second", "target tokens per second")                     \
    ROW(TRAIN_LINE_SPEED, "train", "lines_per_second", "lines per second")                         \
    ROW(VALID_LOSS, "valid", "loss", "nats per token")                                             \
    ROW(VALID_ACCURACY, "valid", "accuracy", "share of tokens")                                    \
    ROW(VALID_EXACT, "valid", "exact", "share of outputs")                                         \
    ROW(VALID_BITS, "valid", "bits_per_byte", "bits per byte")                                     \
    ROW(VALID_BLEU, "valid", "bleu", "BLEU, untokenized")                                          \
    ROW(VALID_BLEU_13A, "valid", "bleu_13a", "BLEU, 13a")                                          \
    ROW(VALID_CHRF, "valid", "chrf", "chrF")                                                       \
    ROW(VALID_CER, "valid", "cer", "character error rate")                                         \
    ROW(VALID_WER, "valid", "wer", "word error rate")

#define MEASURE_CONSTANT(constant, group, name, unit) constant,
typedef enum { MEASURE_ROWS(MEASURE_CONSTANT) MEASURES } measure;

typedef struct measure_row {
    const char *group, *name, *unit;
} measure_row;
extern const measure_row measure_rows[MEASURES];

/* The values at one step; NaN: not measured. */
typedef struct measured {
    double of[MEASURES];
} measured;
measured measured_nothing(void);

typedef struct history {
    series of[MEASURES];
    /* The label of the training loss's curve. It says if dropout or label smoothing make this loss
     * higher. */
    const char *train_label;
    bool of_lines; /* losses are of lines, not of tokens */
} history;

void history_add(history *h, int64_t step, const measured *m);
void history_free(history *h);

/* Write the curves of the losses as SVG. False with message[256]: nothing is written. */
bool history_draw(const history *h, const char *path, const char *title, char *message);

#endif
