/* tests/ops/test_emit_positions.c - plans as C files: caches, and other values that depend on the
 * position; and tables of which a run reads only the first rows. The results must have the bits of
 * the library. */
#include "emitted_plans.h"
#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(emit_positions)

SETUP(enter_folder, leave_folder)

/* ---- positions ------------------------------------------------------------------------------- */

/* A graph with a cache of the rows of x: [B,T,D]. */
typedef struct cached {
    wf_graph *g;
    wf_tensor *x, *rows, *y;
} cached;

static cached cached_rows(const char *input) {
    cached c = { .g = new_graph(WF_F32) };
    int64_t B = wf_extent(c.g, "B", 4), T = wf_extent(c.g, "T", 8);
    wf_extent(c.g, "P", 12);
    c.x = wf_input(c.g, input, WF_F32, SHAPE(B, T, D));
    c.rows = wf_cache(c.x, 1);
    c.y = wf_attention(c.x, c.rows, c.rows, NULL, &(wf_attention_options){ .causal = true });
    wf_named(c.y, "y");
    return c;
}

static wf_plan *cached_plan(cached c, wf_tensor *fetch, int64_t T) {
    wf_plan *p =
        plan(c.g, (wf_plan_options){ LIST(fetch, fetch), LIST(feed, c.x), .with_state = true });
    ck_assert(wf_bind(p, "B", 1) && wf_bind(p, "T", T));
    return p;
}

static void run_at(wf_plan *p, wf_state *s, cached c, int64_t position) {
    ck_assert(wf_bind(p, "P", position));
    feed(p, c.x);
    ck_assert_msg(wf_run_state(p, s), "%s", wf_plan_error(p));
}

TEST(a_result_that_grows_is_copied_as_of_a_position) {
    cached c = cached_rows("position");
    wf_tensor *doubled = wf_scale(c.rows, 2);
    wf_named(doubled, "doubled");
    if (!has_emitted_compiler("emit_positions")) return;
    wf_plan *p = cached_plan(c, doubled, 1);
    char *text = must_emit(p, "run", NULL, NULL);
    wf_state *s = wf_state_new(p);
    open_expected();
    for (int at = 0; at < 5; at++) {
        run_at(p, s, c, at);
        expect_fetch(p, doubled);
    }
    try_main(text,
             NUMBERS "    m.position = numbers;\n"
                     "    if (!model_run(&m, -1) || !model_run(&m, 13)) return 9;\n"
                     "    if (model_run(&m, model_run_LAST) || model_run_LAST != 12) return 8;\n"
                     "    for (int p = 0; p < 5; p++) {\n"
                     "        if (model_run(&m, p)) return 1;\n"
                     "        model_get_doubled(&m, p, number);\n"
                     "        model_get_doubled(&m, 13, number);\n"
                     "        print(4 * (p + 1));\n    }\n");
    wf_state_free(s);
    wf_plan_free(p);
    end_graph(c.g);
}

TEST(what_depends_on_the_position_is_not_read_by_another_plan) {
    cached c = cached_rows("x");
    wf_tensor *doubled = wf_scale(c.rows, 2), *next = wf_exp(doubled);
    wf_plan *a = cached_plan(c, doubled, 1);
    wf_plan *b = plan(c.g, (wf_plan_options){ LIST(fetch, next), LIST(feed, doubled) });
    ck_assert(wf_bind(b, "B", 1) && wf_bind(b, "T", 1));
    must_refuse(a, "a", b, "b", "depends on the position");
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(c.g);
}

TEST(plans_with_a_state_share_its_caches) {
    cached c = cached_rows("x");
    if (!has_emitted_compiler("emit_positions")) return;
    wf_plan *prompt = cached_plan(c, c.y, 3), *step = cached_plan(c, c.y, 1);
    char *text = must_emit(prompt, "prompt", step, "step");
    wf_state *s = wf_state_new(prompt);
    open_expected();
    run_at(prompt, s, c, 0);
    expect_fetch(prompt, c.y);
    for (int at = 3; at < 6; at++) {
        run_at(step, s, c, at);
        expect_fetch(step, c.y);
    }
    try_main(text, NUMBERS "    m.x = numbers;\n"
                           "    if (!model_prompt(&m, 11) || model_prompt_LAST != 10) return 9;\n"
                           "    if (model_prompt(&m, 0)) return 1;\n"
                           "    model_prompt_get_y(&m, number);\n    print(12);\n"
                           "    for (int p = 3; p < 6; p++) {\n"
                           "        if (model_step(&m, p)) return 1;\n"
                           "        model_step_get_y(&m, number);\n        print(4);\n    }\n");
    wf_state_free(s);
    wf_plan_free(prompt);
    wf_plan_free(step);
    end_graph(c.g);
}

/* The graph declares 13 positions. A file that is emitted for six of them has the constants of its
 * last position and of its smaller memory. */
TEST(caches_have_as_many_positions_as_are_asked) {
    static const int64_t asked[] = { 0, 6, 13, 99 }, too_few[] = { -1, 1, 3 };
    cached c = cached_rows("x");
    wf_plan *p = cached_plan(c, c.y, 1);
    int64_t arena[COUNT_OF(asked)], n_weights = -1;
    for (int i = 0; i < COUNT_OF(asked); i++) {
        wf_emit_options o = { .positions = asked[i],
                              .arena_bytes = &arena[i],
                              .n_weights = &n_weights };
        char line[64], *text = wf_emit(&p, 1, &o, message);
        ck_assert_msg(text, "%s", message);
        snprintf(line, sizeof line, "model_ARENA = %d,", (int)arena[i]);
        ck_assert(strstr(text, line) && n_weights == 0);
        ck_assert(strstr(text, i == 1 ? "model_run_LAST = 5," : "model_run_LAST = 12,"));
        free(text);
    }
    /* The caches have 14 rows and 7 rows, of which the last is never used, rounded up to 64 bytes.
     * The scratch of attention has room for 16 keys in both. */
    ck_assert_int_eq(arena[0] - arena[1], 256 - 128);
    ck_assert(arena[0] == arena[2] && arena[0] == arena[3]);
    for (int i = 0; i < COUNT_OF(too_few); i++) {
        ck_assert(!wf_emit(&p, 1, &(wf_emit_options){ .positions = too_few[i] }, message));
        ck_assert_msg(strstr(message, "positions"), "%s", message);
    }
    wf_plan_free(p);
    end_graph(c.g);
}

/* ---- tables of which a run reads the first rows ---------------------------------------------- */

/* The position embedding and the token embedding read one table, two different ones, or two with
 * the same values. */
typedef enum tables { ONE, APART, ALIKE } tables;

/* Emits and runs a plan with both embeddings. Returns its number of weights: of the table that is
 * read by position only the first rows are needed, of the other one all. */
static int64_t weights_of_tables(tables are, int64_t positions) {
    float rows[13 * D];
    cached c = cached_rows("x");
    wf_tensor *table = wf_param(c.g, "places", SHAPE(13, D), wf_init_normal(1)), *words = table;
    if (are != ONE) words = wf_param(c.g, "words", SHAPE(13, D), wf_init_normal(1));
    if (are == ALIKE)
        ck_assert(wf_read(table, rows, sizeof rows) && wf_write(words, rows, sizeof rows));
    wf_tensor *ids = wf_input(c.g, "ids", WF_I32, SHAPE(1));
    wf_tensor *y = wf_add(c.y, wf_embedding(table, wf_position_ids(c.x, 1)));
    y = wf_named(wf_add(y, wf_embedding(words, ids)), "sum");
    wf_plan *p =
        plan(c.g, (wf_plan_options){ LIST(fetch, y), LIST(feed, c.x, ids), .with_state = true });
    ck_assert(wf_bind(p, "B", 1) && wf_bind(p, "T", 1));
    int64_t n_weights = 0;
    int32_t id = 12;
    char *text = wf_emit(
        &p, 1, &(wf_emit_options){ .positions = positions, .n_weights = &n_weights }, message);
    ck_assert_msg(text, "%s", message);
    wf_state *s = wf_state_new(p);
    open_expected();
    for (int at = 0; at < 5; at++) {
        ck_assert(wf_bind(p, "P", at) && wf_feed(p, ids, &id, sizeof id));
        feed(p, c.x);
        ck_assert_msg(wf_run_state(p, s), "%s", wf_plan_error(p));
        expect_fetch(p, y);
    }
    try_main(text,
             NUMBERS "    static const int32_t id = 12;\n    m.x = numbers;\n    m.ids = &id;\n"
                     "    for (int p = 0; p < 5; p++) {\n"
                     "        if (model_run(&m, p)) return 1;\n"
                     "        model_get_sum(&m, number);\n        print(4);\n    }\n");
    wf_state_free(s);
    wf_plan_free(p);
    end_graph(c.g);
    return n_weights;
}

/* A table of 13 rows of 4 floats takes 64 floats, because each table begins at a multiple of 16. */
TEST(a_table_of_positions_has_the_rows_that_a_run_can_read) {
    if (!has_emitted_compiler("emit_positions")) return;
    ck_assert_int_eq(weights_of_tables(APART, 0), 64 + 64);
    ck_assert_int_eq(weights_of_tables(APART, 8), 32 + 64);
    ck_assert_int_eq(weights_of_tables(ONE, 8), 64);
}

TEST(values_that_two_tables_have_are_written_once) {
    if (!has_emitted_compiler("emit_positions")) return;
    ck_assert_int_eq(weights_of_tables(ALIKE, 0), 64);
    ck_assert_int_eq(weights_of_tables(ALIKE, 8), 64);
}

/* The table is a view whose rows are not those of its leaf: a row is two of the leaf's, or half of
 * one. */
TEST_ROWS(a_table_may_be_another_view_of_a_leaf, 2) {
    if (!has_emitted_compiler("emit_positions")) return;
    const int64_t narrow[] = { 16, 2 }, wide[] = { 4, 2 * D };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(3, D));
    wf_tensor *leaf = wf_param(g, "leaf", 2, _i ? wide : narrow, wf_init_normal(1));
    wf_tensor *table = wf_reshape(leaf, SHAPE(8, D));
    wf_tensor *y = wf_named(wf_add(x, wf_embedding(table, wf_arange(x, 0))), "y");
    wf_plan *p = plan(g, (wf_plan_options){ LIST(fetch, y), LIST(feed, x) });
    int64_t n_weights = 0;
    char *text = wf_emit(&p, 1, &(wf_emit_options){ .n_weights = &n_weights }, message);
    ck_assert_msg(text, "%s", message);
    ck_assert_int_eq(n_weights, 16); /* 12 of 32 floats are read, and leaves begin at 16 */
    open_expected();
    feed(p, x);
    ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
    expect_fetch(p, y);
    try_main(text, NUMBERS "    m.x = numbers;\n    if (model_run(&m)) return 1;\n"
                           "    model_get_y(&m, number);\n    print(12);\n");
    wf_plan_free(p);
    end_graph(g);
}

TEST(plans_with_other_caches_are_refused) {
    cached c = cached_rows("x");
    wf_tensor *narrow = wf_cache(wf_slice(c.x, 2, 0, 2), 1);
    wf_plan *a = cached_plan(c, c.y, 1), *b = cached_plan(c, narrow, 1);
    must_refuse(a, "a", b, "b", "have other caches");
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(c.g);
}

/* Emitting lays out the plan's memory anew, so a fetch needs another run first. */
TEST(a_plan_that_was_emitted_is_run_before_a_fetch) {
    cached c = cached_rows("x");
    float y[D];
    wf_plan *p = cached_plan(c, c.y, 1);
    wf_state *s = wf_state_new(p);
    run_at(p, s, c, 0);
    free(must_emit(p, "run", NULL, NULL));
    ck_assert(!wf_fetch(p, c.y, y, sizeof y));
    ck_assert_msg(strstr(wf_plan_error(p), "before a run"), "%s", wf_plan_error(p));
    wf_state_free(s);
    wf_plan_free(p);
    end_graph(c.g);
}
