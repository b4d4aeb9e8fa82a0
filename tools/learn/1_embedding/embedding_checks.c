/* tools/learn/1_embedding/embedding_checks.c - checks exercise 1: its tasks and known mistakes. */
#include <math.h>
#include <stdlib.h>

#include "embedding_task.h"
#include "ops/ops.h"
#include "tools/learn/lesson.h"

enum { TABLE, IDS };
enum { EMBED_MISTAKES = 7, WAVE_MISTAKES = 12 };
/* Bits of mistakes: those of embed, then those of positions. `input` can have both kinds. */
enum { NO_SCALE, BY_ROOT, BY_WIDTH, NEXT_ROW, PLACE, BY_COLUMNS, ROOT_OF_LENGTH };
enum {
    FROM_1,
    ONLY_SINES,
    ONLY_COSINES,
    EXCHANGED,
    NO_MINUS,
    BY_COLUMN,
    HALVES,
    NO_TWO,
    BASE,
    INTEGERS,
    BY_LENGTH,
    PLACE_OF_PAIR
};

#define EMBED_ROWS                                                                                 \
    [NO_SCALE] = { "no sqrt(D)",                                                                   \
                   "The rows are not multiplied by sqrt(D): beside waves of size 1 the "           \
                   "embeddings would be too small." },                                             \
    [BY_ROOT] = { "divided by sqrt(D)", "The rows are divided by sqrt(D). Multiply." },            \
    [ROOT_OF_LENGTH] = { "times sqrt(T)", "The factor is the root of D, the numbers in a row, "    \
                                          "and not of T, the tokens." },                           \
    [BY_WIDTH] = { "times D instead of sqrt(D)", "The rows are multiplied by D, and not by "       \
                                                 "its root: are they scaled twice?" },             \
    [NEXT_ROW] = { "ids counted from 1",                                                           \
                   "The first row of the table is that of id 0. Here each id gets "                \
                   "the row before its own." },                                                    \
    [PLACE] = { "rows of the places, not the ids",                                                 \
                "Row t of the table is taken, and not row ids[t]." },                              \
    [BY_COLUMNS] = { "the table is read by columns",                                               \
                     "Row id of the table begins at table[id * D], "                               \
                     "because a row has D numbers." }

/* ---- embed ----------------------------------------------------------------------------------- */

static void run_embed(const sample *s, float *const *out) {
    embed(s->in[TABLE], s->ids[IDS], s->size['T'], s->size['D'], out[0]);
}

static wf_tensor *record_embed(const sample *s, wf_graph *g, wf_tensor *const *in) {
    return wf_mul(wf_embedding(in[TABLE], in[IDS]), wf_constant(g, sqrt(s->size['D'])));
}

static void weft_embed(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    out[0] = record_embed(s, g, in);
}

static void model_embed(const sample *s, uint64_t m, double *const *out) {
    int T = s->size['T'], D = s->size['D'], V = s->size['V'];
    double scale = HAS(m, NO_SCALE) ? 1 : sqrt(D);
    if (HAS(m, BY_ROOT)) scale = 1 / sqrt(D);
    if (HAS(m, BY_WIDTH)) scale = D;
    if (HAS(m, ROOT_OF_LENGTH)) scale = sqrt(T);
    for (int t = 0; t < T; t++) {
        int row = HAS(m, PLACE) ? t : s->ids[IDS][t];
        if (HAS(m, NEXT_ROW)) row = row > 0 ? row - 1 : 0;
        for (int j = 0; j < D; j++)
            out[0][t * D + j] =
                scale * s->in[TABLE][HAS(m, BY_COLUMNS) ? j * V + row : row * D + j];
    }
}

static const lesson_task embed_task = {
    .name = "embed",
    .formula = "out[t][j] = table[ids[t]][j] * sqrt(D)",
    .in = { [TABLE] = { "table", "VD", ARRAY_WEIGHTS, 0 }, [IDS] = { "ids", "T", ARRAY_IDS, 'V' } },
    .out = { { "out", "TD", 0, 0 } },
    .cases = { "T5 V9 D4", "T3 V12 D6" },
    .learner = run_embed,
    .weft = weft_embed,
    .model = model_embed,
    .mistakes = { EMBED_ROWS },
};

/* ---- positions ------------------------------------------------------------------------------- */

#define AT(i) [EMBED_MISTAKES + (i)]
#define WAVE(i) [i]
#define WAVE_ROWS(ROW)                                                                             \
    ROW(FROM_1) = { "positions from 1",                                                            \
                    "The first position is 0: its sines are 0, and its cosines 1." },              \
    ROW(ONLY_SINES) = { "a sine in odd columns, too",                                              \
                        "Odd columns have the cosine of the angle. With sines "                    \
                        "alone a wave can't tell where it rises." },                               \
    ROW(ONLY_COSINES) = { "a cosine in even columns, too",                                         \
                          "Even columns have the sine of the angle." },                            \
    ROW(EXCHANGED) = { "sine and cosine exchanged",                                                \
                       "Even columns have the sine, odd ones the cosine." },                       \
    ROW(NO_MINUS) = { "the minus in the exponent is missing",                                      \
                      "The position is multiplied by 10000^(2i/D). "                               \
                      "Divide by it, so that later columns turn slower." },                        \
    ROW(BY_COLUMN) = { "each column has its own exponent",                                         \
                       "A sine and its cosine share one angle: the "                               \
                       "exponent of columns 2i and 2i + 1 is 2i / D." },                           \
    ROW(HALVES) = { "sines in the first half",                                                     \
                    "Sines and cosines take turns, column by column. Here the "                    \
                    "first half has the sines. (Other models do that.)" },                         \
    ROW(NO_TWO) = { "i / D in the place of 2i / D",                                                \
                    "The exponent is 2i / D for the pair i. Half of it "                           \
                    "makes all waves too fast." },                                                 \
    ROW(BASE) = { "1000 in the place of 10000",                                                    \
                  "The slowest wave is about 10000 times as long as the "                          \
                  "fastest." },                                                                    \
    ROW(INTEGERS) = { "the exponent is divided in integers",                                       \
                      "2 * i / D of integers is 0 in C, so all "                                   \
                      "columns turn alike. Write 2.0 * i / D." },                                  \
    ROW(BY_LENGTH) = { "the exponent by T",                                                        \
                       "The exponent is 2i / D: by the number of columns, and not of "             \
                       "positions." },                                                             \
    ROW(PLACE_OF_PAIR) = { "twice the exponent",                                                   \
                           "i counts the pairs: column 2i is the pair i, whose exponent "          \
                           "is 2i / D. Is a column number doubled again?" }

static void run_positions(const sample *s, float *const *out) {
    positions(s->size['T'], s->size['D'], out[0]);
}

static wf_tensor *record_positions(const sample *s, wf_graph *g) {
    int64_t shape[] = { s->size['T'] };
    return wf_sinusoid(wf_arange(wf_shape(g, 1, shape), 0), s->size['D'], WF_SINUSOID_PAIRS);
}

static void weft_positions(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    (void)in;
    out[0] = record_positions(s, g);
}

static double wave(int t, int j, int T, int D, uint64_t m) {
    int pair = HAS(m, HALVES) ? j % (D / 2) : j / 2;
    bool cosine = HAS(m, HALVES) ? j >= D / 2 : j % 2 == 1;
    double exponent = (HAS(m, NO_TWO) ? 1.0 : 2.0) * pair / D;
    if (HAS(m, BY_COLUMN)) exponent = (double)j / D;
    if (HAS(m, INTEGERS)) exponent = floor(exponent);
    if (HAS(m, BY_LENGTH)) exponent = 2.0 * pair / T;
    if (HAS(m, PLACE_OF_PAIR)) exponent *= 2;
    double slow = pow(HAS(m, BASE) ? 1000 : 10000, exponent);
    double at = HAS(m, FROM_1) ? t + 1 : t;
    double angle = HAS(m, NO_MINUS) ? at * slow : at / slow;
    if (HAS(m, EXCHANGED)) cosine = !cosine;
    if (HAS(m, ONLY_SINES)) cosine = false;
    if (HAS(m, ONLY_COSINES)) cosine = true;
    return cosine ? cos(angle) : sin(angle);
}

static void model_positions(const sample *s, uint64_t m, double *const *out) {
    int T = s->size['T'], D = s->size['D'];
    for (int t = 0; t < T; t++)
        for (int j = 0; j < D; j++) out[0][t * D + j] = wave(t, j, T, D, m);
}

static const lesson_task positions_task = {
    .name = "positions",
    .formula = "out[t][2i] = sin(t / 10000^(2i/D)), out[t][2i+1] = cos(t / 10000^(2i/D))",
    .out = { { "out", "TD", 0, 0 } },
    .cases = { "T4 D8", "T12 D6" },
    .learner = run_positions,
    .weft = weft_positions,
    .model = model_positions,
    .mistakes = { WAVE_ROWS(WAVE) },
};

/* ---- input ----------------------------------------------------------------------------------- */

enum { NO_POSITIONS = EMBED_MISTAKES + WAVE_MISTAKES, SCALED_TOO, OF_IDS, ONLY_POSITIONS, TIMES };

static void run_input(const sample *s, float *const *out) {
    input(s->in[TABLE], s->ids[IDS], s->size['T'], s->size['D'], out[0]);
}

static void weft_input(const sample *s, wf_graph *g, wf_tensor *const *in, wf_tensor **out) {
    out[0] = wf_add(record_embed(s, g, in), record_positions(s, g));
}

static void model_input(const sample *s, uint64_t m, double *const *out) {
    int T = s->size['T'], D = s->size['D'];
    model_embed(s, m, out);
    for (int t = 0; t < T; t++) {
        int at = HAS(m, OF_IDS) ? s->ids[IDS][t] : t;
        for (int j = 0; j < D; j++) {
            double *y = &out[0][t * D + j], w = wave(at, j, T, D, m >> EMBED_MISTAKES);
            if (HAS(m, ONLY_POSITIONS)) *y = 0;
            if (HAS(m, TIMES)) *y = *y * w - w;
            if (!HAS(m, NO_POSITIONS)) *y += HAS(m, SCALED_TOO) ? sqrt(D) * w : w;
        }
    }
}

static const lesson_task input_task = {
    .name = "input",
    .formula = "out = embed(ids) + positions",
    .in = { [TABLE] = { "table", "VD", ARRAY_WEIGHTS, 0 }, [IDS] = { "ids", "T", ARRAY_IDS, 'V' } },
    .out = { { "out", "TD", 0, 0 } },
    .cases = { "T7 V9 D8", "T3 V12 D6" },
    .learner = run_input,
    .weft = weft_input,
    .model = model_input,
    .mistakes = { [NO_POSITIONS] = { "no positions",
                                     "These are the embeddings alone: without positions a "
                                     "Transformer can't tell \"dog bites man\" from \"man bites "
                                     "dog\"." },
                  [SCALED_TOO] = { "positions are scaled, too",
                                   "sqrt(D) multiplies the embeddings "
                                   "alone. Scale first, then add the positions." },
                  [OF_IDS] = { "positions of the ids",
                               "The waves are those of position ids[t], "
                               "and not of t: the place in the sequence counts." },
                  [TIMES] = { "embeddings times positions",
                              "The waves are added to the "
                              "embeddings. A product is 0 wherever a wave is." },
                  [ONLY_POSITIONS] = { "no embeddings",
                                       "These are the positions alone: is the sum overwritten?" },
                  EMBED_ROWS,
                  WAVE_ROWS(AT) },
};

/* ---- the picture ----------------------------------------------------------------------------- */

/* Draws the learner's positions; values from -1 to 1 become 0 to 1. False: out of memory. */
static bool draw(picture *p) {
    enum { T = 24, D = 32 };
    *p = (picture){ .heads = 1, .rows = T, .columns = D, .row = "position", .column = "column" };
    snprintf(p->title, sizeof p->title, "Your positions: a row each, a wave in each column");
    p->weights = calloc(T * D, sizeof *p->weights);
    if (!p->weights) return false;
    positions(T, D, p->weights);
    for (int i = 0; i < T * D; i++) p->weights[i] = (p->weights[i] + 1) / 2;
    return true;
}

static const lesson_task *const tasks[] = { &embed_task, &positions_task, &input_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, NULL, draw };
