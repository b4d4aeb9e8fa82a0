/* tools/emit/emit_train.c - the training of a file as one C file; see emit_train.h.
 *
 * The file's settings make the model and the trainer that a resume has. For a task on numbers the
 * program makes its own batches, as tools/sources/plain_tasks.c does, so their sizes are known. */
#include "emit_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/model_internal.h"
#include "tools/cli/refused.h"
#include "tools/sources/tasks.h"
#include "tools/train/settings/settings_file.h"

/* MOST_SHAPES: largest number of batch shapes in a file. TRIED_STEPS: number of steps whose shapes
 * are looked up; a batch of a later step is padded to one of these shapes. */
enum { MOST_SHAPES = 36, TRIED_STEPS = 20000 };

extern const char *const plain_tasks_text[];

/* The training that is written, and its batches. */
typedef struct recipe {
    settings *set;
    const wf_file *file;
    const emit_train_options *options;
    wf_model *model;
    wf_trainer *trainer;
    wf_batch_shape shapes[MOST_SHAPES];
    int n_shapes;
    char numbers[512]; /* C declarations of a task on numbers and its sizes */
    const char **batches;
} recipe;

static void close_recipe(recipe *r) {
    free(r->batches);
    wf_trainer_free(r->trainer);
    wf_model_free(r->model);
}

/* ---- the training ---------------------------------------------------------------------------- */

static bool read_settings(recipe *r, char *message) {
    const char *kind = wf_file_meta(r->file, "weft.kind");
    if (!setting_in_file(r->file, "step") || (kind && strcmp(kind, "checkpoint") != 0))
        return refused(message, "it holds no state of a training: --train needs a file that train "
                                "wrote, without .best");
    if (setting_in_file(r->file, "alignments"))
        return refused(message, "its training learns alignments, which has no form in C yet");
    r->set = settings_new();
    r->set->run.model = r->options->path;
    r->set->run.resume = true;
    settings_from_file(r->set, r->file);
    if (r->options->from_start && r->set->model.started)
        return refused(message, "its training started from another model, whose weights it does "
                                "not hold: leave --from-start out");
    return true;
}

static bool open_model(recipe *r, char *message) {
    wf_training_config training = settings_training(r->set);
    uint64_t seed = (uint64_t)r->set->recipe.seed;
    r->model = (r->options->from_start ? wf_model_record : wf_model_load)(r->file, &training,
                                                                          WF_F32, seed, message);
    return r->model &&
           (wf_ok(r->model->graph) || refused(message, "%s", wf_error(r->model->graph)));
}

static bool open_trainer(recipe *r, char *message) {
    int64_t steps = settings_state(r->set, r->file).step;
    r->trainer = settings_trainer(r->set, r->model, NULL, NULL);
    if (!r->trainer) return refused(message, "out of memory");
    if (!wf_trainer_ok(r->trainer)) return refused(message, "%s", wf_trainer_error(r->trainer));
    return r->options->from_start || wf_trainer_resume(r->trainer, r->file, steps) ||
           refused(message, "%s", wf_trainer_error(r->trainer));
}

/* ---- shapes of batches ----------------------------------------------------------------------- */

static void add_shape(recipe *r, int64_t B, int64_t S, int64_t T) {
    if (r->n_shapes == MOST_SHAPES) return;
    bool apart = r->model->src != NULL;
    r->shapes[r->n_shapes++] = (wf_batch_shape){ B, apart ? S : 0, T };
}

static task task_of(const settings *set) {
    return (task){ (task_kind)set->data.task, set->data.min_len, set->data.max_len,
                   (uint64_t)set->recipe.seed };
}

/* The longest sequence of a step's batch. */
static int64_t longest_of(const task *t, int64_t step, int64_t rows) {
    int32_t src[TASK_MAX_LEN], answer[TASK_MAX_LEN];
    int64_t longest = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint64_t index = (uint64_t)((step - 1) * rows + i);
        int64_t n = task_sequence(t, STREAM_TRAIN, index, src, answer);
        if (n > longest) longest = n;
    }
    return longest;
}

/* The sizes of the batches of the remaining steps (of at most TRIED_STEPS of them), and the size
 * for --max-len; the largest first. */
static void shapes_of_task(recipe *r) {
    bool met[TASK_MAX_LEN + 1] = { false };
    const settings *set = r->set;
    const task t = task_of(set);
    int64_t rows = set->data.batch_size, from = wf_trainer_steps(r->trainer) + 1;
    met[set->data.max_len] = true;
    for (int64_t step = from; step <= set->recipe.lr_steps && step < from + TRIED_STEPS; step++)
        met[longest_of(&t, step, rows)] = true;
    for (int64_t n = set->data.max_len; n > 0; n--)
        if (met[n]) add_shape(r, rows, n, r->model->src ? n + 1 : 2 * n + 1);
}

/* One size for all batches, which are padded to it. */
static bool shape_of_text(recipe *r, char *message) {
    const emit_train_options *o = r->options;
    const settings *set = r->set;
    bool running = source_of_word(set->data.task)->running, apart = r->model->src != NULL;
    int64_t n = o->length ? o->length : set->data.max_len;
    int64_t T = running ? n : apart ? n + 1 : 2 * n + 1;
    if (T > r->model->max_len && !o->length) T = r->model->max_len;
    int64_t fit = set->data.max_tokens / (apart ? n + T : T);
    int64_t rows = set->data.batch_size;
    if (set->data.max_tokens && (!rows || fit < rows)) rows = fit;
    if (o->batch_size) rows = o->batch_size;
    if (rows < 1) return refused(message, "--batch-size must say how many rows a batch has");
    add_shape(r, rows, n, T);
    return true;
}

/* ---- batches that the program makes ---------------------------------------------------------- */

static bool list_batches(recipe *r, char *message) {
    static const char *const words[] = { "COPY", "REVERSE", "SORT" };
    size_t n = 0;
    const task t = task_of(r->set);
    while (plain_tasks_text[n]) n++;
    r->batches = calloc(n + 2, sizeof *r->batches);
    if (!r->batches) return refused(message, "out of memory");
    snprintf(r->numbers, sizeof r->numbers,
             "\n#if defined MODEL_MAIN || defined MODEL_TASK\n"
             "enum {\n    COPY,\n    REVERSE,\n    SORT,\n    TASK = %s,\n"
             "    ROWS = %lld,\n    MIN_LENGTH = %lld,\n    MAX_LENGTH = %lld,\n};\n\n"
             "static const int64_t LAST_STEP = %lld;\n"
             "static const uint64_t task_seed = UINT64_C(%llu);\n#endif\n\n",
             words[t.kind], (long long)r->set->data.batch_size, (long long)t.min_len,
             (long long)t.max_len, (long long)r->set->recipe.lr_steps, (unsigned long long)t.seed);
    r->batches[0] = r->numbers;
    memcpy(r->batches + 1, plain_tasks_text, n * sizeof *r->batches);
    return true;
}

static bool choose_batches(recipe *r, char *message) {
    bool sized = r->options->batch_size || r->options->length;
    if (source_of_word(r->set->data.task)->text) return shape_of_text(r, message);
    if (sized)
        return refused(message, "--batch-size and --length have no effect: its task says them");
    shapes_of_task(r);
    return list_batches(r, message);
}

/* ---- the file -------------------------------------------------------------------------------- */

bool emit_train(emitted *e, const wf_file *f, const emit_train_options *o, char *message) {
    recipe r = { .file = f, .options = o };
    int64_t memory = 0, weights = 0;
    *e = (emitted){ 0 };
    if (read_settings(&r, message) && open_model(&r, message) && open_trainer(&r, message) &&
        choose_batches(&r, message)) {
        wf_training_emit_options options = { .name = o->prefix,
                                             .shapes = r.shapes,
                                             .n_shapes = r.n_shapes,
                                             .file = f,
                                             .step_key = "train.step",
                                             .memory_bytes = &memory,
                                             .weight_bytes = &weights,
                                             .weights_file = o->weights ? &e->weights : NULL,
                                             .weights_name = o->weights };
        e->text = wf_model_emit_training_on(r.model, r.trainer, &options, r.batches, message);
    }
    if (e->text) emitted_sizes(e, memory, weights, "of them weights and moments");
    close_recipe(&r);
    return e->text != NULL;
}
