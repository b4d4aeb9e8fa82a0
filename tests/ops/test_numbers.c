/* tests/ops/test_numbers.c - operands without elements; operands that are huge, tiny or not finite;
 * and operands where an op is exact or has a kink. test_random_graphs.c compares with PyTorch's
 * recorded values of such operands.
 *
 * Not here: ordinary operands, in test_ops.c; functions' errors in units in the last place, in
 * test_kernels.c. */
#include <float.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "op_cases.h"
#include "tests/suites.h"

TESTS(numbers)

/* ---- every element of a result is written, and none if there are none ------------------------ */

/* Makes malloc fill new memory with this byte; 0: leave it as it is. */
static void poison_memory(int byte) {
#ifdef M_PERTURB
    mallopt(M_PERTURB, byte ? byte ^ 0xff : 0);
#else
    (void)byte;
#endif
}

static bool run_poisoned(fixture *f, int byte, values *out) {
    wf_tensor *fetch[MAX_OUTPUTS] = { f->y };
    int n = fixture_outputs(f);
    for (int i = 1; i < n; i++) fetch[i] = f->grad[i - 1];
    poison_memory(byte);
    wf_plan *p = wf_plan_new(
        f->g, &(wf_plan_options){ .fetch = fetch, .n_fetch = n, .training = f->row->random });
    bool ok = wf_plan_ok(p) && wf_run(p);
    poison_memory(0);
    if (!ok) ck_assert_uint_gt(strlen(wf_plan_error(p)), 0);
    for (int i = 0; ok && i < n; i++) out[i].data = plan_values(p, fetch[i], &out[i].count);
    wf_plan_free(p);
    return ok;
}

/* Runs the row in memory filled with two different bytes: the results must be the same. Returns
 * false if the op refuses these shapes or data. */
static bool same_in_any_memory(fixture *f) {
    values one[MAX_OUTPUTS], other[MAX_OUTPUTS];
    int n = fixture_outputs(f);
    bool ran = run_poisoned(f, 0x55, one);
    if (!ran) return false;
    ck_assert(run_poisoned(f, 0xfe, other));
    for (int i = 0; i < n; i++)
        ck_assert_msg(same_bits(one[i], other[i]), "%s: output %d is what lay in memory",
                      f->row->name, i);
    free_values(one, n);
    free_values(other, n);
    return true;
}

/* Copies the row, with 0 in place of each axis of this size. Returns false if there is none. */
static bool emptied(const op_case *row, int64_t size, op_case *empty) {
    bool found = false;
    *empty = *row;
    for (int i = 0; i < MAX_CASE_OPERANDS; i++)
        for (int k = 0; k < empty->in[i].ndim; k++) {
            if (empty->in[i].shape[k] != size) continue;
            empty->in[i].shape[k] = 0;
            found = true;
        }
    return found;
}

/* Records the gradients, if the row has any. Returns false if a gradient refuses these shapes. */
static bool differentiate_sum(fixture *f) {
    if (f->y->dtype != wf_real(f->g) || f->n_wrt == 0 || refuses_gradients(f->y)) return true;
    f->loss = wf_sum(f->y, WF_ALL_AXES, false);
    return wf_grad(f->loss, f->wrt, f->n_wrt, f->grad);
}

/* A row's op writes every element of its results, with the row's shapes, and with each size up to 9
 * replaced by 0. */
TEST_ROWS(row_writes_all_of_its_result, op_case_count) {
    const op_case *row = &op_cases[_i];
    if (row->update) return;
    for (int64_t size = 0; size <= 9; size++) {
        op_case empty;
        fixture f;
        if (!emptied(row, size, &empty) && size > 0) continue;
        fixture_open(&f, &empty, WF_F32, PLAIN);
        bool ran = false;
        if (wf_ok(f.g) && differentiate_sum(&f)) ran = same_in_any_memory(&f);
        if (ran && size > 0) tally_note(TALLY_EMPTY, 0);
        wf_graph_free(f.g);
    }
}

static bool shape_lazy(wf_call *c) {
    wf_set_shape(&c->out[0], c->in[0].dtype, c->in[0].ndim, c->in[0].shape);
    return true;
}
static int64_t no_tasks(const wf_call *c, int phase) {
    (void)c, (void)phase;
    return 0;
}
static bool eval_lazy(const wf_call *c, int phase, int64_t task, void *scratch) {
    (void)c, (void)phase, (void)task, (void)scratch;
    return true;
}
static const wf_op op_lazy = {
    .name = "lazy",
    .family = "constant",
    .arity = 1,
    .shape = shape_lazy,
    .no_grad = "it writes nothing, to try the test above",
    .run = &(const wf_kernel){ .tasks = no_tasks, .eval = eval_lazy },
};

static wf_tensor *build_lazy(wf_tensor *const *x) {
    return wf_record(&op_lazy, 1, x, NULL);
}

/* Shows that row_writes_all_of_its_result finds a kernel that writes nothing. Only glibc can fill
 * new memory with a pattern. */
TEST(a_kernel_that_writes_nothing_is_seen) {
#if defined(M_PERTURB) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    static const op_case row = { .name = "lazy", .build = build_lazy, .in = { ANY(3, 5) } };
    fixture f;
    values one, other;
    fixture_open(&f, &row, WF_F32, PLAIN);
    ck_assert(run_poisoned(&f, 0x55, &one) && run_poisoned(&f, 0xfe, &other));
    ck_assert(!same_bits(one, other));
    free_values(&one, 1);
    free_values(&other, 1);
    fixture_close(&f);
#else
    (void)build_lazy;
#endif
}

static const struct {
    const char *name;
    wf_tensor *(*of)(wf_tensor *x, uint32_t axes, bool keepdim);
    double value;
} nothing[] = {
    { "sum", wf_sum, 0 }, { "prod", wf_prod, 1 },   { "any", wf_any, 0 },
    { "all", wf_all, 1 }, { "mean", wf_mean, NAN }, { "logsumexp", wf_logsumexp, -INFINITY },
};

TEST_ROWS(reductions_of_nothing, COUNT_OF(nothing)) {
    wf_graph *g = new_graph(WF_F32);
    wf_tensor *x = param_of(g, "x", SHAPE(2, 0), (double[]){ 0 });
    values v;
    evaluate((wf_tensor *[]){ nothing[_i].of(x, WF_AXIS(1), false) }, 1, 1, false, &v);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(v.data[i] == nothing[_i].value ||
                          (isnan(v.data[i]) && isnan(nothing[_i].value)),
                      "%s of nothing is %g", nothing[_i].name, v.data[i]);
    free_values(&v, 1);
    end_graph(g);
}

/* ---- cross_entropy: logits of any size ------------------------------------------------------- */

enum { CLASSES = 1000 };

static wf_graph *loss_of(wf_dtype real, const double *logits, double smoothing, values out[2]) {
    wf_graph *g = new_graph(real);
    wf_tensor *x = param_of(g, "x", SHAPE(1, CLASSES), logits), *dx;
    wf_tensor *label = ids_of(g, "label", SHAPE(1), (int32_t[]){ 3 });
    wf_cross_entropy_result r = wf_cross_entropy(x, label, smoothing, -1);
    wf_grad(r.loss, &x, 1, &dx);
    evaluate((wf_tensor *[]){ r.loss, dx }, 2, 1, false, out);
    return g;
}

static const double offsets[] = { 0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, -1e4, -1e7 };

/* With an offset added to all logits, the loss and its gradient in f32 are still within 1e-6 of
 * those in f64. The logits are rounded to f32 first, so that both types compute on the same
 * numbers. */
TEST_ROWS(an_offset_costs_cross_entropy_no_digits, COUNT_OF(offsets)) {
    double logits[CLASSES];
    for (int i = 0; i < CLASSES; i++)
        logits[i] = (float)(offsets[_i] + 6 * number(1, (uint64_t)i) - 3);
    for (int smooth = 0; smooth < 2; smooth++) {
        values narrow[2], wide[2];
        wf_graph *g = loss_of(WF_F32, logits, 0.1 * smooth, narrow);
        wf_graph *h = loss_of(WF_F64, logits, 0.1 * smooth, wide);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(distance(narrow[i], wide[i]) <= 1e-6, "%s: %g", i ? "gradient" : "loss",
                          distance(narrow[i], wide[i]));
        /* without the label's element, which is large beside all others */
        wide[1].data[3] = narrow[1].data[3] = 0;
        ck_assert_double_le(distance(narrow[1], wide[1]), 2e-6);
        free_values(narrow, 2);
        free_values(wide, 2);
        end_graph(g);
        end_graph(h);
    }
}

TEST(equal_logits_have_equal_probabilities) {
    static const double sizes[] = { 0, 1, 1e10, 1e30, -1e30, 3e38 };
    for (int s = 0; s < COUNT_OF(sizes); s++) {
        double logits[CLASSES];
        values v[2];
        for (int i = 0; i < CLASSES; i++) logits[i] = (float)sizes[s];
        wf_graph *g = loss_of(WF_F32, logits, 0, v);
        ck_assert_double_eq_tol(v[0].data[0], log(CLASSES), 1e-5);
        ck_assert_double_eq_tol(v[1].data[0], 1.0 / CLASSES, 1e-9);
        ck_assert_double_eq_tol(v[1].data[3], 1.0 / CLASSES - 1, 1e-6);
        free_values(v, 2);
        end_graph(g);
    }
}

/* ---- norms: rows whose squares overflow ------------------------------------------------------ */

static wf_tensor *layer_norm(wf_tensor *x) {
    return wf_layer_norm(x, WF_LAST_AXIS, NULL, NULL, 1e-5);
}
static wf_tensor *rms_norm(wf_tensor *x) {
    return wf_rms_norm(x, NULL, 1e-5);
}

static wf_tensor *(*const norms[])(wf_tensor *) = { layer_norm, rms_norm };

static void norm_of(int which, wf_dtype real, const double *x, int n, values out[2]) {
    wf_graph *g = new_graph(real);
    wf_tensor *p = param_of(g, "x", SHAPE(1, n), x), *dx;
    wf_tensor *slope = param_of(g, "slope", SHAPE(1, n), (double[]){ 1, 3, -2, 5, 0.5 });
    wf_tensor *y = norms[which](p);
    wf_vjp(&y, &slope, 1, &p, 1, &dx);
    evaluate((wf_tensor *[]){ y, dx }, 2, 1, false, out);
    end_graph(g);
}

/* A row of huge numbers has the same norm as the row times a small power of two, and a gradient
 * that is smaller by that power. */
TEST_ROWS(norms_of_huge_rows_are_those_of_small_ones, 2) {
    static const double row[] = { 2.8e28, 5.5e29, -1e30, 7e29, 1e25 };
    static const double up[] = { 0x1p0, 0x1p25, 0x1p700, 0x1p900 };
    for (int u = 0; u < COUNT_OF(up); u++) {
        wf_dtype real = u < 2 ? WF_F32 : WF_F64;
        double huge[5], small[5];
        values v[2], w[2];
        for (int i = 0; i < 5; i++) {
            huge[i] = (float)row[i] * up[u];
            small[i] = (float)row[i] * 0x1p-90;
        }
        norm_of(_i, real, huge, 5, v);
        norm_of(_i, WF_F64, small, 5, w);
        for (int i = 0; i < 5; i++) w[1].data[i] *= 0x1p-90 / up[u];
        ck_assert_msg(distance(v[0], w[0]) <= 1e-6, "row %d: %g", u, distance(v[0], w[0]));
        /* a gradient below the smallest normal number is 0 */
        if (u == 0 || u == 2)
            ck_assert_msg(distance(v[1], w[1]) <= 1e-5, "row %d, gradient: %g", u,
                          distance(v[1], w[1]));
        free_values(v, 2);
        free_values(w, 2);
    }
}

/* Norms of infinities or NaN are NaN. Zeros would hide the fault from a check for finite
 * numbers. */
TEST_ROWS(norms_of_what_is_not_finite_are_nan, 2) {
    static const double bad[] = { INFINITY, -INFINITY, NAN };
    for (int b = 0; b < COUNT_OF(bad); b++)
        for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
            values v[2];
            norm_of(_i, real, (double[]){ 1, bad[b], 3, 4, 5 }, 5, v);
            for (int i = 0; i < 5; i++) ck_assert(isnan(v[0].data[i]));
            free_values(v, 2);
        }
}

/* ---- signs ----------------------------------------------------------------------------------- */

TEST(scale_keeps_the_sign_of_zero) {
    for (wf_dtype real = WF_F32; real <= WF_F64; real++) {
        wf_graph *g = new_graph(real);
        wf_tensor *x = param_of(g, "x", SHAPE(2), (double[]){ 0.0, -0.0 });
        values v[2];
        evaluate((wf_tensor *[]){ wf_scale(x, -1), wf_scale(x, 2) }, 2, 1, false, v);
        ck_assert(signbit(v[0].data[0]) && !signbit(v[0].data[1]));
        ck_assert(!signbit(v[1].data[0]) && signbit(v[1].data[1]));
        free_values(v, 2);
        end_graph(g);
    }
}

/* ---- kinks: the gradient at a point without a derivative is a convention --------------------- */

static wf_tensor *clamp_to_one(wf_tensor *x) {
    return wf_clamp(x, -1, 1);
}
static wf_tensor *clamp_between(wf_tensor *x) {
    return wf_clamp_tensors(x, wf_constant(x->graph, -1), wf_constant(x->graph, 1));
}
static wf_tensor *max_with_itself(wf_tensor *x) {
    return wf_maximum(x, wf_detach(x));
}
static wf_tensor *max_after_itself(wf_tensor *x) {
    return wf_maximum(wf_detach(x), x);
}
static wf_tensor *min_with_itself(wf_tensor *x) {
    return wf_minimum(x, wf_detach(x));
}
static wf_tensor *min_after_itself(wf_tensor *x) {
    return wf_minimum(wf_detach(x), x);
}
static wf_tensor *max_of_all(wf_tensor *x) {
    return wf_max(x, WF_ALL_AXES, false);
}

static wf_tensor *norm_by_sum(wf_tensor *x) {
    return wf_vector_norm(x, 1, WF_ALL_AXES, false);
}
static wf_tensor *euclidean_norm(wf_tensor *x) {
    return wf_vector_norm(x, 2, WF_ALL_AXES, false);
}
static wf_tensor *norm_by_maximum(wf_tensor *x) {
    return wf_vector_norm(x, INFINITY, WF_ALL_AXES, false);
}
static wf_tensor *norm_by_minimum(wf_tensor *x) {
    return wf_vector_norm(x, -INFINITY, WF_ALL_AXES, false);
}

static wf_tensor *first_of(wf_tensor *x) {
    return wf_cast(wf_fill(x, 0), WF_I32);
}
static wf_tensor *scatter_max_to_five(wf_tensor *x) {
    return wf_scatter_reduce(wf_fill(wf_slice(x, 0, 0, 2), 5), 0, first_of(x), x, WF_SCATTER_MAX);
}
static wf_tensor *scatter_max_with_itself(wf_tensor *x) {
    return wf_scatter_reduce(x, 0, wf_arange(x, 0), wf_detach(x), WF_SCATTER_MAX);
}
static wf_tensor *scatter_min_of_all(wf_tensor *x) {
    return wf_scatter_reduce(wf_fill(x, INFINITY), 0, first_of(x), x, WF_SCATTER_MIN);
}
static wf_tensor *scatter_mul_of_all(wf_tensor *x) {
    return wf_slice(wf_scatter_reduce(wf_fill(x, 1), 0, first_of(x), x, WF_SCATTER_MUL), 0, 0, 1);
}

/* exp(1000 relu(x) + 1000): infinite, and so is its slope. */
static wf_tensor *steep_relu(wf_tensor *x) {
    return wf_exp(wf_affine(wf_relu(x), 1000, 1000));
}

static const struct {
    const char *name;
    wf_tensor *(*op)(wf_tensor *);
    double x[4], slope[4];
} kinks[] = {
    { "relu at 0", wf_relu, { 0, -0.0, 1, -1 }, { 0, 0, 1, 0 } },
    { "abs at 0", wf_abs, { 0, -0.0, 2, -2 }, { 0, 0, 1, -1 } },
    { "clamp at its ends stops", clamp_to_one, { -1, 1, 0.5, 1.5 }, { 0, 0, 1, 0 } },
    { "clamp_tensors at its ends passes", clamp_between, { -1, 1, 0.5, 1.5 }, { 1, 1, 1, 0 } },
    { "maximum, a tie goes to the first", max_with_itself, { 0, 1, 2, 3 }, { 1, 1, 1, 1 } },
    { "maximum, and not to the second", max_after_itself, { 0, 1, 2, 3 }, { 0, 0, 0, 0 } },
    { "minimum, a tie goes to the first", min_with_itself, { 0, 1, 2, 3 }, { 1, 1, 1, 1 } },
    { "minimum, and not to the second", min_after_itself, { 0, 1, 2, 3 }, { 0, 0, 0, 0 } },
    { "relu stops an infinite slope", steep_relu, { -1, 0, -2, -3 }, { 0, 0, 0, 0 } },
    { "max, ties divide it", max_of_all, { 2, 5, 5, 1 }, { 0, 0.5, 0.5, 0 } },
    { "scatter_max, x takes part",
      scatter_max_to_five,
      { 2, 5, 5, 1 },
      { 0, 1 / 3.0, 1 / 3.0, 0 } },
    { "scatter_max, x and its equal",
      scatter_max_with_itself,
      { 1, 2, 3, 4 },
      { 0.5, 0.5, 0.5, 0.5 } },
    { "scatter_min, ties divide it", scatter_min_of_all, { 2, 1, 1, 5 }, { 0, 0.5, 0.5, 0 } },
    { "scatter_mul at a 0", scatter_mul_of_all, { 2, 0, 3, 5 }, { 0, 30, 0, 0 } },
    { "scatter_mul at two", scatter_mul_of_all, { 2, 0, 0, 5 }, { 0, 0, 0, 0 } },
    { "norm by the sum", norm_by_sum, { 0, -0.0, 2, -2 }, { 0, 0, 1, -1 } },
    { "norm of nothing but 0", euclidean_norm, { 0, -0.0, 0, 0 }, { 0, 0, 0, 0 } },
    { "norm by the maximum, ties", norm_by_maximum, { 2, -2, 1, 0 }, { 0.5, -0.5, 0, 0 } },
    { "norm by the maximum of 0", norm_by_maximum, { 0, -0.0, 0, 0 }, { 0, 0, 0, 0 } },
    { "norm by the minimum of 0", norm_by_minimum, { 0, 1, -1, -2 }, { 0, 0, 0, 0 } },
    { "max, all equal", max_of_all, { 3, 3, 3, 3 }, { 0.25, 0.25, 0.25, 0.25 } },
};

TEST_ROWS(kinks_keep_their_convention, COUNT_OF(kinks)) {
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(4), kinks[_i].x), *dx;
    values v;
    wf_grad(wf_sum(kinks[_i].op(x), WF_ALL_AXES, false), &x, 1, &dx);
    evaluate(&dx, 1, 1, false, &v);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(v.data[i] == kinks[_i].slope[i], "%s: slope at %g is %g, not %g",
                      kinks[_i].name, kinks[_i].x[i], v.data[i], kinks[_i].slope[i]);
    free_values(&v, 1);
    end_graph(g);
}

/* ---- whole quarters of a turn ---------------------------------------------------------------- */

/* The frequencies 0 and n / 2 of a real signal have no imaginary part. */
TEST(spectra_are_real_at_both_ends) {
    double signal[17];
    for (int i = 0; i < 17; i++) signal[i] = 1 / (i + 3.0);
    for (wf_dtype real = WF_F32; real <= WF_F64; real++)
        for (int n = 1; n <= 17; n++) {
            wf_graph *g = new_graph(real);
            wf_tensor *x = param_of(g, "x", SHAPE(n), signal);
            wf_tensor *y = wf_stft(x, &(wf_stft_options){ .n_fft = n, .hop_length = 1 }).imag;
            values v;
            evaluate(&y, 1, 1, false, &v);
            ck_assert_int_eq(v.count, n / 2 + 1);
            ck_assert_msg(v.data[0] == 0, "%d points: %g at 0", n, v.data[0]);
            if (n % 2 == 0)
                ck_assert_msg(v.data[n / 2] == 0, "%d points: %g at the highest", n, v.data[n / 2]);
            free_values(&v, 1);
            end_graph(g);
        }
}

/* The Fourier transform of four points multiplies them by 1, -1 and 0 alone. */
TEST(spectra_of_four_whole_numbers_are_whole) {
    static const double want[2][3] = { { 15, -3, -5 }, { 0, 6, 0 } };
    wf_graph *g = new_graph(WF_F64);
    wf_tensor *x = param_of(g, "x", SHAPE(4), (double[]){ 1, 2, 4, 8 });
    wf_stft_result y = wf_stft(x, &(wf_stft_options){ .n_fft = 4, .window = WF_WINDOW_NONE });
    values v[2];
    evaluate((wf_tensor *[]){ y.real, y.imag }, 2, 1, false, v);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++) ck_assert_double_eq(v[k].data[i], want[k][i]);
    free_values(v, 2);
    end_graph(g);
}
