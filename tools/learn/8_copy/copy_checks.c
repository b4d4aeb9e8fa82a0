/* tools/learn/8_copy/copy_checks.c - checks exercise 8: its tasks and known mistakes, and the
 * training at its end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "copy_model.h"
#include "tools/learn/lesson_blocks.h"

/* ---- shift ----------------------------------------------------------------------------------- */

enum { SOURCE };
enum { SAME, BACK, NO_END, NO_START, LABELS_MARKED, FURTHER };

/* Id number i of a case, which is 1 or more, because 0 is MARK. */
static int id_at(const sample *s, int64_t i) {
    return 1 + s->ids[SOURCE][i] % (s->size['V'] - 1);
}

static void ids_of(const sample *s, int *ids) {
    for (int64_t i = 0; i < s->count[SOURCE]; i++) ids[i] = id_at(s, i);
}

/* Integer results begin with this value, and keep it if they are not written. */
enum { UNWRITTEN_ID = -12345 };
static int *new_ids(int64_t n) {
    int *ids = malloc((size_t)n * sizeof *ids);
    for (int64_t i = 0; ids && i < n; i++) ids[i] = UNWRITTEN_ID;
    return ids;
}

static void hand_over(const int *ids, int64_t n, float *out) {
    for (int64_t i = 0; ids && i < n; i++)
        if (ids[i] != UNWRITTEN_ID) out[i] = (float)ids[i];
}

static void run_shift(const sample *s, float *const *out) {
    int n = s->size['n'];
    int *source = new_ids(n), *input = new_ids(n + 1), *labels = new_ids(n + 1);
    if (source && input && labels) {
        ids_of(s, source);
        shift(source, n, input, labels);
        hand_over(input, n + 1, out[0]);
        hand_over(labels, n + 1, out[1]);
    }
    free(source), free(input), free(labels);
}

static void model_shift(const sample *s, uint64_t m, double *const *out) {
    int n = s->size['n'];
    for (int i = 0; i <= n; i++) {
        out[0][i] = i > 0 ? id_at(s, i - 1) : MARK;
        out[1][i] = i < n ? id_at(s, i) : MARK;
        if (HAS(m, FURTHER) && i < n) out[1][i] = i + 1 < n ? id_at(s, i + 1) : model_anything;
        if (HAS(m, NO_START)) out[0][i] = i < n ? id_at(s, i) : MARK;
        if (HAS(m, SAME)) out[1][i] = out[0][i];
        if (HAS(m, BACK)) out[0][i] = i + 1 < n ? id_at(s, i + 1) : MARK;
        if (HAS(m, NO_END) && i == n) out[1][i] = id_at(s, n - 1);
        if (HAS(m, LABELS_MARKED)) out[1][i] = i > 0 ? id_at(s, i - 1) : MARK;
    }
    for (int i = 0; i <= n && HAS(m, LABELS_MARKED); i++) out[0][i] = i < n ? id_at(s, i) : MARK;
}

static const lesson_task shift_task = {
    .name = "shift",
    .formula = "input = MARK, then the source; labels = the source, then MARK",
    .in = { [SOURCE] = { "source", "n", ARRAY_IDS, 'V' } },
    .out = { { "input", "k", 0, 0 }, { "labels", "k", 0, 0 } },
    .cases = { "n5 k6 V9", "n3 k4 V20" },
    .learner = run_shift,
    .model = model_shift,
    .mistakes = {
        [SAME] = { "labels as the input", "Input and labels are one sequence: the model would "
                   "learn to repeat what it reads, and could write nothing by itself." },
        [BACK] = { "shifted the wrong way",
                   "The input is ahead of the labels. It must be one behind: MARK first." },
        [NO_END] = { "no MARK at the end",
                     "The last label must be MARK: otherwise the model never learns to stop." },
        [NO_START] = { "no shift", "Input and labels are one sequence. The input must begin with "
                       "MARK and be one behind, so that the model has to find every token." },
        [FURTHER] = { "labels one further", "The label of input[i] is the token right behind it: "
                      "labels[i] = source[i], and not source[i + 1]." },
        [LABELS_MARKED] = { "input and labels exchanged",
                            "MARK begins the input, and ends the labels." },
    },
};

/* ---- train ----------------------------------------------------------------------------------- */

enum {
    CONSTANT_RATE,
    RATE_BEHIND,
    ADAM_AT_1,
    ONE_BATCH,
    NO_SHIFT,
    EXCHANGED,
    ONE_LESS,
    ONE_MORE,
    FIRST_ARRAY,
    ADAM_BEHIND,
    INPUT_ROWS,
    LABEL_ROWS,
    FIRST_SHIFTED,
    ONE_SOURCE,
    GRADIENT_LATE
};
enum { FIRST_SIZE = 3, MOST_STEPS = 16 };

/* The arguments of the calls that the learner's `train` makes, noted call by call. */
static struct notes {
    const sample *s;
    float *input, *labels; /* [steps, batch, length + 1]; NULL: not noted */
    int draws, gradients;
} notes;

static int drawn_id(const sample *s, int draw, int i) {
    return 1 + (int)(lesson_number("drawn", draw * 1000 + i) * (s->size['V'] - 1));
}

static double gradient_at(const sample *s, int step, int i) {
    return lesson_number("gradient", (step * s->size['P'] + i)) - 0.5;
}

static void note_draw(struct copier *c, int *sources) {
    for (int i = 0; i < c->batch * c->length; i++) sources[i] = drawn_id(notes.s, notes.draws, i);
    notes.draws++;
}

static float note_gradient(struct copier *c, const int *sources, const int *input,
                           const int *labels) {
    int n = c->batch * (c->length + 1), step = notes.gradients++;
    (void)sources;
    for (int i = 0; i < n && step < notes.s->size['k']; i++) {
        notes.input[step * n + i] = (float)input[i];
        notes.labels[step * n + i] = (float)labels[i];
    }
    for (int a = 0, at = 0; a < c->arrays; a++)
        for (int i = 0; i < c->size[a]; i++, at++)
            c->grad[a][i] = (float)gradient_at(notes.s, step, at);
    return 1;
}

static const struct copy_notes training_notes = { note_draw, note_gradient, NULL };

static float initial(int i) {
    return (float)(lesson_number("initial", i) - 0.5);
}

static void run_train(const sample *s, float *const *out) {
    int P = s->size['P'], size[] = { FIRST_SIZE, P - FIRST_SIZE };
    float *all = calloc((size_t)P * 4, sizeof *all);
    if (!all) return;
    float *part[4][2];
    for (int k = 0; k < 4; k++) {
        part[k][0] = all + k * P;
        part[k][1] = all + k * P + FIRST_SIZE;
    }
    struct copier c = { s->size['B'], s->size['n'], s->size['V'], 2,      size,
                        part[0],      part[1],      part[2],      part[3] };
    for (int i = 0; i < P; i++) all[i] = initial(i);
    notes = (struct notes){ .s = s, .input = out[0], .labels = out[1] };
    copy_notes = &training_notes;
    train(&c, s->size['k']);
    copy_notes = NULL;
    for (int i = 0; i < P && notes.gradients > 0; i++) out[2][i] = all[i];
    if (notes.gradients > 0) out[3][0] = (float)notes.gradients;
    free(all);
}

static double model_step_rate(int step) {
    return PEAK * fmin((double)step / WARMUP, sqrt((double)WARMUP / step));
}

/* The value of parameter i after all steps, correct or with mistakes. */
static double model_parameter(const sample *s, int i, int steps, uint64_t m) {
    double x = initial(i), mean = 0, square = 0;
    for (int k = 1; k <= steps; k++) {
        /* below 0: there is no gradient yet, so it counts as 0 */
        int from = HAS(m, GRADIENT_LATE) ? k - 2 : k - 1;
        double gradient = from < 0 ? 0 : (float)gradient_at(s, from, i);
        int t = HAS(m, ADAM_BEHIND) ? k - 1 : k;
        if (HAS(m, ADAM_AT_1)) t = 1;
        mean = beta1 * mean + (1 - beta1) * gradient;
        square = beta2 * square + (1 - beta2) * gradient * gradient;
        double r =
            HAS(m, CONSTANT_RATE) ? (double)PEAK : model_step_rate(HAS(m, RATE_BEHIND) ? k - 1 : k);
        if (HAS(m, RATE_BEHIND) && k == 1) r = 0;
        if (HAS(m, FIRST_ARRAY) && i >= FIRST_SIZE) r = 0;
        x -= r * mean / (1 - pow(beta1, t)) / (sqrt(square / (1 - pow(beta2, t))) + eps);
    }
    return x;
}

/* Number p of a step's input or labels with the mistake that rows lie n apart instead of n + 1. */
static double closer_row(const sample *s, int draw, int p, bool is_input) {
    int B = s->size['B'], n = s->size['n'];
    if (p > B * n) return model_anything;
    if (!is_input) return p < B * n ? drawn_id(s, draw, p) : MARK;
    return p % n > 0 || p == B * n ? drawn_id(s, draw, p - 1) : MARK;
}

static void model_train(const sample *s, uint64_t m, double *const *out) {
    int B = s->size['B'], n = s->size['n'], steps = s->size['k'];
    int made = steps - (HAS(m, ONE_LESS) ? 1 : 0) + (HAS(m, ONE_MORE) ? 1 : 0);
    for (int i = 0; i < steps * B * (n + 1); i++) {
        int step = i / (B * (n + 1)), row = i / (n + 1) % B, t = i % (n + 1);
        int draw = HAS(m, ONE_BATCH) ? 0 : step, from = HAS(m, ONE_SOURCE) ? 0 : row * n;
        double before = t > 0 ? drawn_id(s, draw, from + t - 1) : MARK;
        double at = t < n ? drawn_id(s, draw, from + t) : MARK;
        if (HAS(m, INPUT_ROWS)) before = closer_row(s, draw, i % (B * (n + 1)), true);
        if (HAS(m, LABEL_ROWS)) at = closer_row(s, draw, i % (B * (n + 1)), false);
        if (HAS(m, NO_SHIFT)) before = at;
        if (HAS(m, FIRST_SHIFTED) && row > 0) before = model_anything;
        if (HAS(m, FIRST_SHIFTED) && row > 0) at = model_anything;
        out[HAS(m, EXCHANGED) ? 1 : 0][i] = step < made ? before : NAN;
        out[HAS(m, EXCHANGED) ? 0 : 1][i] = step < made ? at : NAN;
    }
    for (int i = 0; i < s->size['P']; i++) out[2][i] = model_parameter(s, i, made, m);
    out[3][0] = made;
}

static const lesson_task train_task = {
    .name = "train",
    .formula = "each step, from 1: draw_sources, shift each row, compute_gradient, adam of each "
               "array with "
               "rate(step, PEAK, WARMUP)",
    .out = { { "input", "kBm", 0, 0 },
            { "labels", "kBm", 0, 0 },
            { "x", "P", 0, 0 },
            { "gradients", "", 0, 0 } },
    .cases = { "k3 B2 n4 m5 V9 P7", "k12 B3 n2 m3 V6 P5" },
    .learner = run_train,
    .model = model_train,
    .tolerance = 3e-6,
    .mistakes = {
        [CONSTANT_RATE] = { "a constant rate",
                            "Every step has its own: rate(step, PEAK, WARMUP)." },
        [RATE_BEHIND] = { "the rate of the step before", "Steps count from 1, and so does rate." },
        [ADAM_AT_1] = { "adam is always at step 1",
                        "Hand the step on to adam: its correction fades." },
        [ONE_BATCH] = { "one batch for all steps",
                        "Draw new sources in every step. One batch would be learned by heart." },
        [NO_SHIFT] = { "no shift", "Input and labels are one sequence." },
        [EXCHANGED] = { "input and labels exchanged",
                        "compute_gradient takes the input first, then the labels." },
        [ONE_LESS] = { "one step too few", "Steps 1 to `steps`, with the last one." },
        [ONE_MORE] = { "one step too many", "Steps 1 to `steps`." },
        [INPUT_ROWS] = { "rows of the input are n apart", "Row b of the input begins at b * (n + "
                         "1): it has one number more than a source." },
        [LABEL_ROWS] = { "rows of the labels are n apart", "Row b of the labels begins at b * (n + "
                         "1): it has one number more than a source." },
        [FIRST_SHIFTED] = { "only the first row is shifted",
                            "shift is called for each of the c->batch rows." },
        [GRADIENT_LATE] = { "adam before the gradient", "adam moves by the gradient of this step: "
                            "compute_gradient comes first." },
        [ONE_SOURCE] = { "every row is the first source",
                         "Row b of the sources begins at sources + b * n." },
        [ADAM_BEHIND] = { "adam's steps from 0",
                          "Step 1 is adam's first: at step 0 it would divide by 1 - 1." },
        [FIRST_ARRAY] = { "only the first array moves", "adam is for each of c->arrays arrays." },
    },
};

/* ---- greedy ---------------------------------------------------------------------------------- */

enum {
    START_MISSING,
    LAST_ONLY,
    SMALLEST,
    NO_STOP,
    KEEPS_MARK,
    SHORT,
    SOURCE_FED,
    NEVER_MARK,
    LAST_NOT_FED,
    ONE_TOO_MANY
};

/* Made-up logits, which depend on all tokens. MARK becomes the likeliest once there are e
 * tokens. */
static double made_logit(const sample *s, const int *tokens, int n, int v) {
    uint64_t h = 0;
    for (int i = 0; i < n; i++) h = h * 31 + (uint64_t)tokens[i] + 1;
    if (v == MARK) return n >= s->size['e'] ? 2 : -2;
    return lesson_number("logit", (int64_t)(h % 1000003) * 64 + v);
}

static void note_next(struct copier *c, const int *source, const int *tokens, int n,
                      float *logits) {
    (void)source;
    for (int v = 0; v < c->V; v++) logits[v] = (float)made_logit(notes.s, tokens, n, v);
}

static const struct copy_notes search_notes = { NULL, NULL, note_next };

static void run_greedy(const sample *s, float *const *out) {
    int most = s->size['m'], n = s->size['n'];
    struct copier c = { .batch = 1, .length = n, .V = s->size['V'] };
    int *own = new_ids(most), *source = new_ids(n);
    if (!own || !source) return;
    ids_of(s, source);
    notes = (struct notes){ .s = s };
    copy_notes = &search_notes;
    int count = greedy(&c, source, most, own);
    copy_notes = NULL;
    if (count >= 0) out[1][0] = (float)count;
    for (int i = 0; i < most && count >= 0; i++) out[0][i] = i < count ? (float)own[i] : -1;
    free(own), free(source);
}

/* The likeliest token, correct or with mistakes. */
static int chosen(const sample *s, const int *tokens, int n, uint64_t m) {
    int best = HAS(m, NEVER_MARK) ? 1 : 0;
    for (int v = best + 1; v < s->size['V']; v++) {
        double a = made_logit(s, tokens, n, v), b = made_logit(s, tokens, n, best);
        if (HAS(m, SMALLEST) ? a < b : a > b) best = v;
    }
    return best;
}

static void model_greedy(const sample *s, uint64_t m, double *const *out) {
    int most = s->size['m'], tokens[64] = { MARK }, count = 0;
    int limit = HAS(m, SHORT) ? most - 1 : most;
    for (; count < limit; count++) {
        int from = HAS(m, START_MISSING) ? 1 : 0, n = count + 1;
        if (HAS(m, LAST_ONLY)) from = count;
        if (HAS(m, LAST_NOT_FED)) n--;
        int best = chosen(s, tokens + from, n - from, m);
        tokens[count + 1] = HAS(m, SOURCE_FED) ? id_at(s, count % s->size['n']) : best;
        out[0][count] = best;
        if (best == MARK && !HAS(m, NO_STOP)) break;
    }
    if (HAS(m, KEEPS_MARK) && count < limit) count++;
    for (int i = count; i < most; i++) out[0][i] = -1;
    if (HAS(m, ONE_TOO_MANY) && count < most) out[0][count] = model_anything;
    out[1][0] = count + (HAS(m, ONE_TOO_MANY) ? 1 : 0);
}

static const lesson_task greedy_task = {
    .name = "greedy",
    .formula = "tokens = MARK; again and again: next_logits of all tokens so far, the largest is "
               "the next token, "
               "until MARK or `most`",
    .in = { [SOURCE] = { "source", "n", ARRAY_IDS, 'V' } },
    .out = { { "out", "m", 0, 0 }, { "count", "", 0, 0 } },
    .cases = { "n4 m8 V9 e5", "n3 m5 V7 e30", "n5 m9 V12 e3" },
    .learner = run_greedy,
    .model = model_greedy,
    .mistakes = {
        [START_MISSING] = { "no MARK at the beginning", "The model has learned from inputs that "
                            "begin with MARK: tokens[0] = MARK." },
        [LAST_ONLY] = { "only the last token is fed",
                        "This model has no memory of its own: hand over all tokens so far." },
        [SMALLEST] = { "the smallest logit", "The likeliest token has the largest logit." },
        [NO_STOP] = { "it does not stop at MARK",
                      "When MARK is the likeliest, the output is done." },
        [KEEPS_MARK] = { "MARK is a part of the output", "MARK ends the output and does not belong "
                         "to it: neither in out nor in the count." },
        [SHORT] = { "one token too few", "An output may have `most` tokens." },
        [SOURCE_FED] = { "the source is fed",
                         "What is fed is the model's own output, as it grows." },
        [ONE_TOO_MANY] = { "one too many is returned", "What is returned is how many tokens stand "
                           "in out, without MARK at either end." },
        [LAST_NOT_FED] = { "the last token is not handed over", "With n tokens behind MARK there "
                           "are n + 1: next_logits(c, source, tokens, n + 1, ...)." },
        [NEVER_MARK] = { "MARK is never chosen",
                         "MARK is id 0: does the search for the largest begin at 1?" },
    },
};

static const lesson_task *const tasks[] = { &shift_task, &copy_rate_task, &copy_adam_task,
                                            &train_task, &greedy_task };
const lesson the_lesson = { tasks, sizeof tasks / sizeof *tasks, copy_trial, copy_draw };
