/* tests/ops/op_cases.c - the rows of op_cases_*.inc as functions and as a table, and the functions
 * that record a row. */
#include "op_cases.h"

#include "nn/loss.h"
#include "ops/ops_internal.h"
#include "ops/update/sums.h"

/* Lists that a macro would otherwise take for several arguments. */
#define SIZES(...)                                                                                 \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), ((int64_t[]){ __VA_ARGS__ })
#define ORDER(...) ((int[]){ __VA_ARGS__ })
#define LIST(...)                                                                                  \
    ((wf_tensor *[]){ __VA_ARGS__ }),                                                              \
        (int)(sizeof((wf_tensor *[]){ __VA_ARGS__ }) / sizeof(wf_tensor *))
#define ATTENTION(...) (&(wf_attention_options){ __VA_ARGS__ })
#define CONV(...) (&(wf_conv_options){ __VA_ARGS__ })
#define STFT(...) (&(wf_stft_options){ __VA_ARGS__ })
#define MELS(rate, points, filters, ...)                                                           \
    (wf_mel_options) {                                                                             \
        .sample_rate = rate, .n_fft = points, .n_mels = filters, __VA_ARGS__                       \
    }
#define RESIZE(...) (&(wf_resize_options){ __VA_ARGS__ })
#define POOL(...) (&(wf_pool_options){ __VA_ARGS__ })
#define ADAM(...) (&(wf_adam_options){ __VA_ARGS__ })
#define SGD(...) (&(wf_sgd_options){ __VA_ARGS__ })
#define RMSPROP(...) (&(wf_rmsprop_options){ __VA_ARGS__ })
#define LION(...) (&(wf_lion_options){ __VA_ARGS__ })

/* A weighted sum of the three results, so that one row tests all of their gradients. */
static wf_tensor *all_of(wf_cross_entropy_result r) {
    return wf_add(wf_add(r.loss, wf_scale(r.nll, 0.3)), r.count);
}

static wf_tensor *statistics_of(wf_batch_norm_result r) {
    return wf_add(r.mean, wf_scale(r.variance, 0.3));
}

static wf_tensor *both_parts(wf_stft_result r) {
    return wf_add(r.real, wf_scale(r.imag, 0.3));
}

static wf_tensor *mels_of(wf_tensor *power, wf_mel_options o) {
    return wf_matmul(wf_mel_filters(power->graph, &o), power);
}

static wf_tensor *id_minus(wf_tensor *ids, int32_t less) {
    return wf_sub(ids, wf_constant_array(ids->graph, WF_I32, 0, NULL, &(int32_t){ less }));
}

/* a b + (a c) * a. a's gradient has three terms, whose order is that of recording: so the calls are
 * statements, because C does not define the order in which arguments are evaluated. */
static wf_tensor *products_that_share(wf_tensor *a, wf_tensor *b, wf_tensor *c) {
    wf_tensor *product = wf_mul(wf_matmul(a, c), a);
    return wf_add(wf_matmul(a, b), product);
}
static wf_tensor *used_twice(wf_tensor *x) {
    return wf_mul(x, wf_sigmoid(x));
}

/* One tensor is two operands of an op: an op that writes its result in place of one operand must
 * not destroy the other. */
static wf_tensor *own_mask(wf_tensor *x) {
    return wf_masked_softmax(x, x, false);
}
static wf_tensor *own_gain(wf_tensor *x) {
    return wf_layer_norm(x, WF_LAST_AXIS, x, x, 1e-5);
}
static wf_tensor *own_rms_gain(wf_tensor *x) {
    return wf_rms_norm(x, x, 1e-5);
}
static wf_tensor *own_choice(wf_tensor *x) {
    return wf_where(x, x, x);
}

/* Windows of a value beside the value itself, each of which might overwrite the other's memory. */
static wf_tensor *windows_and_itself(wf_tensor *x) {
    wf_tensor *windows = wf_unfold(x, 0, 3, 1, 1); /* [4, 3] */
    return wf_mul(wf_exp(windows), wf_add(windows, wf_sum(wf_square(x), WF_ALL_AXES, false)));
}

/* wf_accumulate with `depth` sums on its stack, of which `added` are added to the value. */
static wf_tensor *onto(wf_tensor *sums, wf_tensor *value, double depth, double added) {
    wf_tensor *at[] = { wf_constant(sums->graph, depth), wf_constant(sums->graph, added) };
    return wf_accumulate(sums, value, wf_stack(at, 2, 0));
}

/* wf_rmsprop_step with a scale of 1, because a row has at most six operands. */
static wf_tensor *rmsprop_step(wf_tensor *param, wf_tensor *squares, wf_tensor *average,
                               wf_tensor *buffer, wf_tensor *grad, wf_tensor *rates,
                               const wf_rmsprop_options *options) {
    wf_tensor *scale = wf_constant(param->graph, 1);
    return wf_rmsprop_step(param, squares, average, buffer, grad, scale, rates, options);
}

static wf_tensor *other_graph(wf_tensor *x) {
    static wf_graph *other; /* lives until the test's process ends */
    if (!other) other = wf_graph_new(NULL);
    return wf_param(other, "stranger", x->ndim, x->shape, wf_init_zeros());
}

#define TIMES(...) ((int64_t[]){ __VA_ARGS__ })

/* Functions that record ops with several results or with many operands. */
static wf_tensor *stacked_often(wf_tensor *x) {
    wf_tensor *all[40];
    for (int i = 0; i < 40; i++) all[i] = wf_scale(x, i);
    return wf_stack(all, 40, 0);
}

static wf_tensor *split_and_joined(wf_tensor *x) {
    wf_tensor *part[3];
    wf_split(x, 1, TIMES(2, 0, 3), 3, part);
    return wf_concat(LIST(part[2], part[1], part[0]), 1);
}

static wf_tensor *split_in_two(wf_tensor *x, int64_t first, int64_t second) {
    wf_tensor *part[2];
    wf_split(x, 1, TIMES(first, second), 2, part);
    return wf_concat(LIST(part[0], part[1]), 1);
}

static wf_tensor *chunks_multiplied(wf_tensor *x) {
    wf_tensor *part[3];
    wf_chunk(x, -1, 3, part);
    return wf_mul(part[0], wf_mul(part[1], part[2]));
}

#define BUILD(id, expression)                                                                      \
    static wf_tensor *build_##id(wf_tensor *const *x) {                                            \
        wf_tensor *a = x[0], *b = x[1], *c = x[2], *d = x[3], *e = x[4], *f = x[5];                \
        (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;                                      \
        return expression;                                                                         \
    }
#define CASE(id, expression, shape, ...) BUILD(id, expression)
#define RANDOM(id, expression, shape, ...) BUILD(id, expression)
#define UPDATE(id, expression, ...) BUILD(id, expression)
#define FAILS(id, expression, message, ...) BUILD(failing_##id, expression)
#include "op_cases_convolution.inc"
#include "op_cases_elementwise.inc"
#include "op_cases_fail.inc"
#include "op_cases_loss.inc"
#include "op_cases_norm.inc"
#include "op_cases_product.inc"
#include "op_cases_reduce.inc"
#include "op_cases_shape.inc"
#include "op_cases_training.inc"
#undef CASE
#undef RANDOM
#undef UPDATE
#undef FAILS

#define ROW(id, shape, ...)                                                                        \
    { .name = #id, .build = build_##id, .expect = shape, __VA_ARGS__ }
#define CASE(id, expression, shape, ...) ROW(id, shape, .in = { __VA_ARGS__ }),
#define RANDOM(id, expression, shape, ...) ROW(id, shape, .random = true, .in = { __VA_ARGS__ }),
#define UPDATE(id, expression, ...) ROW(id, "", .update = true, .in = { __VA_ARGS__ }),
const op_case op_cases[] = {
#include "op_cases_convolution.inc"
#include "op_cases_elementwise.inc"
#include "op_cases_loss.inc"
#include "op_cases_norm.inc"
#include "op_cases_product.inc"
#include "op_cases_reduce.inc"
#include "op_cases_shape.inc"
#include "op_cases_training.inc"
};
const int op_case_count = COUNT_OF(op_cases);

#define FAILS(id, expression, message, ...) ROW(failing_##id, message, .in = { __VA_ARGS__ }),
const op_case failing_cases[] = {
#include "op_cases_fail.inc"
};
const int failing_case_count = COUNT_OF(failing_cases);

/* ---- operands -------------------------------------------------------------------------------- */

int64_t operand_count(const operand *o) {
    int64_t n = 1;
    for (int i = 0; i < o->ndim; i++) n *= o->shape[i];
    return n;
}

bool differentiable(const operand *o) {
    return o->domain >= DOMAIN_ANY && o->domain <= DOMAIN_SPREAD;
}

bool is_small(const op_case *row) {
    int64_t n = 0;
    for (int i = 0; i < MAX_CASE_OPERANDS; i++)
        if (differentiable(&row->in[i])) n += operand_count(&row->in[i]);
    return n <= 160;
}

uint64_t row_key(const op_case *row, int salt) {
    return key_of(row->name, (uint64_t)salt + 1);
}

/* Element k of n in operand `which`: points of a regular grid, shuffled. Each operand has another
 * grid, so that no two elements are close to each other. */
static double spread(int which, int64_t k, int64_t n) {
    int64_t step = n % 7    ? 7
                   : n % 11 ? 11
                   : n % 13 ? 13
                            : 1; /* coprime with n: visits every point once */
    double point = (double)((k * step + 3 * which) % n);
    return -1.9 + (point + 0.13 + 0.21 * which) * 3.8 / (double)n;
}

static double value_of(const operand *o, int which, uint64_t key, int64_t k) {
    double u = number(key, (uint64_t)k);
    int64_t columns = o->ndim > 0 ? o->shape[o->ndim - 1] : 1;
    switch (o->domain) {
    case DOMAIN_ANY:
        return 4 * u - 2;
    case DOMAIN_AWAY:
        return number(~key, (uint64_t)k) < 0.5 ? -0.5 - 1.5 * u : 0.5 + 1.5 * u;
    case DOMAIN_SPREAD:
        return spread(which, k, operand_count(o));
    case DOMAIN_MASK:
        return u < 0.6;
    case DOMAIN_SHUT:
        return k >= columns;
    case DOMAIN_IDS:
        return floor(u * (double)o->below);
    default:
        return 0.5 + 1.5 * u;
    }
}

/* The operand's values, rounded to f32, so that f32 and f64 compute on the same numbers. */
double *operand_values(const op_case *row, int which) {
    const operand *o = &row->in[which];
    int64_t n = operand_count(o);
    double *data = malloc((size_t)n * sizeof *data + 1);
    ck_assert_ptr_nonnull(data);
    for (int64_t k = 0; k < n; k++) data[k] = (float)value_of(o, which, row_key(row, which), k);
    return data;
}

/* ---- dressing -------------------------------------------------------------------------------- */

static bool can_dress(const operand *o, dressing how) {
    bool real = o->domain != DOMAIN_IDS;
    switch (how) {
    case TRANSPOSED:
        return o->ndim >= 2 && o->domain != DOMAIN_STATE;
    case SPACED:
        return o->ndim >= 1 && o->ndim < WF_MAX_DIMS && o->domain != DOMAIN_STATE;
    case COMPUTED:
        return real && o->domain != DOMAIN_STATE;
    default:
        return false;
    }
}

static int64_t stored_shape(const operand *o, dressing how, int64_t *shape) {
    memcpy(shape, o->shape, sizeof o->shape);
    if (how == TRANSPOSED) {
        shape[o->ndim - 1] = o->shape[o->ndim - 2];
        shape[o->ndim - 2] = o->shape[o->ndim - 1];
    }
    if (how == SPACED) shape[o->ndim] = 3;
    return o->ndim + (how == SPACED);
}

/* The index in the leaf of element k of the operand. */
static int64_t stored_at(const operand *o, dressing how, int64_t k) {
    if (how == SPACED) return 3 * k + 1;
    if (how != TRANSPOSED) return k;
    int64_t columns = o->shape[o->ndim - 1], rows = o->shape[o->ndim - 2];
    int64_t block = k / (rows * columns), i = k / columns % rows, j = k % columns;
    return (block * columns + j) * rows + i;
}

static void store(wf_tensor *leaf, const operand *o, dressing how, const double *data) {
    double *stored = calloc((size_t)wf_count(leaf) + 1, sizeof *stored);
    ck_assert_ptr_nonnull(stored);
    for (int64_t k = 0; k < operand_count(o); k++) stored[stored_at(o, how, k)] = data[k];
    ck_assert_msg(write_doubles(leaf, stored), "cannot write %s", leaf->name);
    free(stored);
}

static wf_tensor *dress(wf_tensor *leaf, const operand *o, dressing how) {
    switch (how) {
    case TRANSPOSED:
        return wf_transpose(leaf, -1, -2);
    case SPACED:
        return wf_squeeze(wf_slice(leaf, -1, 1, 2), WF_AXIS(o->ndim));
    case COMPUTED:
        return wf_neg(wf_neg(leaf));
    default:
        return leaf;
    }
}

static void open_operand(fixture *f, int which, dressing how) {
    const operand *o = &f->row->in[which];
    char name[2] = { (char)('a' + which), '\0' };
    int64_t shape[WF_MAX_DIMS];
    if (!can_dress(o, how)) how = PLAIN;
    int ndim = (int)stored_shape(o, how, shape);
    wf_dtype dtype = o->domain == DOMAIN_IDS ? WF_I32 : wf_real(f->g);
    wf_tensor *leaf = differentiable(o)
                          ? wf_param(f->g, name, ndim, shape, wf_init_zeros())
                          : wf_buffer(f->g, name, dtype, ndim, shape, wf_init_zeros());
    ck_assert_msg(wf_ok(f->g), "%s", wf_error(f->g));
    double *data = operand_values(f->row, which);
    store(leaf, o, how, data);
    free(data);
    f->leaf[which] = leaf;
    f->x[which] = dress(leaf, o, how);
    if (differentiable(o)) f->wrt[f->n_wrt++] = f->x[which];
}

/* ---- fixtures -------------------------------------------------------------------------------- */

void fixture_open(fixture *f, const op_case *row, wf_dtype real, dressing how) {
    *f = (fixture){ .row = row, .g = new_graph(real) };
    while (f->n < MAX_CASE_OPERANDS && row->in[f->n].domain != NO_OPERAND)
        open_operand(f, f->n, how), f->n++;
    f->first = wf_node_count(f->g);
    f->y = row->build(f->x);
    f->last = wf_node_count(f->g);
}

void fixture_close(fixture *f) {
    end_graph(f->g);
}

/* The weights of the loss: from 0.5 to 2 with either sign, exact in f32. */
static wf_tensor *weight_for(fixture *f) {
    wf_tensor *w =
        wf_buffer(f->g, "weight", wf_real(f->g), f->y->ndim, f->y->shape, wf_init_zeros());
    operand o = { .domain = DOMAIN_AWAY, .ndim = f->y->ndim };
    memcpy(o.shape, f->y->shape, sizeof o.shape);
    int64_t n = operand_count(&o);
    double *data = malloc((size_t)n * sizeof *data + 1);
    ck_assert_ptr_nonnull(data);
    for (int64_t k = 0; k < n; k++) data[k] = (float)value_of(&o, 0, row_key(f->row, 100), k);
    ck_assert_msg(write_doubles(w, data), "cannot write the weight");
    free(data);
    return w;
}

bool refuses_gradients(const wf_tensor *y) {
    return y->op && y->op->no_grad && !y->op->detaches && !(y->op->shape_only & 1);
}

bool fixture_differentiate(fixture *f) {
    ck_assert_msg(wf_ok(f->g), "%s", wf_error(f->g));
    if (f->row->update || f->y->dtype != wf_real(f->g) || f->n_wrt == 0) return false;
    if (refuses_gradients(f->y)) return false;
    f->weight = weight_for(f);
    f->loss = wf_sum(wf_mul(f->weight, f->y), WF_ALL_AXES, false);
    ck_assert_msg(wf_grad(f->loss, f->wrt, f->n_wrt, f->grad), "%s", wf_error(f->g));
    return true;
}

int fixture_outputs(const fixture *f) {
    int written = 0;
    for (int i = 0; i < f->n; i++) written += f->row->in[i].domain == DOMAIN_STATE;
    return f->row->update ? written : 1 + (f->loss ? f->n_wrt : 0);
}

void fixture_evaluate(fixture *f, int threads, values *out) {
    wf_tensor *fetch[MAX_OUTPUTS] = { f->y };
    for (int i = 0; f->loss && i < f->n_wrt; i++) fetch[1 + i] = f->grad[i];
    if (!f->row->update) {
        evaluate(fetch, fixture_outputs(f), threads, f->row->random, out);
        return;
    }
    wf_pool *pool = threads > 1 ? wf_pool_new(threads) : NULL;
    wf_plan *p =
        wf_plan_new(f->g, &(wf_plan_options){ .fetch = fetch, .n_fetch = 1, .pool = pool });
    ck_assert_msg(wf_plan_ok(p) && wf_run(p), "%s", wf_plan_error(p));
    wf_plan_free(p), wf_pool_free(pool);
    for (int i = 0, k = 0; i < f->n; i++)
        if (f->row->in[i].domain == DOMAIN_STATE)
            out[k++] = (values){ wf_count(f->leaf[i]), leaf_values(f->leaf[i]) };
}
