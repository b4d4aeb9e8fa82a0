/* tests/core/record/test_sizes.c - messages name the sizes that come from an extent by formula:
 * "B", "2*B", "B+1". They never show the two numbers that stand for an extent: the tag that
 * wf_extent returns, and the nominal size that shape rules see while recording. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "core/graph_internal.h"
#include "nn/nn.h"
#include "ops/ops_internal.h"
#include "tests/suites.h"
#include "tests/support/support.h"

TESTS(sizes)

typedef struct env {
    wf_graph *g;
    int64_t b, t;         /* tags */
    wf_tensor *x, *y, *w; /* [B,3], [T,3], [4,3] */
} env;

static void open_env(env *e) {
    e->g = wf_graph_new(NULL);
    e->b = wf_extent(e->g, "B", 64), e->t = wf_extent(e->g, "T", 64);
    e->x = wf_input(e->g, "x", WF_F32, SHAPE(e->b, 3));
    e->y = wf_input(e->g, "y", WF_F32, SHAPE(e->t, 3));
    e->w = wf_param(e->g, "w", SHAPE(4, 3), wf_init_zeros());
}

/* ---- what is said ---------------------------------------------------------------------------- */

static wf_tensor *rows(wf_tensor *x) { /* [N,3] -> [N] */
    return wf_sum(x, WF_AXIS(1), false);
}

static void say_input(env *e) {
    wf_input(e->g, "z", WF_F32, SHAPE(4, 2 * e->b));
}
static void say_param(env *e) {
    wf_param(e->g, "z", SHAPE(e->b), wf_init_zeros());
}
static void say_param_more(env *e) {
    wf_param(e->g, "z", SHAPE(e->t + 1, 2), wf_init_zeros());
}
static void say_sum(env *e) {
    wf_param(e->g, "z", SHAPE(e->b + e->t - 7), wf_init_zeros());
}
static void say_reshape(env *e) {
    wf_reshape(e->x, SHAPE(e->b, 3));
}
static void say_reshape_count(env *e) {
    wf_reshape(e->x, SHAPE(4, 3));
}
static void say_slice(env *e) {
    wf_slice(e->x, 0, 0, e->b);
}
static void say_slice_out(env *e) {
    wf_slice(wf_slice(e->x, 0, 3, -2), 1, 0, 4);
}
static void say_padded(env *e) {
    wf_add(wf_pad(rows(e->x), 0, 1, 3, 0), rows(e->x));
}
static void say_concat(env *e) {
    wf_add(wf_concat((wf_tensor *[]){ e->x, e->y }, 2, 0), e->x);
}
static void say_twice(env *e) {
    wf_add(wf_concat((wf_tensor *[]){ e->x, e->x, e->w }, 3, 0), e->y);
}
static void say_merged(env *e) {
    wf_add(wf_reshape(wf_matmul(e->x, wf_transpose(e->y, 0, 1)), SHAPE(WF_REST)), rows(e->x));
}
static void say_inner(env *e) {
    wf_matmul(e->x, e->y);
}
static void say_axis(env *e) {
    wf_squeeze(wf_slice(e->x, 0, 5, WF_END), WF_AXIS(0));
}
static void say_fixed(env *e) {
    int64_t n = e->x->shape[0] + 5; /* a fixed size near the nominal size of B: shown as a number */
    wf_tensor *fixed = wf_input(e->g, "z", WF_F32, 1, &n);
    wf_add(wf_pad(rows(e->x), 0, 4, 0, 0), fixed);
}
static void say_heads(env *e) {
    wf_mha_new(e->g, "z", e->b, 2, 0, true, 0);
}
static void say_gradient(env *e) {
    wf_tensor *grad;
    wf_grad(wf_pad(rows(e->x), 0, 2, 2, 0), &e->w, 1, &grad);
}
static void say_letters(env *e) {
    wf_einsum("ij,ik->jk", (wf_tensor *[]){ wf_pad(e->x, 0, 4, 0, 0), e->x }, 2);
}

static const struct {
    void (*call)(env *);
    const char *says;
} said[] = {
    { say_input, "'z': axis 1 is 2*B; only an extent itself can be an axis" },
    { say_param, "'z': axis 0 is the extent 'B'" },
    { say_param_more, "'z': axis 0 is T+1; only inputs have axes that are bound later" },
    { say_sum, "'z': axis 0 is B+T-7; only" },
    { say_reshape, "a size of B" },
    { say_reshape_count, "[B,3]: B*3 elements cannot be cut into 12" },
    { say_slice, "0 to B of axis 0: a size that is bound later" },
    { say_slice_out, "0 to 4 of axis 1, where [B-5,3] has 3" },
    { say_padded, "[B+4] and [B] do not broadcast: axis 1 from the right is B+4 and B" },
    { say_concat, "[B+T,3] and [B,3]" },
    { say_twice, "[2*B+4,3] and [T,3]" },
    { say_merged, "[B*T] and [B]" },
    { say_inner, "inner dimensions 3 and T differ" },
    { say_axis, "axis 0 of [B-5,3] has size B-5, not 1" },
    { say_fixed, "[B+4] and [4084] do not broadcast" },
    { say_heads, "a width of B does not divide into 2 heads" },
    { say_gradient, "shape [B+4], not a real scalar" },
    { say_letters, "'i' is B+4 in one operand and B in another" },
};

TEST_ROWS(extents_are_called_by_name, COUNT_OF(said)) {
    env e;
    open_env(&e);
    said[_i].call(&e);
    ck_assert(!wf_ok(e.g));
    assert_contains(wf_error(e.g), said[_i].says);
    wf_graph_free(e.g);
}

/* A tag times 1 to 3, plus -20 to 20, is named after its own extent: tags are so far apart that it
 * cannot be taken for another one. */
TEST(what_is_added_to_an_extent_is_no_other) {
    wf_graph *g = wf_graph_new(NULL);
    int64_t tag[15];
    for (int i = 0; i < 15; i++) tag[i] = wf_extent(g, (char[]){ (char)('A' + i), 0 }, 64);
    for (int i = 0; i < 15; i++)
        for (int64_t c = -20; c <= 20; c++)
            for (int times = 1; times <= 3; times++) {
                wf_graph *h = wf_graph_new(NULL);
                for (int k = 0; k < 15; k++) wf_extent(h, (char[]){ (char)('A' + k), 0 }, 64);
                char want[32], times_text[8] = "", more[8] = "";
                if (times > 1) snprintf(times_text, sizeof times_text, "%d*", times);
                if (c) snprintf(more, sizeof more, "%+d", (int)c);
                snprintf(want, sizeof want, "is %s%c%s", times_text, 'A' + i, more);
                wf_input(h, "x", WF_F32, SHAPE(times * tag[i] + c));
                ck_assert_msg(wf_ok(h) == (times == 1 && c == 0), "%s", want);
                if (!wf_ok(h)) assert_contains(wf_error(h), want);
                wf_graph_free(h);
            }
    wf_graph_free(g);
}

/* A sum in which one extent occurs twice has no name: it must not be called by another extent's. */
TEST(a_sum_is_not_called_by_an_extent_outside_of_it) {
    wf_graph *g = wf_graph_new(NULL);
    int64_t b = wf_extent(g, "B", 64), s = wf_extent(g, "S", 64), t = wf_extent(g, "T", 64);
    wf_input(g, "x", WF_F32, SHAPE(2 * b + s));
    ck_assert(!wf_ok(g) && t < 0);
    ck_assert_msg(!strstr(wf_error(g), " T") && !strstr(wf_error(g), "+T"), "%s", wf_error(g));
    wf_graph_free(g);
}

/* ---- numbers that are made of extents -------------------------------------------------------- */

/* Shape rules of a program's own op that fail with numbers computed from B, T and U. */
#define RULE(name, ...)                                                                            \
    static bool name(wf_call *c) {                                                                 \
        const int64_t b = c->in[0].shape[0], t = c->in[1].shape[0], u = c->in[2].shape[0];         \
        (void)b, (void)t, (void)u;                                                                 \
        return wf_fail(c, __VA_ARGS__);                                                            \
    }
RULE(negative, "%lld is wrong", (long long)-b)
RULE(from_ten, "%lld is wrong", (long long)(10 - b))
RULE(a_sum, "%lld is wrong", (long long)(b + t - 3))
RULE(a_square, "%lld is wrong", (long long)(b *b + 2))
RULE(a_multiple, "%lld is wrong", (long long)(3 * b * u - 1))
RULE(far_above, "%lld is wrong", (long long)(b + 2001))
RULE(far_below, "%lld is wrong", (long long)(b - 2001))
RULE(too_many, "%lld is wrong", (long long)(2001 * b + 1))
RULE(too_few, "%lld is wrong", (long long)(1 - 2001 * b))
RULE(a_mixture, "%lld is wrong", (long long)(b *t + u))
RULE(other_words, b < 7000 ? "small" : "large")
RULE(other_numbers, b < 7000 ? "7" : "x")
RULE(longer, b < 7000 ? "it" : "it is")

static bool no_kernel(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)c, (void)phase, (void)task, (void)scratch;
    return false;
}

static const struct {
    bool (*rule)(wf_call *);
    const char *says;
} made[] = {
    { negative, "mine: -B is wrong" },
    { from_ten, "mine: -B+10 is wrong" },
    { a_sum, "mine: B+T-3 is wrong" },
    { a_square, "mine: B*B+2 is wrong" },
    { a_multiple, "mine: 3*B*U-1 is wrong" },
    { far_above, "mine: ? is wrong" },
    { far_below, "mine: ? is wrong" },
    { too_many, "mine: ? is wrong" },
    { too_few, "mine: ? is wrong" },
    { a_mixture, "mine: ? is wrong" },
    { other_words, "mine: small" },
    { other_numbers, "mine: 7" },
    { longer, "mine: it" },
};

TEST_ROWS(what_is_made_of_extents_is_told_where_it_can, COUNT_OF(made)) {
    env e;
    open_env(&e);
    wf_tensor *z = wf_input(e.g, "z", WF_F32, SHAPE(wf_extent(e.g, "U", 64)));
    const wf_kernel run = { .eval = no_kernel };
    wf_op mine = { .name = "mine", .arity = 3, .shape = made[_i].rule, .run = &run };
    wf_record(&mine, 3, (wf_tensor *[]){ e.x, e.y, z }, NULL);
    ck_assert_str_eq(wf_error(e.g), made[_i].says);
    wf_graph_free(e.g);
}

/* A fixed axis of the same size as B's nominal size cannot be told from B: the add's rule does not
 * fail alike with another nominal size, so the message keeps its number. */
TEST(a_rule_that_fails_with_other_sizes_keeps_its_numbers) {
    env e;
    open_env(&e);
    int64_t n = e.x->shape[0];
    wf_tensor *fixed = wf_reshape(e.x, SHAPE(n, 3)), *five = wf_slice(fixed, 1, 0, 2);
    wf_add(five, wf_input(e.g, "z", WF_F32, SHAPE(7, 2)));
    assert_contains(wf_error(e.g), "[7,2] do not broadcast");
    wf_graph_free(e.g);
}

/* ---- no other number is ---------------------------------------------------------------------- */

#define SWEEP(name, ...)                                                                           \
    static void name(env *e, int64_t n) {                                                          \
        __VA_ARGS__;                                                                               \
    }
SWEEP(input, wf_input(e->g, "z", WF_F32, SHAPE(2, n)))
SWEEP(input_twice, wf_input(e->g, "z", WF_F32, SHAPE(n, n)))
SWEEP(parameter, wf_param(e->g, "z", SHAPE(n, 2), wf_init_zeros()))
SWEEP(buffer, wf_buffer(e->g, "z", WF_I32, SHAPE(n), wf_init_zeros()))
SWEEP(extent, wf_extent(e->g, "N", n))
SWEEP(position, wf_extent(e->g, "P", n))
SWEEP(reshape_first, wf_reshape(e->x, SHAPE(n, WF_REST)))
SWEEP(reshape_both, wf_reshape(e->x, SHAPE(n, n)))
SWEEP(reshape_fixed, wf_reshape(e->w, SHAPE(n)))
SWEEP(slice_from, wf_slice(e->x, 0, n, WF_END))
SWEEP(slice_to, wf_slice(e->x, 0, 0, n))
SWEEP(slice_both, wf_slice(e->w, 0, n, n))
SWEEP(pad_before, wf_add(wf_pad(e->x, 0, n, 0, 0), e->y))
SWEEP(pad_after, wf_add(wf_pad(e->x, 0, 1, n, 0), e->y))
SWEEP(pad_fixed, wf_pad(e->w, 0, n, n, 0))
SWEEP(linear_in, wf_linear_new(e->g, "z", n, 2, true))
SWEEP(linear_out, wf_linear_new(e->g, "z", 2, n, true))
SWEEP(table_rows, wf_embedding_new(e->g, "z", n, 2, true))
SWEEP(table_width, wf_embedding_new(e->g, "z", 2, n, true))
SWEEP(places_rows, wf_position_new(e->g, "z", WF_POSITIONS_LEARNED, n, 2))
SWEEP(places_width, wf_position_new(e->g, "z", WF_POSITIONS_SINUSOIDAL, 2, n))
SWEEP(norm, wf_norm_new(e->g, "z", WF_LAYER_NORM, n, 1e-5, true))
SWEEP(attention_width, wf_mha_new(e->g, "z", n, 1, 0, true, 0))
SWEEP(attention_heads, wf_mha_new(e->g, "z", 8, n, 0, true, 0))
SWEEP(block_width, wf_block_options o = { n, 2, 4, .bias = true };
      wf_encoder_layer_new(e->g, "z", &o))
SWEEP(block_heads, wf_block_options o = { 8, n, 4, .bias = true };
      wf_decoder_layer_new(e->g, "z", &o))
SWEEP(block_inner, wf_block_options o = { 8, 2, n, .bias = true }; wf_feed_forward_new(e->g, &o))

static const struct {
    const char *name;
    void (*call)(env *, int64_t);
} sweeps[] = {
#define ROW(name) { #name, name },
    ROW(input) ROW(input_twice) ROW(parameter) ROW(buffer) ROW(extent) ROW(position)
        ROW(reshape_first) ROW(reshape_both) ROW(reshape_fixed) ROW(slice_from) ROW(slice_to)
            ROW(slice_both) ROW(pad_before) ROW(pad_after) ROW(pad_fixed) ROW(linear_in)
                ROW(linear_out) ROW(table_rows) ROW(table_width) ROW(places_rows) ROW(places_width)
                    ROW(norm) ROW(attention_width) ROW(attention_heads) ROW(block_width)
                        ROW(block_heads) ROW(block_inner)
#undef ROW
};

enum { LEAST_NOMINAL = 3000 }; /* a lower bound of the nominal sizes */

/* Every number of the message must be n, which the test passed to the call, or INT32_MAX, or a
 * small one; if n is a tag, n itself is not allowed. */
static void look_at(const char *what, const char *message, int64_t n, bool is_tag) {
    for (const char *p = message; *p;) {
        char *end = NULL;
        if (strchr("0123456789", *p) == NULL) {
            p++;
            continue;
        }
        errno = 0;
        int64_t v = strtoll(p > message && p[-1] == '-' ? p - 1 : p, &end, 10);
        bool fits = errno == 0;
        bool mine = !is_tag && fits && (v == n || (n > INT64_MIN && v == -n));
        ck_assert_msg(mine || (fits && v < LEAST_NOMINAL && v > -LEAST_NOMINAL) ||
                          (fits && v == INT32_MAX),
                      "%s(%" PRId64 ") says %" PRId64 ": %s", what, n, v, message);
        p = end;
    }
}

TEST_ROWS(no_message_says_another_number, COUNT_OF(sweeps)) {
    env e;
    open_env(&e);
    const int64_t sizes[] = {
        e.b,       e.t,           2 * e.b,       3 * e.t + 1, e.b + 4, e.t - 9, e.b + e.t,
        INT64_MIN, INT64_MIN + 1, -77,           -2,          0,       1,       5,
        11,        123456789012,  INT64_MAX - 1, INT64_MAX
    };
    wf_graph_free(e.g);
    int failed = 0;
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        open_env(&e);
        sweeps[_i].call(&e, sizes[i]);
        look_at(sweeps[_i].name, wf_error(e.g), sizes[i], i < 7);
        failed += !wf_ok(e.g);
        wf_graph_free(e.g);
    }
    ck_assert_int_gt(failed, 4);
}

/* ---- axes ------------------------------------------------------------------------------------ */

TEST(axes_count_from_the_end) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = wf_param(g, "x", SHAPE(2, 3, 4, 5), wf_init_uniform(1));
    char text[64];
    for (int i = -4; i < 4; i++) {
        int from_start = i < 0 ? i + 4 : i;
        wf_tensor *a = wf_sum(x, WF_AXIS(i), true), *b = wf_sum(x, WF_AXIS(from_start), true);
        ck_assert_mem_eq(a->shape, b->shape, sizeof a->shape);
        ck_assert(a->shape[from_start] == 1);
        ck_assert_mem_eq(wf_unsqueeze(wf_squeeze(a, WF_AXIS(i)), WF_AXIS(i))->shape, a->shape,
                         sizeof a->shape);
    }
    wf_tensor *two = wf_max(x, WF_AXIS(-2) | WF_AXIS(0), false),
              *all = wf_unsqueeze(x, WF_AXIS(-1));
    ck_assert_str_eq(wf_shape_text(g, two->ndim, two->shape, text, sizeof text), "[3,5]");
    ck_assert_str_eq(wf_shape_text(g, all->ndim, all->shape, text, sizeof text), "[2,3,4,5,1]");
    ck_assert(WF_AXIS(-1) == WF_LAST_AXIS && WF_AXIS(2) == (WF_NO_AXES | 4));
    end_graph(g);
}

TEST(axes_that_no_tensor_has_are_refused) {
    const struct {
        int axis;
        const char *says;
    } cases[] = { { 2, "no axis 2" },   { -3, "no axis -3" }, { 7, "no axis 7" },
                  { -8, "no axis -8" }, { 8, "no axis " },    { -9, "no axis " },
                  { 31, "no axis " },   { 32, "no axis " },   { INT32_MIN, "no axis " } };
    for (int i = 0; i < COUNT_OF(cases); i++)
        for (int which = 0; which < 4; which++) {
            wf_graph *g = wf_graph_new(NULL);
            wf_tensor *x = wf_param(g, "x", SHAPE(2, 1), wf_init_zeros());
            uint32_t axes = WF_AXIS(cases[i].axis);
            if (which == 3 && cases[i].axis > -4 && cases[i].axis < 3) /* one more to choose from */
                ck_assert(wf_unsqueeze(x, axes) && wf_ok(g)), wf_sum(x, axes, false);
            else if (which == 3)
                wf_unsqueeze(x, axes);
            else if (which == 2)
                wf_squeeze(x, axes);
            else if (which == 1)
                wf_inverse_count(x, axes, 0);
            else
                wf_sum(x, axes, false);
            ck_assert_msg(!wf_ok(g), "axis %d, %d", cases[i].axis, which);
            assert_contains(wf_error(g), cases[i].says);
            wf_graph_free(g);
        }
}
