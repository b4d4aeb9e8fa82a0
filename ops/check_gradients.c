/* ops/check_gradients.c - compares a gradient with finite differences of the loss.
 *
 * This does not check the loss itself: that needs a reference. To use it, build a graph in f64
 * whose loss depends only on parameters and buffers, and require a result below 1e-8 (first order)
 * or 1e-7 (if the loss itself contains gradients). Let the loss be a sum of the checked outputs
 * with fixed random weights: the plain sum of a softmax, for example, is always 1 and hides any
 * mistake.
 *
 * The stencil has five points, f'(x) = (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h + O(h^4)
 * (Abramowitz & Stegun 25.3.6). The step is h = 2^-10. From |x| = 8e4 on, larger steps are tried,
 * each eight times the one before, up to 2^-10 * 1e-4 |x|. A larger step is used as long as it
 * changes the result by no more than the rounding of both results, 4 eps |loss| / h each. A square
 * at 1e7 needs such a step because of its rounding. A softmax does not: it changes within a
 * distance of 1 at any x. Steps are powers of two, so that x + h is exact. The rounding of the loss
 * is not counted as an error of the gradient. If it is larger than the gradient and than 1e-3, the
 * check is impossible, and the result is NaN.
 *
 * Plans are made for training, so that dropout is checked too: every run is step 0, as is the run
 * that computes the gradients. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops.h"

typedef struct checker {
    wf_plan *plan; /* the loss alone */
    wf_tensor *loss, *leaf;
    double *values; /* of the leaf */
    char *message;
    double worst;
} checker;

static double fail(checker *c, const char *reason, const char *name) {
    snprintf(c->message, WF_MESSAGE, "%s%s%s", name, *name ? ": " : "", reason);
    return NAN;
}

static bool loss_at(checker *c, int64_t i, double x, double *loss) {
    double kept = c->values[i];
    c->values[i] = x;
    bool ok = wf_write(c->leaf, c->values, wf_bytes(c->leaf));
    c->values[i] = kept;
    wf_random_step(c->plan, 0, 0);
    return ok && wf_run(c->plan) && wf_fetch(c->plan, c->loss, loss, sizeof *loss);
}

typedef struct difference {
    double value;    /* the derivative */
    double rounding; /* rounding error of the loss in `value` */
} difference;

static bool stencil(checker *c, int64_t i, double h, difference *d) {
    double x = c->values[i], left, right, far_left, far_right;
    if (!loss_at(c, i, x - 2 * h, &far_left) || !loss_at(c, i, x - h, &left) ||
        !loss_at(c, i, x + h, &right) || !loss_at(c, i, x + 2 * h, &far_right))
        return false;
    d->value = (8 * (right - left) - (far_right - far_left)) / (12 * h);
    d->rounding = 4 * DBL_EPSILON * fmax(fabs(left), fabs(right)) / h;
    return true;
}

static bool differentiate(checker *c, int64_t i, difference *d) {
    const double least = 0x1p-10, most = least * 1e-4 * fabs(c->values[i]);
    if (!stencil(c, i, least, d)) return false;
    for (double h = 8 * least; h <= most; h *= 8) {
        difference next;
        if (!stencil(c, i, h, &next)) return false;
        if (!(fabs(next.value - d->value) <= d->rounding + next.rounding)) break;
        *d = next;
    }
    return true;
}

static bool cannot_tell(checker *c, int64_t i) {
    snprintf(c->message, WF_MESSAGE, "%s[%lld]: the loss is too large for differences to tell",
             c->leaf->name, (long long)i);
    c->worst = NAN;
    return false;
}

/* Compares every element of a leaf's gradient with finite differences of the loss. False: c->worst
 * is NaN, with the reason in message. */
static bool check_leaf(checker *c, const double *gradient) {
    for (int64_t i = 0; i < wf_count(c->leaf); i++) {
        double a = gradient[i];
        difference d;
        if (!differentiate(c, i, &d)) {
            c->worst = fail(c, wf_plan_error(c->plan), "");
            return false;
        }
        double n = d.value, size = fmax(1e-3, fmax(fabs(a), fabs(n)));
        if (d.rounding > size) return cannot_tell(c, i);
        double beyond = fabs(a - n) - d.rounding, error = beyond < 0 ? 0 : beyond / size;
        if (!(error <= c->worst) || !isfinite(a)) {
            c->worst = isfinite(a) ? error : NAN;
            snprintf(c->message, WF_MESSAGE, "%s[%lld]: gradient %.17g, differences %.17g",
                     c->leaf->name, (long long)i, a, n);
        }
        if (isnan(c->worst)) return false;
    }
    return true;
}

static bool check_one(checker *c, wf_plan *gradients, const wf_tensor *grad) {
    size_t bytes = wf_bytes(c->leaf);
    double *gradient = malloc(bytes + 1), *values = malloc(bytes + 1);
    bool ok = gradient && values && wf_read(c->leaf, values, bytes);
    if (!ok) c->worst = fail(c, "out of memory", c->leaf->name);
    if (ok && !wf_fetch(gradients, grad, gradient, bytes)) {
        c->worst = fail(c, wf_plan_error(gradients), "");
        ok = false;
    }
    if (ok) {
        c->values = values;
        ok = check_leaf(c, gradient);
        if (!wf_write(c->leaf, values, bytes)) ok = false;
    }
    free(gradient), free(values);
    return ok;
}

static double compare(checker *c, wf_graph *g, wf_tensor *const *wrt, int n, wf_tensor **grads) {
    wf_plan *gradients =
        wf_plan_new(g, &(wf_plan_options){ .fetch = grads, .n_fetch = n, .training = true });
    c->plan =
        wf_plan_new(g, &(wf_plan_options){ .fetch = &c->loss, .n_fetch = 1, .training = true });
    if (!wf_plan_ok(c->plan))
        c->worst = fail(c, wf_plan_error(c->plan), "");
    else if (!wf_run(gradients))
        c->worst = fail(c, wf_plan_error(gradients), "");
    for (int i = 0; i < n && !isnan(c->worst); i++) {
        c->leaf = wrt[i];
        if (!check_one(c, gradients, grads[i])) break;
    }
    wf_plan_free(gradients), wf_plan_free(c->plan);
    return c->worst;
}

double wf_check_gradients(wf_graph *g, wf_tensor *loss, wf_tensor *const *wrt, int n,
                          char *message) {
    char unread[WF_MESSAGE];
    checker c = { .loss = loss, .message = message ? message : unread };
    c.message[0] = '\0';
    if (!wf_ok(g)) return fail(&c, wf_error(g), "");
    if (wf_real(g) != WF_F64) return fail(&c, "gradients are checked in f64 only", "graph");
    if (!loss || !wrt || n < 1) return fail(&c, "needs a loss and at least one parameter", "");
    for (int i = 0; i < n; i++)
        if (!wrt[i] || wrt[i]->kind != WF_PARAM)
            return fail(&c, "not a parameter", wrt[i] && wrt[i]->name ? wrt[i]->name : "NULL");
    wf_tensor **grads = calloc((size_t)n, sizeof *grads);
    if (!grads) return fail(&c, "out of memory", "");
    double worst =
        wf_grad(loss, wrt, n, grads) ? compare(&c, g, wrt, n, grads) : fail(&c, wf_error(g), "");
    free(grads);
    return worst;
}
