/* tests/ops/test_emit_plans.c - plans as C files: values that one plan computes and another reads,
 * sizes, weights, names of every kind. The results must have the bits of the library. Values that
 * depend on the position are in test_emit_positions.c. */
#include "core/lend.h"
#include "emitted_plans.h"
#include "tests/suites.h"
#include "tests/support/commands.h"

TESTS(emit_plans)

SETUP(enter_folder, leave_folder)

/* ---- a file of weights ----------------------------------------------------------------------- */

/* A program passes the file's bytes to model_start, which must refuse too few bytes, wrong ones,
 * and an address that is not aligned. */
#define TRY_FILE                                                                                   \
    "int main(void) {\n    static _Alignas(4) unsigned char bytes[model_FILE + 4];\n"              \
    "    static _Alignas(64) unsigned char memory[model_ARENA];\n    static model m;\n"            \
    "    static float y[4], weights[model_WEIGHTS];\n    (void)weights;\n"                         \
    "    FILE *in = fopen(\"weights\", \"rb\");\n"                                                 \
    "    if (!in || fread(bytes, 1, model_FILE + 1, in) != model_FILE) return 1;\n"                \
    "    fclose(in);\n    m.x = y;\n    y[0] = 2;\n"                                               \
    "    if (!START(bytes, model_FILE - 4) || !model_run(&m)) return 2;\n"                         \
    "    if (!START(bytes + 1, model_FILE) || !model_run(&m)) return 3;\n"                         \
    "    bytes[70] ^= 1;\n    if (!START(bytes, model_FILE) || !model_run(&m)) return 4;\n"        \
    "    bytes[70] ^= 1;\n    if (START(bytes, model_FILE)) return 5;\n"                           \
    "    for (int i = 0; i < 3; i++) {\n        if (model_run(&m)) return 6;\n"                    \
    "        model_get_y(&m, y);\n        fwrite(y, 4, 4, stdout);\n    }\n    return 0;\n}\n"

static void try_file(bool updates) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(D)),
              *w = wf_param(g, "w", SHAPE(D), wf_init_zeros());
    wf_tensor *y = wf_named(wf_add(wf_mul(x, w), wf_constant(g, 0.5)), "y");
    wf_tensor *update = updates ? wf_assign(w, wf_add(w, y)) : NULL;
    wf_emit_weights file;
    ck_assert(wf_write(w, numbers, D * sizeof(float)));
    wf_plan *p = plan(g, (wf_plan_options){ .fetch = (wf_tensor *[]){ y, update },
                                            .n_fetch = updates ? 2 : 1,
                                            LIST(feed, x) });
    char *text = wf_emit(&p, 1, &(wf_emit_options){ .weights_file = &file }, message);
    ck_assert_msg(text, "%s", message);
    ck_assert_ptr_null(strstr(text, "-1.25"));
    open_expected();
    FILE *out = fopen("weights", "wb");
    ck_assert(out && fwrite(file.bytes, 1, file.n, out) == file.n && fclose(out) == 0);
    float in[D] = { 2 };
    for (int i = 0; i < 3; i++) {
        ck_assert(wf_feed(p, x, in, sizeof in) && wf_run(p));
        ck_assert(wf_fetch(p, y, in, sizeof in) && fwrite(in, 4, D, expected) == D);
    }
    fclose(expected);
    try_emitted(text, updates
                          ? "#define START(b, n) model_start(&m, memory, weights, b, n)\n" TRY_FILE
                          : "#define START(b, n) model_start(&m, memory, b, n)\n" TRY_FILE);
    free(text);
    free(file.bytes);
    wf_plan_free(p);
    end_graph(g);
}

TEST(weights_are_a_second_file) {
    if (!has_emitted_compiler("emit_plans")) return;
    try_file(false);
    try_file(true);
}

/* ---- plans in their order -------------------------------------------------------------------- */

enum { WIDE = 512 };

/* The first plan has large temporary values. The second one reads the first one's result, and has
 * caches. With `in_order` they share memory. */
TEST(plans_in_their_order_share_memory) {
    if (!has_emitted_compiler("emit_plans")) return;
    wf_graph *g = new_graph(WF_F32);
    int64_t B = wf_extent(g, "B", 4), T = wf_extent(g, "T", 8), bytes, apart;
    wf_extent(g, "P", 12);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(D)), *table, *rows, *y, *z;
    table = wf_param(g, "table", SHAPE(1, D), wf_init_normal(1));
    wf_tensor *wide = wf_param(g, "wide", SHAPE(D, WIDE), wf_init_normal(1));
    wf_tensor *hidden = wf_tanh(wf_matmul(wf_add(table, x), wide));
    y = wf_named(wf_gemm(wf_relu(hidden), wide, NULL, WF_TRANSPOSE_B), "y"); /* [1,D] */
    wf_tensor *in = wf_input(g, "in", WF_F32, SHAPE(B, T, D));
    rows = wf_cache(wf_mul(in, y), 1);
    z = wf_named(wf_attention(in, rows, rows, NULL, &(wf_attention_options){ .causal = true }),
                 "z");
    wf_plan *first = plan(g, (wf_plan_options){ LIST(fetch, y), LIST(feed, x) });
    wf_plan *second =
        plan(g, (wf_plan_options){ LIST(fetch, z), LIST(feed, in, y), .with_state = true });
    ck_assert(wf_bind(second, "B", 1) && wf_bind(second, "T", 1));
    open_expected();
    float value[D], made[D];
    memcpy(value, numbers, sizeof value);
    ck_assert(wf_feed(first, x, numbers, sizeof value) && wf_run(first));
    ck_assert(wf_fetch(first, y, made, sizeof made));
    wf_state *s = wf_state_new(second);
    for (int position = 0; position < 5; position++) {
        ck_assert(wf_bind(second, "P", position) && wf_feed(second, in, value, sizeof value));
        ck_assert(wf_feed(second, y, made, sizeof made));
        ck_assert_msg(wf_run_state(second, s), "%s", wf_plan_error(second));
        ck_assert(wf_fetch(second, z, value, sizeof value));
        expect_fetch(second, z);
    }
    wf_plan *const plans[] = { first, second };
    wf_emit_options o = { .runs = (const char *const[]){ "first", "second" },
                          .arena_bytes = &apart };
    free(wf_emit(plans, 2, &o, message));
    o.in_order = true;
    o.arena_bytes = &bytes;
    char *text = wf_emit(plans, 2, &o, message);
    ck_assert_msg(text, "%s", message);
    ck_assert(bytes < apart);
    /* The second plan's batch of one row has no room for the results of two runs. */
    o.kept_runs = 2;
    ck_assert(!wf_emit(plans, 2, &o, message));
    ck_assert_str_eq(message, "'y' has another size in the plan that reads it");
    o.kept_runs = INT64_MAX;
    ck_assert(!wf_emit(plans, 2, &o, message));
    ck_assert_str_eq(message, "results of 9223372036854775807 runs");
    o.kept_runs = 2;
    o.in_order = false;
    ck_assert(!wf_emit(plans, 2, &o, message));
    ck_assert_str_eq(message, "the results of several runs are kept only of plans in order");
    try_main(text, NUMBERS "    float value[4];\n    m.x = numbers;\n"
                           "    if (model_first(&m)) return 1;\n"
                           "    for (int i = 0; i < 4; i++) value[i] = numbers[i];\n"
                           "    m.in = value;\n    for (int i = 0; i < 5; i++) {\n"
                           "        if (model_second(&m, i)) return 2;\n"
                           "        for (int k = 0; k < 4; k++) value[k] = model_see_z(&m)[k];\n"
                           "        model_get_z(&m, number);\n        print(4);\n    }\n");
    wf_state_free(s);
    wf_plan_free(first);
    wf_plan_free(second);
    end_graph(g);
}

/* ---- between plans --------------------------------------------------------------------------- */

TEST(an_input_that_is_fetched_is_no_result_of_a_plan) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4, 4)), *h = wf_scale(x, 3);
    wf_tensor *z = wf_add(wf_exp(x), h);
    wf_named(h, "h");
    wf_named(z, "z");
    if (!has_emitted_compiler("emit_plans")) return;
    wf_plan *a = plan(g, (wf_plan_options){ LIST(fetch, x, h), LIST(feed, x) });
    wf_plan *b = plan(g, (wf_plan_options){ LIST(fetch, z), LIST(feed, x, h) });
    char *text = must_emit(a, "a", b, "b");
    open_expected();
    feed(a, x);
    feed(b, x);
    ck_assert(wf_run(a));
    ck_assert(wf_feed(b, h, wf_fetched(a, h), wf_bound_bytes(b, h)) && wf_run(b));
    expect_fetch(a, x);
    expect_fetch(b, z);
    try_main(text, NUMBERS "    m.x = numbers;\n    if (model_a(&m) || model_b(&m)) return 1;\n"
                           "    model_get_x(&m, number);\n    print(16);\n"
                           "    model_get_z(&m, number);\n    print(16);\n");
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(g);
}

/* The first plan computes h as a transpose, and the second one reads h and its transpose. */
TEST(views_of_what_another_plan_computed_are_right) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4, 4)), *h = wf_transpose(wf_exp(x), 0, 1);
    wf_tensor *z = wf_sub(wf_scale(wf_transpose(h, 0, 1), 2), h);
    wf_named(h, "h");
    wf_named(z, "z");
    if (!has_emitted_compiler("emit_plans")) return;
    wf_plan *a = plan(g, (wf_plan_options){ LIST(fetch, h), LIST(feed, x) });
    wf_plan *b = plan(g, (wf_plan_options){ LIST(fetch, z, h), LIST(feed, h) });
    float kept[16];
    feed(a, x);
    ck_assert(wf_run(a) && wf_fetch(a, h, kept, sizeof kept));
    ck_assert(wf_feed(b, h, kept, sizeof kept));
    char *text = must_emit(a, "a", b, "b");
    open_expected();
    ck_assert(wf_run(b)); /* wf_emit leaves the plan usable */
    expect_fetch(b, z);
    expect_fetch(b, h);
    try_main(text, NUMBERS "    m.x = numbers;\n    if (model_a(&m) || model_b(&m)) return 1;\n"
                           "    model_get_z(&m, number);\n    print(16);\n"
                           "    model_get_h(&m, number);\n    print(16);\n");
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(g);
}

TEST(every_plan_counts_its_own_steps) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4, 4)), *y = wf_dropout(x, 0.5, NULL);
    wf_named(y, "y");
    if (!has_emitted_compiler("emit_plans")) return;
    wf_plan_options o = { LIST(fetch, y), LIST(feed, x), .training = true };
    wf_plan *a = plan(g, o), *b = plan(g, o);
    wf_random_step(a, 5, 2);
    wf_random_step(b, 90, 0);
    char *text = must_emit(a, "a", b, "b");
    open_expected();
    for (int i = 0; i < 3; i++) {
        wf_plan *p = i == 2 ? b : a;
        feed(p, x);
        ck_assert(wf_run(p));
        expect_fetch(p, y);
    }
    try_main(text, NUMBERS "    m.x = numbers;\n"
                           "    for (int i = 0; i < 3; i++) {\n"
                           "        if (i == 2 ? model_b(&m) : model_a(&m)) return 1;\n"
                           "        if (i == 2) model_b_get_y(&m, number);\n"
                           "        else model_a_get_y(&m, number);\n"
                           "        print(16);\n    }\n"
                           "    if (m.a_step != 7 || m.b_step != 91) return 1;\n");
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(g);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* One emitted file computes 9, 2 and 5 rows. The second plan always reads 9: the rows of the run,
 * and zeros behind them. */
TEST(a_run_chooses_the_size_of_an_extent) {
    static const int64_t sizes[] = { 9, 2, 5 };
    wf_graph *g = new_graph(WF_F32);
    int64_t S = wf_extent(g, "S", 20);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(S, 4));
    wf_tensor *w = wf_param(g, "w", SHAPE(40, 4), wf_init_normal(1));
    wf_tensor *h = wf_softmax(wf_gemm(wf_exp(x), w, NULL, WF_TRANSPOSE_B), 1);
    wf_tensor *y = wf_sum(h, WF_AXIS(0), false), *z = wf_scale(h, 3);
    float rows[9 * 4];
    wf_extent(g, "P", 12);
    wf_named(y, "y");
    wf_named(z, "z");
    if (!has_emitted_compiler("emit_plans")) return;
    for (int i = 0; i < COUNT_OF(rows); i++) rows[i] = numbers[i % COUNT_OF(numbers)];
    wf_plan *a = plan(g, (wf_plan_options){ LIST(fetch, y, h), LIST(feed, x) });
    wf_plan *b = plan(g, (wf_plan_options){ LIST(fetch, z), LIST(feed, h), .with_state = true });
    wf_plan *const plans[] = { a, b };
    wf_emit_options o = { .runs = (const char *const[]){ "a", "b" }, .sized_by = "S" };
    ck_assert(wf_bind(b, "S", 9) && wf_bind(a, "S", 4) && !wf_emit(plans, 2, &o, message));
    ck_assert_msg(strstr(message, "4 of extent 'S'"), "%s", message);
    ck_assert(wf_bind(a, "S", 9));
    char *text = wf_emit(plans, 2, &o, message);
    ck_assert_msg(text, "%s", message);
    wf_state *s = wf_state_new(b);
    open_expected();
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        float kept[9 * 40] = { 0 };
        size_t n = (size_t)sizes[i];
        ck_assert(wf_bind(a, "S", sizes[i]) && wf_feed(a, x, rows, n * 16));
        ck_assert_msg(wf_run(a) && wf_fetch(a, h, kept, n * 160), "%s", wf_plan_error(a));
        expect_fetch(a, y);
        ck_assert_msg(wf_feed(b, h, kept, sizeof kept) && wf_run_state(b, s), "%s",
                      wf_plan_error(b));
        expect_fetch(b, z);
    }
    try_main(text,
             NUMBERS "    static float x[36];\n"
                     "    static const int sizes[] = { 9, 2, 5 };\n"
                     "    for (int i = 0; i < 36; i++) x[i] = numbers[i % 16];\n"
                     "    m.x = x;\n"
                     "    for (int i = 0; i < 3; i++) {\n"
                     "        if (model_a(&m, sizes[i]) || model_b(&m, 0)) return 1;\n"
                     "        model_get_y(&m, number);\n        print(40);\n"
                     "        model_get_z(&m, number);\n        print(360);\n    }\n"
                     "    if (!model_a(&m, 1) || !model_a(&m, model_a_MOST + 1)) return 1;\n");
    wf_state_free(s);
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(g);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A table of 70 rows that only an embedding and products read, all or some of its rows, is stored
 * in panels of 32 rows. A table that is added to a tensor, or sliced inside a panel, is stored row
 * by row. */
TEST(weights_that_products_read_lie_in_panels) {
    static const int64_t cuts[] = { 32, 33 };
    if (!has_emitted_compiler("emit_plans")) return;
    for (int i = 0; i < COUNT_OF(cuts); i++) {
        wf_graph *g = new_graph(WF_F32);
        wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4, 4));
        wf_tensor *w = wf_param(g, "w", SHAPE(70, 4), wf_init_normal(1));
        wf_tensor *b = wf_param(g, "b", SHAPE(7, 4), wf_init_normal(1));
        wf_tensor *h = wf_embedding(w, wf_argmax(wf_gemm(x, w, NULL, WF_TRANSPOSE_B), 1));
        wf_tensor *low = wf_gemm(h, wf_slice(w, 0, 0, cuts[i]), NULL, WF_TRANSPOSE_B);
        wf_tensor *high = wf_gemm(x, wf_slice(w, 0, cuts[i], 70), NULL, WF_TRANSPOSE_B);
        wf_tensor *small = wf_gemm(wf_add(x, wf_slice(b, 0, 0, 4)), b, NULL, WF_TRANSPOSE_B);
        wf_tensor *y = wf_concat((wf_tensor *[]){ low, high, small }, 3, 1);
        wf_named(y, "y");
        wf_plan *p = plan(g, (wf_plan_options){ LIST(fetch, y), LIST(feed, x) });
        char *text = must_emit(p, "run", NULL, NULL);
        ck_assert(!strstr(text, "/* w, in panels */") == (cuts[i] != 32));
        ck_assert(strstr(text, "/* b */"));
        open_expected();
        feed(p, x);
        ck_assert_msg(wf_run(p), "%s", wf_plan_error(p));
        expect_fetch(p, y);
        try_main(text, NUMBERS "    m.x = numbers;\n    if (model_run(&m)) return 1;\n"
                               "    model_get_y(&m, number);\n    print(4 * 77);\n");
        wf_plan_free(p);
        end_graph(g);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static wf_tensor *scoped(wf_graph *g, const char *scope, wf_tensor *(*op)(wf_tensor *),
                         wf_tensor *x) {
    wf_scope(g, scope);
    wf_tensor *y = op(x);
    wf_scope(g, "");
    return y;
}

/* Names that collide: inputs named like keywords of C, members and macros of the file; scopes named
 * like functions of steps, of plain C and of leaves; a name that ends a comment; and a factor that
 * no float holds. */
TEST(names_get_out_of_the_way_of_each_other) {
    static const char *const inputs[] = { "int", "arena",    "weights",   "ROUND",
                                          "m",   "run_step", "float_bits" };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *in[COUNT_OF(inputs)], *y = NULL;
    const double ones[] = { 1, 2, 3 };
    if (!has_emitted_compiler("emit_plans")) return;
    for (int i = 0; i < COUNT_OF(inputs); i++) {
        in[i] = wf_input(g, inputs[i], WF_F32, SHAPE(3));
        y = i ? wf_add(y, in[i]) : in[i];
    }
    wf_tensor *leaf = param_of(g, "a*/b/*", SHAPE(3), ones);
    y = scoped(g, "at_w", wf_neg, scoped(g, "sqrt_of", wf_abs, y));
    y = scoped(g, "exp", wf_exp, y);
    y = scoped(g, "model_run", wf_sqrt, wf_scale(wf_mul(y, leaf), 1e39));
    wf_named(y, "y*/");
    wf_plan *p = plan(g, (wf_plan_options){ LIST(fetch, y), .feed = in, .n_feed = COUNT_OF(in) });
    char *text = must_emit(p, "run", NULL, NULL);
    open_expected();
    for (int i = 0; i < COUNT_OF(in); i++) feed(p, in[i]);
    ck_assert(wf_run(p));
    expect_fetch(p, y);
    try_main(text, NUMBERS "    m.int_ = m.arena_ = m.weights_ = m.ROUND_ = m.m = numbers;\n"
                           "    m.run_step_ = m.float_bits_ = numbers;\n"
                           "    if (model_run(&m)) return 1;\n"
                           "    model_get_y__(&m, number);\n    print(3);\n");
    wf_plan_free(p);
    end_graph(g);
}

TEST(names_that_cannot_be_are_refused) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x.y", WF_F32, SHAPE(3)),
              *other = wf_input(g, "x_y", WF_F32, SHAPE(3));
    wf_tensor *y = wf_add(x, other), *z = wf_exp(x);
    wf_plan *p = plan(g, (wf_plan_options){ LIST(fetch, y), LIST(feed, x, other) });
    wf_plan *q = plan(g, (wf_plan_options){ LIST(fetch, z), LIST(feed, x) });
    static const char *const prefixes[] = {
        "int", "convolution", "floats", "multiply_add", "1x", ""
    };
    must_refuse(p, "run", NULL, NULL, "have one name in C");
    must_refuse(q, "run", q, "run", "would be called 'model_run'");
    must_refuse(q, "start", NULL, NULL, "would be called 'model_start'");
    must_refuse(q, "a b", NULL, NULL, "is no identifier of C");
    for (int i = 0; i < COUNT_OF(prefixes); i++) {
        wf_emit_options o = { .name = prefixes[i] };
        ck_assert_ptr_null(wf_emit(&q, 1, &o, message));
        ck_assert_msg(strstr(message, i < 4 ? "cannot be the prefix" : "no identifier"), "%s",
                      message);
    }
    wf_plan_free(p);
    wf_plan_free(q);
    end_graph(g);
}

/* A plan that has neither steps nor weights is emitted; its function copies the input. */
TEST(an_input_alone_is_a_file) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(3));
    if (!has_emitted_compiler("emit_plans")) return;
    wf_plan *p = plan(g, (wf_plan_options){ LIST(fetch, x), LIST(feed, x) });
    char *text = must_emit(p, "run", NULL, NULL);
    open_expected();
    feed(p, x);
    ck_assert(wf_run(p));
    expect_fetch(p, x);
    try_main(text, NUMBERS "    m.x = numbers;\n"
                           "    if (model_ARENA < 64 || model_run(&m)) return 1;\n"
                           "    model_get_x(&m, number);\n    print(3);\n");
    wf_plan_free(p);
    end_graph(g);
}

/* ---- one at a time --------------------------------------------------------------------------- */

/* The two plans may share memory, because b is fed its own h, and not the h that a fetches. The
 * leaf `sum` holds only zeros and is the last of the weights, so it is left out of their table. */
TEST(plans_that_run_one_at_a_time_share_memory) {
    static const double ones[] = { 1, 2, 3, 4 };
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_input(g, "x", WF_F32, SHAPE(4, 4)), *h = wf_exp(x);
    wf_tensor *scale = param_of(g, "scale", SHAPE(4), ones);
    wf_tensor *sum = wf_buffer(g, "sum", WF_F32, SHAPE(4, 4), wf_init_zeros());
    wf_tensor *z = wf_softmax(wf_mul(h, scale), 1), *add = wf_assign(sum, wf_add(sum, z));
    wf_named(h, "h");
    wf_named(z, "z");
    if (!has_emitted_compiler("emit_plans")) return;
    wf_plan *a = plan(g, (wf_plan_options){ LIST(fetch, h), LIST(feed, x) });
    wf_plan *b = plan(g, (wf_plan_options){ LIST(fetch, z, add), LIST(feed, h) });
    wf_plan *const plans[] = { a, b };
    const char *const runs[] = { "a", "b" };
    wf_emit_options o = { .runs = runs, .one_at_a_time = true };
    char *text = wf_emit(plans, 2, &o, message);
    ck_assert_msg(text, "%s", message);
    ck_assert(strstr(text, "first_weights[16] = {"));
    ck_assert(strstr(text, "model_WEIGHTS = 32"));
    open_expected();
    feed(a, x);
    ck_assert(wf_run(a));
    expect_fetch(a, h);
    for (int i = 0; i < 2; i++) {
        feed(b, h);
        ck_assert(wf_run(b));
        expect_fetch(b, z);
    }
    float total[16];
    ck_assert(wf_read(sum, total, sizeof total));
    ck_assert_int_eq(fwrite(total, 1, sizeof total, expected), sizeof total);
    fclose(expected);
    try_emitted(text, "static _Alignas(64) unsigned char memory[model_ARENA];\n"
                      "static float weights[model_WEIGHTS], number[16];\n"
                      "int main(void) {\n" NUMBERS "    static model m;\n"
                      "    weights[20] = 5;\n"
                      "    model_start(&m, memory, weights);\n"
                      "    m.x = m.h = numbers;\n"
                      "    if (model_a(&m)) return 1;\n"
                      "    model_get_h(&m, number);\n"
                      "    fwrite(number, 1, sizeof number, stdout);\n"
                      "    for (int i = 0; i < 2; i++) {\n"
                      "        if (model_b(&m)) return 1;\n"
                      "        model_get_z(&m, number);\n"
                      "        fwrite(number, 1, sizeof number, stdout);\n    }\n"
                      "    fwrite(weights + 16, 4, 16, stdout);\n"
                      "    return 0;\n}\n");
    free(text);
    wf_plan_free(a);
    wf_plan_free(b);
    end_graph(g);
}
