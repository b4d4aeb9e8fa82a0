/* tests/models/test_emit_training.c - trainings as C files: after some updates the emitted program
 * saves a file with the bytes of the library's file. WEFT_EMIT_CC names another compiler, as in
 * suite `emit`. */
#include <stdio.h>

#include "models/language_model.h"
#include "models/model_emit.h"
#include "models/model_internal.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/models.h"
#include "tests/support/wall.h"

TESTS(emit_training)

#define STRICT STRICT_FLAGS " -O1"

enum { VOCABULARY = 17, STEPS = 24, MOST_BATCHES = 5, MOST_ADAPTERS = 64 };

/* MARIAN: with settings of Marian, so that its rule may round the matrices. PROMPTED: a language
 * model whose rows begin with the prompt, as those of Hugging Face. */
typedef enum form { TRANSFORMER, MARIAN, GPT, LLAMA, PROMPTED } form;

typedef struct recipe {
    form form;
    int before; /* updates by the library before the file is written */
    const char *name;
    wf_training_config training;
    wf_optimizer_options optimizer;
    wf_schedule schedule;
    int64_t micro_batches;
} recipe;

/* Sizes B, S, T of three batches. Those of a decoder-only model have only B and T. */
static const wf_batch_shape shapes[] = { { 5, 7, 8 }, { 5, 4, 6 }, { 3, 7, 5 } };

/* ---- a training of the library --------------------------------------------------------------- */

static wf_model *model_of(const recipe *r) {
    wf_transformer_config c = small_config();
    if (r->form >= GPT) {
        wf_model *m = open_language_model(r->form != GPT, &r->training, VOCABULARY, 12);
        m->start_first = m->start_if_empty = r->form == PROMPTED;
        return m;
    }
    c.src_vocab = c.tgt_vocab = VOCABULARY;
    c.max_len = 12;
    if (r->form == MARIAN) {
        c.positions = WF_POSITIONS_TENSOR2TENSOR;
        c.zero_start = c.raw_keys = true;
        c.encoder_norm = c.decoder_norm = false;
        c.layer_norm_eps = 1e-6;
    }
    return open_model(&c, &r->training, WF_F32, 3);
}

/* A trainer of all parameters, or, of a model with adapters, of the adapters alone. */
static wf_trainer *trainer_of(const recipe *r, wf_model *m) {
    wf_tensor *const sums[] = { m->loss.nll, m->correct }, *adapters[MOST_ADAPTERS];
    int n = wf_parameters(m->graph, "*.lora_*", adapters, MOST_ADAPTERS);
    wf_trainer_options o = { .optimizer = r->optimizer,
                             .schedule = r->schedule,
                             .micro_batches = r->micro_batches,
                             .params = n ? adapters : NULL,
                             .n_params = n,
                             .sums = sums,
                             .n_sums = 2 };
    wf_trainer *t = wf_trainer_new(m->graph, m->loss.loss, m->loss.count, &o);
    ck_assert_msg(wf_trainer_ok(t), "%s", wf_trainer_error(t));
    return t;
}

/* ---- batches --------------------------------------------------------------------------------- */

typedef struct padded {
    int64_t B, S, T;
    int32_t src[64], src_length[8], tgt[64], labels[64];
} padded;

static int32_t draw(int key, int64_t at, int below) {
    return (int32_t)(number((uint64_t)key, (uint64_t)at) * below);
}

/* Batch number k of the training. */
static padded batch_of(const wf_model *m, int64_t k) {
    wf_batch_shape s = shapes[m->src ? k % 3 : k % 2 * 2];
    padded b = { .B = s.B, .S = m->src ? s.S : 0, .T = s.T };
    for (int i = 0; i < b.B * b.S; i++) b.src[i] = draw(1, k * 64 + i, VOCABULARY);
    for (int i = 0; i < b.B; i++) b.src_length[i] = 1 + draw(2, k * 8 + i, (int)b.S);
    for (int i = 0; i < b.B * b.T; i++) {
        b.tgt[i] = draw(3, k * 64 + i, VOCABULARY);
        b.labels[i] = draw(4, k * 64 + i, 5) ? (b.tgt[i] * 3 + 1) % VOCABULARY : -1;
    }
    return b;
}

static int64_t parts_of(const recipe *r, int64_t step) {
    return r->micro_batches > 1 ? 1 + step % r->micro_batches : 1;
}

static void feed(const wf_model *m, wf_plan *p, const padded *b) {
    size_t size = sizeof(int32_t), rows = (size_t)b->B * size;
    bool ok = wf_model_bind(m, p, b->B, b->S, b->T) &&
              (!m->src || (wf_feed(p, m->src, b->src, rows * (size_t)b->S) &&
                           wf_feed(p, m->src_length, b->src_length, rows))) &&
              wf_feed(p, m->tgt, b->tgt, rows * (size_t)b->T) &&
              wf_feed(p, m->labels, b->labels, rows * (size_t)b->T);
    ck_assert_msg(ok, "%s", wf_plan_error(p));
}

static void train(const recipe *r, wf_model *m, wf_trainer *t, int64_t steps) {
    while (wf_trainer_steps(t) < steps) {
        int64_t step = wf_trainer_steps(t) + 1, n = parts_of(r, step);
        ck_assert(wf_trainer_begin(t, n, NULL, NULL));
        for (int64_t i = 0; i < n; i++) {
            padded b = batch_of(m, step * MOST_BATCHES + i);
            feed(m, wf_trainer_plan(t), &b);
            ck_assert_msg(wf_trainer_add(t, i), "%s", wf_trainer_error(t));
        }
        ck_assert_msg(wf_trainer_update(t, NULL), "%s", wf_trainer_error(t));
    }
}

static void print_ids(FILE *file, const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++) fprintf(file, "%d%s", (int)ids[i], i + 1 < n ? " " : "\n");
}

/* Writes the program's input for the updates from + 1 to `to`. */
static void write_updates(const recipe *r, const wf_model *m, int64_t from, int64_t to) {
    FILE *file = fopen("updates", "w");
    ck_assert(file);
    for (int64_t step = from + 1; step <= to; step++) {
        int n = (int)parts_of(r, step);
        fprintf(file, "%d\n", n);
        for (int i = 0; i < n; i++) {
            padded b = batch_of(m, step * MOST_BATCHES + i);
            fprintf(file, "%d ", (int)b.B);
            if (m->src) fprintf(file, "%d ", (int)b.S);
            fprintf(file, "%d\n", (int)b.T);
            if (m->src) print_ids(file, b.src, b.B * b.S);
            if (m->src) print_ids(file, b.src_length, b.B);
            print_ids(file, b.tgt, b.B * b.T);
            print_ids(file, b.labels, b.B * b.T);
        }
    }
    ck_assert_int_eq(fclose(file), 0);
}

/* ---- the emitted file ------------------------------------------------------------------------ */

/* Saves the checkpoint with two texts of metadata: one needs escapes in C, and one is longer than a
 * string literal may be. */
static void save_as(const char *path, wf_model *m, wf_trainer *t) {
    static char lines[9001];
    char steps[24], message[WF_MESSAGE];
    snprintf(steps, sizeof steps, "%d", (int)wf_trainer_steps(t));
    for (size_t i = 0; i + 1 < sizeof lines; i++) lines[i] = "ab\n\xc3\xa4"[i % 5];
    const wf_meta meta[] = { { "train.step", steps },
                             { "odd", "a \"b\" \\ c?\?/ \t \x01 \xc3\xa9" },
                             { "tokens", lines } };
    ck_assert_msg(wf_model_save(m, path, t, meta, COUNT_OF(meta), message), "%s", message);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Writes model.c, which continues the training from the trainer's state. */
static void emit(const recipe *r, wf_model *m, wf_trainer *t, const char *const *batches) {
    wf_batch_shape own[COUNT_OF(shapes)];
    char message[WF_MESSAGE];
    int64_t memory = 0, weights = 0;
    int n = 0;
    for (int i = 0; i < COUNT_OF(shapes); i += m->src ? 1 : 2) {
        own[n] = shapes[i];
        if (!m->src) own[n].S = 0;
        n++;
    }
    save_as("before", m, t);
    wf_file *f = wf_file_open("before");
    wf_training_emit_options o = { .name = r->name,
                                   .shapes = own,
                                   .n_shapes = n,
                                   .file = f,
                                   .step_key = "train.step",
                                   .memory_bytes = &memory,
                                   .weight_bytes = &weights };
    char *text = wf_model_emit_training_on(m, t, &o, batches, message);
    ck_assert_msg(text, "%s", message);
    ck_assert_int_gt(memory, weights);
    ck_assert_int_ge(weights, 4 * wf_model_parameter_count(m));
    write_file("model.c", text);
    free(text);
    wf_file_free(f);
}

static void compare(const char *flags) {
    compile_main(emitted_compiler(), flags);
    run("./program < updates > got && cmp got expected");
    ck_assert_msg(result.status == 0, "%s: %s %s", flags, result.out, result.err);
}

SETUP(enter_folder, leave_folder)

#define CLIPPED .beta1 = 0.9, .beta2 = 0.98, .alpha = 0.95, .eps = 1e-9, .clip_norm = 0.7
#define DROPPED(of_sums, of_weights, inside)                                                       \
    .dropout = of_sums, .attention_dropout = of_weights, .activation_dropout = inside
static const wf_parameter_group slow[] = { { "*bias", 0.5, 0.1 } };
static const recipe recipes[] = {
    { .form = TRANSFORMER,
      .training = { DROPPED(0.1, 0.1, 0.1), .label_smoothing = 0.1 },
      .optimizer = { CLIPPED, .kind = WF_ADAM },
      .schedule = { WF_LINEAR_DECAY, 3e-3, 6, 40, 0 } },
    { .form = GPT,
      .before = 5,
      .training = { DROPPED(0.2, 0, 0.2), .label_smoothing = 0 },
      .optimizer = { CLIPPED, .kind = WF_ADAMW, .weight_decay = 0.02, .average_decay = 0.95 },
      .schedule = { WF_COSINE, 4e-3, 3, 20, 1e-4 } },
    { .form = LLAMA,
      .name = "learner",
      .training = { DROPPED(0.1, 0.1, 0), .label_smoothing = 0.05 },
      .optimizer = { CLIPPED, .kind = WF_LION, .weight_decay = 0.01 },
      .schedule = { WF_INVERSE_SQRT, 1e-3, 4, 0, 0 } },
    { .form = TRANSFORMER,
      .before = 3,
      .training = { DROPPED(0.1, 0, 0), .label_smoothing = 0 },
      .optimizer = { CLIPPED, .kind = WF_SGD, .momentum = 0.8, .dampening = 0.1,
                     .average_decay = 0.9 },
      .schedule = { WF_CONSTANT_RATE, 1e-2, 0, 0, 0 },
      .micro_batches = MOST_BATCHES },
    { .form = GPT,
      .optimizer = { .kind = WF_RMSPROP,
                     .alpha = 0.9,
                     .eps = 1e-8,
                     .momentum = 0.5,
                     .centered = true,
                     .unguarded = true,
                     .groups = slow,
                     .n_groups = 1 },
      .schedule = { WF_CONSTANT_RATE, 1e-3, 5, 0, 0 } },
    { .form = LLAMA,
      .before = 1,
      .training = { DROPPED(0.3, 0.1, 0.1), .label_smoothing = 0.1 },
      .optimizer = { CLIPPED, .kind = WF_ADAGRAD },
      .schedule = { WF_NOAM, 1e-2, 0, 0, 0 },
      .micro_batches = 2 },
    { .form = GPT,
      .before = 2,
      .training = { .dropout = 0.1, .adapters = { 2, 3, "all-linear" } },
      .optimizer = { CLIPPED, .kind = WF_ADAMW, .weight_decay = 0.01 },
      .schedule = { WF_CONSTANT_RATE, 1e-2, 0, 0, 0 } },
    { .form = TRANSFORMER,
      .training = { .dropout = 0.1, .quantize_aware = WF_QUANTIZE_INT8 },
      .optimizer = { CLIPPED, .kind = WF_ADAM },
      .schedule = { WF_CONSTANT_RATE, 1e-2, 0, 0, 0 } },
    { .form = MARIAN,
      .before = 2,
      .training = { .label_smoothing = 0.1, .quantize_aware = WF_QUANTIZE_MARIAN },
      .optimizer = { CLIPPED, .kind = WF_ADAM },
      .schedule = { WF_CONSTANT_RATE, 3e-3, 0, 0, 0 } },
    { .form = PROMPTED,
      .before = 4,
      .training = { DROPPED(0.1, 0.1, 0), .quantize_aware = WF_QUANTIZE_INT8 },
      .optimizer = { CLIPPED, .kind = WF_ADAMW, .weight_decay = 0.01 },
      .schedule = { WF_CONSTANT_RATE, 1e-2, 0, 0, 0 } },
};

TEST_ROWS(a_program_saves_what_the_library_saves, COUNT_OF(recipes)) {
    const recipe *r = &recipes[_i];
    if (!has_emitted_compiler("emit_training")) return;
    wf_model *m = model_of(r);
    wf_trainer *t = trainer_of(r, m);
    train(r, m, t, r->before);
    emit(r, m, t, NULL);
    write_updates(r, m, r->before, STEPS);
    train(r, m, t, STEPS);
    save_as("expected", m, t);
    if (compiles_row(_i)) compare(_i % 2 ? "-std=gnu11 -O2 -march=native" : "-O1");
    if (_i == 0 && !SANITIZED) compile_alone(compiles("clang") ? "clang" : emitted_compiler());
    if (_i == 1 && !SANITIZED) compile_alone(emitted_compiler());
    wf_trainer_free(t);
    close_model(m);
}

/* ---- a batch that is padded, and one that is wrong ------------------------------------------- */

static const char *const wrong_batches[] = {
    "#ifdef MODEL_MAIN\n",
    "#include <stdio.h>\n",
    "#include <stdlib.h>\n",
    "static int next_update(model_batch *batches, int64_t step) {\n",
    "    static int32_t src[21], n[3] = { 7, 1, 7 }, tgt[12], labels[12];\n",
    "    static const int32_t after[] = { 1, 1, 1, 2, 2, 2, 2, 2, 3, 3 };\n",
    "    static int tries;\n",
    "    if (tries < 10 && step != after[tries]) exit(tries + 2);\n",
    "    for (int i = 0; i < 12; i++) labels[i] = tgt[i] = 3;\n",
    "    *batches = (model_batch){ 3, 7, 4, src, n, tgt, labels };\n",
    "    switch (tries++) {\n",
    "    case 0: tgt[5] = 17; break;\n",
    "    case 1: tgt[5] = -1; break;\n",
    "    case 2: break; /* [3,4] is padded to [3,5]: the first update */\n",
    "    case 3: labels[11] = 99; break;\n",
    "    case 4: n[1] = 8; break;\n",
    "    case 5: n[1] = 1; batches->T = 9; break;\n",
    "    case 6: batches->labels = 0; break;\n",
    "    case 7: break;\n",
    "    case 8: batches->B = 0; break;\n",
    "    default: return 0;\n",
    "    }\n",
    "    return 1;\n",
    "}\n",
    "#define main end_with_failure\n",
    "#endif\n",
    NULL,
};

TEST(a_wrong_batch_updates_nothing) {
    const recipe *r = &recipes[0];
    if (!has_emitted_compiler("emit_training")) return;
    wf_model *m = model_of(r);
    wf_trainer *t = trainer_of(r, m);
    emit(r, m, t, wrong_batches);
    FILE *file = fopen("model.c", "a");
    ck_assert(file);
    fputs("#undef main\n"
          "int main(void) {\n"
          "    static _Alignas(64) unsigned char memory[model_MEMORY];\n"
          "    static model_batch b[MOST_BATCHES];\n    static model m;\n"
          "    (void)end_with_failure;\n"
          "    model_begin(&m, memory);\n"
          "    while (next_update(b, model_steps(&m) + 1) == 1) {\n"
          "        float first = m.weights[0], last = m.weights[model_WEIGHTS - 16];\n"
          "        int64_t steps = model_steps(&m);\n"
          "        int bad = model_step(&m, b, 1, 0);\n"
          "        int same = m.weights[0] == first && m.weights[model_WEIGHTS - 16] == last;\n"
          "        if (bad != (steps == model_steps(&m)) || (bad && !same)) return 1;\n"
          "    }\n"
          "    return model_steps(&m) == 2 ? 0 : 99;\n}\n",
          file);
    ck_assert_int_eq(fclose(file), 0);
    run("%s " STRICT " -DMODEL_MAIN model.c -o program && ./program", emitted_compiler());
    ck_assert_msg(result.status == 0, "%d: %s%s", result.status, result.out, result.err);
    wf_trainer_free(t);
    close_model(m);
}

TEST(a_program_says_which_update_it_cannot_read) {
    const recipe *r = &recipes[1];
    const char *const inputs[] = { "1 3 5 x", "9", "1 99 5 1", "1 3 5 1 2 3", "-1" };
    if (!has_emitted_compiler("emit_training")) return;
    wf_model *m = model_of(r);
    wf_trainer *t = trainer_of(r, m);
    emit(r, m, t, NULL);
    run("%s " STRICT " -DMODEL_MAIN model.c -o program", emitted_compiler());
    expect(0);
    for (int i = 0; i < COUNT_OF(inputs); i++) {
        run("echo '%s' | ./program", inputs[i]);
        ck_assert_msg(result.status == 1 && !result.out[0] &&
                          strstr(result.err, "update 1: no batches of such sizes"),
                      "%s: %d %s", inputs[i], result.status, result.err);
    }
    run("./program < /dev/null > got && cmp got before");
    ck_assert_msg(result.status == 0, "%s%s", result.out, result.err);
    wf_trainer_free(t);
    close_model(m);
}

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *name, *says;
    int n_shapes;
    wf_batch_shape shape;
} refusal;

static const refusal refusals[] = {
    { NULL, "0 shapes of batches", 0, { 5, 7, 8 } },
    { NULL, "37 shapes of batches", 37, { 5, 7, 8 } },
    { NULL, "batches of 0 rows", 1, { 0, 7, 8 } },
    { NULL, "batches of 9223372036854775807 rows", 1, { INT64_MAX, 7, 8 } },
    { NULL, "sources of 0 tokens", 1, { 5, 0, 8 } },
    { NULL, "1048576, 1 to 12 and 1 to 12", 1, { 5, 7, 13 } },
    { NULL, "1048576, 1 to 12 and 1 to 12", 1, { 5, 13, 8 } },
    { "a b", "no identifier", 1, { 5, 7, 8 } },
    { "", "no identifier", 1, { 5, 7, 8 } },
    { "training", "for something else", 1, { 5, 7, 8 } },
    { "int", "for something else", 1, { 5, 7, 8 } },
};

TEST_ROWS(what_has_no_form_is_refused, COUNT_OF(refusals)) {
    const refusal *of = &refusals[_i];
    const recipe *r = &recipes[0];
    char message[WF_MESSAGE] = "";
    wf_model *m = model_of(r);
    wf_trainer *t = trainer_of(r, m);
    wf_training_emit_options o = { .name = of->name,
                                   .shapes = &of->shape,
                                   .n_shapes = of->n_shapes };
    ck_assert(!wf_model_emit_training(m, t, &o, message));
    ck_assert_msg(strstr(message, of->says), "'%s' is not '%s'", message, of->says);
    wf_trainer_free(t);
    close_model(m);
}

TEST(no_model_and_another_trainer_are_refused) {
    char message[WF_MESSAGE] = "";
    wf_training_emit_options o = { .shapes = shapes, .n_shapes = 1 };
    wf_model *m = model_of(&recipes[0]), *other = model_of(&recipes[0]);
    wf_trainer *t = trainer_of(&recipes[0], m);
    ck_assert(!wf_model_emit_training(NULL, t, &o, message));
    ck_assert_str_eq(message, "there is no model");
    ck_assert(!wf_model_emit_training(m, NULL, &o, message));
    ck_assert_str_eq(message, "a trainer is NULL: out of memory");
    ck_assert(!wf_model_emit_training(other, t, &o, message));
    ck_assert_str_eq(message, "the trainer is not of this model and its loss");
    ck_assert(!wf_model_emit_training(m, t, NULL, message));
    ck_assert_str_eq(message, "0 shapes of batches, not 1 to 36");
    wf_trainer_free(t);
    close_model(m);
    close_model(other);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static wf_model *of_all;
static wf_trainer *trainer;
static wf_file *saved;

static bool emit_once(void) {
    const wf_batch_shape small = { 2, 0, 3 };
    wf_training_emit_options o = {

        .shapes = &small, .n_shapes = 1, .file = saved, .step_key = "train.step"
    };
    char message[WF_MESSAGE] = "";
    char *text = wf_model_emit_training(of_all, trainer, &o, message);
    must(text || message[0], "no text and no message");
    if (text) wall_say(text, strlen(text));
    free(text);
    return text != NULL;
}

TEST(without_memory_there_is_a_message_and_no_file) {
    const wall_work work = { "emit a training", emit_once, false };
    of_all = model_of(&recipes[1]);
    trainer = trainer_of(&recipes[1], of_all);
    save_as("before", of_all, trainer);
    saved = wf_file_open("before");
    ck_assert(emit_once()); /* the results are named, and the first plans record nodes */
    ck_assert_int_gt(wall_fail_each(&work, false), 100);
    wf_file_free(saved);
    wf_trainer_free(trainer);
    close_model(of_all);
}
