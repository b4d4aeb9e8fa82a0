/* tests/core/record/test_errors.c - mistakes while recording: wf_error keeps the message of the
 * first one; later calls take NULL and poison tensors without harm. */
#include <stdio.h>

#include "core/graph_internal.h"
#include "core/picture.h"
#include "core/run_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(errors)

static wf_tensor *zeros(wf_graph *g, const char *name, int ndim, const int64_t *shape) {
    return wf_param(g, name, ndim, shape, wf_init_zeros());
}

/* ---- errors that stick ----------------------------------------------------------------------- */

typedef struct heard {
    int times;
    char message[512];
} heard;

static void hear(void *user, const char *message) {
    heard *h = user;
    h->times++;
    snprintf(h->message, sizeof h->message, "%s", message);
}

TEST(the_first_error_sticks) {
    heard h = { 0 };
    wf_graph *g = wf_graph_new(&(wf_graph_options){ .seed = 7, .on_error = hear, .user = &h });
    wf_tensor *a = zeros(g, "a", SHAPE(2, 3)), *b = zeros(g, "b", SHAPE(4)), *dx;
    wf_tensor *poison = wf_add(a, b);
    ck_assert_ptr_nonnull(poison);
    ck_assert(!wf_ok(g));
    char first[512];
    snprintf(first, sizeof first, "%s", wf_error(g));
    assert_contains(first, "[2,3]");
    assert_contains(first, "[4]");
    int nodes = wf_node_count(g);
    ck_assert_ptr_eq(wf_matmul(a, b), poison);
    ck_assert_ptr_eq(wf_mul(poison, a), poison);
    ck_assert_ptr_eq(zeros(g, "c", SHAPE(1)), poison);
    ck_assert_ptr_eq(wf_constant(g, 1), poison);
    ck_assert_ptr_eq(wf_input(g, "i", WF_F32, SHAPE(1)), poison);
    ck_assert_ptr_eq(wf_poison(g, "later %d", 2), poison);
    ck_assert(!wf_grad(poison, &a, 1, &dx));
    ck_assert_ptr_nonnull(dx);
    ck_assert_str_eq(wf_error(g), first);
    ck_assert_int_eq(wf_node_count(g), nodes);
    ck_assert_int_eq(h.times, 1);
    ck_assert_str_eq(h.message, first);
    wf_plan *p = wf_plan_new(g, &(wf_plan_options){ .fetch = &a, .n_fetch = 1 });
    ck_assert(p && !wf_plan_ok(p));
    assert_contains(wf_plan_error(p), first);
    wf_plan_free(p), wf_graph_free(g);
}

TEST(a_program_can_poison) {
    wf_graph *g = new_graph(WF_F32);
    wf_scope(g, "model");
    wf_tensor *t = wf_poison(g, "d_model %d is not divisible by %d", 10, 3);
    ck_assert_ptr_nonnull(t);
    ck_assert_str_eq(wf_error(g), "model: d_model 10 is not divisible by 3");
    wf_graph_free(g);
}

TEST(graphs_do_not_mix) {
    wf_graph *g = new_graph(WF_F32), *h = new_graph(WF_F32);
    wf_tensor *a = zeros(g, "a", SHAPE(2)), *b = zeros(h, "b", SHAPE(2));
    ck_assert_ptr_nonnull(wf_add(a, b));
    ck_assert(!wf_ok(g) && !wf_ok(h));
    assert_contains(wf_error(g), "another graph");
    wf_graph_free(g), wf_graph_free(h);
}

TEST(gradients_do_not_mix_graphs) {
    wf_graph *g = new_graph(WF_F32), *h = new_graph(WF_F32);
    wf_tensor *a = zeros(g, "a", SCALAR), *b = zeros(h, "b", SCALAR), *dx;
    ck_assert(!wf_grad(a, &b, 1, &dx));
    ck_assert(!wf_ok(g));
    assert_contains(wf_error(g), "different graphs");
    wf_graph_free(g), wf_graph_free(h);
}

TEST(cotangents_do_not_mix_graphs) {
    for (int i = 0; i < 2; i++) {
        wf_graph *g = new_graph(WF_F32), *h = new_graph(WF_F32);
        wf_tensor *a = zeros(g, "a", SCALAR), *b = zeros(h, "b", SCALAR), *dx;
        wf_tensor *y[] = { NULL, wf_neg(a), i ? wf_neg(b) : NULL }, *dy[] = { NULL, i ? a : b, b };
        ck_assert(!wf_vjp(y, dy, 3, &a, 1, &dx));
        assert_contains(wf_error(g), "different graphs");
        wf_graph_free(g), wf_graph_free(h);
    }
}

/* A result without a cotangent has no part in the gradient. */
TEST(cotangents_may_be_missing) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = wf_param(g, "x", SCALAR, wf_init_constant(3)), *dx;
    wf_tensor *y[] = { wf_square(x), wf_exp(x), NULL }, *dy[] = { wf_constant(g, 1), NULL, x };
    ck_assert_msg(wf_vjp(y, dy, 3, &x, 1, &dx), "%s", wf_error(g));
    ck_assert(evaluate_scalar(dx) == 6);
    ck_assert(!wf_vjp(y, dy, 3, NULL, 1, &dx) && !wf_vjp(y, dy, 3, &x, 1, NULL));
    end_graph(g);
}

static wf_tensor *too_many_axes(wf_graph *g) {
    return zeros(g, "x", 9, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 });
}
static wf_tensor *negative_axes(wf_graph *g) {
    return zeros(g, "x", -1, NULL);
}
static wf_tensor *negative_size(wf_graph *g) {
    return zeros(g, "x", SHAPE(2, -3));
}
static wf_tensor *no_shape(wf_graph *g) {
    return zeros(g, "x", 2, NULL);
}
static wf_tensor *no_name(wf_graph *g) {
    return zeros(g, NULL, SHAPE(2));
}
static wf_tensor *empty_name(wf_graph *g) {
    return zeros(g, "", SHAPE(2));
}
static wf_tensor *too_large(wf_graph *g) {
    return zeros(g, "x", SHAPE(INT64_MAX / 2, 3));
}
static wf_tensor *too_many_bytes(wf_graph *g) {
    return zeros(g, "x", SHAPE(INT64_MAX / 2));
}
static wf_tensor *no_init(wf_graph *g) {
    return wf_param(g, "x", SHAPE(2), (wf_init){ 0 });
}
static wf_tensor *wrong_real(wf_graph *g) {
    return wf_input(g, "x", WF_F64, SHAPE(2));
}
static wf_tensor *wrong_buffer(wf_graph *g) {
    return wf_buffer(g, "x", WF_F64, SHAPE(2), wf_init_zeros());
}
static wf_tensor *unknown_type(wf_graph *g) {
    return wf_input(g, "x", (wf_dtype)9, SHAPE(2));
}
static wf_tensor *overflows(wf_graph *g) {
    wf_tensor *x = zeros(g, "x", SHAPE(INT32_MAX, 1)), *y = zeros(g, "y", SHAPE(1, INT32_MAX));
    wf_tensor *z = wf_mul(x, y); /* nearly 2^62 elements of 4 bytes are more than 2^63 bytes */
    return z;
}
static wf_tensor *extent_without_name(wf_graph *g) {
    return zeros(g, "x", SHAPE(wf_extent(g, NULL, 3)));
}
static wf_tensor *extent_of_nothing(wf_graph *g) {
    return zeros(g, "x", SHAPE(wf_extent(g, "B", 0)));
}
static wf_tensor *extent_changed(wf_graph *g) {
    wf_extent(g, "B", 3);
    return wf_extent(g, "B", 4), wf_constant(g, 0);
}
static wf_tensor *operand_null(wf_graph *g) {
    return wf_matmul(zeros(g, "x", SHAPE(2, 2)), NULL);
}
static wf_tensor *loss_not_scalar(wf_graph *g) {
    wf_tensor *x = zeros(g, "x", SHAPE(2)), *dx;
    return wf_grad(x, &x, 1, &dx), dx;
}
static wf_tensor *wrt_null(wf_graph *g) {
    wf_tensor *x = zeros(g, "x", SCALAR), *none = NULL, *dx;
    return wf_grad(x, &none, 1, &dx), dx;
}
static wf_tensor *wrt_ids(wf_graph *g) {
    wf_tensor *x = zeros(g, "x", SCALAR), *ids = wf_input(g, "ids", WF_I32, SHAPE(2)), *dx;
    return wf_grad(x, &ids, 1, &dx), dx;
}
static wf_tensor *scope_too_long(wf_graph *g) {
    char part[64];
    memset(part, 'x', sizeof part - 1), part[sizeof part - 1] = '\0';
    for (int i = 0; i < 100; i++) wf_scope_push(g, part);
    return zeros(g, "w", SHAPE(2));
}

static wf_tensor *loss_of_ids(wf_graph *g) {
    wf_tensor *ids = wf_input(g, "ids", WF_I32, SCALAR), *x = zeros(g, "x", SHAPE(2)), *dx;
    return wf_grad(ids, &x, 1, &dx), dx;
}
static wf_tensor *no_loss(wf_graph *g) {
    wf_tensor *x = zeros(g, "x", SHAPE(2)), *dx;
    return wf_grad(NULL, &x, 1, &dx), dx;
}
static wf_tensor *no_wrt(wf_graph *g) {
    return wf_grad(zeros(g, "x", SCALAR), NULL, 1, (wf_tensor *[1]){ 0 }), wf_constant(g, 0);
}
static wf_tensor *no_room(wf_graph *g) {
    wf_tensor *x = zeros(g, "x", SCALAR);
    return wf_grad(x, &x, 1, NULL), wf_constant(g, 0);
}
static wf_tensor *many_operands(wf_graph *g) {
    wf_tensor *x[40];
    for (int i = 0; i < 40; i++) x[i] = wf_constant(g, i);
    wf_op any = wf_op_copy;
    any.arity = -1;
    return wf_record(&any, 40, x, NULL);
}
static wf_tensor *long_message(wf_graph *g) {
    return wf_poison(g, "%5000d is too long to be told", 1);
}

static const struct {
    wf_tensor *(*record)(wf_graph *);
    const char *message;
} mistakes[] = {
    { too_many_axes, "9" },
    { negative_axes, "-1" },
    { negative_size, "-3" },
    { no_shape, "x" },
    { no_name, "name" },
    { empty_name, "name" },
    { too_large, "large" },
    { too_many_bytes, "large" },
    { no_init, "x" },
    { wrong_real, "f64" },
    { wrong_buffer, "f64" },
    { unknown_type, "x" },
    { overflows, "large" },
    { extent_without_name, "name" },
    { extent_of_nothing, "'B'" },
    { extent_changed, "'B'" },
    { operand_null, "NULL" },
    { loss_not_scalar, "[2]" },
    { wrt_null, "NULL" },
    { wrt_ids, "i32" },
    { scope_too_long, "long" },
    { loss_of_ids, "the loss is i32 of shape []" },
    { no_loss, "the loss is NULL" },
    { no_wrt, "a list is NULL" },
    { no_room, "a list is NULL" },
    { many_operands, "copy: 40 operands" },
    { long_message, "    " },
};

TEST_ROWS(mistakes_are_told, COUNT_OF(mistakes)) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *t = mistakes[_i].record(g);
    ck_assert_ptr_nonnull(t);
    ck_assert_msg(!wf_ok(g), "accepted; wanted an error with \"%s\"", mistakes[_i].message);
    assert_contains(wf_error(g), mistakes[_i].message);
    wf_graph_free(g);
}

TEST(null_is_accepted_everywhere) {
    wf_tensor *none = NULL, *out = NULL;
    char message[WF_MESSAGE], text[64];
    int64_t shape[WF_MAX_DIMS];
    wf_step step;
    wf_graph_free(wf_relu(NULL)->graph), wf_graph_free(NULL), wf_plan_free(NULL),
        wf_pool_free(NULL), wf_state_free(NULL), wf_file_free(NULL);
    ck_assert(!wf_ok(NULL) && *wf_error(NULL));
    ck_assert_ptr_nonnull(wf_poison(NULL, "x"));
    ck_assert_int_eq(wf_node_count(NULL), 0);
    ck_assert_ptr_null(wf_node(NULL, 0));
    ck_assert_ptr_null(wf_find(NULL, "x"));
    ck_assert(!wf_ok(wf_param(NULL, "x", SHAPE(2), wf_init_zeros())->graph));
    ck_assert(!wf_ok(wf_input(NULL, "x", WF_F32, SHAPE(2))->graph));
    ck_assert(!wf_ok(wf_constant(NULL, 1)->graph));
    ck_assert(!wf_ok(wf_add(NULL, NULL)->graph));
    ck_assert(!wf_ok(wf_matmul(wf_relu(NULL), NULL)->graph));
    ck_assert(!wf_ok(wf_concat(NULL, 0, 0)->graph) && !wf_ok(wf_einsum("i", NULL, 0)->graph));
    ck_assert_int_gt(wf_extent(NULL, "B", 2), 0);
    ck_assert_ptr_nonnull(wf_scope(NULL, "x"));
    ck_assert_ptr_nonnull(wf_scope_push(NULL, "x"));
    ck_assert(!wf_grad(NULL, &none, 1, &out) && out);
    ck_assert(!wf_grad(NULL, NULL, 0, NULL) && !wf_grad(NULL, NULL, 1, &out));
    ck_assert(!wf_vjp(&none, &none, 1, &none, 1, &out));
    ck_assert(!wf_write(NULL, text, 4) && !wf_read(NULL, text, 4));
    ck_assert_int_eq(wf_count(NULL), 0);
    ck_assert_uint_eq(wf_bytes(NULL), 0);
    ck_assert_int_eq(wf_pool_threads(NULL), 1);
    wf_plan *p = wf_plan_new(NULL, NULL);
    ck_assert(p && !wf_plan_ok(p) && *wf_plan_error(p));
    ck_assert(!wf_run(p) && !wf_run_state(p, NULL) && !wf_bind(p, "B", 1) &&
              !wf_feed(p, NULL, text, sizeof text));
    ck_assert(!wf_fetch(p, NULL, text, sizeof text) && wf_bound_shape(p, NULL, shape) < 0 &&
              !wf_bound_bytes(p, NULL));
    ck_assert(!wf_plan_memory(p) && !wf_step_count(p) && !wf_step_at(p, 0, &step) &&
              !wf_state_new(p));
    wf_random_step(p, 1, 1), wf_profile(p, true), wf_plan_free(p);
    ck_assert(!wf_plan_ok(NULL) && *wf_plan_error(NULL));
    ck_assert(!wf_run(NULL) && !wf_run_state(NULL, NULL) && !wf_bind(NULL, "B", 1));
    ck_assert(!wf_feed(NULL, NULL, NULL, 0) && !wf_fetch(NULL, NULL, NULL, 0) &&
              !wf_state_new(NULL));
    wf_random_step(NULL, 1, 1), wf_profile(NULL, true);
    ck_assert(!wf_state_reorder(NULL, NULL, 0));
    ck_assert_ptr_null(wf_dot(NULL, 0, NULL, message));
    ck_assert_ptr_null(wf_dot(&none, 1, NULL, NULL));
    ck_assert_int_eq(wf_print(NULL, NULL, text, sizeof text), -1);
    ck_assert_str_eq(wf_shape_text(NULL, 2, (int64_t[]){ 2, 3 }, text, sizeof text), "[2,3]");
    ck_assert(isnan(wf_check_gradients(NULL, NULL, NULL, 0, NULL)));
}

TEST(operands_without_a_graph_stay_harmless) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = zeros(g, "x", SHAPE(2)), *stray = wf_relu(NULL);
    ck_assert(!wf_ok(wf_add(x, stray)->graph));
    ck_assert(!wf_ok(g));
    wf_graph_free(g);
}
