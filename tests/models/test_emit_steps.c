/* tests/models/test_emit_steps.c - the encoder's plan and the decoder's step plan as one C file:
 * the steps read the encoder's results in memory, and their caches grow with the position. The
 * logits must have the bits of wf_run and wf_run_state. WEFT_EMIT_CC names another compiler, as in
 * suite `emit`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/emit.h"
#include "models/model_internal.h"
#include "models/transformer.h"
#include "tests/suites.h"
#include "tests/support/commands.h"
#include "tests/support/emitted.h"
#include "tests/support/models.h"

TESTS(emit_steps)

enum { VOCABULARY = 13, SOURCE = 5, STEPS = 9, ROWS = 3 };

static const int32_t source[SOURCE] = { 4, 7, 2, 9, 3 }, length = 4;

static int32_t token_at(int step, int row) {
    return (step * 5 + row * 3 + 1) % VOCABULARY;
}

/* Writes the logits of STEPS steps, as the library computes them, to the file `expected`. */
static void run_steps(wf_model *m, wf_plan *encode, wf_plan *step, int rows) {
    float logits[ROWS * VOCABULARY];
    FILE *file = fopen("expected", "wb");
    ck_assert(file);
    if (encode) ck_assert_msg(wf_run(encode), "%s", wf_plan_error(encode));
    for (int i = 0; encode && i < m->n_memory; i++) {
        size_t bytes = wf_bound_bytes(encode, m->memory[i]);
        char *one = malloc(bytes * (size_t)rows);
        ck_assert(one && wf_fetch(encode, m->memory[i], one, bytes));
        for (int row = 1; row < rows; row++) memcpy(one + (size_t)row * bytes, one, bytes);
        ck_assert_msg(wf_feed(step, m->memory[i], one, bytes * (size_t)rows), "%s",
                      wf_plan_error(step));
        free(one);
    }
    wf_state *state = NULL;
    for (int at = 0; at < STEPS; at++) {
        int32_t ids[ROWS];
        for (int row = 0; row < rows; row++) ids[row] = token_at(at, row);
        ck_assert(wf_bind(step, "P", at));
        if (!state) state = wf_state_new(step);
        ck_assert_msg(state && wf_feed(step, m->tgt, ids, (size_t)rows * sizeof *ids) &&
                          wf_run_state(step, state),
                      "%s", wf_plan_error(step));
        size_t bytes = (size_t)rows * VOCABULARY * sizeof *logits;
        ck_assert(wf_fetch(step, m->logits, logits, bytes));
        ck_assert_int_eq(fwrite(logits, 1, bytes, file), bytes);
    }
    wf_state_free(state);
    ck_assert_int_eq(fclose(file), 0);
}

/* Runs a program that computes the same steps with the emitted file: its output must be the file
 * `expected`. With several rows it also copies a row of the caches onto itself, which must change
 * nothing. */
static void try_program(const char *text, bool encodes, int rows) {
    char program[2048];
    int n = snprintf(
        program, sizeof program,
        "int main(void) {\n"
        "    static _Alignas(64) unsigned char arena[model_ARENA];\n"
        "    static const int32_t source[] = { 4, 7, 2, 9, 3 }, length = 4;\n"
        "    static float logits[%d];\n"
        "    int32_t ids[%d];\n"
        "    static model m;\n"
        "    (void)source;\n    (void)length;\n"
        "    model_start(&m, arena);\n%s"
        "    m.tgt = ids;\n"
        "    for (int at = 0; at < %d; at++) {\n"
        "        for (int row = 0; row < %d; row++) ids[row] = (at * 5 + row * 3 + 1) %% %d;\n"
        "        if (model_step(&m, at)) return 1;\n"
        "        model_get_logits(&m, logits);\n"
        "        fwrite(logits, 1, sizeof logits, stdout);\n%s"
        "    }\n    return 0;\n}\n",
        rows * VOCABULARY, rows,
        encodes ? "    m.src = source;\n    m.src_length = &length;\n"
                  "    if (model_encode(&m)) return 1;\n"
                : "",
        STEPS, rows, VOCABULARY, rows > 1 ? "        model_step_copy(&m, 1, 1);\n" : "");
    ck_assert_int_lt(n, (int)sizeof program);
    try_emitted(text, program);
}

static void try_model(wf_model *m, int rows) {
    const char *const names[] = { "encode", "step" };
    char message[256];
    if (!has_emitted_compiler("emit_steps")) return;
    wf_plan *encode = m->src ? wf_model_encode_plan(m, NULL) : NULL;
    wf_plan *step = wf_model_step_plan(m, NULL), *plans[] = { encode ? encode : step, step };
    if (encode)
        ck_assert(wf_bind(encode, "B", 1) && wf_bind(encode, "S", SOURCE) &&
                  wf_feed(encode, m->src, source, sizeof source) &&
                  wf_feed(encode, m->src_length, &length, sizeof length) &&
                  wf_bind(step, "S", SOURCE));
    ck_assert(wf_bind(step, "B", rows) && wf_bind(step, "T", 1));
    char *text = wf_emit(plans, encode ? 2 : 1,
                         &(wf_emit_options){ .runs = encode ? names : names + 1 }, message);
    ck_assert_msg(text, "%s", message);
    run_steps(m, encode, step, rows);
    try_program(text, encode != NULL, rows);
    free(text);
    wf_plan_free(encode);
    wf_plan_free(step);
    wf_model_free(m);
}

SETUP(enter_folder, leave_folder)

/* A small Transformer. With t5, its steps have values whose size depends on the position, besides
 * caches. */
static wf_model *transformer(bool t5) {
    wf_transformer_config c = wf_transformer_defaults();
    c.src_vocab = c.tgt_vocab = VOCABULARY;
    c.max_len = 24;
    c.d_model = 16;
    c.num_heads = 2;
    c.dim_feedforward = 24;
    c.encoder_layers = c.decoder_layers = 2;
    if (t5) {
        c.positions = WF_POSITIONS_NONE;
        c.relative_buckets = 8;
        c.relative_distance = 10;
    }
    wf_model *m = wf_transformer_new(&c, NULL, WF_F32, 3, NULL);
    ck_assert(m && wf_ok(m->graph));
    return m;
}

TEST(steps_of_a_transformer_have_the_same_bits) {
    try_model(transformer(false), 1);
}

TEST_ROWS(steps_of_t5_have_the_same_bits, 2) {
    try_model(transformer(true), _i ? ROWS : 1);
}

TEST(rows_share_what_the_encoder_computed_once) {
    try_model(transformer(false), ROWS);
}

TEST(steps_of_a_language_model_have_the_same_bits) {
    try_model(open_language_model(false, NULL, VOCABULARY, 40), ROWS);
}

TEST(steps_of_llama_have_the_same_bits) {
    try_model(open_language_model(true, NULL, VOCABULARY, 40), 1);
}
